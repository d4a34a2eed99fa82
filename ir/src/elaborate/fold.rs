//! Constants: an operation on constants is carried out when the body is made, by the concrete domain, so that it cannot mean anything else than at run time.

use super::builder::Builder;
use crate::body::{Body, Node, NodeHandle, Op};
use crate::domains::concrete::{Concrete, Value};
use crate::domains::memory::NoMemory;
use crate::evaluate::evaluate;
use crate::natural::MontgomeryRadix;
use crate::types::Type;

/// The constant that an operation comes to, where its operands are all constants and its value is defined.
pub fn constant(builder: &Builder, op: &Op, ty: &Type) -> Option<Op> {
    let foldable = !matches!(
        op,
        Op::Input(_)
            | Op::Constant(_)
            | Op::Integer(_)
            | Op::Undefined
            | Op::Array(_)
            | Op::WithElement { .. }
            | Op::Montgomery { .. }
            | Op::ResidueAdd { .. }
            | Op::ResidueSubtract { .. }
            | Op::Canonical { .. }
            | Op::Load { .. }
            | Op::Loop { .. }
            | Op::Map { .. }
            | Op::Result(..)
    );
    let operands = op.operands();
    if !foldable || operands.is_empty() || !operands.iter().all(|operand| builder.is_constant(*operand)) {
        return None;
    }
    let mut body = Body::default();
    let copies: Vec<NodeHandle> = operands.iter().map(|operand| copy(builder, &mut body, *operand)).collect();
    let mut op = op.clone();
    let mut next = copies.into_iter();
    op.for_each_operand_mut(|operand| {
        if let Some(copy) = next.next() {
            *operand = copy;
        }
    });
    let result = body.nodes.push(Node { op, ty: ty.clone(), span: Default::default(), name: String::new() });
    body.outputs.push((crate::body::Port { name: String::new(), ty: ty.clone(), span: Default::default() }, result));
    let (mut memory, radix) = (NoMemory, MontgomeryRadix::one());
    let mut outcome = evaluate(&mut Concrete::new(&mut memory, &radix), &body, &[]).ok()?;
    match outcome.outputs.pop()? {
        Value::Bits(bits) => bits.defined().cloned().map(Op::Constant),
        Value::Integer(value) => Some(Op::Integer(value)),
        Value::List(_) => None,
    }
}

fn copy(builder: &Builder, body: &mut Body, handle: NodeHandle) -> NodeHandle {
    let mut node = builder.node(handle).clone();
    node.op.for_each_operand_mut(|operand| *operand = copy(builder, body, *operand));
    body.nodes.push(node)
}
