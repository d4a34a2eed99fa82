//! What the tests of the evaluator share: random shapes, operands, and bodies of one operation.

use kgen_ir::bits::Bits;
use kgen_ir::body::{BinaryOp, Body, NaryOp, NodeHandle, Op, UnaryOp};
use kgen_ir::builder::BodyBuilder;
use kgen_ir::domains::concrete::{Concrete, Fault, ShadowedBits, Value};
use kgen_ir::domains::memory::NoMemory;
use kgen_ir::evaluate::evaluate;
use kgen_ir::natural::MontgomeryRadix;
use kgen_ir::types::{ByteOrder, Type};
use proptest::prelude::*;

/// Lane width and lanes.
pub type Shape = (u32, u32);

/// This many cases, from a fixed seed, without files of past failures.
pub fn config(cases: u32) -> ProptestConfig {
    let rng_seed = proptest::test_runner::RngSeed::Fixed(0x6b67_656e);
    ProptestConfig { cases, rng_seed, failure_persistence: None, ..ProptestConfig::default() }
}

pub fn shapes() -> impl Strategy<Value = Shape> {
    let widths = prop::sample::select(vec![1, 2, 3, 7, 8, 13, 16, 24, 32, 40, 63, 64, 65, 127, 128, 130, 200, 512]);
    let lanes = prop::sample::select(vec![1, 1, 2, 3, 4, 8, 16]);
    (widths, lanes).prop_map(|(width, lanes)| (width, if width * lanes > 1024 { 1 } else { lanes }))
}

/// Random bits, with runs of zeros and ones more often than chance gives them.
pub fn bits(width: u32) -> impl Strategy<Value = Bits> {
    let word = prop_oneof![4 => any::<u64>(), 1 => Just(0), 1 => Just(u64::MAX), 1 => 0u64..8];
    prop::collection::vec(word, width.div_ceil(64) as usize).prop_map(move |words| Bits::from_words(width, words))
}

/// A sparse random mask, empty in one case of three.
pub fn mask(width: u32) -> impl Strategy<Value = Bits> {
    (bits(width), bits(width), bits(width), 0..3).prop_map(move |(a, b, c, choice)| match choice {
        0 => Bits::zero(width),
        1 => a.and(&b).and(&c),
        _ => a,
    })
}

pub const UNARY: [UnaryOp; 3] = [UnaryOp::Not, UnaryOp::LeadingZeros, UnaryOp::PopulationCount];
pub const NARY: [NaryOp; 4] = [NaryOp::Add, NaryOp::Xor, NaryOp::And, NaryOp::Or];
pub const BINARY: [BinaryOp; 16] = [
    BinaryOp::Subtract,
    BinaryOp::Multiply,
    BinaryOp::Divide,
    BinaryOp::Remainder,
    BinaryOp::CarrylessMultiply,
    BinaryOp::ShiftLeft,
    BinaryOp::ShiftRight,
    BinaryOp::ShiftRightSigned,
    BinaryOp::RotateLeft,
    BinaryOp::Equal,
    BinaryOp::Less,
    BinaryOp::LessSigned,
    BinaryOp::Minimum,
    BinaryOp::Maximum,
    BinaryOp::MinimumSigned,
    BinaryOp::MaximumSigned,
];

/// Runs a body on concrete values without memory, R = 1.
pub fn run(body: &Body, inputs: &[Value]) -> Result<Vec<Value>, Fault> {
    evaluate(&mut Concrete::new(&mut NoMemory, &MontgomeryRadix::one()), body, inputs).map(|outcome| outcome.outputs)
}

/// Runs a body of `Bits` inputs with one output of a `Bits` type.
pub fn run_bits(body: &Body, inputs: &[ShadowedBits]) -> ShadowedBits {
    let inputs: Vec<Value> = inputs.iter().cloned().map(Value::Bits).collect();
    match run(body, &inputs).expect("no fault").swap_remove(0) {
        Value::Bits(bits) => bits,
        other => panic!("bits expected, not {other:?}"),
    }
}

/// A body with these inputs and the one output that `make` returns.
pub fn body(inputs: &[Shape], make: impl FnOnce(&mut BodyBuilder, &[kgen_ir::body::NodeHandle]) -> kgen_ir::body::NodeHandle) -> Body {
    let mut builder = BodyBuilder::new();
    let handles: Vec<_> = inputs
        .iter()
        .enumerate()
        .map(|(index, (width, lanes))| builder.input(&format!("i{index}"), Type::vector(*width, *lanes)))
        .collect();
    let output = make(&mut builder, &handles);
    builder.output("d", output);
    builder.finish()
}

/// `d.u32x4 = [i in 0..4: c.u32x4[i] + sum(j in 0..2: wide(a.u16x8[2*i+j]) * wide(b.u16x8[2*i+j]))]` over big-endian registers: four lanes, two products each.
pub fn multiply_sum() -> Body {
    body(&[(8, 16); 3], |builder, inputs| {
        let a = builder.reinterpret(inputs[0], 16, ByteOrder::Big);
        let b = builder.reinterpret(inputs[1], 16, ByteOrder::Big);
        let c = builder.reinterpret(inputs[2], 32, ByteOrder::Big);
        let lanes: Vec<_> = (0..4)
            .map(|i| {
                let mut terms = vec![builder.lane(c, i)];
                for j in 0..2 {
                    let factors = [a, b].map(|vector| {
                        let lane = builder.lane(vector, 2 * i + j);
                        builder.resize(lane, 32)
                    });
                    terms.push(builder.binary(BinaryOp::Multiply, factors[0], factors[1]));
                }
                builder.nary(NaryOp::Add, &terms)
            })
            .collect();
        let sums = builder.lanes(&lanes);
        builder.reinterpret(sums, 8, ByteOrder::Big)
    })
}

/// Draws numbers from a list made by proptest, so that failures shrink.
pub struct Choices<'a> {
    list: &'a [u32],
    next: usize,
}

impl Choices<'_> {
    fn below(&mut self, bound: usize) -> usize {
        let choice = self.list[self.next % self.list.len()];
        self.next += 1;
        choice as usize % bound
    }
}

pub fn choices() -> impl Strategy<Value = Vec<u32>> {
    prop::collection::vec(any::<u32>(), 120)
}

/// A body of about `size` random nodes over three registers of 16 bytes, with two 16-byte outputs: views, lanes, moves, arithmetic, tables.
pub fn random_body(list: &[u32], size: usize) -> Body {
    let mut choose = Choices { list, next: 0 };
    let mut builder = BodyBuilder::new();
    let inputs: Vec<NodeHandle> = ["a", "b", "c"].iter().map(|name| builder.input(name, Type::vector(8, 16))).collect();
    // Vectors of 128 bits, by lane width 8, 16, 32, 64.
    let mut pool = inputs.clone();
    for _ in 0..size {
        let order = if choose.below(3) == 0 { ByteOrder::Little } else { ByteOrder::Big };
        let width = 8 << choose.below(4);
        let take = |choose: &mut Choices<'_>, builder: &mut BodyBuilder| {
            let node = pool[pool.len() - 1 - choose.below(pool.len().min(6))];
            if builder.type_of(node) == Type::vector(width, 128 / width) { node } else { builder.reinterpret(node, width, order) }
        };
        let x = take(&mut choose, &mut builder);
        let y = take(&mut choose, &mut builder);
        let lanes = 128 / width;
        let ty = Type::vector(width, lanes);
        let pattern = u64::from(list[choose.below(list.len())]).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let next = match choose.below(17) {
            0 => builder.binary(BINARY[choose.below(9)], x, y),
            1 => builder.nary(NARY[choose.below(4)], &[x, y]),
            2 => {
                let count = builder.constant(8, choose.below(width as usize + 2) as u64);
                builder.binary(BINARY[5 + choose.below(4)], x, count)
            }
            3 => {
                let mask = builder.push(Op::Constant(Bits::from_words(128, [pattern, pattern.rotate_left(20)])), ty);
                builder.nary(NARY[choose.below(4)], &[x, mask])
            }
            // A sparse constant: masks of low bits of each lane.
            4 | 5 => {
                let bits = choose.below(width as usize + 1) as u32;
                let lane = Bits::ones(width).shift_right(bits);
                let mask = (0..lanes).fold(Bits::zero(128), |mask, lane_index| mask.or(&lane.resize(128).shift_left(lane_index * width)));
                let mask = builder.push(Op::Constant(mask), ty);
                builder.nary(NaryOp::And, &[x, mask])
            }
            6 => {
                let condition = builder.binary(BINARY[9 + choose.below(3)], x, y);
                builder.select(condition, x, y)
            }
            7 => builder.binary(BINARY[12 + choose.below(4)], x, y),
            8 => {
                let picked: Vec<_> = (0..lanes)
                    .map(|_| builder.lane(if choose.below(2) == 0 { x } else { y }, choose.below(lanes as usize) as u32))
                    .collect();
                builder.lanes(&picked)
            }
            9 => {
                let both = builder.concatenate(&[x, y]);
                builder.push(Op::Slice { vector: both, start: choose.below(lanes as usize + 1) as u32 }, ty)
            }
            10 => {
                let wide = if choose.below(2) == 0 { builder.resize(x, 2 * width) } else { builder.resize_signed(x, 2 * width) };
                let changed = builder.nary(NARY[choose.below(4)], &[wide, wide]);
                builder.resize(changed, width)
            }
            11 => builder.unary(UNARY[choose.below(3)], x),
            12 => {
                // A permute by run-time control: byte i of (x ++ y) at control & 31.
                let bytes = [x, y].map(|node| if width == 8 { node } else { builder.reinterpret(node, 8, order) });
                let both = builder.concatenate(&bytes);
                let low = builder.constant(8, 31);
                let picked: Vec<_> = (0..16)
                    .map(|lane| {
                        let control = builder.lane(inputs[2], lane);
                        let index = builder.nary(NaryOp::And, &[control, low]);
                        builder.push(Op::Lane { vector: both, index }, Type::bits(8))
                    })
                    .collect();
                builder.lanes(&picked)
            }
            13 => {
                let products: Vec<_> = (0..lanes)
                    .map(|lane| {
                        let factors = [x, y].map(|vector| {
                            let factor = builder.lane(vector, lane);
                            builder.resize(factor, 2 * width)
                        });
                        let product = builder.binary(BinaryOp::Multiply, factors[0], factors[1]);
                        let count = builder.constant(8, choose.below(width as usize) as u64);
                        let shifted = builder.binary(BinaryOp::ShiftRight, product, count);
                        builder.resize(shifted, width)
                    })
                    .collect();
                builder.lanes(&products)
            }
            14 => {
                let low = builder.push(Op::Constant(Bits::from_words(128, [0x0707_0707_0707_0707; 2])), Type::vector(8, 16));
                let bytes = if width == 8 { x } else { builder.reinterpret(x, 8, order) };
                let masked = builder.nary(NaryOp::And, &[bytes, low]);
                let index = builder.resize(masked, 3);
                let elements: Vec<_> = (0..8).map(|index| builder.constant(8, pattern >> (8 * index) & 0xff)).collect();
                let array = builder.push(Op::Array(elements), Type::Array { element: Type::bits(8).into(), length: 8 });
                builder.push(Op::Element { array, index }, Type::vector(8, 16))
            }
            15 => {
                let row = |index: u32| Bits::from_u64(width, pattern).rotate_left(index * 3);
                let matrix = (0..width).map(row).collect();
                builder.push(Op::Affine { matrix, constant: Bits::from_u64(width, pattern >> 7), value: x }, ty)
            }
            _ => builder.push(Op::FieldMultiply { polynomial: Bits::from_u64(width, 0x1b), a: x, b: y }, ty),
        };
        pool.push(next);
    }
    for (name, node) in ["d", "e"].into_iter().zip(pool.iter().rev()) {
        builder.output(name, *node);
    }
    builder.finish()
}

/// Three random registers.
pub fn registers() -> impl Strategy<Value = [Bits; 3]> {
    [bits(128), bits(128), bits(128)]
}
