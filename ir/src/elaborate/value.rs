//! What an expression stands for before its place has asked for a type.

use crate::body::NodeHandle;
use crate::types::Type;
use num_bigint::BigInt;
use std::rc::Rc;

/// The value of an expression, relative to the body being made.
#[derive(Clone, Debug)]
pub enum Value {
    /// A typed value.
    Node(NodeHandle),
    /// A number without a type.
    Number(BigInt),
    /// `hex"…"`: bytes that become a vector, an array, or an array of vectors.
    Bytes(Rc<[u8]>),
    /// `[…]`: a vector or an array, as its place asks.
    List(Rc<[Value]>),
    /// What a kernel without result gives.
    Nothing,
    /// An error was reported; everything made of it is silent.
    Poison,
}

impl Value {
    /// Whether its place decides its type.
    pub fn is_untyped(&self) -> bool {
        matches!(self, Value::Number(_) | Value::Bytes(_) | Value::List(_))
    }
}

/// Lane width and lanes.
pub fn shape(ty: &Type) -> Option<(u32, u32)> {
    match ty {
        Type::Bits { width, lanes } => Some((*width, *lanes)),
        _ => None,
    }
}
