//! A finished function: everything about it that passed `check` and `replay`; what output forms and reports are made of.

use crate::allocation::Allocation;
use crate::code::Code;
use crate::program::Program;
use crate::schedule::{Bound, Schedule};
use serde::Serialize;

/// What a function is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FunctionRole {
    /// The kernel itself.
    Kernel,
    /// Computes everything that depends on setup parameters only.
    Setup,
    /// Bytes to a natural's layout.
    Import,
    /// A natural's layout to bytes.
    Export,
}

/// Cycles of a function in the machine's model. `None` fields: the machine has no timing model, or the function no such part.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Cycles {
    /// The body without register saves; of a loop with a run-time count, one round.
    pub body: Option<u64>,
    /// The whole call, from the first instruction to the return, register saves included (one round).
    pub call: Option<u64>,
    /// What each further round of a run-time loop adds.
    pub per_iteration: Option<f64>,
}

/// Figures of a finished function.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Performance {
    /// Cycles.
    pub cycles: Cycles,
    /// Lower bounds of the body, greatest first.
    pub bounds: Vec<Bound>,
    /// The bound that binds: the first of `bounds`.
    pub binding: Option<String>,
    /// Instructions of the body by unit, in the machine's order of units.
    pub unit_operations: Vec<(String, u64)>,
    /// Most values live at once, by register file, and the registers there are.
    pub registers: Vec<(String, u32, Option<u32>)>,
    /// Values spilled to the frame.
    pub spills: u32,
    /// Values computed again instead of kept.
    pub rematerialized: u32,
    /// Frame.
    pub frame_bytes: u64,
    /// Code, prologue and epilogue included.
    pub code_bytes: u64,
    /// Constants.
    pub pool_bytes: u64,
    /// Why cycles are lost, in the timing simulation: (reason, cycles).
    pub stalls: Vec<(String, u64)>,
    /// Model figures that are guesses and that this function's figures rest on.
    pub guesses: Vec<String>,
}

/// Evidence that was gathered in the same run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Evidence {
    /// Inputs on which the code was executed by its rows' meanings and compared with the interpreter.
    pub replayed_inputs: u32,
}

/// A function with all its stages' products.
#[derive(Clone, Debug)]
pub struct FinishedFunction {
    /// What for.
    pub role: FunctionRole,
    /// The lowered kernel, with what the driver added.
    pub program: Program,
    /// Order and cycles.
    pub schedule: Schedule,
    /// Registers and frame; `None` on machines with unlimited registers.
    pub allocation: Option<Allocation>,
    /// Machine code; `None` on machines that have no assembly.
    pub code: Option<Code>,
    /// Figures.
    pub performance: Performance,
    /// Evidence.
    pub evidence: Evidence,
}
