//! A body made ready to be run many times on concrete bits, as replay and timing do with the rows of a machine.
//!
//! Where every value of the body has at most 128 bits and all inputs are defined, steps over a flat list of words are run; as soon as a bit turns out undefined
//! (division by zero, undefined memory, an index out of range) the same inputs go through the concrete domain instead, which is the definition.

use super::concrete::{Concrete, Fault, FaultKind, ShadowedBits, Value, defined_u64};
use super::memory::Memory;
use crate::bits::Bits;
use crate::body::{BinaryOp, Body, Effect, NaryOp, NodeHandle, Op, UnaryOp};
use crate::evaluate::evaluate;
use crate::natural::MontgomeryRadix;
use crate::source::Span;
use crate::types::{ByteOrder, Type};

/// Widest value that steps work on.
const WORD_BITS: u32 = 128;

/// Where a row sends control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Branch {
    /// Its condition holds.
    pub taken: bool,
    /// Address, where the target is a value rather than a label.
    pub target: Option<u64>,
}

/// What a run gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowOutcome {
    /// The outputs in the body's order.
    pub outputs: Vec<ShadowedBits>,
    /// For a row that branches.
    pub branch: Option<Branch>,
}

/// A body ready to run.
#[derive(Clone, Debug)]
pub struct CompiledMeaning {
    body: Body,
    /// Absent where the body has something that steps do not do.
    steps: Option<Steps>,
}

/// Working space that runs share.
#[derive(Clone, Debug, Default)]
pub struct Scratch {
    words: Vec<u128>,
}

#[derive(Clone, Debug)]
struct Steps {
    /// Word of each node's value.
    slots: Vec<u32>,
    /// Words at the start: constants, zeros elsewhere.
    initial: Vec<u128>,
    /// Where each input goes; an input that is never read has none.
    inputs: Vec<Option<u32>>,
    list: Vec<(u32, Step)>,
}

/// Lanes of one operand.
#[derive(Clone, Copy, Debug)]
struct Lanes {
    slot: u32,
    width: u32,
    /// Distance of lanes; 0 where one lane serves all.
    stride: u32,
}

/// A word that is a part of a wider value.
#[derive(Clone, Copy, Debug)]
struct Part {
    slot: u32,
    lanes: u32,
}

#[derive(Clone, Debug)]
enum Step {
    /// `a >> shift & mask`.
    Extract {
        a: u32,
        shift: u32,
        mask: u128,
    },
    /// Bytes of each lane of this width reversed.
    Swap {
        a: u32,
        width: u32,
    },
    Not {
        a: u32,
        mask: u128,
    },
    And {
        a: u32,
        b: u32,
    },
    Or {
        a: u32,
        b: u32,
    },
    Xor {
        a: u32,
        b: u32,
    },
    /// Lanewise; `tops` has the top bit of every lane. Carries are kept from crossing lanes by adding the top bits apart.
    Add {
        a: u32,
        b: u32,
        tops: u128,
        mask: u128,
    },
    Subtract {
        a: u32,
        b: u32,
        tops: u128,
        mask: u128,
    },
    /// One lane.
    Multiply {
        a: u32,
        b: u32,
        mask: u128,
    },
    /// All lanes by one constant count: `kept` has the bits of the moved value that stay in their lanes.
    ShiftLeft {
        a: u32,
        count: u32,
        kept: u128,
    },
    ShiftRight {
        a: u32,
        count: u32,
        kept: u128,
    },
    Unary {
        op: UnaryOp,
        a: Lanes,
        lanes: u32,
    },
    Binary {
        op: BinaryOp,
        a: Lanes,
        b: Lanes,
        result_width: u32,
        lanes: u32,
    },
    Select {
        condition: Lanes,
        a: Lanes,
        b: Lanes,
        lanes: u32,
    },
    Resize {
        a: Lanes,
        to: u32,
        lanes: u32,
        signed: bool,
    },
    /// Of words one after another, each with so many lanes.
    LaneAt {
        parts: Box<[Part]>,
        index: u32,
        width: u32,
    },
    /// Parts at these shifts.
    Join {
        parts: Box<[(u32, u32)]>,
    },
    Element {
        elements: Box<[u32]>,
        index: Lanes,
        width: u32,
        lanes: u32,
    },
    FieldMultiply {
        a: Lanes,
        b: Lanes,
        polynomial: u128,
        lanes: u32,
    },
    Affine {
        a: Lanes,
        matrix: Box<[u128]>,
        constant: u128,
        lanes: u32,
    },
    Load {
        address: u32,
        bytes: u32,
        span: Span,
    },
}

const fn ones(width: u32) -> u128 {
    if width == 0 { 0 } else { u128::MAX >> (WORD_BITS - width) }
}

/// `value` once in every lane.
fn repeated(value: u128, width: u32, lanes: u32) -> u128 {
    (0..lanes).fold(0, |all, lane| all | value << (lane * width))
}

fn swap(value: u128, width: u32) -> u128 {
    // Exchange neighbouring bytes, then pairs, then quadruples, as far as the lane goes.
    let exchange = |value: u128, distance: u32, low: u128| (value & low) << distance | value >> distance & low;
    match width {
        8 => value,
        16 => exchange(value, 8, 0x00ff_00ff_00ff_00ff_00ff_00ff_00ff_00ff),
        32 => exchange(swap(value, 16), 16, 0x0000_ffff_0000_ffff_0000_ffff_0000_ffff),
        64 => exchange(swap(value, 32), 32, 0x0000_0000_ffff_ffff_0000_0000_ffff_ffff),
        128 => value.swap_bytes(),
        _ => Bits::from_u128(WORD_BITS / width * width, value).swap_lane_bytes(width).low_u128(),
    }
}

fn sign_fill(value: u128, width: u32) -> i128 {
    let unused = WORD_BITS - width;
    ((value << unused) as i128) >> unused
}

fn unary(op: UnaryOp, width: u32, a: u128) -> u128 {
    match op {
        UnaryOp::Not => !a & ones(width),
        UnaryOp::LeadingZeros => u128::from(a.leading_zeros() - (WORD_BITS - width)) & ones(width),
        UnaryOp::PopulationCount => u128::from(a.count_ones()) & ones(width),
    }
}

/// `None` where the result is undefined.
fn binary(op: BinaryOp, width: u32, a: u128, b: u128) -> Option<u128> {
    let signed = |value| sign_fill(value, width);
    let count = u32::try_from(b).unwrap_or(u32::MAX).min(WORD_BITS);
    let within = count < width;
    Some(match op {
        BinaryOp::Subtract => a.wrapping_sub(b) & ones(width),
        BinaryOp::Multiply => a.wrapping_mul(b) & ones(width),
        BinaryOp::Divide => a.checked_div(b)?,
        BinaryOp::Remainder => a.checked_rem(b)?,
        BinaryOp::CarrylessMultiply => (0..width).filter(|bit| b >> bit & 1 == 1).fold(0, |sum, bit| sum ^ a << bit) & ones(width),
        BinaryOp::ShiftLeft if within => a << count & ones(width),
        BinaryOp::ShiftRight if within => a >> count,
        BinaryOp::ShiftLeft | BinaryOp::ShiftRight => 0,
        BinaryOp::ShiftRightSigned => (signed(a) >> count.min(WORD_BITS - 1)) as u128 & ones(width),
        BinaryOp::RotateLeft => match (b % u128::from(width)) as u32 {
            0 => a,
            count => (a << count | a >> (width - count)) & ones(width),
        },
        BinaryOp::Equal => u128::from(a == b),
        BinaryOp::Less => u128::from(a < b),
        BinaryOp::LessSigned => u128::from(signed(a) < signed(b)),
        BinaryOp::Minimum => a.min(b),
        BinaryOp::Maximum => a.max(b),
        BinaryOp::MinimumSigned => {
            if signed(b) < signed(a) {
                b
            } else {
                a
            }
        }
        BinaryOp::MaximumSigned => {
            if signed(a) < signed(b) {
                b
            } else {
                a
            }
        }
    })
}

fn field_multiply(width: u32, a: u128, b: u128, polynomial: u128) -> u128 {
    (0..width).rev().fold(0, |product: u128, bit| {
        let reduction = if product >> (width - 1) & 1 == 1 { polynomial } else { 0 };
        (product << 1 & ones(width)) ^ reduction ^ if b >> bit & 1 == 1 { a } else { 0 }
    })
}

impl Lanes {
    fn get(self, words: &[u128], lane: u32) -> u128 {
        words[self.slot as usize] >> (lane * self.stride) & ones(self.width)
    }
}

fn collect(lanes: u32, width: u32, function: impl Fn(u32) -> u128) -> u128 {
    (0..lanes).fold(0, |all, lane| all | function(lane) << (lane * width))
}

impl Step {
    /// The word of the result; `None` where bits of it are undefined.
    fn run<M: Memory>(&self, words: &[u128], memory: &mut M) -> Result<Option<u128>, Fault> {
        let word = |slot: &u32| words[*slot as usize];
        Ok(Some(match self {
            Step::Extract { a, shift, mask } => word(a) >> shift & mask,
            Step::Swap { a, width } => swap(word(a), *width),
            Step::Not { a, mask } => !word(a) & mask,
            Step::And { a, b } => word(a) & word(b),
            Step::Or { a, b } => word(a) | word(b),
            Step::Xor { a, b } => word(a) ^ word(b),
            Step::Add { a, b, tops, mask } => {
                let (a, b) = (word(a), word(b));
                ((a & !tops).wrapping_add(b & !tops) ^ ((a ^ b) & tops)) & mask
            }
            Step::Subtract { a, b, tops, mask } => {
                let (a, b) = (word(a), word(b));
                ((a | tops).wrapping_sub(b & !tops) ^ ((a ^ !b) & tops)) & mask
            }
            Step::Multiply { a, b, mask } => word(a).wrapping_mul(word(b)) & mask,
            Step::ShiftLeft { a, count, kept } => word(a) << count & kept,
            Step::ShiftRight { a, count, kept } => word(a) >> count & kept,
            Step::Unary { op, a, lanes } => collect(*lanes, a.width, |lane| unary(*op, a.width, a.get(words, lane))),
            Step::Binary { op, a, b, result_width, lanes } => {
                let mut all = 0;
                for lane in 0..*lanes {
                    let Some(value) = binary(*op, a.width, a.get(words, lane), b.get(words, lane)) else { return Ok(None) };
                    all |= value << (lane * result_width);
                }
                all
            }
            Step::Select { condition, a, b, lanes } => {
                collect(*lanes, a.width, |lane| if condition.get(words, lane) == 0 { b } else { a }.get(words, lane))
            }
            Step::Resize { a, to, lanes, signed } => collect(*lanes, *to, |lane| {
                let value = a.get(words, lane);
                if *signed { sign_fill(value, a.width) as u128 & ones(*to) } else { value & ones(*to) }
            }),
            Step::LaneAt { parts, index, width } => {
                let lane = u32::try_from(word(index)).ok().and_then(|index| place(parts, index));
                let Some((slot, lane)) = lane else { return Ok(None) };
                word(&slot) >> (lane * width) & ones(*width)
            }
            Step::Join { parts } => parts.iter().fold(0, |all, (slot, shift)| all | word(slot) << shift),
            Step::Element { elements, index, width, lanes } => {
                let mut all = 0;
                for lane in 0..*lanes {
                    // Out of range is a fault, which the definition reports.
                    let place = usize::try_from(index.get(words, lane)).unwrap_or(usize::MAX);
                    let Some(slot) = elements.get(place) else { return Ok(None) };
                    all |= word(slot) << (lane * width);
                }
                all
            }
            Step::FieldMultiply { a, b, polynomial, lanes } => {
                collect(*lanes, a.width, |lane| field_multiply(a.width, a.get(words, lane), b.get(words, lane), *polynomial))
            }
            Step::Affine { a, matrix, constant, lanes } => collect(*lanes, a.width, |lane| {
                let value = a.get(words, lane);
                let bit = |row: &u128| u128::from((row & value).count_ones() & 1);
                matrix.iter().enumerate().fold(0, |all, (place, row)| all | bit(row) << place) ^ constant
            }),
            Step::Load { address, bytes, span } => {
                let address = u64::try_from(word(address)).map_err(|_| FaultKind::Malformed("address above 2^64"))?;
                match memory.load(address, *bytes).map_err(|kind| Fault { kind, span: *span })?.defined() {
                    Some(bits) => bits.low_u128(),
                    None => return Ok(None),
                }
            }
        }))
    }
}

/// Translates a body node by node; `None` where something is not for steps.
struct Compiler<'a> {
    body: &'a Body,
    steps: Steps,
    /// Elements of arrays by node.
    arrays: Vec<(NodeHandle, Box<[u32]>)>,
    /// Concatenations wider than a word, by node: the table of a permute of two registers.
    wide: Vec<(NodeHandle, Box<[Part]>)>,
}

impl Compiler<'_> {
    fn shape(&self, node: NodeHandle) -> Option<(u32, u32)> {
        match self.body.nodes[node].ty {
            Type::Bits { width, lanes } if width * lanes <= WORD_BITS => Some((width, lanes)),
            _ => None,
        }
    }

    fn slot(&self, node: NodeHandle) -> u32 {
        self.steps.slots[node.index()]
    }

    fn lanes(&self, node: NodeHandle, total: u32) -> Option<Lanes> {
        let (width, lanes) = self.shape(node)?;
        (lanes == total || lanes == 1).then(|| Lanes { slot: self.slot(node), width, stride: if lanes == 1 { 0 } else { width } })
    }

    /// The words of a vector that is one word or a wide concatenation.
    fn parts(&self, vector: NodeHandle, lanes: u32) -> Option<Box<[Part]>> {
        match self.shape(vector) {
            Some(_) => Some(Box::new([Part { slot: self.slot(vector), lanes }])),
            None => self.wide.iter().find(|(handle, _)| *handle == vector).map(|(_, parts)| parts.clone()),
        }
    }

    fn constant(&self, node: NodeHandle) -> Option<&Bits> {
        if let Op::Constant(bits) = &self.body.nodes[node].op { Some(bits) } else { None }
    }

    fn fresh(&mut self, value: u128) -> u32 {
        self.steps.initial.push(value);
        self.steps.initial.len() as u32 - 1
    }

    fn emit(&mut self, step: Step) -> u32 {
        let slot = self.fresh(0);
        self.steps.list.push((slot, step));
        slot
    }

    fn node(&mut self, handle: NodeHandle) -> Option<u32> {
        let body = self.body;
        let node = &body.nodes[handle];
        if let (Op::Array(elements), Type::Array { .. }) = (&node.op, &node.ty) {
            let slots = elements.iter().map(|element| self.shape(*element).map(|_| self.slot(*element))).collect::<Option<_>>()?;
            self.arrays.push((handle, slots));
            return Some(self.fresh(0));
        }
        if let (Op::Concatenate(operands), None) = (&node.op, self.shape(handle)) {
            let part = |operand: &NodeHandle| self.shape(*operand).map(|(_, lanes)| Part { slot: self.slot(*operand), lanes });
            let parts = operands.iter().map(part).collect::<Option<_>>()?;
            self.wide.push((handle, parts));
            return Some(self.fresh(0));
        }
        let (width, lanes) = self.shape(handle)?;
        let mask = ones(width * lanes);
        let tops = repeated(1 << (width - 1), width, lanes);
        Some(match &node.op {
            Op::Input(index) => {
                let slot = self.fresh(0);
                *self.steps.inputs.get_mut(*index as usize)? = Some(slot);
                slot
            }
            Op::Constant(bits) => self.fresh(bits.low_u128()),
            Op::Unary(UnaryOp::Not, a) => self.emit(Step::Not { a: self.slot(*a), mask }),
            Op::Unary(op, a) => self.emit(Step::Unary { op: *op, a: self.lanes(*a, lanes)?, lanes }),
            Op::Binary(op, a, b) => self.binary(*op, *a, *b, (width, lanes))?,
            Op::Nary(op, operands) => {
                if operands.iter().any(|operand| self.shape(*operand) != Some((width, lanes))) {
                    return None;
                }
                let (first, rest) = operands.split_first()?;
                rest.iter().fold(self.slot(*first), |a, next| {
                    let b = self.slot(*next);
                    self.emit(match op {
                        NaryOp::Add => Step::Add { a, b, tops, mask },
                        NaryOp::Xor => Step::Xor { a, b },
                        NaryOp::And => Step::And { a, b },
                        NaryOp::Or => Step::Or { a, b },
                    })
                })
            }
            Op::Select { condition, then, otherwise } => {
                let condition = self.lanes(*condition, lanes)?;
                let [a, b] = [*then, *otherwise].map(|node| self.lanes(node, lanes));
                self.emit(Step::Select { condition, a: a?, b: b?, lanes })
            }
            Op::Resize(a) | Op::ResizeSigned(a) => {
                let signed = matches!(node.op, Op::ResizeSigned(_));
                let from = self.lanes(*a, lanes)?;
                match (lanes, signed) {
                    // Words are zero filled already.
                    (1, false) if width >= from.width => from.slot,
                    (1, _) if width <= from.width => self.emit(Step::Extract { a: from.slot, shift: 0, mask }),
                    _ => self.emit(Step::Resize { a: from, to: width, lanes, signed }),
                }
            }
            Op::Reinterpret(a, order) => {
                let (from, count) = self.shape(*a)?;
                if from % 8 != 0 || width % 8 != 0 || from * count != width * lanes {
                    return None;
                }
                let mut slot = self.slot(*a);
                if *order == ByteOrder::Big && from != width {
                    for width in [from, width].into_iter().filter(|width| *width != 8) {
                        slot = self.emit(Step::Swap { a: slot, width });
                    }
                }
                slot
            }
            Op::Lane { vector, index } => {
                self.shape(*index)?;
                let Type::Bits { width: from, lanes: count } = body.nodes[*vector].ty else { return None };
                let (step, count) = if width == 1 && count == 1 { (1, from) } else { (from, count) };
                if step != width {
                    return None;
                }
                let parts = self.parts(*vector, count)?;
                match self.constant(*index).map(Bits::saturating_u32) {
                    Some(index) => {
                        let (slot, lane) = place(&parts, index)?;
                        self.emit(Step::Extract { a: slot, shift: lane * width, mask: ones(width) })
                    }
                    None => self.emit(Step::LaneAt { parts, index: self.slot(*index), width }),
                }
            }
            Op::Lanes(parts) | Op::Concatenate(parts) => {
                let mut shift = 0;
                let mut placed = Vec::with_capacity(parts.len());
                for part in parts {
                    let (width, lanes) = self.shape(*part)?;
                    placed.push((self.slot(*part), shift));
                    shift += width * lanes;
                }
                self.emit(Step::Join { parts: placed.into() })
            }
            Op::Slice { vector, start } if self.shape(*vector).is_some() => {
                let shift = start.checked_mul(width).filter(|shift| *shift < WORD_BITS)?;
                self.emit(Step::Extract { a: self.slot(*vector), shift, mask })
            }
            Op::Slice { vector, start } => {
                let Type::Bits { lanes: count, width: from } = body.nodes[*vector].ty else { return None };
                let parts = self.parts(*vector, count).filter(|_| from == width)?;
                let mut placed = Vec::with_capacity(lanes as usize);
                for lane in 0..lanes {
                    let (slot, from) = place(&parts, start.checked_add(lane)?)?;
                    let part = self.emit(Step::Extract { a: slot, shift: from * width, mask: ones(width) });
                    placed.push((part, lane * width));
                }
                self.emit(Step::Join { parts: placed.into() })
            }
            Op::FieldMultiply { polynomial, a, b } => {
                let (a, b) = (self.lanes(*a, lanes)?, self.lanes(*b, lanes)?);
                self.emit(Step::FieldMultiply { a, b, polynomial: polynomial.low_u128(), lanes })
            }
            Op::Affine { matrix, constant, value } => {
                let matrix = matrix.iter().map(Bits::low_u128).collect();
                self.emit(Step::Affine { a: self.lanes(*value, lanes)?, matrix, constant: constant.low_u128(), lanes })
            }
            Op::Element { array, index } => {
                let elements = self.arrays.iter().find(|(handle, _)| handle == array)?.1.clone();
                // One index chooses a whole element, a vector of them lane by lane.
                let (_, count) = self.shape(*index)?;
                let index = self.lanes(*index, count)?;
                self.emit(Step::Element { elements, index, width, lanes: count })
            }
            Op::Load { address } => {
                self.shape(*address)?;
                self.emit(Step::Load { address: self.slot(*address), bytes: width * lanes / 8, span: node.span })
            }
            _ => return None,
        })
    }

    fn binary(&mut self, op: BinaryOp, a: NodeHandle, b: NodeHandle, (width, lanes): (u32, u32)) -> Option<u32> {
        let (left, right) = (self.lanes(a, lanes)?, self.lanes(b, lanes)?);
        if !op.is_shift() && left.width != right.width {
            return None;
        }
        let total = ones(width * lanes);
        let count = self.constant(b).filter(|_| right.stride == 0).map(|bits| bits.saturating_u32().min(width));
        Some(self.emit(match (op, count) {
            (BinaryOp::Subtract, _) => {
                let tops = repeated(1 << (width - 1), width, lanes);
                Step::Subtract { a: left.slot, b: right.slot, tops, mask: total }
            }
            (BinaryOp::Multiply, _) if lanes == 1 => Step::Multiply { a: left.slot, b: right.slot, mask: total },
            (BinaryOp::ShiftLeft | BinaryOp::ShiftRight, Some(count)) if count == width => {
                Step::Extract { a: left.slot, shift: 0, mask: 0 }
            }
            (BinaryOp::ShiftLeft, Some(count)) => {
                Step::ShiftLeft { a: left.slot, count, kept: repeated(ones(width) & !ones(count), width, lanes) }
            }
            (BinaryOp::ShiftRight, Some(count)) => {
                Step::ShiftRight { a: left.slot, count, kept: repeated(ones(width - count), width, lanes) }
            }
            _ => Step::Binary { op, a: left, b: right, result_width: width, lanes },
        }))
    }
}

/// The word and the lane in it of lane `index` of words one after another.
fn place(parts: &[Part], mut index: u32) -> Option<(u32, u32)> {
    for part in parts {
        if index < part.lanes {
            return Some((part.slot, index));
        }
        index -= part.lanes;
    }
    None
}

fn compile(body: &Body) -> Option<Steps> {
    let steps = Steps { slots: Vec::new(), initial: Vec::new(), inputs: vec![None; body.inputs.len()], list: Vec::new() };
    let mut compiler = Compiler { body, steps, arrays: Vec::new(), wide: Vec::new() };
    for (handle, _) in body.nodes.iter() {
        let slot = compiler.node(handle)?;
        compiler.steps.slots.push(slot);
    }
    let results = body.outputs.iter().map(|(_, handle)| *handle);
    let of_effects = body.effects.iter().flat_map(|effect| match effect {
        Effect::Store { address, value, condition } => vec![Some(*address), Some(*value), *condition],
        Effect::Branch { condition, target } => vec![*condition, *target],
        Effect::Forbidden { condition, .. } => vec![Some(*condition)],
    });
    // What is handed out must be bits.
    results.chain(of_effects.flatten()).all(|handle| compiler.shape(handle).is_some()).then_some(compiler.steps)
}

impl CompiledMeaning {
    /// Makes a body ready.
    pub fn new(body: &Body) -> Self {
        Self { body: body.clone(), steps: compile(body) }
    }

    /// The body.
    pub fn body(&self) -> &Body {
        &self.body
    }

    /// Whether runs on defined inputs are fast.
    pub fn is_compiled(&self) -> bool {
        self.steps.is_some()
    }

    /// Runs the body.
    ///
    /// # Errors
    /// The faults of the concrete domain. Memory is as the effects before the fault left it.
    pub fn run<M: Memory>(&self, scratch: &mut Scratch, memory: &mut M, inputs: &[&ShadowedBits]) -> Result<RowOutcome, Fault> {
        if let Some(steps) = &self.steps
            && self.run_steps(steps, scratch, memory, inputs)?
        {
            return self.finish(steps, &scratch.words, memory);
        }
        let radix = MontgomeryRadix::one();
        let values: Vec<Value> = inputs.iter().map(|bits| Value::Bits((*bits).clone())).collect();
        if values.len() != self.body.inputs.len() {
            return Err(FaultKind::Malformed("another number of inputs").into());
        }
        let outcome = evaluate(&mut Concrete::new(memory, &radix), &self.body, &values)?;
        let outputs = outcome.outputs.into_iter().map(|value| match value {
            Value::Bits(bits) => Ok(bits),
            _ => Err(Fault::from(FaultKind::Malformed("bits expected"))),
        });
        let branch = outcome.branch.map(|(condition, target)| Branch {
            taken: condition.is_none_or(|condition| defined_u64(&condition) != Some(0)),
            target: target.and_then(|target| defined_u64(&target)),
        });
        Ok(RowOutcome { outputs: outputs.collect::<Result<_, _>>()?, branch })
    }

    /// False where the steps met something undefined and the definition must be asked.
    fn run_steps<M: Memory>(&self, steps: &Steps, scratch: &mut Scratch, memory: &mut M, inputs: &[&ShadowedBits]) -> Result<bool, Fault> {
        if inputs.len() != steps.inputs.len() {
            return Ok(false);
        }
        let words = &mut scratch.words;
        words.clear();
        words.extend_from_slice(&steps.initial);
        for (slot, (input, port)) in steps.inputs.iter().zip(inputs.iter().zip(&self.body.inputs)) {
            let Some(bits) = input.defined().filter(|bits| Some(bits.width()) == port.ty.total_bits()) else { return Ok(false) };
            if let Some(slot) = slot {
                words[*slot as usize] = bits.low_u128();
            }
        }
        for (slot, step) in &steps.list {
            let Some(word) = step.run(words, memory)? else { return Ok(false) };
            words[*slot as usize] = word;
        }
        Ok(true)
    }

    fn finish<M: Memory>(&self, steps: &Steps, words: &[u128], memory: &mut M) -> Result<RowOutcome, Fault> {
        let word = |handle: NodeHandle| words[steps.slots[handle.index()] as usize];
        let bits =
            |handle: NodeHandle| ShadowedBits::from(Bits::from_u128(self.body.nodes[handle].ty.total_bits().unwrap_or(0), word(handle)));
        let address = |handle: NodeHandle| u64::try_from(word(handle)).map_err(|_| FaultKind::Malformed("address above 2^64"));
        let mut branch = None;
        for effect in &self.body.effects {
            match effect {
                Effect::Store { address: at, value, condition } => {
                    if condition.is_none_or(|condition| word(condition) != 0) {
                        memory.store(address(*at)?, &bits(*value))?;
                    }
                }
                Effect::Branch { condition, target } => {
                    let taken = condition.is_none_or(|condition| word(condition) != 0);
                    branch = Some(Branch { taken, target: target.map(address).transpose()? });
                }
                Effect::Forbidden { condition, span } if word(*condition) != 0 => {
                    return Err(Fault { kind: FaultKind::Forbidden, span: *span });
                }
                Effect::Forbidden { .. } => {}
            }
        }
        Ok(RowOutcome { outputs: self.body.outputs.iter().map(|(_, handle)| bits(*handle)).collect(), branch })
    }
}
