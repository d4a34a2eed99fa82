//! What the tests of the evaluator share: random shapes, operands, and bodies of one operation.

use kgen_ir::bits::Bits;
use kgen_ir::body::{BinaryOp, Body, NaryOp, UnaryOp};
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
