//! Validated units: what the validator returns and every later stage takes.

use crate::body::Body;
use crate::source::{Source, Span};
use crate::types::Type;
use std::sync::Arc;

/// How a kernel uses a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// Read only.
    In,
    /// Written only (`out`, and the result of a kernel).
    Out,
    /// Read and written.
    InOut,
}

/// Whether two parameters may name the same memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Alias {
    /// No byte in common (the default).
    #[default]
    Disjoint,
    /// The very same region, or disjoint.
    Same(u32),
    /// Anything.
    Any,
}

/// A parameter of a kernel. Scalars up to u64 pass by value, everything else is a region.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Its name; the result of a kernel is called `result`.
    pub name: String,
    /// Its type.
    pub ty: Type,
    /// Use.
    pub direction: Direction,
    /// Serves many calls: goes into the block that `NAME_setup` makes.
    pub setup: bool,
    /// Must not influence time or addresses.
    pub secret: bool,
    /// Alignment in bytes that the caller guarantees.
    pub align_bytes: u32,
    /// Overlap with other parameters that the caller may make use of.
    pub alias: Alias,
    /// Where it was declared.
    pub span: Span,
}

impl Parameter {
    /// Whether the kernel's body has an input for it: what is read, and slices, whose length is read even where their elements are only written.
    pub fn is_input(&self) -> bool {
        self.direction != Direction::Out || matches!(self.ty, Type::Slice { .. })
    }
}

/// A kernel, ready to be lowered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// Its name with parameters filled in: `mont_mul_512`.
    pub name: String,
    /// Parameters in order; a result (`-> T`) is the last one, with direction `Out`.
    pub parameters: Vec<Parameter>,
    /// Inputs are the parameters read (see [`Parameter::is_input`]), in order; outputs are those written (Out and InOut), in order.
    pub body: Body,
    /// Where it stands.
    pub span: Span,
}

/// A known answer of a spec: inputs and expected outputs by parameter name, as typed constants. A residue is given as the number that it represents (see [`crate::natural`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownAnswer {
    /// The kernel's full name.
    pub kernel: String,
    /// What the test calls itself.
    pub title: String,
    /// Values given, by parameter name.
    pub given: Vec<(String, crate::interpret::Argument)>,
    /// Values expected, by parameter name (`result` for a result).
    pub expected: Vec<(String, crate::interpret::Argument)>,
    /// Where it stands.
    pub span: Span,
}

/// A validated spec file with its parameters fixed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    /// The text, for messages.
    pub source: Arc<Source>,
    /// Values of the unit's `param`s, in order of declaration; `true` where the user changed it.
    pub parameters: Vec<(String, u64, bool)>,
    /// Kernels in order.
    pub kernels: Vec<Kernel>,
    /// Known answers in order.
    pub tests: Vec<KnownAnswer>,
    /// SHA-256 of the printed unit with parameters filled in, hex.
    pub hash: String,
}
