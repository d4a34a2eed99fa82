//! Shapes: what a lowering asks a machine for, as bodies in the language of the rows' own meanings. A shape names no instruction; `selection` finds
//! the rows that compute it.

use crate::machine::{FileId, Machine};
use kgen_ir::bits::Bits;
use kgen_ir::body::{BinaryOp, Body, NaryOp, Node, NodeHandle, Op, Port, UnaryOp};
use kgen_ir::source::Span;
use kgen_ir::types::{ByteOrder, Type};

/// What may stand for an input of a shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ShapeInput {
    /// A value in a register of this file.
    Register(FileId),
    /// A constant that is known when the instruction is made.
    Immediate,
}

/// Something to be computed by one row: the body's inputs are parallel to `inputs`, its outputs to `outputs`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// How messages call it: `add of 32-bit lanes`.
    pub title: String,
    /// What each input is.
    pub inputs: Vec<ShapeInput>,
    /// The file of each output.
    pub outputs: Vec<FileId>,
    /// The meaning.
    pub body: Body,
}

/// What a register of this file holds, as rows' meanings see it.
pub fn content_type(machine: &Machine, file: FileId) -> Type {
    machine[file].value_type(1)
}

/// Operations on the lanes of registers of one file. `a`, `b`, `c` are the inputs in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LaneOp {
    /// The operand itself.
    Copy,
    /// a + b modulo 2^W.
    Add,
    /// a − b modulo 2^W.
    Subtract,
    /// The low half of a·b.
    Multiply,
    /// The high half of a·b.
    MultiplyHigh,
    /// The full product of the even-numbered lanes (lane 0 is at the lowest address), in lanes twice as wide.
    MultiplyEven,
    /// The full product of the odd-numbered lanes.
    MultiplyOdd,
    /// a & b.
    And,
    /// a & ~b.
    AndNot,
    /// a | b.
    Or,
    /// a ^ b.
    Xor,
    /// ~(a | b).
    Nor,
    /// ~a.
    Not,
    /// a shifted left by b modulo W.
    ShiftLeft,
    /// a shifted right by b modulo W, zero filled.
    ShiftRight,
    /// a shifted right by b modulo W, sign filled.
    ShiftRightSigned,
    /// a rotated left by b modulo W.
    RotateLeft,
    /// All ones where a = b, else zero.
    Equal,
    /// All ones where a < b, else zero.
    Less,
    /// All ones where a < b as signed numbers, else zero.
    LessSigned,
    /// Lesser.
    Minimum,
    /// Greater.
    Maximum,
    /// Lesser as signed numbers.
    MinimumSigned,
    /// Greater as signed numbers.
    MaximumSigned,
    /// 1 where a + b reaches 2^W, else 0.
    CarryOut,
    /// 1 where a − b is not negative, else 0.
    NoBorrowOut,
    /// Bit by bit: b where c is 1, a where it is 0.
    SelectBits,
}

impl LaneOp {
    /// How many inputs it has.
    pub fn arity(self) -> usize {
        match self {
            LaneOp::Copy | LaneOp::Not => 1,
            LaneOp::SelectBits => 3,
            _ => 2,
        }
    }

    /// Lanes do not matter: any lane width gives the same.
    pub fn is_bitwise(self) -> bool {
        matches!(
            self,
            LaneOp::Copy | LaneOp::And | LaneOp::AndNot | LaneOp::Or | LaneOp::Xor | LaneOp::Nor | LaneOp::Not | LaneOp::SelectBits
        )
    }

    fn title(self) -> &'static str {
        match self {
            LaneOp::Copy => "copy",
            LaneOp::Add => "add",
            LaneOp::Subtract => "subtract",
            LaneOp::Multiply => "multiply (low half)",
            LaneOp::MultiplyHigh => "multiply (high half)",
            LaneOp::MultiplyEven => "multiply even lanes",
            LaneOp::MultiplyOdd => "multiply odd lanes",
            LaneOp::And => "and",
            LaneOp::AndNot => "and with complement",
            LaneOp::Or => "or",
            LaneOp::Xor => "exclusive or",
            LaneOp::Nor => "nor",
            LaneOp::Not => "complement",
            LaneOp::ShiftLeft => "shift left",
            LaneOp::ShiftRight => "shift right",
            LaneOp::ShiftRightSigned => "signed shift right",
            LaneOp::RotateLeft => "rotate left",
            LaneOp::Equal => "compare equal",
            LaneOp::Less => "compare less",
            LaneOp::LessSigned => "compare less, signed",
            LaneOp::Minimum => "minimum",
            LaneOp::Maximum => "maximum",
            LaneOp::MinimumSigned => "signed minimum",
            LaneOp::MaximumSigned => "signed maximum",
            LaneOp::CarryOut => "carry out of add",
            LaneOp::NoBorrowOut => "no borrow out of subtract",
            LaneOp::SelectBits => "select by bits",
        }
    }
}

/// Makes the body of a shape node by node.
pub struct ShapeBuilder {
    title: String,
    inputs: Vec<ShapeInput>,
    body: Body,
}

impl ShapeBuilder {
    /// An empty shape of this title.
    pub fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), inputs: Vec::new(), body: Body::default() }
    }

    /// A node.
    pub fn node(&mut self, op: Op, ty: Type) -> NodeHandle {
        self.body.nodes.push(Node { op, ty, span: Span::default(), name: String::new() })
    }

    /// A constant with the same value in every lane.
    pub fn splat(&mut self, width: u32, lanes: u32, value: u64) -> NodeHandle {
        let mut bits = Bits::zero(width * lanes);
        for lane in 0..lanes {
            bits.insert(lane * width, &Bits::from_u64(width, value));
        }
        self.node(Op::Constant(bits), Type::vector(width, lanes))
    }

    fn input(&mut self, kind: ShapeInput, ty: Type) -> NodeHandle {
        let index = self.inputs.len() as u32;
        self.inputs.push(kind);
        self.body.inputs.push(Port { name: format!("input_{index}"), ty: ty.clone(), span: Span::default() });
        self.node(Op::Input(index), ty)
    }

    /// A register as its content.
    pub fn register(&mut self, machine: &Machine, file: FileId) -> NodeHandle {
        self.input(ShapeInput::Register(file), content_type(machine, file))
    }

    /// A constant of the instruction.
    pub fn immediate(&mut self, width: u32) -> NodeHandle {
        self.input(ShapeInput::Immediate, Type::bits(width))
    }

    /// A register's content seen as lanes of `width` bits; itself where the content has that lane width already.
    pub fn lanes_of(&mut self, value: NodeHandle, width: u32, order: ByteOrder) -> NodeHandle {
        let ty = self.body.nodes[value].ty.clone();
        let total = ty.total_bits().unwrap_or(0);
        let wanted = Type::vector(width, total / width);
        if ty == wanted { value } else { self.node(Op::Reinterpret(value, order), wanted) }
    }

    /// Type of a node.
    pub fn type_of(&self, value: NodeHandle) -> Type {
        self.body.nodes[value].ty.clone()
    }

    /// Two-operand lane operation with the type of `a`.
    pub fn binary(&mut self, op: BinaryOp, a: NodeHandle, b: NodeHandle) -> NodeHandle {
        let ty = self.type_of(a);
        self.node(Op::Binary(op, a, b), ty)
    }

    /// Unordered lane operation with the type of the first operand.
    pub fn nary(&mut self, op: NaryOp, list: Vec<NodeHandle>) -> NodeHandle {
        let ty = self.type_of(list[0]);
        self.node(Op::Nary(op, list), ty)
    }

    /// Complement.
    pub fn not(&mut self, a: NodeHandle) -> NodeHandle {
        let ty = self.type_of(a);
        self.node(Op::Unary(UnaryOp::Not, a), ty)
    }

    /// The lanes at positions `start`, `start + step`, ….
    pub fn pick_lanes(&mut self, value: NodeHandle, start: u32, step: u32) -> NodeHandle {
        let Type::Bits { width, lanes } = self.type_of(value) else { return value };
        let picked: Vec<NodeHandle> = (start..lanes)
            .step_by(step as usize)
            .map(|lane| {
                let index = self.splat(32, 1, u64::from(lane));
                self.node(Op::Lane { vector: value, index }, Type::bits(width))
            })
            .collect();
        let count = picked.len() as u32;
        if count == 1 { picked[0] } else { self.node(Op::Lanes(picked), Type::vector(width, count)) }
    }

    /// Lanes twice as wide, zero filled.
    pub fn widen(&mut self, value: NodeHandle, width: u32) -> NodeHandle {
        let Type::Bits { lanes, .. } = self.type_of(value) else { return value };
        self.node(Op::Resize(value), Type::vector(width, lanes))
    }

    /// The finished shape; every output is brought back to its file's content type.
    pub fn finish(mut self, machine: &Machine, outputs: Vec<(NodeHandle, FileId)>) -> Shape {
        let mut files = Vec::with_capacity(outputs.len());
        for (index, (node, file)) in outputs.into_iter().enumerate() {
            let wanted = content_type(machine, file);
            let node =
                if self.type_of(node) == wanted { node } else { self.node(Op::Reinterpret(node, machine.byte_order), wanted.clone()) };
            self.body.outputs.push((Port { name: format!("output_{index}"), ty: wanted, span: Span::default() }, node));
            files.push(file);
        }
        Shape { title: self.title, inputs: self.inputs, outputs: files, body: self.body }
    }
}

/// An operation on lanes of `lane_bits` of registers of `file`; `lane_bits` is the width of the operands' lanes.
pub fn lane_shape(machine: &Machine, file: FileId, op: LaneOp, lane_bits: u32) -> Shape {
    let title = if op.is_bitwise() { op.title().to_string() } else { format!("{} of {lane_bits}-bit lanes", op.title()) };
    let mut shape = ShapeBuilder::new(title);
    let operands: Vec<NodeHandle> = (0..op.arity())
        .map(|_| {
            let register = shape.register(machine, file);
            shape.lanes_of(register, lane_bits, machine.byte_order)
        })
        .collect();
    let result = lane_meaning(&mut shape, op, lane_bits, &operands);
    shape.finish(machine, vec![(result, file)])
}

fn lane_meaning(shape: &mut ShapeBuilder, op: LaneOp, width: u32, operands: &[NodeHandle]) -> NodeHandle {
    let a = operands[0];
    let b = operands.get(1).copied().unwrap_or(a);
    let ty = shape.type_of(a);
    let lanes = ty.total_bits().unwrap_or(width) / width;
    let predicate = Type::vector(1, lanes);
    let comparison = |shape: &mut ShapeBuilder, op: BinaryOp| {
        let bit = shape.node(Op::Binary(op, a, b), predicate.clone());
        shape.node(Op::ResizeSigned(bit), ty.clone())
    };
    match op {
        LaneOp::Copy => a,
        LaneOp::Add => shape.nary(NaryOp::Add, vec![a, b]),
        LaneOp::Subtract => shape.binary(BinaryOp::Subtract, a, b),
        LaneOp::Multiply => shape.binary(BinaryOp::Multiply, a, b),
        LaneOp::MultiplyHigh => {
            let (a, b) = (shape.widen(a, 2 * width), shape.widen(b, 2 * width));
            let product = shape.binary(BinaryOp::Multiply, a, b);
            let count = shape.splat(2 * width, lanes, u64::from(width));
            let high = shape.binary(BinaryOp::ShiftRight, product, count);
            shape.node(Op::Resize(high), ty)
        }
        LaneOp::MultiplyEven | LaneOp::MultiplyOdd => {
            let start = u32::from(op == LaneOp::MultiplyOdd);
            let (a, b) = (shape.pick_lanes(a, start, 2), shape.pick_lanes(b, start, 2));
            let (a, b) = (shape.widen(a, 2 * width), shape.widen(b, 2 * width));
            shape.binary(BinaryOp::Multiply, a, b)
        }
        LaneOp::And => shape.nary(NaryOp::And, vec![a, b]),
        LaneOp::AndNot => {
            let complement = shape.not(b);
            shape.nary(NaryOp::And, vec![a, complement])
        }
        LaneOp::Or => shape.nary(NaryOp::Or, vec![a, b]),
        LaneOp::Xor => shape.nary(NaryOp::Xor, vec![a, b]),
        LaneOp::Nor => {
            let or = shape.nary(NaryOp::Or, vec![a, b]);
            shape.not(or)
        }
        LaneOp::Not => shape.not(a),
        LaneOp::ShiftLeft | LaneOp::ShiftRight | LaneOp::ShiftRightSigned => {
            let mask = shape.splat(width, lanes, u64::from(width) - 1);
            let count = shape.nary(NaryOp::And, vec![b, mask]);
            let op = match op {
                LaneOp::ShiftLeft => BinaryOp::ShiftLeft,
                LaneOp::ShiftRight => BinaryOp::ShiftRight,
                _ => BinaryOp::ShiftRightSigned,
            };
            shape.binary(op, a, count)
        }
        LaneOp::RotateLeft => shape.binary(BinaryOp::RotateLeft, a, b),
        LaneOp::Equal => comparison(shape, BinaryOp::Equal),
        LaneOp::Less => comparison(shape, BinaryOp::Less),
        LaneOp::LessSigned => comparison(shape, BinaryOp::LessSigned),
        LaneOp::Minimum => shape.binary(BinaryOp::Minimum, a, b),
        LaneOp::Maximum => shape.binary(BinaryOp::Maximum, a, b),
        LaneOp::MinimumSigned => shape.binary(BinaryOp::MinimumSigned, a, b),
        LaneOp::MaximumSigned => shape.binary(BinaryOp::MaximumSigned, a, b),
        LaneOp::CarryOut => {
            let sum = shape.nary(NaryOp::Add, vec![a, b]);
            let carry = shape.node(Op::Binary(BinaryOp::Less, sum, a), predicate);
            shape.node(Op::Resize(carry), ty)
        }
        LaneOp::NoBorrowOut => {
            let borrow = shape.node(Op::Binary(BinaryOp::Less, a, b), predicate.clone());
            let no_borrow = shape.node(Op::Unary(UnaryOp::Not, borrow), predicate);
            shape.node(Op::Resize(no_borrow), ty)
        }
        LaneOp::SelectBits => {
            let c = operands.get(2).copied().unwrap_or(a);
            let complement = shape.not(c);
            let kept = shape.nary(NaryOp::And, vec![a, complement]);
            let taken = shape.nary(NaryOp::And, vec![b, c]);
            shape.nary(NaryOp::Or, vec![kept, taken])
        }
    }
}

/// acc\[i\] + Σ_{j<k} wide(a\[k·i+j\])·wide(b\[k·i+j\]): `limb_bits` are the factors' lanes, k·`limb_bits` the accumulator's. Inputs: acc, a, b.
pub fn multiply_accumulate_shape(machine: &Machine, file: FileId, limb_bits: u32, products: u32) -> Shape {
    let lane_bits = limb_bits * products;
    let mut shape = ShapeBuilder::new(format!("{products} products of {limb_bits}-bit limbs added to {lane_bits}-bit lanes"));
    let [accumulator, a, b] = [lane_bits, limb_bits, limb_bits].map(|width| {
        let register = shape.register(machine, file);
        shape.lanes_of(register, width, machine.byte_order)
    });
    let mut terms = vec![accumulator];
    for product in 0..products {
        let (a, b) = (shape.pick_lanes(a, product, products), shape.pick_lanes(b, product, products));
        let (a, b) = (shape.widen(a, lane_bits), shape.widen(b, lane_bits));
        terms.push(shape.binary(BinaryOp::Multiply, a, b));
    }
    let sum = shape.nary(NaryOp::Add, terms);
    shape.finish(machine, vec![(sum, file)])
}

/// Bytes chosen out of the concatenation of `sources` registers by the low bits of each byte of a control register. Inputs: the sources, the control.
pub fn byte_permute_shape(machine: &Machine, file: FileId, sources: u32) -> Shape {
    let bytes = machine[file].width_bits / 8;
    let mut shape = ShapeBuilder::new(format!("bytes of {sources} registers by a control register"));
    let tables: Vec<NodeHandle> = (0..sources).map(|_| shape.register(machine, file)).collect();
    let control = shape.register(machine, file);
    let table = if tables.len() == 1 { tables[0] } else { shape.node(Op::Concatenate(tables), Type::vector(8, bytes * sources)) };
    let chosen: Vec<NodeHandle> = (0..bytes)
        .map(|byte| {
            let place = shape.splat(32, 1, u64::from(byte));
            let selector = shape.node(Op::Lane { vector: control, index: place }, Type::bits(8));
            let mask = shape.splat(8, 1, u64::from(bytes * sources - 1));
            let index = shape.nary(NaryOp::And, vec![selector, mask]);
            shape.node(Op::Lane { vector: table, index }, Type::bits(8))
        })
        .collect();
    let result = shape.node(Op::Lanes(chosen), Type::vector(8, bytes));
    shape.finish(machine, vec![(result, file)])
}

/// a + b (+ carry in) with its carry out in singleton file `flag`: outputs sum and carry.
pub fn add_with_carry_shape(machine: &Machine, file: FileId, flag: FileId, carry_in: bool) -> Shape {
    let width = machine[file].width_bits;
    let mut shape = ShapeBuilder::new(if carry_in { "add with carry in and out" } else { "add with carry out" });
    let a = shape.register(machine, file);
    let b = shape.register(machine, file);
    let mut terms = vec![shape.widen(a, width + 1), shape.widen(b, width + 1)];
    if carry_in {
        let carry = shape.register(machine, flag);
        terms.push(shape.widen(carry, width + 1));
    }
    split_carry(machine, shape, NaryOrSubtract::Add(terms), file, flag)
}

/// a − b (− 1 when the flag says so) with its borrow in singleton file `flag`; `flag_is_no_borrow` tells which way the flag counts.
pub fn subtract_with_borrow_shape(machine: &Machine, file: FileId, flag: FileId, borrow_in: bool, flag_is_no_borrow: bool) -> Shape {
    let width = machine[file].width_bits;
    let mut shape = ShapeBuilder::new(if borrow_in { "subtract with borrow in and out" } else { "subtract with borrow out" });
    let a = shape.register(machine, file);
    let b = shape.register(machine, file);
    if flag_is_no_borrow {
        let complement = shape.not(b);
        let carry = if borrow_in { shape.register(machine, flag) } else { shape.splat(1, 1, 1) };
        let terms = [a, complement, carry].map(|term| shape.widen(term, width + 1)).to_vec();
        return split_carry(machine, shape, NaryOrSubtract::Add(terms), file, flag);
    }
    let (a, b) = (shape.widen(a, width + 1), shape.widen(b, width + 1));
    let borrow = if borrow_in {
        let register = shape.register(machine, flag);
        Some(shape.widen(register, width + 1))
    } else {
        None
    };
    split_carry(machine, shape, NaryOrSubtract::Subtract(a, b, borrow), file, flag)
}

enum NaryOrSubtract {
    Add(Vec<NodeHandle>),
    Subtract(NodeHandle, NodeHandle, Option<NodeHandle>),
}

fn split_carry(machine: &Machine, mut shape: ShapeBuilder, total: NaryOrSubtract, file: FileId, flag: FileId) -> Shape {
    let width = machine[file].width_bits;
    let flag_bits = machine[flag].width_bits;
    let total = match total {
        NaryOrSubtract::Add(terms) => shape.nary(NaryOp::Add, terms),
        NaryOrSubtract::Subtract(a, b, borrow) => {
            let difference = shape.binary(BinaryOp::Subtract, a, b);
            borrow.map_or(difference, |borrow| shape.binary(BinaryOp::Subtract, difference, borrow))
        }
    };
    let sum = shape.node(Op::Resize(total), Type::bits(width));
    let count = shape.splat(width + 1, 1, u64::from(width));
    let top = shape.binary(BinaryOp::ShiftRight, total, count);
    let carry = shape.node(Op::Resize(top), Type::bits(flag_bits));
    shape.finish(machine, vec![(sum, file), (carry, flag)])
}

/// A scalar operation of a register and a constant of the instruction. Inputs: the register, the constant (as wide as the register).
pub fn immediate_shape(machine: &Machine, file: FileId, op: LaneOp) -> Shape {
    let width = machine[file].width_bits;
    let mut shape = ShapeBuilder::new(format!("{} of {width}-bit register and constant", op.title()));
    let a = shape.register(machine, file);
    let b = shape.immediate(width);
    let result = lane_meaning(&mut shape, op, width, &[a, b]);
    shape.finish(machine, vec![(result, file)])
}

/// A register of `to` made from one of `from`: bits cut or zero filled.
pub fn move_shape(machine: &Machine, from: FileId, to: FileId) -> Shape {
    let mut shape = ShapeBuilder::new(format!("move from file {} to file {}", machine[from].name, machine[to].name));
    let a = shape.register(machine, from);
    let wanted = content_type(machine, to);
    let moved = match (shape.type_of(a), &wanted) {
        (Type::Bits { lanes: 1, .. }, Type::Bits { lanes: 1, .. }) if machine[from].width_bits != machine[to].width_bits => {
            shape.node(Op::Resize(a), wanted)
        }
        _ => a,
    };
    shape.finish(machine, vec![(moved, to)])
}

/// A pointer plus an integer of another file.
pub fn pointer_add_shape(machine: &Machine, pointer: FileId, integer: FileId) -> Shape {
    let mut shape = ShapeBuilder::new("pointer plus integer");
    let base = shape.register(machine, pointer);
    let distance = shape.register(machine, integer);
    let distance = shape.widen(distance, machine[pointer].width_bits);
    let sum = shape.nary(NaryOp::Add, vec![base, distance]);
    shape.finish(machine, vec![(sum, pointer)])
}

/// The product of two registers in one twice as wide. Inputs: the factors.
pub fn wide_product_shape(machine: &Machine, factor: FileId, product: FileId) -> Shape {
    let width = machine[product].width_bits;
    let mut shape =
        ShapeBuilder::new(format!("product of two registers of file {} in file {}", machine[factor].name, machine[product].name));
    let [a, b] = [(), ()].map(|()| {
        let register = shape.register(machine, factor);
        shape.widen(register, width)
    });
    let product_node = shape.binary(BinaryOp::Multiply, a, b);
    shape.finish(machine, vec![(product_node, product)])
}

/// Whether two registers are equal, as a register of `flag`: 1 or 0. Inputs: the registers.
pub fn equal_flag_shape(machine: &Machine, file: FileId, flag: FileId) -> Shape {
    let mut shape = ShapeBuilder::new(format!("equality of file {} in file {}", machine[file].name, machine[flag].name));
    let a = shape.register(machine, file);
    let b = shape.register(machine, file);
    let equal = shape.node(Op::Binary(BinaryOp::Equal, a, b), Type::bits(1));
    let wide = if machine[flag].width_bits == 1 { equal } else { shape.widen(equal, machine[flag].width_bits) };
    shape.finish(machine, vec![(wide, flag)])
}

/// All ones in a register of `file` where the flag is 1, else zero. Input: the flag.
pub fn flag_mask_shape(machine: &Machine, flag: FileId, file: FileId) -> Shape {
    let mut shape = ShapeBuilder::new(format!("mask of file {} from file {}", machine[file].name, machine[flag].name));
    let register = shape.register(machine, flag);
    let bit = if machine[flag].width_bits == 1 { register } else { shape.node(Op::Resize(register), Type::bits(1)) };
    let mask = shape.node(Op::ResizeSigned(bit), Type::bits(machine[file].width_bits));
    shape.finish(machine, vec![(mask, file)])
}
