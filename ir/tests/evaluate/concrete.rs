//! The concrete domain: every operation against integer arithmetic, and soundness of the undefined shadow.

use crate::common::*;
use kgen_ir::arena::Handle;
use kgen_ir::bits::Bits;
use kgen_ir::body::{BinaryOp, Body, Effect, NaryOp, NodeHandle, Op, UnaryOp};
use kgen_ir::builder::BodyBuilder;
use kgen_ir::domains::concrete::{Concrete, FaultKind, ShadowedBits, Value};
use kgen_ir::domains::memory::{Memory, RegionMemory};
use kgen_ir::evaluate::evaluate;
use kgen_ir::natural::MontgomeryRadix;
use kgen_ir::types::{ByteOrder, Type};
use num_bigint::BigUint;
use num_traits::{One, ToPrimitive, Zero};
use proptest::prelude::*;

fn power(bits: u32) -> BigUint {
    BigUint::one() << bits
}

fn lanes_of(value: &Bits, (width, lanes): Shape) -> Vec<BigUint> {
    (0..lanes).map(|lane| (value.to_integer() >> (lane * width)) % power(width)).collect()
}

fn from_lanes(width: u32, lanes: &[BigUint]) -> Bits {
    let total = lanes.iter().enumerate().fold(BigUint::zero(), |total, (index, lane)| total + (lane << (index as u32 * width)));
    Bits::from_integer(width * lanes.len() as u32, &total)
}

fn is_negative(a: &BigUint, width: u32) -> bool {
    a >= &power(width - 1)
}

fn biased(a: &BigUint, width: u32) -> BigUint {
    (a + power(width - 1)) % power(width)
}

/// Lanewise reference in integers; `None` is undefined.
fn reference_binary(op: BinaryOp, width: u32, a: &BigUint, b: &BigUint) -> Option<BigUint> {
    let modulus = power(width);
    let count = b.to_u32().unwrap_or(u32::MAX).min(width);
    let flag = |value: bool| BigUint::from(u8::from(value));
    let signed_less = |x: &BigUint, y: &BigUint| biased(x, width) < biased(y, width);
    Some(match op {
        BinaryOp::Subtract => (&modulus + a - b) % &modulus,
        BinaryOp::Multiply => a * b % &modulus,
        BinaryOp::Divide => (!b.is_zero()).then(|| a / b)?,
        BinaryOp::Remainder => (!b.is_zero()).then(|| a % b)?,
        BinaryOp::CarrylessMultiply => {
            (0..width).filter(|bit| b.bit(u64::from(*bit))).fold(BigUint::zero(), |sum, bit| sum ^ (a << bit)) % &modulus
        }
        BinaryOp::ShiftLeft => (a << count) % &modulus,
        BinaryOp::ShiftRight => a >> count,
        BinaryOp::ShiftRightSigned if is_negative(a, width) => (&modulus - 1u32) - ((&modulus - 1u32 - a) >> count),
        BinaryOp::ShiftRightSigned => a >> count,
        BinaryOp::RotateLeft => {
            let count = (b % width).to_u32().unwrap();
            (a << count) % &modulus + (a >> (width - count))
        }
        BinaryOp::Equal => flag(a == b),
        BinaryOp::Less => flag(a < b),
        BinaryOp::LessSigned => flag(signed_less(a, b)),
        BinaryOp::Minimum => a.min(b).clone(),
        BinaryOp::Maximum => a.max(b).clone(),
        BinaryOp::MinimumSigned => if signed_less(a, b) { a } else { b }.clone(),
        BinaryOp::MaximumSigned => if signed_less(a, b) { b } else { a }.clone(),
    })
}

fn defined(bits: &Bits) -> ShadowedBits {
    bits.clone().into()
}

fn two_operands() -> impl Strategy<Value = (Shape, Bits, Bits)> {
    shapes().prop_flat_map(|shape| (Just(shape), bits(shape.0 * shape.1), bits(shape.0 * shape.1)))
}

/// A random one-operation body: index of the operation, its operand shapes.
fn single_operation(choice: usize, shape: Shape, parameter: u32) -> (Vec<Shape>, Body) {
    let (width, lanes) = shape;
    let total = width * lanes;
    let two = vec![shape, shape];
    let make = |shapes: Vec<Shape>, build: &dyn Fn(&mut BodyBuilder, &[NodeHandle]) -> NodeHandle| {
        let body = body(&shapes, |builder, inputs| build(builder, inputs));
        (shapes, body)
    };
    match choice {
        0..16 => make(two, &|builder, x| builder.binary(BINARY[choice], x[0], x[1])),
        16..20 => make(vec![shape; 3], &|builder, x| builder.nary(NARY[choice - 16], x)),
        20..23 => make(vec![shape], &|builder, x| builder.unary(UNARY[choice - 20], x[0])),
        23 => make(vec![(1, lanes), shape, shape], &|builder, x| builder.select(x[0], x[1], x[2])),
        24 => make(vec![(1, 1), shape, shape], &|builder, x| builder.select(x[0], x[1], x[2])),
        25 => make(vec![shape], &|builder, x| builder.resize(x[0], parameter % 600 + 1)),
        26 => make(vec![shape], &|builder, x| builder.resize_signed(x[0], width + parameter % 80)),
        27 => make(vec![shape, (5, 1)], &|builder, x| builder.push(Op::Lane { vector: x[0], index: x[1] }, Type::bits(width))),
        28 => make(vec![shape; 2], &|builder, x| builder.concatenate(x)),
        29 => {
            let start = parameter % lanes;
            let ty = Type::vector(width, lanes - start);
            make(vec![shape], &|builder, x| builder.push(Op::Slice { vector: x[0], start }, ty.clone()))
        }
        30 => {
            let polynomial = Bits::from_u64(width, u64::from(parameter) | 1);
            make(two, &|builder, x| {
                builder.push(Op::FieldMultiply { polynomial: polynomial.clone(), a: x[0], b: x[1] }, Type::vector(width, lanes))
            })
        }
        31 => {
            let row = |index: u32| Bits::from_u64(width, u64::from(parameter)).rotate_left(index * 7);
            let matrix: Vec<Bits> = (0..width).map(row).collect();
            make(vec![shape], &|builder, x| {
                let op = Op::Affine { matrix: matrix.clone(), constant: Bits::from_u64(width, u64::from(parameter)), value: x[0] };
                builder.push(op, Type::vector(width, lanes))
            })
        }
        32..36 => make(vec![shape, (6, 1)], &|builder, x| builder.binary(BINARY[choice - 32 + 5], x[0], x[1])),
        // Bits of a scalar, and back.
        36 => make(vec![(total, 1)], &|builder, x| {
            let bits: Vec<_> = (0..total)
                .map(|index| {
                    let index = builder.constant(16, u64::from(index));
                    builder.push(Op::Lane { vector: x[0], index }, Type::bits(1))
                })
                .collect();
            builder.push(Op::Lanes(bits), Type::bits(total))
        }),
        // A table with as many elements as its index has values, looked up lane by lane.
        _ => make(vec![(3, lanes)], &|builder, x| {
            let elements: Vec<_> = (0..8).map(|index| builder.constant(24, u64::from(parameter).rotate_left(index * 5))).collect();
            let array = Type::Array { element: Type::bits(24).into(), length: 8 };
            let array = builder.push(Op::Array(elements), array);
            builder.push(Op::Element { array, index: x[0] }, Type::vector(24, lanes))
        }),
    }
}

const OPERATIONS: usize = 38;

/// An operation with a full set of partly undefined operands and values to fill the undefined bits with.
fn shadowed_case() -> impl Strategy<Value = (Body, Vec<ShadowedBits>, Vec<Vec<Bits>>)> {
    (0..OPERATIONS, shapes(), any::<u32>()).prop_flat_map(|(choice, shape, parameter)| {
        let (shapes, body) = single_operation(choice, shape, parameter);
        let operands: Vec<_> = shapes
            .iter()
            .map(|(width, lanes)| (bits(width * lanes), mask(width * lanes)).prop_map(|(bits, mask)| ShadowedBits::new(bits, mask)))
            .collect();
        let fills: Vec<_> = shapes.iter().map(|(width, lanes)| prop::collection::vec(bits(width * lanes), 6)).collect();
        (Just(body), operands, fills)
    })
}

proptest! {
    #![proptest_config(config(600))]

    #[test]
    fn binary_operations_are_those_of_integers(((width, lanes), a, b) in two_operands(), op in prop::sample::select(BINARY.to_vec())) {
        let body = body(&[(width, lanes); 2], |builder, x| builder.binary(op, x[0], x[1]));
        let result = run_bits(&body, &[defined(&a), defined(&b)]);
        let result_width = result.width() / lanes;
        for (lane, (a, b)) in lanes_of(&a, (width, lanes)).iter().zip(lanes_of(&b, (width, lanes))).enumerate() {
            let actual = result.extract(lane as u32 * result_width, result_width);
            match reference_binary(op, width, a, &b) {
                Some(expected) => prop_assert_eq!(actual.defined().map(Bits::to_integer), Some(expected)),
                None => prop_assert_eq!(actual, ShadowedBits::all_undefined(width)),
            }
        }
    }

    #[test]
    fn shifts_take_one_count_of_any_width_for_all_lanes((shape, a, _) in two_operands(), count in 0u64..1200,
        op in prop::sample::select(BINARY.into_iter().filter(|op| op.is_shift()).collect::<Vec<_>>())) {
        let body = body(&[shape, (11, 1)], |builder, x| builder.binary(op, x[0], x[1]));
        let result = run_bits(&body, &[defined(&a), Bits::from_u64(11, count).into()]);
        let count = BigUint::from(count % 2048);
        let expected: Vec<BigUint> = lanes_of(&a, shape).iter().map(|a| reference_binary(op, shape.0, a, &count).unwrap()).collect();
        prop_assert_eq!(result, ShadowedBits::from(from_lanes(shape.0, &expected)));
    }

    #[test]
    fn nary_and_unary_operations_are_those_of_integers(((width, lanes), a, b) in two_operands()) {
        let shape = (width, lanes);
        let check = |body: &Body, inputs: &[ShadowedBits], reference: &dyn Fn(&BigUint, &BigUint) -> BigUint| {
            let expected: Vec<BigUint> = lanes_of(&a, shape).iter().zip(lanes_of(&b, shape)).map(|(a, b)| reference(a, &b)).collect();
            assert_eq!(run_bits(body, inputs), ShadowedBits::from(from_lanes(width, &expected)));
        };
        let nary = |op| body(&[shape; 2], |builder, x| builder.nary(op, &[x[0], x[1], x[0]]));
        let two = [defined(&a), defined(&b)];
        check(&nary(NaryOp::Add), &two, &|a, b| (a + b + a) % power(width));
        check(&nary(NaryOp::Xor), &two, &|_, b| b.clone());
        check(&nary(NaryOp::And), &two, &|a, b| a & b);
        check(&nary(NaryOp::Or), &two, &|a, b| a | b);
        let unary = |op| body(&[shape], |builder, x| builder.unary(op, x[0]));
        let count = |value: u64| BigUint::from(value) % power(width);
        check(&unary(UnaryOp::Not), &two[..1], &|a, _| power(width) - 1u32 - a);
        check(&unary(UnaryOp::LeadingZeros), &two[..1], &|a, _| count(u64::from(width) - a.bits()));
        check(&unary(UnaryOp::PopulationCount), &two[..1], &|a, _| count(a.count_ones()));
    }

    #[test]
    fn resizing_is_that_of_integers((shape, a, _) in two_operands(), to in 1u32..600) {
        let resized = run_bits(&body(&[shape], |builder, x| builder.resize(x[0], to)), &[defined(&a)]);
        let expected: Vec<BigUint> = lanes_of(&a, shape).iter().map(|lane| lane % power(to)).collect();
        prop_assert_eq!(resized, ShadowedBits::from(from_lanes(to, &expected)));
        let to = to.max(shape.0);
        let resized = run_bits(&body(&[shape], |builder, x| builder.resize_signed(x[0], to)), &[defined(&a)]);
        let extend = |lane: &BigUint| if is_negative(lane, shape.0) { power(to) - power(shape.0) + lane } else { lane.clone() };
        let expected: Vec<BigUint> = lanes_of(&a, shape).iter().map(extend).collect();
        prop_assert_eq!(resized, ShadowedBits::from(from_lanes(to, &expected)));
    }

    #[test]
    fn views_group_bytes_in_address_order(bytes in prop::collection::vec(any::<u8>(), 48), from in prop::sample::select(vec![8u32, 16, 24, 32, 48, 64, 128]),
        to in prop::sample::select(vec![8u32, 16, 24, 32, 48, 64, 128]), big in any::<bool>()) {
        let order = if big { ByteOrder::Big } else { ByteOrder::Little };
        let group = |chunk: &[u8]| if big { BigUint::from_bytes_be(chunk) } else { BigUint::from_bytes_le(chunk) };
        let view = |width: u32| from_lanes(width, &bytes.chunks(width as usize / 8).map(group).collect::<Vec<_>>());
        let body = body(&[(from, 384 / from)], |builder, x| builder.reinterpret(x[0], to, order));
        prop_assert_eq!(run_bits(&body, &[view(from).into()]), ShadowedBits::from(view(to)));
    }

    #[test]
    fn field_products_and_affine_maps_are_polynomial_arithmetic(a: u8, b: u8, c: u8, x in prop::collection::vec(any::<u8>(), 8)) {
        // Multiplication modulo x^8 + x^4 + x^3 + x + 1 by repeated doubling (FIPS-197, 4.2).
        let double = |v: u8| (v << 1) ^ if v & 0x80 != 0 { 0x1b } else { 0 };
        let mut power = a;
        let mut expected = 0;
        for bit in 0..8 {
            if b >> bit & 1 == 1 {
                expected ^= power;
            }
            power = double(power);
        }
        let product = body(&[(8, 2); 2], |builder, x| {
            builder.push(Op::FieldMultiply { polynomial: Bits::from_u64(8, 0x1b), a: x[0], b: x[1] }, Type::vector(8, 2))
        });
        let result = run_bits(&product, &[Bits::from_bytes(&[a, b]).into(), Bits::from_bytes(&[b, a]).into()]);
        prop_assert_eq!(result, ShadowedBits::from(Bits::from_bytes(&[expected, expected])));
        let matrix: Vec<Bits> = x.iter().map(|row| Bits::from_u64(8, u64::from(*row))).collect();
        let affine = body(&[(8, 1)], |builder, v| {
            builder.push(Op::Affine { matrix: matrix.clone(), constant: Bits::from_u64(8, u64::from(c)), value: v[0] }, Type::bits(8))
        });
        let expected = (0..8).fold(c, |sum, row| sum ^ ((x[row] & a).count_ones() as u8 & 1) << row);
        prop_assert_eq!(run_bits(&affine, &[Bits::from_u64(8, u64::from(a)).into()]), ShadowedBits::from(Bits::from_u64(8, u64::from(expected))));
    }
}

proptest! {
    #![proptest_config(config(4000))]

    /// Whatever the undefined bits are, the bits called defined come out the same.
    #[test]
    fn defined_bits_do_not_depend_on_undefined_ones((body, operands, fills) in shadowed_case()) {
        let result = run_bits(&body, &operands);
        for fill in 0..6 {
            let filled: Vec<ShadowedBits> = operands.iter().zip(&fills)
                .map(|(operand, fills)| match operand.undefined() {
                    Some(mask) => operand.bits().or(&fills[fill].and(mask)).into(),
                    None => operand.clone(),
                })
                .collect();
            let concrete = run_bits(&body, &filled);
            if let Some(still) = concrete.undefined() {
                let shadow = result.undefined().cloned().unwrap_or_else(|| Bits::zero(still.width()));
                prop_assert!(still.and_not(&shadow).is_zero(), "bits called defined are undefined for some values");
            }
            prop_assert!(result.agrees_with(concrete.bits()), "{result:?} does not agree with {concrete:?}");
        }
    }
}

fn shadowed(width: u32, value: u64, undefined: u64) -> ShadowedBits {
    ShadowedBits::new(Bits::from_u64(width, value), Bits::from_u64(width, undefined))
}

#[test]
fn shadows_are_exact_where_promised() {
    let two = |op: &dyn Fn(&mut BodyBuilder, NodeHandle, NodeHandle) -> NodeHandle, a, b| {
        run_bits(&body(&[(8, 1); 2], |builder, x| op(builder, x[0], x[1])), &[a, b])
    };
    let unknown = shadowed(8, 0, 0xff);
    assert_eq!(two(&|builder, a, b| builder.nary(NaryOp::And, &[a, b]), unknown.clone(), shadowed(8, 0x0f, 0)), shadowed(8, 0, 0x0f));
    assert_eq!(two(&|builder, a, b| builder.nary(NaryOp::Or, &[a, b]), unknown.clone(), shadowed(8, 0xf0, 0)), shadowed(8, 0xf0, 0x0f));
    assert_eq!(two(&|builder, a, b| builder.nary(NaryOp::Add, &[a, b]), shadowed(8, 0x01, 0x10), shadowed(8, 1, 0)), shadowed(8, 2, 0xf0));
    let multiply = |builder: &mut BodyBuilder, a, b| builder.binary(BinaryOp::Multiply, a, b);
    assert_eq!(two(&multiply, unknown.clone(), shadowed(8, 0, 0)), shadowed(8, 0, 0));
    assert_eq!(two(&multiply, shadowed(8, 1, 0xf0), shadowed(8, 4, 0)), shadowed(8, 4, 0xc0));
    let less = |builder: &mut BodyBuilder, a, b| builder.binary(BinaryOp::Less, a, b);
    assert_eq!(two(&less, shadowed(8, 0, 0x0f), shadowed(8, 0x10, 0x0f)), shadowed(1, 1, 0));
    let select = body(&[(1, 1), (8, 1), (8, 1)], |builder, x| builder.select(x[0], x[1], x[2]));
    assert_eq!(run_bits(&select, &[shadowed(1, 0, 1), shadowed(8, 0x5a, 0), shadowed(8, 0x5f, 0)]), shadowed(8, 0x5a, 0x05));
}

fn fault(inputs: &[(Type, Value)], make: impl FnOnce(&mut BodyBuilder, &[NodeHandle])) -> FaultKind {
    let mut builder = BodyBuilder::new();
    let handles: Vec<_> = inputs.iter().map(|(ty, _)| builder.input("x", ty.clone())).collect();
    make(&mut builder, &handles);
    let mut memory = RegionMemory::default();
    assert!(memory.map(0x1000, vec![7; 16], false));
    let values: Vec<Value> = inputs.iter().map(|(_, value)| value.clone()).collect();
    evaluate(&mut Concrete::new(&mut memory, &MontgomeryRadix::one()), &builder.finish(), &values).expect_err("a fault").kind
}

#[test]
fn faults_are_reported() {
    let u32_of = |value: u64| (Type::bits(32), Value::from(Bits::from_u64(32, value)));
    let undefined = |width: u32| (Type::bits(width), Value::from(ShadowedBits::all_undefined(width)));
    let load = |builder: &mut BodyBuilder, x: &[NodeHandle]| {
        builder.push(Op::Load { address: x[0] }, Type::vector(8, 16));
    };
    assert_eq!(fault(&[u32_of(0x1001)], load), FaultKind::Unmapped { address: 0x1001, bytes: 16 });
    assert_eq!(fault(&[undefined(32)], load), FaultKind::UndefinedAddress);
    let store = |builder: &mut BodyBuilder, x: &[NodeHandle]| {
        builder.effect(Effect::Store { address: x[0], value: x[1], condition: x.get(2).copied() });
    };
    assert_eq!(fault(&[u32_of(0x1000), u32_of(1)], store), FaultKind::NotWritable { address: 0x1000, bytes: 4 });
    assert_eq!(fault(&[u32_of(0x1000), u32_of(1), undefined(1)], store), FaultKind::UndefinedCondition);
    let branch = |builder: &mut BodyBuilder, x: &[NodeHandle]| {
        builder.effect(Effect::Branch { condition: Some(x[0]), target: x.get(1).copied() });
    };
    assert_eq!(fault(&[undefined(1)], branch), FaultKind::UndefinedCondition);
    assert_eq!(fault(&[(Type::bits(1), Bits::from_bool(true).into()), undefined(32)], branch), FaultKind::UndefinedAddress);
    let forbid = |builder: &mut BodyBuilder, x: &[NodeHandle]| {
        builder.effect(Effect::Forbidden { condition: x[0], span: Default::default() });
    };
    assert_eq!(fault(&[undefined(1)], forbid), FaultKind::UndefinedForbidden);
    assert_eq!(fault(&[(Type::bits(1), Bits::from_bool(true).into())], forbid), FaultKind::Forbidden);
    let element = |builder: &mut BodyBuilder, x: &[NodeHandle]| {
        let array = builder.push(Op::Array(vec![x[0]; 3]), Type::Array { element: Type::bits(32).into(), length: 3 });
        builder.push(Op::Element { array, index: x[1] }, Type::bits(32));
    };
    assert_eq!(fault(&[u32_of(0), u32_of(3)], element), FaultKind::IndexOutOfRange { index: 3, length: 3 });
    assert_eq!(fault(&[u32_of(0), undefined(2)], element), FaultKind::UndefinedIndex);
    let subtract = |builder: &mut BodyBuilder, x: &[NodeHandle]| {
        builder.push(Op::NaturalSubtract(x[0], x[1]), Type::Natural { bits: 8 });
    };
    let natural = |value: u32| (Type::Natural { bits: 8 }, Value::Integer(value.into()));
    assert_eq!(fault(&[natural(3), natural(4)], subtract), FaultKind::NegativeNatural);
}

#[test]
fn ill_typed_bodies_fault_and_do_not_panic() {
    let operand = (Type::bits(8), Value::from(Bits::from_u64(8, 1)));
    let kind = fault(&[operand.clone(), (Type::bits(16), Bits::from_u64(16, 1).into())], |builder, x| {
        builder.binary(BinaryOp::Subtract, x[0], x[1]);
    });
    assert!(matches!(kind, FaultKind::Malformed(_)), "{kind:?}");
    let kind = fault(&[operand], |builder, x| {
        builder.push(Op::Element { array: x[0], index: x[0] }, Type::bits(8));
    });
    assert!(matches!(kind, FaultKind::Malformed(_)), "{kind:?}");
}

#[test]
fn loads_and_stores_carry_the_shadow() {
    let mut builder = BodyBuilder::new();
    let address = builder.input("a", Type::bits(32));
    let value = builder.input("v", Type::vector(8, 4));
    let loaded = builder.push(Op::Load { address }, Type::vector(8, 4));
    builder.effect(Effect::Store { address, value, condition: None });
    builder.output("old", loaded);
    let body = builder.finish();
    let mut memory = RegionMemory::default();
    assert!(memory.map(0x10, vec![1, 2, 3, 4, 5, 6], true) && memory.map_undefined(0x20, 4));
    assert!(!memory.map(0x15, vec![0], true) && !memory.map(0x1f, vec![0; 2], true), "overlapping regions are refused");
    let partly = ShadowedBits::new(Bits::from_bytes(&[9, 8, 7, 6]), Bits::from_bytes(&[0, 0xf0, 0, 0]));
    let inputs = [Bits::from_u64(32, 0x11).into(), Value::Bits(partly.clone())];
    let radix = MontgomeryRadix::one();
    let outcome = evaluate(&mut Concrete::new(&mut memory, &radix), &body, &inputs).expect("mapped");
    assert_eq!(outcome.outputs, vec![Value::from(Bits::from_bytes(&[2, 3, 4, 5]))]);
    assert_eq!(memory.load(0x11, 4), Ok(partly));
    assert_eq!(memory.load(0x10, 1), Ok(Bits::from_bytes(&[1]).into()));
    assert_eq!(memory.load(0x20, 4), Ok(ShadowedBits::all_undefined(32)));
    assert_eq!(memory.load(0x14, 4), Err(FaultKind::Unmapped { address: 0x14, bytes: 4 }));
}

proptest! {
    #![proptest_config(config(300))]

    #[test]
    fn multiply_sum_of_big_endian_registers(a: [u8; 16], b: [u8; 16], c: [u8; 16]) {
        let half = |bytes: &[u8; 16], lane: usize| u32::from(u16::from_be_bytes([bytes[2 * lane], bytes[2 * lane + 1]]));
        let mut expected = Vec::new();
        for i in 0..4 {
            let mut sum = u32::from_be_bytes(c[4 * i..4 * i + 4].try_into().unwrap());
            for j in 0..2 {
                sum = sum.wrapping_add(half(&a, 2 * i + j).wrapping_mul(half(&b, 2 * i + j)));
            }
            expected.extend(sum.to_be_bytes());
        }
        let inputs = [a, b, c].map(|bytes| ShadowedBits::from(Bits::from_bytes(&bytes)));
        prop_assert_eq!(run_bits(&multiply_sum(), &inputs), ShadowedBits::from(Bits::from_bytes(&expected)));
    }
}

#[test]
fn handles_of_results_count_outputs() {
    // A loop that doubles x `count` times and counts rounds.
    let mut round = BodyBuilder::new();
    let counter = round.input("i", Type::bits(32));
    let x = round.input("x", Type::bits(64));
    let last = round.input("last", Type::bits(32));
    let doubled = round.nary(NaryOp::Add, &[x, x]);
    round.output("x", doubled);
    let kept = round.nary(NaryOp::Or, &[counter, last]);
    round.output("last", kept);
    let mut builder = BodyBuilder::new();
    let count = builder.input("n", Type::bits(32));
    let x = builder.input("x", Type::bits(64));
    let zero = builder.constant(32, 0);
    let op = Op::Loop { count, carried: vec![x, zero], captured: vec![], body: Box::new(round.finish()) };
    let whole: Handle<_> = builder.push(op, Type::bits(1));
    for (index, width) in [64, 32].into_iter().enumerate() {
        let result = builder.push(Op::Result(whole, index as u32), Type::bits(width));
        builder.output("r", result);
    }
    let body = builder.finish();
    let with_count = |n: u64| run(&body, &[Bits::from_u64(32, n).into(), Bits::from_u64(64, 3).into()]).expect("no fault");
    assert_eq!(with_count(0), vec![Bits::from_u64(64, 3).into(), Bits::from_u64(32, 0).into()]);
    assert_eq!(with_count(5), vec![Bits::from_u64(64, 96).into(), Bits::from_u64(32, 7).into()]);
}
