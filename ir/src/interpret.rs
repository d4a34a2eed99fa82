//! Interpreting a kernel is its meaning: arguments in, results out, without a machine.

use crate::bits::Bits;
use crate::domains::concrete::{Concrete, Fault, Value};
use crate::domains::memory::NoMemory;
use crate::evaluate::evaluate;
use crate::kernel::{Direction, Kernel, Parameter};
use crate::natural::MontgomeryRadix;
use crate::types::Type;
use num_bigint::BigUint;
use std::sync::Arc;

/// A value passed to or got from a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Argument {
    /// Of a `Bits` type.
    Bits(Bits),
    /// A natural, modulus or residue.
    Integer(BigUint),
    /// An array or slice.
    List(Vec<Argument>),
}

/// What the meaning of a kernel depends on besides its arguments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interpretation {
    /// R of `mont`.
    pub montgomery_radix: MontgomeryRadix,
}

/// Why a kernel has no meaning for these arguments.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InterpretError {
    /// Not one argument for each parameter that is read.
    #[error("kernel `{kernel}` reads {expected} parameters, {actual} arguments were given")]
    ArgumentCount {
        /// The kernel.
        kernel: String,
        /// Parameters read.
        expected: usize,
        /// Arguments.
        actual: usize,
    },
    /// An argument is not of its parameter's type.
    #[error("argument `{name}` is not a {expected}")]
    ArgumentType {
        /// The parameter.
        name: String,
        /// Its type.
        expected: Type,
    },
    /// A modulus is even.
    #[error("modulus `{name}` is even")]
    EvenModulus {
        /// The parameter.
        name: String,
    },
    /// A residue is not below twice its modulus.
    #[error("residue `{name}` is not below twice its modulus")]
    ResidueTooLarge {
        /// The parameter.
        name: String,
    },
    /// A result has undefined bits.
    #[error("result `{name}` has undefined bits")]
    UndefinedResult {
        /// The parameter.
        name: String,
    },
    /// The kernel did what is forbidden.
    #[error(transparent)]
    Fault(#[from] Fault),
}

/// The parameters that a kernel's body has inputs for, in the order of its arguments: see [`Parameter::is_input`].
pub fn read_parameters(kernel: &Kernel) -> impl Iterator<Item = &Parameter> + Clone {
    kernel.parameters.iter().filter(|parameter| parameter.is_input())
}

/// The parameters that a kernel writes, in the order of its results.
pub fn written_parameters(kernel: &Kernel) -> impl Iterator<Item = &Parameter> + Clone {
    kernel.parameters.iter().filter(|parameter| parameter.direction != Direction::In)
}

/// The value of parameter number `modulus`, which must be read, among the arguments.
pub fn modulus_value<'a>(kernel: &Kernel, arguments: &'a [Argument], modulus: u32) -> Option<&'a BigUint> {
    let place = kernel.parameters.get(..modulus as usize)?.iter().filter(|parameter| parameter.is_input()).count();
    match arguments.get(place) {
        Some(Argument::Integer(value)) => Some(value),
        _ => None,
    }
}

/// The results of a kernel for these arguments: one argument for each parameter of direction `In` or `InOut`, one result for each of `Out` or `InOut`, in order.
/// Residues are taken below twice their modulus and given below it; see [`crate::natural`].
///
/// # Errors
/// Where the arguments do not fit, or the kernel does what is forbidden for them.
pub fn interpret(kernel: &Kernel, arguments: &[Argument], options: &Interpretation) -> Result<Vec<Argument>, InterpretError> {
    let parameters = read_parameters(kernel);
    let expected = parameters.clone().count();
    if expected != arguments.len() || expected != kernel.body.inputs.len() {
        return Err(InterpretError::ArgumentCount { kernel: kernel.name.clone(), expected, actual: arguments.len() });
    }
    let inputs = parameters
        .zip(arguments)
        .map(|(parameter, argument)| {
            check_argument(kernel, arguments, &parameter.name, &parameter.ty, argument)?;
            Ok(to_value(argument))
        })
        .collect::<Result<Vec<_>, InterpretError>>()?;
    let mut memory = NoMemory;
    let mut domain = Concrete::new(&mut memory, &options.montgomery_radix);
    let outcome = evaluate(&mut domain, &kernel.body, &inputs)?;
    let undefined = |name: &str| InterpretError::UndefinedResult { name: name.to_owned() };
    let results = kernel.body.outputs.iter().zip(&outcome.outputs);
    results.map(|((port, _), value)| from_value(value).ok_or_else(|| undefined(&port.name))).collect()
}

fn check_argument(kernel: &Kernel, all: &[Argument], name: &str, ty: &Type, argument: &Argument) -> Result<(), InterpretError> {
    let mismatch = || InterpretError::ArgumentType { name: name.to_owned(), expected: ty.clone() };
    let fits = |value: &BigUint, bits: u32| if value.bits() <= u64::from(bits) { Ok(()) } else { Err(mismatch()) };
    match (ty, argument) {
        (Type::Bits { width, lanes }, Argument::Bits(bits)) if bits.width() == width * lanes => Ok(()),
        (Type::Natural { bits }, Argument::Integer(value)) => fits(value, *bits),
        (Type::Modulus { .. }, Argument::Integer(value)) if !value.bit(0) => Err(InterpretError::EvenModulus { name: name.to_owned() }),
        (Type::Modulus { bits }, Argument::Integer(value)) => fits(value, *bits),
        (Type::Residue { modulus, .. }, Argument::Integer(value)) => match modulus_value(kernel, all, *modulus) {
            Some(modulus) if *value < modulus * 2u32 => Ok(()),
            Some(_) => Err(InterpretError::ResidueTooLarge { name: name.to_owned() }),
            None => Err(mismatch()),
        },
        (Type::Array { element, length }, Argument::List(list)) if list.len() == *length as usize => {
            list.iter().try_for_each(|item| check_argument(kernel, all, name, element, item))
        }
        (Type::Slice { element }, Argument::List(list)) => {
            list.iter().try_for_each(|item| check_argument(kernel, all, name, element, item))
        }
        _ => Err(mismatch()),
    }
}

fn to_value(argument: &Argument) -> Value {
    match argument {
        Argument::Bits(bits) => Value::from(bits.clone()),
        Argument::Integer(value) => Value::Integer(value.clone()),
        Argument::List(list) => Value::List(Arc::new(list.iter().map(to_value).collect())),
    }
}

/// `None` where a bit is undefined.
fn from_value(value: &Value) -> Option<Argument> {
    Some(match value {
        Value::Bits(bits) => Argument::Bits(bits.defined()?.clone()),
        Value::Integer(value) => Argument::Integer(value.clone()),
        Value::List(list) => Argument::List(list.iter().map(from_value).collect::<Option<_>>()?),
    })
}
