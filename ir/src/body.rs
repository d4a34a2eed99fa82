//! The typed, validated dataflow that kernels and instruction rows share. It is made by `elaborate` only; operands refer backwards.

use crate::arena::{Arena, Handle};
use crate::bits::Bits;
use crate::source::Span;
use crate::types::{ByteOrder, Type};
use num_bigint::BigUint;

/// A handle of a node in its body.
pub type NodeHandle = Handle<Node>;

/// One value of a body.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Node {
    /// How it comes about.
    pub op: Op,
    /// Its type.
    pub ty: Type,
    /// Where it was written.
    pub span: Span,
    /// The source name it was bound to first, for temporaries' names; empty where it had none.
    pub name: String,
}

/// Lane by lane, one operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum UnaryOp {
    /// Complement.
    Not,
    /// Number of leading zeros, of the operand's width.
    LeadingZeros,
    /// Number of ones, of the operand's width.
    PopulationCount,
}

/// Lane by lane, two operands of one type (shift counts: any `Bits` type with one lane, or as many lanes).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BinaryOp {
    /// Difference modulo 2^W.
    Subtract,
    /// Product modulo 2^W. (`wide(a) * wide(b)` is the full product.)
    Multiply,
    /// Quotient, all ones for division by zero is NOT defined here: division by zero is `undefined`.
    Divide,
    /// Remainder, `undefined` for division by zero.
    Remainder,
    /// Carry-less product modulo x^W.
    CarrylessMultiply,
    /// Left; zero when the count is W or more.
    ShiftLeft,
    /// Right, zero filled; zero when the count is W or more.
    ShiftRight,
    /// Right, filled with the sign; all sign when the count is W or more.
    ShiftRightSigned,
    /// Rotation left by count modulo W.
    RotateLeft,
    /// u1 (per lane): equal.
    Equal,
    /// u1 (per lane): unsigned less.
    Less,
    /// u1 (per lane): signed less.
    LessSigned,
    /// Unsigned minimum.
    Minimum,
    /// Unsigned maximum.
    Maximum,
    /// Signed minimum.
    MinimumSigned,
    /// Signed maximum.
    MaximumSigned,
}

/// Lane by lane, any number (≥ 1) of operands of one type, in no order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NaryOp {
    /// Sum modulo 2^W.
    Add,
    /// Exclusive or.
    Xor,
    /// And.
    And,
    /// Or.
    Or,
}

/// How a node's value comes about. `Bits` operations never look across lanes unless said.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// Input number `n` of the body ([`Body::inputs`]).
    Input(u32),
    /// A `Bits` constant of the node's total width.
    Constant(Bits),
    /// A constant natural, modulus or residue.
    Integer(BigUint),
    /// Every bit undefined.
    Undefined,
    /// Lanewise.
    Unary(UnaryOp, NodeHandle),
    /// Lanewise.
    Binary(BinaryOp, NodeHandle, NodeHandle),
    /// Lanewise, unordered.
    Nary(NaryOp, Vec<NodeHandle>),
    /// `condition ? then : otherwise`; condition is u1, or u1xN lanewise.
    Select {
        /// u1 or u1xN.
        condition: NodeHandle,
        /// Where it is 1.
        then: NodeHandle,
        /// Where it is 0.
        otherwise: NodeHandle,
    },
    /// Every lane to the node's lane width: zero filled where wider, cut where narrower. `wide`, `zext`, `trunc`.
    Resize(NodeHandle),
    /// Every lane to the node's wider lane width, sign filled.
    ResizeSigned(NodeHandle),
    /// The same bytes in address order seen as lanes of the node's type; lanes wider than a byte are grouped in this order. Both widths are multiples of eight.
    Reinterpret(NodeHandle, ByteOrder),
    /// Lane `index` of a vector (bit `index` of a scalar when the node is u1 and the operand has one lane). A run-time index out of range gives undefined.
    Lane {
        /// `uWxN`, or `uW` for bits.
        vector: NodeHandle,
        /// Any `Bits` scalar.
        index: NodeHandle,
    },
    /// A vector of scalars, lane 0 first; for u1 scalars and a one-lane node: bit 0 first.
    Lanes(Vec<NodeHandle>),
    /// Operands' lanes one after another.
    Concatenate(Vec<NodeHandle>),
    /// Lanes `start …` of a vector, as many as the node's type has.
    Slice {
        /// The vector.
        vector: NodeHandle,
        /// First lane.
        start: u32,
    },
    /// Product in GF(2^W) modulo the polynomial (its top bit is implied), lanewise.
    FieldMultiply {
        /// Low W bits of the reduction polynomial.
        polynomial: Bits,
        /// Left factor.
        a: NodeHandle,
        /// Right factor.
        b: NodeHandle,
    },
    /// Lanewise y = M·x + c over GF(2); row i of M gives bit i.
    Affine {
        /// W rows of W bits.
        matrix: Vec<Bits>,
        /// W bits.
        constant: Bits,
        /// The operand.
        value: NodeHandle,
    },
    /// An array of its elements.
    Array(Vec<NodeHandle>),
    /// Element `index` of an array (lookup in a table where the array is constant). Out of range at run time is forbidden.
    Element {
        /// `[T; N]`.
        array: NodeHandle,
        /// `Bits` scalar, or a vector for lanewise lookups in an array of `Bits`.
        index: NodeHandle,
    },
    /// The array with one element replaced.
    WithElement {
        /// `[T; N]`.
        array: NodeHandle,
        /// `Bits` scalar.
        index: NodeHandle,
        /// `T`.
        value: NodeHandle,
    },
    /// Sum of naturals, exact; the node's type holds it.
    NaturalAdd(NodeHandle, NodeHandle),
    /// Difference of naturals; forbidden when negative.
    NaturalSubtract(NodeHandle, NodeHandle),
    /// Product of naturals, exact.
    NaturalMultiply(NodeHandle, NodeHandle),
    /// A natural from its low bits upward: bits `start …` of the operand, as many as the node's type has.
    NaturalSlice {
        /// The natural.
        value: NodeHandle,
        /// First bit.
        start: u32,
    },
    /// `mont(a, b)`: see `natural.rs` for the contract. The node is a residue.
    Montgomery {
        /// The modulus (an input of type `Modulus`).
        modulus: NodeHandle,
        /// Left factor, a residue or a natural below c·m.
        a: NodeHandle,
        /// Right factor, likewise.
        b: NodeHandle,
    },
    /// Sum of residues: ≡ a + b (mod m), below c·m.
    ResidueAdd {
        /// The modulus.
        modulus: NodeHandle,
        /// A residue.
        a: NodeHandle,
        /// A residue of the same modulus.
        b: NodeHandle,
    },
    /// Difference of residues: ≡ a − b (mod m), below c·m.
    ResidueSubtract {
        /// The modulus.
        modulus: NodeHandle,
        /// A residue.
        a: NodeHandle,
        /// A residue of the same modulus.
        b: NodeHandle,
    },
    /// The residue brought below m: the natural x mod m with 0 ≤ x < m.
    Canonical {
        /// The modulus.
        modulus: NodeHandle,
        /// A residue.
        value: NodeHandle,
    },
    /// Bytes from memory, in address order (rows only).
    Load {
        /// Byte address.
        address: NodeHandle,
    },
    /// A counted loop; `body` has `carried.len() + 1` inputs first: the counter (type of `count`), then the carried values, then the captured ones; its outputs are the next carried values.
    Loop {
        /// Number of rounds, public, may be 0.
        count: NodeHandle,
        /// Initial carried values.
        carried: Vec<NodeHandle>,
        /// Values of the enclosing body that the loop reads.
        captured: Vec<NodeHandle>,
        /// One round.
        body: Box<Body>,
    },
    /// A loop without carried values over slices of one length: the body's inputs are the current element of each slice, then the captured values;
    /// its outputs are the elements written, one for each slice in `written`.
    Map {
        /// The slices (inputs of type `Slice`), all of one length.
        slices: Vec<NodeHandle>,
        /// Which of `slices` get the outputs.
        written: Vec<u32>,
        /// Values of the enclosing body that the map reads.
        captured: Vec<NodeHandle>,
        /// One block.
        body: Box<Body>,
    },
    /// Result `n` of a `Loop` or `Map`.
    Result(NodeHandle, u32),
}

/// A named input or output of a body.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Port {
    /// Its name in the source.
    pub name: String,
    /// Its type.
    pub ty: Type,
    /// Where it was declared.
    pub span: Span,
}

/// What a body does besides computing values, in order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Bytes to memory (rows only). No access when the condition is false.
    Store {
        /// Byte address.
        address: NodeHandle,
        /// u8xN in address order.
        value: NodeHandle,
        /// u1; always where absent.
        condition: Option<NodeHandle>,
    },
    /// Control goes to the label operand when the condition holds (rows only).
    Branch {
        /// u1; always where absent.
        condition: Option<NodeHandle>,
        /// Address of the target where it is a value (return), the row's label operand where absent.
        target: Option<NodeHandle>,
    },
    /// May never be 1 when executed.
    Forbidden {
        /// u1.
        condition: NodeHandle,
        /// Where it was written.
        span: Span,
    },
}

/// Dataflow with named inputs and outputs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Body {
    /// What `Op::Input` refers to.
    pub inputs: Vec<Port>,
    /// The nodes, operands before users.
    pub nodes: Arena<Node>,
    /// Effects in order.
    pub effects: Vec<Effect>,
    /// The results.
    pub outputs: Vec<(Port, NodeHandle)>,
}

impl BinaryOp {
    /// Shifts and rotations: the second operand is a count, of any width, for one lane or for all.
    pub const fn is_shift(self) -> bool {
        matches!(self, Self::ShiftLeft | Self::ShiftRight | Self::ShiftRightSigned | Self::RotateLeft)
    }

    /// The result is u1 for each lane.
    pub const fn is_comparison(self) -> bool {
        matches!(self, Self::Equal | Self::Less | Self::LessSigned)
    }

    /// The operands may change places.
    pub const fn is_commutative(self) -> bool {
        matches!(
            self,
            Self::Multiply
                | Self::CarrylessMultiply
                | Self::Equal
                | Self::Minimum
                | Self::Maximum
                | Self::MinimumSigned
                | Self::MaximumSigned
        )
    }
}

impl Op {
    /// The operands, in the order of the fields.
    pub fn operands(&self) -> Vec<NodeHandle> {
        match self {
            Op::Input(_) | Op::Constant(_) | Op::Integer(_) | Op::Undefined => Vec::new(),
            Op::Unary(_, a) | Op::Resize(a) | Op::ResizeSigned(a) | Op::Reinterpret(a, _) | Op::Result(a, _) => vec![*a],
            Op::Slice { vector, .. } => vec![*vector],
            Op::NaturalSlice { value, .. } | Op::Affine { value, .. } => vec![*value],
            Op::Load { address } => vec![*address],
            Op::Binary(_, a, b) | Op::NaturalAdd(a, b) | Op::NaturalSubtract(a, b) | Op::NaturalMultiply(a, b) => vec![*a, *b],
            Op::FieldMultiply { a, b, .. } => vec![*a, *b],
            Op::Nary(_, list) | Op::Lanes(list) | Op::Concatenate(list) | Op::Array(list) => list.clone(),
            Op::Select { condition, then, otherwise } => vec![*condition, *then, *otherwise],
            Op::Lane { vector, index } => vec![*vector, *index],
            Op::Element { array, index } => vec![*array, *index],
            Op::WithElement { array, index, value } => vec![*array, *index, *value],
            Op::Montgomery { modulus, a, b } | Op::ResidueAdd { modulus, a, b } | Op::ResidueSubtract { modulus, a, b } => {
                vec![*modulus, *a, *b]
            }
            Op::Canonical { modulus, value } => vec![*modulus, *value],
            Op::Loop { count, carried, captured, .. } => [&[*count][..], carried, captured].concat(),
            Op::Map { slices, captured, .. } => [&slices[..], captured].concat(),
        }
    }

    /// Calls `change` with every operand, in the order of [`Op::operands`].
    pub fn for_each_operand_mut(&mut self, mut change: impl FnMut(&mut NodeHandle)) {
        match self {
            Op::Input(_) | Op::Constant(_) | Op::Integer(_) | Op::Undefined => {}
            Op::Unary(_, a) | Op::Resize(a) | Op::ResizeSigned(a) | Op::Reinterpret(a, _) | Op::Result(a, _) => change(a),
            Op::Slice { vector: value, .. } | Op::NaturalSlice { value, .. } | Op::Affine { value, .. } | Op::Load { address: value } => {
                change(value)
            }
            Op::Binary(_, a, b)
            | Op::NaturalAdd(a, b)
            | Op::NaturalSubtract(a, b)
            | Op::NaturalMultiply(a, b)
            | Op::FieldMultiply { a, b, .. }
            | Op::Lane { vector: a, index: b }
            | Op::Element { array: a, index: b }
            | Op::Canonical { modulus: a, value: b } => [a, b].into_iter().for_each(change),
            Op::Nary(_, list) | Op::Lanes(list) | Op::Concatenate(list) | Op::Array(list) => list.iter_mut().for_each(change),
            Op::Select { condition: a, then: b, otherwise: c }
            | Op::WithElement { array: a, index: b, value: c }
            | Op::Montgomery { modulus: a, a: b, b: c }
            | Op::ResidueAdd { modulus: a, a: b, b: c }
            | Op::ResidueSubtract { modulus: a, a: b, b: c } => [a, b, c].into_iter().for_each(change),
            Op::Loop { count, carried, captured, .. } => std::iter::once(count).chain(carried).chain(captured).for_each(change),
            Op::Map { slices, captured, .. } => slices.iter_mut().chain(captured).for_each(change),
        }
    }
}
