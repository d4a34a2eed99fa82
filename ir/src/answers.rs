//! Results against what is expected: by contract for residues, by bits and integers for everything else; and running known answers.

use crate::interpret::{Argument, InterpretError, Interpretation, interpret, modulus_value, read_parameters, written_parameters};
use crate::kernel::{Kernel, KnownAnswer};
use crate::natural::{self, MontgomeryRadix};
use crate::types::Type;
use num_bigint::BigUint;

/// One place where a result is not what was expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The parameter, with indices of elements: `blocks[3]`.
    pub place: String,
    /// What was expected.
    pub expected: Argument,
    /// What came.
    pub actual: Argument,
}

/// Why a known answer cannot be run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KnownAnswerError {
    /// A parameter that is read has no value.
    #[error("no value is given for parameter `{name}`")]
    Missing {
        /// The parameter.
        name: String,
    },
    /// A value for something that is no parameter of that direction.
    #[error("kernel `{kernel}` has no parameter `{name}` of that direction")]
    NoSuchParameter {
        /// The kernel.
        kernel: String,
        /// The name.
        name: String,
    },
    /// A residue without an odd modulus among the arguments.
    #[error("parameter `{name}` has no odd modulus")]
    NoModulus {
        /// The parameter.
        name: String,
    },
    /// The kernel has no meaning for these arguments.
    #[error(transparent)]
    Interpret(#[from] InterpretError),
}

/// Compares results of a kernel, in the order of its written parameters: residues modulo n and below c·n (c = `multiple`), everything else exactly.
/// `arguments` are those the results were computed from. Gives every difference.
pub fn compare_results(
    kernel: &Kernel,
    arguments: &[Argument],
    expected: &[Argument],
    actual: &[Argument],
    multiple: u32,
) -> Vec<Difference> {
    let mut differences = Vec::new();
    for (parameter, (expected, actual)) in written_parameters(kernel).zip(expected.iter().zip(actual)) {
        compare(kernel, arguments, multiple, &parameter.ty, &parameter.name, expected, actual, &mut differences);
    }
    differences
}

#[expect(clippy::too_many_arguments, reason = "a recursion over two values and their type that carries its surroundings")]
fn compare(
    kernel: &Kernel,
    arguments: &[Argument],
    multiple: u32,
    ty: &Type,
    place: &str,
    expected: &Argument,
    actual: &Argument,
    differences: &mut Vec<Difference>,
) {
    match (ty, expected, actual) {
        (Type::Array { element, .. } | Type::Slice { element }, Argument::List(left), Argument::List(right))
            if left.len() == right.len() =>
        {
            for (index, (expected, actual)) in left.iter().zip(right).enumerate() {
                compare(kernel, arguments, multiple, element, &format!("{place}[{index}]"), expected, actual, differences);
            }
            return;
        }
        (Type::Residue { modulus, .. }, Argument::Integer(expected), Argument::Integer(actual))
            if modulus_value(kernel, arguments, *modulus)
                .is_some_and(|modulus| natural::same_residue(modulus, multiple, expected, actual)) =>
        {
            return;
        }
        // Residues that are not the same by contract differ, even where both are too large in the same way.
        (Type::Residue { .. }, ..) => {}
        _ if expected == actual => return,
        _ => {}
    }
    differences.push(Difference { place: place.to_owned(), expected: expected.clone(), actual: actual.clone() });
}

/// Arguments in which residues stand for the numbers they represent become arguments for this radix.
///
/// # Errors
/// Where a residue has no odd modulus.
pub fn enter_arguments(kernel: &Kernel, arguments: &[Argument], radix: &MontgomeryRadix) -> Result<Vec<Argument>, KnownAnswerError> {
    read_parameters(kernel)
        .zip(arguments)
        .map(|(parameter, argument)| {
            let entered = map_residues(&parameter.ty, argument, &|modulus, bits, value| {
                natural::enter(modulus_value(kernel, arguments, modulus)?, radix.exponent(bits), value)
            });
            entered.ok_or_else(|| KnownAnswerError::NoModulus { name: parameter.name.clone() })
        })
        .collect()
}

/// Results for this radix become results in which residues stand for the numbers they represent. `arguments` are those of the call.
///
/// # Errors
/// Where a residue has no odd modulus.
pub fn leave_results(
    kernel: &Kernel,
    arguments: &[Argument],
    results: &[Argument],
    radix: &MontgomeryRadix,
) -> Result<Vec<Argument>, KnownAnswerError> {
    written_parameters(kernel)
        .zip(results)
        .map(|(parameter, result)| {
            let left = map_residues(&parameter.ty, result, &|modulus, bits, value| {
                natural::leave(modulus_value(kernel, arguments, modulus)?, radix.exponent(bits), value)
            });
            left.ok_or_else(|| KnownAnswerError::NoModulus { name: parameter.name.clone() })
        })
        .collect()
}

type ResidueMap<'a> = &'a dyn Fn(u32, u32, &BigUint) -> Option<BigUint>;

/// Applies a function of (modulus parameter, its BITS, residue) to all residues in a value.
fn map_residues(ty: &Type, argument: &Argument, function: ResidueMap<'_>) -> Option<Argument> {
    Some(match (ty, argument) {
        (Type::Residue { modulus, bits }, Argument::Integer(value)) => Argument::Integer(function(*modulus, *bits, value)?),
        (Type::Array { element, .. } | Type::Slice { element }, Argument::List(list)) => {
            Argument::List(list.iter().map(|item| map_residues(element, item, function)).collect::<Option<_>>()?)
        }
        _ => argument.clone(),
    })
}

/// Runs a known answer on the interpreter; no difference means that it holds. Expected residues are numbers represented, so the outcome is the same for every radix.
///
/// # Errors
/// Where the answer does not fit the kernel, or the kernel has no meaning for it.
pub fn run_known_answer(kernel: &Kernel, answer: &KnownAnswer, options: &Interpretation) -> Result<Vec<Difference>, KnownAnswerError> {
    let no_such = |name: &String| KnownAnswerError::NoSuchParameter { kernel: kernel.name.clone(), name: name.clone() };
    if let Some((name, _)) = answer.given.iter().find(|(name, _)| read_parameters(kernel).all(|parameter| parameter.name != *name)) {
        return Err(no_such(name));
    }
    let arguments = read_parameters(kernel)
        .map(|parameter| {
            let given = answer.given.iter().find(|(name, _)| *name == parameter.name);
            given.map(|(_, value)| value.clone()).ok_or_else(|| KnownAnswerError::Missing { name: parameter.name.clone() })
        })
        .collect::<Result<Vec<_>, _>>()?;
    let entered = enter_arguments(kernel, &arguments, &options.montgomery_radix)?;
    let results = interpret(kernel, &entered, options)?;
    let results = leave_results(kernel, &arguments, &results, &options.montgomery_radix)?;
    let mut differences = Vec::new();
    for (name, expected) in &answer.expected {
        let found = written_parameters(kernel).zip(&results).find(|(parameter, _)| parameter.name == *name);
        let (parameter, actual) = found.ok_or_else(|| no_such(name))?;
        compare(kernel, &arguments, 1, &parameter.ty, name, expected, actual, &mut differences);
    }
    Ok(differences)
}
