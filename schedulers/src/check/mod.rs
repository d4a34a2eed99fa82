//! The trusted checker: accepts a schedule, an allocation and the code made of them, or names the rule that is broken.
//!
//! It shares nothing with the searches: it takes the machine and the stages' products as plain data (a test parses its imports). Rules, each over all inputs:
//!
//! 1. *complete*: between its body labels the code holds exactly the program's instructions, each once, block by block, with the program's constants, labels and symbols.
//! 2. *holds*: where an instruction reads value v from register r, r holds v on every path; a register holds the set of values that all paths agree on
//!    (fixpoint at loop heads). On a machine whose latency is exposed, a register holds its new value from the cycle in which it lands, and the old one before.
//! 3. *tied*, *zero*, *tuple*, *clobber*: operands obey their row; no result of a reserved file register.
//! 4. *memory*: two accesses that may touch a common byte, one of them writing, stand in program order.
//! 5. *hazards*: every hazard that the machine marks `must` is kept in every cycle.
//! 6. *constant time*: no secret reaches an address on cached memory, a branch, or a row whose time depends on operands (secrets are derived again from parameters and regions).
mod body;
mod hazards;
mod memory_order;
mod registers;
mod secrecy;

use crate::allocation::Allocation;
use crate::code::Code;
use crate::machine::Machine;
use crate::program::Program;
use crate::schedule::Schedule;
use std::fmt;

pub use secrecy::SecretAddresses;

/// A broken rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The rule's name, in kebab case.
    pub rule: &'static str,
    /// Index of the instruction in the code, where it is about one.
    pub instruction: Option<usize>,
    /// Both parties, and what was expected.
    pub text: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: ", self.rule)?;
        if let Some(index) = self.instruction {
            write!(formatter, "instruction {index}: ")?;
        }
        formatter.write_str(&self.text)
    }
}

/// The products of one function, together.
#[derive(Clone, Copy, Debug)]
pub struct Products<'a> {
    /// The machine.
    pub machine: &'a Machine,
    /// The lowered kernel, with what the driver added.
    pub program: &'a Program,
    /// Order, cycles, units.
    pub schedule: &'a Schedule,
    /// Registers of arguments and frame offsets.
    pub allocation: &'a Allocation,
    /// The code, best read back from its text.
    pub code: &'a Code,
    /// Whether the user asked for tables in cached memory by name.
    pub secret_addresses: SecretAddresses,
}

/// Checks every rule.
///
/// # Errors
/// All violations found, in the order of the rules.
pub fn check(products: Products<'_>) -> Result<(), Vec<Violation>> {
    let body = body::match_code(products).map_err(|violations| violations.into_iter().take(VIOLATIONS_SHOWN).collect::<Vec<_>>())?;
    let mut violations = Vec::new();
    registers::check(products, &body, &mut violations);
    memory_order::check(products.machine, products.program, products.schedule, &mut violations);
    hazards::check(products, &mut violations);
    secrecy::check(products.machine, products.program, products.secret_addresses, &mut violations);
    violations.truncate(VIOLATIONS_SHOWN);
    if violations.is_empty() { Ok(()) } else { Err(violations) }
}

/// Checks a program on a machine without assembly, in the schedule's order: rules *memory* and *constant time*. The others are about registers and code, and there
/// are none.
///
/// # Errors
/// All violations found, in the order of the rules.
pub fn check_program(
    machine: &Machine,
    program: &Program,
    schedule: &Schedule,
    secret_addresses: SecretAddresses,
) -> Result<(), Vec<Violation>> {
    let mut violations = Vec::new();
    memory_order::check(machine, program, schedule, &mut violations);
    secrecy::check(machine, program, secret_addresses, &mut violations);
    violations.truncate(VIOLATIONS_SHOWN);
    if violations.is_empty() { Ok(()) } else { Err(violations) }
}

/// One broken schedule breaks many rules; more than this many lines help nobody.
const VIOLATIONS_SHOWN: usize = 50;
