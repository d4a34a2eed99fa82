//! A body while it is made: identical pure nodes are one, associative operators are flat, constants are folded where that needs no arithmetic on wide values.

use super::fold;
use crate::arena::Arena;
use crate::bits::Bits;
use crate::body::{BinaryOp, Body, Effect, NaryOp, Node, NodeHandle, Op, Port, UnaryOp};
use crate::limits;
use crate::source::Span;
use crate::types::Type;
use std::collections::HashMap;

/// A body under construction.
#[derive(Default)]
pub struct Builder {
    /// Ports of the inputs so far.
    pub inputs: Vec<Port>,
    nodes: Arena<Node>,
    /// For each node: its value is fixed, a constant or an array of such.
    fixed: Vec<bool>,
    /// Finds the node with this operation and type. Looked up, never iterated: its order reaches no output.
    known: HashMap<(Op, Type), NodeHandle>,
    /// Whether an operation reads the node, by node.
    used: Vec<bool>,
    /// Effects so far.
    pub effects: Vec<Effect>,
    /// Where the limit on nodes was exceeded first.
    pub overflow: Option<Span>,
}

/// Operands of the same operator with more operands than this stay as they are, so that a sum made in steps costs no square of its length.
const MOST_FLATTENED_OPERANDS: usize = 256;

impl Builder {
    /// The node behind a handle.
    pub fn node(&self, handle: NodeHandle) -> &Node {
        &self.nodes[handle]
    }

    /// The type of a node.
    pub fn ty(&self, handle: NodeHandle) -> &Type {
        &self.nodes[handle].ty
    }

    /// Gives a node its source name unless it has one.
    pub fn name(&mut self, handle: NodeHandle, name: &str) {
        let node = &mut self.nodes[handle];
        if node.name.is_empty() {
            name.clone_into(&mut node.name);
        }
    }

    /// A new input.
    pub fn input(&mut self, port: Port) -> NodeHandle {
        let op = Op::Input(self.inputs.len() as u32);
        let handle = self.nodes.push(Node { op, ty: port.ty.clone(), span: port.span, name: port.name.clone() });
        self.fixed.push(false);
        self.used.push(false);
        self.inputs.push(port);
        handle
    }

    /// A constant of a `Bits` type.
    pub fn constant(&mut self, ty: Type, bits: Bits, span: Span) -> NodeHandle {
        self.intern(Op::Constant(bits), ty, span)
    }

    /// The bits of a constant node.
    pub fn constant_bits(&self, handle: NodeHandle) -> Option<&Bits> {
        match &self.nodes[handle].op {
            Op::Constant(bits) => Some(bits),
            _ => None,
        }
    }

    /// Whether the value is fixed: a constant, or an array of constants.
    pub fn is_constant(&self, handle: NodeHandle) -> bool {
        self.fixed[handle.index()]
    }

    /// The node that computes this, after simplification.
    pub fn push(&mut self, op: Op, ty: Type, span: Span) -> NodeHandle {
        let op = match op {
            Op::Nary(nary, operands) => return self.nary(nary, operands, ty, span),
            op => op,
        };
        if let Some(handle) = self.simplify(&op, &ty, span) {
            return handle;
        }
        let op = fold::constant(self, &op, &ty).unwrap_or(op);
        self.intern(op, ty, span)
    }

    fn intern(&mut self, op: Op, ty: Type, span: Span) -> NodeHandle {
        let key = (op, ty);
        if let Some(handle) = self.known.get(&key) {
            return *handle;
        }
        if self.nodes.len() >= limits::BODY_NODES {
            self.overflow.get_or_insert(span);
            // Any node will do: the error is reported and the body thrown away.
            return NodeHandle::from_index(0);
        }
        let handle = self.nodes.push(Node { op: key.0.clone(), ty: key.1.clone(), span, name: String::new() });
        self.fixed.push(match &key.0 {
            Op::Constant(_) | Op::Integer(_) => true,
            Op::Array(elements) => elements.iter().all(|element| self.fixed[element.index()]),
            _ => false,
        });
        self.used.push(false);
        for operand in key.0.operands() {
            self.used[operand.index()] = true;
        }
        self.known.insert(key, handle);
        handle
    }

    /// Flattens operands of the same operator and drops neutral constants. An operand that something else reads already is a value in its own right: to flatten it would
    /// compute it again, and chains such as `a = a + b; d = d ^ a` would grow with the square of their length.
    fn nary(&mut self, nary: NaryOp, operands: Vec<NodeHandle>, ty: Type, span: Span) -> NodeHandle {
        let mut flat: Vec<NodeHandle> = Vec::with_capacity(operands.len());
        for operand in operands {
            match &self.nodes[operand].op {
                Op::Nary(inner, list) if *inner == nary && !self.used[operand.index()] && list.len() <= MOST_FLATTENED_OPERANDS => {
                    flat.extend(list);
                }
                _ => flat.push(operand),
            }
        }
        let neutral = |bits: &Bits| match nary {
            NaryOp::And => *bits == Bits::ones(bits.width()),
            NaryOp::Add | NaryOp::Xor | NaryOp::Or => *bits == Bits::zero(bits.width()),
        };
        if flat.len() > 1 {
            let kept: Vec<NodeHandle> = flat.iter().copied().filter(|operand| !self.constant_bits(*operand).is_some_and(neutral)).collect();
            flat = if kept.is_empty() { vec![flat[0]] } else { kept };
        }
        if let [only] = flat.as_slice() {
            return *only;
        }
        let op = Op::Nary(nary, flat);
        let op = fold::constant(self, &op, &ty).unwrap_or(op);
        self.intern(op, ty, span)
    }

    /// Structural identities; none changes which bits are undefined.
    fn simplify(&mut self, op: &Op, ty: &Type, span: Span) -> Option<NodeHandle> {
        match op {
            Op::Resize(value) | Op::ResizeSigned(value) | Op::Slice { vector: value, start: 0 } | Op::NaturalSlice { value, start: 0 }
                if self.ty(*value) == ty =>
            {
                Some(*value)
            }
            Op::Reinterpret(value, order) => {
                if self.ty(*value) == ty {
                    return Some(*value);
                }
                match self.nodes[*value].op {
                    Op::Reinterpret(inner, inner_order) if inner_order == *order => {
                        Some(self.push(Op::Reinterpret(inner, *order), ty.clone(), span))
                    }
                    _ => None,
                }
            }
            Op::Unary(UnaryOp::Not, value) => match self.nodes[*value].op {
                Op::Unary(UnaryOp::Not, inner) => Some(inner),
                _ => None,
            },
            Op::Lane { vector, index } => {
                let index = self.constant_bits(*index)?.to_u64()?;
                match &self.nodes[*vector].op {
                    Op::Lanes(lanes) => lanes.get(usize::try_from(index).ok()?).copied(),
                    Op::Slice { vector: inner, start } => {
                        let (inner, place) = (*inner, u64::from(*start) + index);
                        let index = self.constant(Type::bits(32), Bits::from_u64(32, place), span);
                        Some(self.push(Op::Lane { vector: inner, index }, ty.clone(), span))
                    }
                    _ => None,
                }
            }
            // A vector of indices gives a vector: lane by lane, not the element of one number.
            Op::Element { array, index } if matches!(self.ty(*index), Type::Bits { lanes: 1, .. }) => {
                let index = self.constant_bits(*index)?.to_u64()?;
                match &self.nodes[*array].op {
                    Op::Array(elements) => elements.get(usize::try_from(index).ok()?).copied(),
                    _ => None,
                }
            }
            Op::WithElement { array, index, value } => {
                let place = usize::try_from(self.constant_bits(*index)?.to_u64()?).ok()?;
                match self.nodes[*array].op.clone() {
                    Op::Array(mut elements) if place < elements.len() => {
                        elements[place] = *value;
                        Some(self.push(Op::Array(elements), ty.clone(), span))
                    }
                    _ => None,
                }
            }
            Op::Lanes(lanes) | Op::Concatenate(lanes) if lanes.len() == 1 && self.ty(lanes[0]) == ty => Some(lanes[0]),
            Op::Lanes(lanes) => self.whole_vector(lanes, ty),
            Op::Binary(BinaryOp::ShiftLeft | BinaryOp::ShiftRight | BinaryOp::ShiftRightSigned | BinaryOp::RotateLeft, value, count) => {
                (*self.constant_bits(*count)? == Bits::zero(self.constant_bits(*count)?.width())).then_some(*value)
            }
            Op::Select { condition, then, otherwise } => {
                let bits = self.constant_bits(*condition)?;
                if *bits == Bits::ones(bits.width()) {
                    Some(*then)
                } else if *bits == Bits::zero(bits.width()) {
                    Some(*otherwise)
                } else {
                    None
                }
            }
            _ => None,
        }
    }

    /// Lanes 0, 1, … of one vector, all of them, are that vector.
    fn whole_vector(&self, lanes: &[NodeHandle], ty: &Type) -> Option<NodeHandle> {
        let mut whole = None;
        for (place, lane) in lanes.iter().enumerate() {
            let Op::Lane { vector, index } = &self.nodes[*lane].op else { return None };
            if self.constant_bits(*index)?.to_u64()? != place as u64 || *whole.get_or_insert(*vector) != *vector {
                return None;
            }
        }
        whole.filter(|vector| self.ty(*vector) == ty)
    }

    /// Keeps what outputs and effects need (and the inputs), in order.
    pub fn finish(self, outputs: Vec<(Port, NodeHandle)>) -> Body {
        let mut live = vec![false; self.nodes.len()];
        let roots = outputs.iter().map(|(_, handle)| *handle).chain(self.effects.iter().flat_map(effect_operands));
        for root in roots {
            live[root.index()] = true;
        }
        for (handle, node) in self.nodes.iter().rev() {
            if matches!(node.op, Op::Input(_)) {
                live[handle.index()] = true;
            }
            if live[handle.index()] {
                for operand in node.op.operands() {
                    live[operand.index()] = true;
                }
            }
        }
        let mut places: Vec<NodeHandle> = Vec::with_capacity(self.nodes.len());
        let mut nodes = Arena::default();
        for (handle, node) in self.nodes.iter() {
            if live[handle.index()] {
                let mut node = node.clone();
                node.op.for_each_operand_mut(|operand| *operand = places[operand.index()]);
                places.push(nodes.push(node));
            } else {
                // Never read: nothing live refers to it.
                places.push(NodeHandle::from_index(0));
            }
        }
        let mut effects = self.effects;
        for effect in &mut effects {
            for operand in effect_operands_mut(effect) {
                *operand = places[operand.index()];
            }
        }
        let outputs = outputs.into_iter().map(|(port, handle)| (port, places[handle.index()])).collect();
        Body { inputs: self.inputs, nodes, effects, outputs }
    }
}

fn effect_operands(effect: &Effect) -> Vec<NodeHandle> {
    match effect {
        Effect::Store { address, value, condition } => [*address, *value].into_iter().chain(*condition).collect(),
        Effect::Branch { condition, target } => condition.iter().chain(target).copied().collect(),
        Effect::Forbidden { condition, .. } => vec![*condition],
    }
}

fn effect_operands_mut(effect: &mut Effect) -> Vec<&mut NodeHandle> {
    match effect {
        Effect::Store { address, value, condition } => [address, value].into_iter().chain(condition.as_mut()).collect(),
        Effect::Branch { condition, target } => condition.iter_mut().chain(target.iter_mut()).collect(),
        Effect::Forbidden { condition, .. } => vec![condition],
    }
}
