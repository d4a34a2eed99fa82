//! One evaluator, many domains: a body is run over any [`Domain`]; concrete bits, byte provenance, GF(2)-affine maps, intervals, taint and
//! symbolic identities are all domains (folder `domains/`).

use crate::bits::Bits;
use crate::body::{Body, Effect, Node, Op};
use crate::types::Type;

/// An abstract domain. `Value` stands for a value of any type.
pub trait Domain {
    /// What a node is mapped to.
    type Value: Clone;
    /// Why evaluation cannot go on (an undefined address, a forbidden condition that holds…).
    type Fault;

    /// A constant.
    fn constant(&mut self, ty: &Type, bits: &Bits) -> Self::Value;
    /// Every operation that is neither `Input`, `Constant`, `Load` nor structured; operands in the order in which [`Op::operands`] lists them.
    ///
    /// [`Op::operands`]: crate::body::Op::operands
    fn apply(&mut self, node: &Node, operand_types: &[&Type], operands: &[&Self::Value]) -> Result<Self::Value, Self::Fault>;
    /// Bytes in address order.
    fn load(&mut self, address: &Self::Value, bytes: u32) -> Result<Self::Value, Self::Fault>;
    /// Bytes to memory; `condition` absent means always.
    fn store(&mut self, address: &Self::Value, value: &Self::Value, bytes: u32, condition: Option<&Self::Value>)
    -> Result<(), Self::Fault>;
    /// A condition that may never hold.
    fn forbidden(&mut self, condition: &Self::Value) -> Result<(), Self::Fault>;
}

/// Results of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome<V> {
    /// The outputs in the body's order.
    pub outputs: Vec<V>,
    /// For a row that branches: condition (absent: always) and target address where it is a value.
    pub branch: Option<(Option<V>, Option<V>)>,
}

/// Runs a body over a domain. Structured operations (loops, maps) are the interpreter's work and are not met in rows.
///
/// # Errors
/// What the domain gives.
pub fn evaluate<D: Domain>(domain: &mut D, body: &Body, inputs: &[D::Value]) -> Result<Outcome<D::Value>, D::Fault> {
    let mut values: Vec<D::Value> = Vec::with_capacity(body.nodes.len());
    for (_, node) in body.nodes.iter() {
        let value = match &node.op {
            Op::Input(index) => inputs[*index as usize].clone(),
            Op::Constant(bits) => domain.constant(&node.ty, bits),
            Op::Load { address } => domain.load(&values[address.index()], node.ty.total_bits().unwrap_or(0) / 8)?,
            op => {
                let handles = op.operands();
                let operands: Vec<&D::Value> = handles.iter().map(|handle| &values[handle.index()]).collect();
                let types: Vec<&Type> = handles.iter().map(|handle| &body.nodes[*handle].ty).collect();
                domain.apply(node, &types, &operands)?
            }
        };
        values.push(value);
    }
    let mut branch = None;
    for effect in &body.effects {
        match effect {
            Effect::Store { address, value, condition } => {
                let bytes = body.nodes[*value].ty.total_bits().unwrap_or(0) / 8;
                domain.store(&values[address.index()], &values[value.index()], bytes, condition.map(|handle| &values[handle.index()]))?;
            }
            Effect::Branch { condition, target } => {
                branch =
                    Some((condition.map(|handle| values[handle.index()].clone()), target.map(|handle| values[handle.index()].clone())));
            }
            Effect::Forbidden { condition, .. } => domain.forbidden(&values[condition.index()])?,
        }
    }
    Ok(Outcome { outputs: body.outputs.iter().map(|(_, handle)| values[handle.index()].clone()).collect(), branch })
}
