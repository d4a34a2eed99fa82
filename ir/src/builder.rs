//! Makes bodies without text: shapes that lowerings ask for, and tests. Types follow from the operands as in the language; the caller vouches that they fit.

use crate::bits::Bits;
use crate::body::{BinaryOp, Body, Effect, NaryOp, Node, NodeHandle, Op, Port, UnaryOp};
use crate::source::Span;
use crate::types::{ByteOrder, Type};

/// A body in the making.
#[derive(Clone, Debug, Default)]
pub struct BodyBuilder {
    body: Body,
}

impl BodyBuilder {
    /// An empty body.
    pub fn new() -> Self {
        Self::default()
    }

    /// A node of any operation.
    pub fn push(&mut self, op: Op, ty: Type) -> NodeHandle {
        self.body.nodes.push(Node { op, ty, span: Span::default(), name: String::new() })
    }

    /// The type of a node made before.
    pub fn type_of(&self, node: NodeHandle) -> Type {
        self.body.nodes[node].ty.clone()
    }

    /// Lane width and lanes of a node of a `Bits` type; (0, 0) for others.
    fn shape(&self, node: NodeHandle) -> (u32, u32) {
        if let Type::Bits { width, lanes } = self.body.nodes[node].ty { (width, lanes) } else { (0, 0) }
    }

    /// The next input.
    pub fn input(&mut self, name: &str, ty: Type) -> NodeHandle {
        let index = self.body.inputs.len() as u32;
        self.body.inputs.push(Port { name: name.to_owned(), ty: ty.clone(), span: Span::default() });
        self.push(Op::Input(index), ty)
    }

    /// A constant scalar.
    pub fn constant(&mut self, width: u32, value: u64) -> NodeHandle {
        self.push(Op::Constant(Bits::from_u64(width, value)), Type::bits(width))
    }

    /// Lanewise, one operand.
    pub fn unary(&mut self, op: UnaryOp, a: NodeHandle) -> NodeHandle {
        let ty = self.type_of(a);
        self.push(Op::Unary(op, a), ty)
    }

    /// Lanewise, two operands; comparisons give u1 lanes.
    pub fn binary(&mut self, op: BinaryOp, a: NodeHandle, b: NodeHandle) -> NodeHandle {
        let (width, lanes) = self.shape(a);
        self.push(Op::Binary(op, a, b), Type::vector(if op.is_comparison() { 1 } else { width }, lanes))
    }

    /// Lanewise, any number of operands.
    pub fn nary(&mut self, op: NaryOp, operands: &[NodeHandle]) -> NodeHandle {
        let ty = self.type_of(operands[0]);
        self.push(Op::Nary(op, operands.to_vec()), ty)
    }

    /// Lanewise choice.
    pub fn select(&mut self, condition: NodeHandle, then: NodeHandle, otherwise: NodeHandle) -> NodeHandle {
        let ty = self.type_of(then);
        self.push(Op::Select { condition, then, otherwise }, ty)
    }

    /// Every lane zero filled or cut to `width` bits.
    pub fn resize(&mut self, a: NodeHandle, width: u32) -> NodeHandle {
        let (_, lanes) = self.shape(a);
        self.push(Op::Resize(a), Type::vector(width, lanes))
    }

    /// Every lane sign filled to `width` bits.
    pub fn resize_signed(&mut self, a: NodeHandle, width: u32) -> NodeHandle {
        let (_, lanes) = self.shape(a);
        self.push(Op::ResizeSigned(a), Type::vector(width, lanes))
    }

    /// The same bytes as lanes of `width` bits.
    pub fn reinterpret(&mut self, a: NodeHandle, width: u32, order: ByteOrder) -> NodeHandle {
        let (from, lanes) = self.shape(a);
        self.push(Op::Reinterpret(a, order), Type::vector(width, from * lanes / width))
    }

    /// Lane `index` of a vector.
    pub fn lane(&mut self, vector: NodeHandle, index: u32) -> NodeHandle {
        let (width, _) = self.shape(vector);
        let index = self.constant(32, u64::from(index));
        self.push(Op::Lane { vector, index }, Type::bits(width))
    }

    /// A vector of scalars.
    pub fn lanes(&mut self, scalars: &[NodeHandle]) -> NodeHandle {
        let (width, _) = self.shape(scalars[0]);
        self.push(Op::Lanes(scalars.to_vec()), Type::vector(width, scalars.len() as u32))
    }

    /// Lanes of all operands one after another.
    pub fn concatenate(&mut self, operands: &[NodeHandle]) -> NodeHandle {
        let (width, _) = self.shape(operands[0]);
        let lanes = operands.iter().map(|operand| self.shape(*operand).1).sum();
        self.push(Op::Concatenate(operands.to_vec()), Type::vector(width, lanes))
    }

    /// An effect.
    pub fn effect(&mut self, effect: Effect) {
        self.body.effects.push(effect);
    }

    /// The next output.
    pub fn output(&mut self, name: &str, node: NodeHandle) {
        let port = Port { name: name.to_owned(), ty: self.type_of(node), span: Span::default() };
        self.body.outputs.push((port, node));
    }

    /// The body.
    pub fn finish(self) -> Body {
        self.body
    }
}
