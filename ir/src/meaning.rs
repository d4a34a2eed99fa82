//! Meanings of instruction rows: the same expression language, elaborated over a row's operands.

use crate::body::Body;
use crate::diagnostic::Diagnostic;
use crate::types::{ByteOrder, Type};

/// An operand as the meaning sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeaningOperand {
    /// Its name.
    pub name: String,
    /// Its type: a register is `u8xN` bytes in address order for files wider than 64 bits, else a scalar `uW`; immediates are scalars.
    pub ty: Type,
    /// The meaning may read it.
    pub read: bool,
    /// The meaning must assign it.
    pub written: bool,
}

/// Elaborates the statements of a row.
///
/// `text` is a piece of a larger source that starts there at byte `offset`; spans count from the start of the source. `order` is what the views
/// `.u32x4` of a register mean; `.be32x4` and `.le32x4` say it themselves. A view may be assigned (`d.u32x4 = …`). The body's inputs are the operands read and
/// its outputs those written, both in operand order.
///
/// # Errors
/// Every mistake in the text, at its place.
pub fn elaborate_meaning(text: &str, offset: usize, operands: &[MeaningOperand], order: ByteOrder) -> Result<Body, Vec<Diagnostic>> {
    crate::elaborate::row(text, offset, operands, order)
}
