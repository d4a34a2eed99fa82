//! Machine code: instructions over registers, with labels. Made from a schedule and an allocation, or read back from assembly text;
//! printed by emitters, executed by replay, timed by the timing simulation.

use crate::machine::{FileId, RowId};
use kgen_ir::source::Span;

/// An operand of a row, over registers. Implicit operands are left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CodeOperand {
    /// A register (the first of a tuple).
    Register(FileId, u32),
    /// The constant zero in a register-or-zero operand.
    Zero,
    /// A constant.
    Immediate(i64),
    /// A label in the same code.
    Label(String),
    /// A data symbol with an offset; how much of the address is meant is the row's affair.
    Symbol(String, u64),
}

/// One instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeInstruction {
    /// The row.
    pub row: RowId,
    /// Explicit operands in the row's order.
    pub operands: Vec<CodeOperand>,
    /// In the same bundle as the one before.
    pub parallel: bool,
    /// Unit, where the text must name it.
    pub unit: Option<crate::machine::UnitId>,
    /// Names of the values involved, for listings.
    pub comment: String,
    /// Line in the text it was read from, or place in the spec.
    pub span: Option<Span>,
}

/// A read-only object in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataObject {
    /// Symbol.
    pub symbol: String,
    /// Alignment.
    pub align_bytes: u32,
    /// Contents.
    pub bytes: Vec<u8>,
}

/// A function, or several in one text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Code {
    /// Instructions in order.
    pub instructions: Vec<CodeInstruction>,
    /// Labels by name, with the index of the instruction they stand before (`instructions.len()` at the end), in textual order.
    pub labels: Vec<(String, usize)>,
    /// Constants.
    pub data: Vec<DataObject>,
}
