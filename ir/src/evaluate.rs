//! One evaluator, many domains: a body is run over any [`Domain`]; concrete bits, byte provenance, GF(2)-affine maps, intervals, taint and
//! symbolic identities are all domains (module [`crate::domains`]).

use crate::bits::Bits;
use crate::body::{Body, Effect, Node, NodeHandle, Op};
use crate::source::Span;
use crate::types::Type;
use num_bigint::BigUint;
use smallvec::SmallVec;

/// A node being evaluated, with what a domain may want to know of it.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// The body that is run.
    pub body: &'a Body,
    /// The node in it.
    pub handle: NodeHandle,
    /// The same node.
    pub node: &'a Node,
}

impl<'a> Context<'a> {
    /// Type of another node, usually an operand.
    pub fn type_of(&self, handle: NodeHandle) -> &'a Type {
        &self.body.nodes[handle].ty
    }
}

/// An abstract domain. `Value` stands for a value of any type.
pub trait Domain {
    /// What a node is mapped to.
    type Value: Clone;
    /// Why evaluation cannot go on (an undefined address, a forbidden condition that holds…).
    type Fault;

    /// A constant of a `Bits` type.
    fn constant(&mut self, ty: &Type, bits: &Bits) -> Self::Value;
    /// A constant natural, modulus or residue.
    fn integer(&mut self, ty: &Type, value: &BigUint) -> Self::Value;
    /// Every operation that is neither input, constant, load, structured nor a result of that. `operands` are those of [`Op::operands`], in that order.
    ///
    /// # Errors
    /// What the domain cannot go on from.
    fn apply(&mut self, context: Context<'_>, operands: &[&Self::Value]) -> Result<Self::Value, Self::Fault>;
    /// A `Loop` or `Map`: all its results. `operands` as in [`Op::operands`].
    ///
    /// # Errors
    /// What the domain cannot go on from.
    fn structured(&mut self, context: Context<'_>, operands: &[&Self::Value]) -> Result<Vec<Self::Value>, Self::Fault>;
    /// `bytes` bytes in address order.
    ///
    /// # Errors
    /// What the domain cannot go on from.
    fn load(&mut self, context: Context<'_>, address: &Self::Value, bytes: u32) -> Result<Self::Value, Self::Fault>;
    /// Bytes to memory; `condition` absent means always.
    ///
    /// # Errors
    /// What the domain cannot go on from.
    fn store(&mut self, address: &Self::Value, value: &Self::Value, bytes: u32, condition: Option<&Self::Value>)
    -> Result<(), Self::Fault>;
    /// A branch is about to be reported in [`Outcome::branch`].
    ///
    /// # Errors
    /// Where the domain cannot decide on it.
    fn branch(&mut self, condition: Option<&Self::Value>, target: Option<&Self::Value>) -> Result<(), Self::Fault>;
    /// A condition that may never hold.
    ///
    /// # Errors
    /// Where it holds.
    fn forbidden(&mut self, condition: &Self::Value, span: Span) -> Result<(), Self::Fault>;
}

/// Results of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome<V> {
    /// The outputs in the body's order.
    pub outputs: Vec<V>,
    /// For a row that branches: condition (absent: always) and target address where it is a value.
    pub branch: Option<(Option<V>, Option<V>)>,
}

/// Results of a run with the value of every node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace<V> {
    /// The results.
    pub outcome: Outcome<V>,
    /// What every node came to, in the body's order; the results of loops and maps are on their `Result` nodes, and the loop or map itself has none.
    pub nodes: Vec<Option<V>>,
}

/// Runs a body over a domain and returns its results.
///
/// # Errors
/// What the domain gives.
///
/// # Panics
/// Where `inputs` are fewer than the body's, or the body refers forward: bodies are made by elaboration only.
pub fn evaluate<D: Domain>(domain: &mut D, body: &Body, inputs: &[D::Value]) -> Result<Outcome<D::Value>, D::Fault> {
    evaluate_nodes(domain, body, inputs).map(|trace| trace.outcome)
}

/// Like [`evaluate`], and returns the value of every node too.
///
/// # Errors
/// What the domain gives.
///
/// # Panics
/// As [`evaluate`].
pub fn evaluate_nodes<D: Domain>(domain: &mut D, body: &Body, inputs: &[D::Value]) -> Result<Trace<D::Value>, D::Fault> {
    let mut values: Vec<Option<D::Value>> = Vec::with_capacity(body.nodes.len());
    let mut structured: Vec<(NodeHandle, Vec<D::Value>)> = Vec::new();
    for (handle, node) in body.nodes.iter() {
        let context = Context { body, handle, node };
        let value = match &node.op {
            Op::Input(index) => Some(inputs[*index as usize].clone()),
            Op::Constant(bits) => Some(domain.constant(&node.ty, bits)),
            Op::Integer(value) => Some(domain.integer(&node.ty, value)),
            Op::Load { address } => {
                let bytes = node.ty.total_bits().unwrap_or(0) / 8;
                Some(domain.load(context, value_of(&values, *address), bytes)?)
            }
            Op::Result(of, index) => {
                let results = structured.iter().find(|(handle, _)| handle == of);
                Some(results.expect("a Result refers to a Loop or Map before it").1[*index as usize].clone())
            }
            op => {
                let operands: SmallVec<[&D::Value; 4]> = op.operands().iter().map(|handle| value_of(&values, *handle)).collect();
                if matches!(op, Op::Loop { .. } | Op::Map { .. }) {
                    structured.push((handle, domain.structured(context, &operands)?));
                    None
                } else {
                    Some(domain.apply(context, &operands)?)
                }
            }
        };
        values.push(value);
    }
    let mut branch = None;
    for effect in &body.effects {
        match effect {
            Effect::Store { address, value, condition } => {
                let bytes = body.nodes[*value].ty.total_bits().unwrap_or(0) / 8;
                let condition = condition.map(|handle| value_of(&values, handle));
                domain.store(value_of(&values, *address), value_of(&values, *value), bytes, condition)?;
            }
            Effect::Branch { condition, target } => {
                let condition = condition.map(|handle| value_of(&values, handle));
                let target = target.map(|handle| value_of(&values, handle));
                domain.branch(condition, target)?;
                branch = Some((condition.cloned(), target.cloned()));
            }
            Effect::Forbidden { condition, span } => domain.forbidden(value_of(&values, *condition), *span)?,
        }
    }
    let outputs = body.outputs.iter().map(|(_, handle)| value_of(&values, *handle).clone()).collect();
    Ok(Trace { outcome: Outcome { outputs, branch }, nodes: values })
}

fn value_of<V>(values: &[Option<V>], handle: NodeHandle) -> &V {
    values[handle.index()].as_ref().expect("operands stand before their users and are not loops")
}
