//! Machine code: instructions over registers, with labels. Made from a schedule and an allocation, or read back from assembly text;
//! printed by emitters, executed by replay, timed by the timing simulation.

use crate::machine::{FileId, Machine, OperandKind, RowId};
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

/// An instruction that does not fit its row; code made by kgen and code read from text always fits.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Misfit {
    /// Too few or too many operands.
    #[error("row `{row}` has {expected} operands in its text, the instruction {found}")]
    OperandCount {
        /// The row's name.
        row: String,
        /// Explicit operands of the row.
        expected: usize,
        /// Operands of the instruction.
        found: usize,
    },
    /// An operand of another kind than the row's.
    #[error("operand `{operand}` of row `{row}` cannot be {found:?}")]
    OperandKind {
        /// The row's name.
        row: String,
        /// The operand's name.
        operand: String,
        /// What the instruction has there.
        found: CodeOperand,
    },
}

impl CodeInstruction {
    /// All operands, the implicit ones included, in the row's order.
    ///
    /// # Errors
    /// Where number or kinds of the operands are not the row's.
    pub fn all_operands(&self, machine: &Machine) -> Result<Vec<CodeOperand>, Misfit> {
        let row = &machine[self.row];
        let expected = row.explicit_operands().count();
        if expected != self.operands.len() {
            return Err(Misfit::OperandCount { row: row.name.clone(), expected, found: self.operands.len() });
        }
        let mut explicit = self.operands.iter();
        let mut all: Vec<CodeOperand> = Vec::with_capacity(row.operands.len());
        for operand in &row.operands {
            let found = match operand.kind {
                OperandKind::Register(file) | OperandKind::RegisterOrZero(file) if operand.implicit => {
                    // A tied operand stands behind its result (the target reader sees to it).
                    match operand.tied.and_then(|tied| all.get(tied as usize)) {
                        Some(result) => result.clone(),
                        None => CodeOperand::Register(file, operand.fixed_register.unwrap_or(0)),
                    }
                }
                _ => match explicit.next() {
                    Some(found) => found.clone(),
                    None => break,
                },
            };
            let fits = match (&operand.kind, &found) {
                (OperandKind::Register(file), CodeOperand::Register(other, number))
                | (OperandKind::RegisterOrZero(file), CodeOperand::Register(other, number)) => {
                    file == other && machine[*file].count.is_none_or(|count| number + operand.tuple <= count)
                }
                (OperandKind::RegisterOrZero(_), CodeOperand::Zero) | (OperandKind::Label, CodeOperand::Label(_)) => true,
                (OperandKind::Symbol, CodeOperand::Symbol(..)) => true,
                (OperandKind::Immediate { low, high, step }, CodeOperand::Immediate(value)) => {
                    let value = i128::from(*value);
                    (*low..*high).contains(&value) && value % step == 0
                }
                _ => false,
            };
            if !fits {
                return Err(Misfit::OperandKind { row: row.name.clone(), operand: operand.name.clone(), found });
            }
            all.push(found);
        }
        Ok(all)
    }
}

impl Code {
    /// The instruction that a label stands before.
    pub fn label(&self, name: &str) -> Option<usize> {
        self.labels.iter().find(|(label, _)| label == name).map(|(_, place)| *place)
    }
}
