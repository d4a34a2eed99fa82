//! From syntax to typed bodies.

use crate::body::Body;
use crate::diagnostic::Diagnostic;
use crate::meaning::MeaningOperand;
use crate::types::ByteOrder;

pub(crate) fn row(_text: &str, _offset: usize, _operands: &[MeaningOperand], _order: ByteOrder) -> Result<Body, Vec<Diagnostic>> {
    Ok(Body::default())
}
