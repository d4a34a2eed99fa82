//! Interpretation of kernels: `mont` by contract, loops, maps, tables, and known answers that do not depend on R.

use kgen_ir::answers::{Difference, KnownAnswerError, compare_results, enter_arguments, leave_results, run_known_answer};
use kgen_ir::bits::Bits;
use kgen_ir::body::{BinaryOp, Body, NaryOp, Op};
use kgen_ir::builder::BodyBuilder;
use kgen_ir::domains::concrete::FaultKind;
use kgen_ir::interpret::{Argument, InterpretError, Interpretation, interpret};
use kgen_ir::kernel::{Alias, Direction, Kernel, KnownAnswer, Parameter};
use kgen_ir::natural::{MontgomeryRadix, satisfies_contract};
use kgen_ir::source::Span;
use kgen_ir::types::Type;
use num_bigint::BigUint;
use proptest::prelude::*;

use crate::common::config;

pub fn parameter(name: &str, ty: Type, direction: Direction, secret: bool) -> Parameter {
    Parameter { name: name.into(), ty, direction, setup: false, secret, align_bytes: 1, alias: Alias::Disjoint, span: Span::default() }
}

pub fn kernel(name: &str, parameters: Vec<Parameter>, body: Body) -> Kernel {
    Kernel { name: name.into(), parameters, body, span: Span::default() }
}

const BITS: u32 = 128;
const RESIDUE: Type = Type::Residue { modulus: 0, bits: BITS };
const MODULUS: Type = Type::Modulus { bits: BITS };

/// `(m, a, b) -> mont(a, b)`.
fn multiply() -> Kernel {
    let mut builder = BodyBuilder::new();
    let [modulus, a, b] = [("m", MODULUS), ("a", RESIDUE), ("b", RESIDUE)].map(|(name, ty)| builder.input(name, ty));
    let product = builder.push(Op::Montgomery { modulus, a, b }, RESIDUE);
    builder.output("result", product);
    let parameters = vec![
        parameter("m", MODULUS, Direction::In, false),
        parameter("a", RESIDUE, Direction::In, true),
        parameter("b", RESIDUE, Direction::In, true),
        parameter("result", RESIDUE, Direction::Out, true),
    ];
    kernel("multiply", parameters, builder.finish())
}

/// `(m, x inout, n) : x = x^(2^n)`, with a residue and a count.
fn repeated_square() -> Kernel {
    let mut round = BodyBuilder::new();
    round.input("i", Type::bits(32));
    let x = round.input("x", RESIDUE);
    let modulus = round.input("m", MODULUS);
    let square = round.push(Op::Montgomery { modulus, a: x, b: x }, RESIDUE);
    round.output("x", square);
    let mut builder = BodyBuilder::new();
    let modulus = builder.input("m", MODULUS);
    let x = builder.input("x", RESIDUE);
    let count = builder.input("n", Type::bits(32));
    let op = Op::Loop { count, carried: vec![x], captured: vec![modulus], body: Box::new(round.finish()) };
    let whole = builder.push(op, RESIDUE);
    let result = builder.push(Op::Result(whole, 0), RESIDUE);
    builder.output("x", result);
    let parameters = vec![
        parameter("m", MODULUS, Direction::In, false),
        parameter("x", RESIDUE, Direction::InOut, true),
        parameter("n", Type::bits(32), Direction::In, false),
    ];
    kernel("square", parameters, builder.finish())
}

fn number(value: u128) -> Argument {
    Argument::Integer(BigUint::from(value))
}

fn with_radix(exponent: u32) -> Interpretation {
    Interpretation { montgomery_radix: MontgomeryRadix::one().with(BITS, exponent) }
}

proptest! {
    #![proptest_config(config(300))]

    #[test]
    fn mont_keeps_its_contract(n: u128, a: u128, b: u128, exponent in 0u32..300) {
        let n = n | 1;
        let modulus = BigUint::from(n);
        let (a, b) = (a % n, b % n);
        let result = interpret(&multiply(), &[number(n), number(a), number(b)], &with_radix(exponent)).expect("a meaning");
        let Argument::Integer(result) = &result[0] else { panic!("an integer") };
        prop_assert!(satisfies_contract(&modulus, exponent, 1, &a.into(), &b.into(), result));
        prop_assert!(n == 1 || !satisfies_contract(&modulus, exponent, 2, &a.into(), &b.into(), &(result + 1u32)));
        prop_assert!(!satisfies_contract(&modulus, exponent, 1, &a.into(), &b.into(), &(result + &modulus)));
        prop_assert!(satisfies_contract(&modulus, exponent, 2, &a.into(), &b.into(), &(result + &modulus)));
        // The contract as written, by plain arithmetic.
        let (left, right) = ((result << exponent) % &modulus, BigUint::from(a) * b % &modulus);
        prop_assert_eq!(left, right);
    }

    #[test]
    fn known_answers_do_not_depend_on_the_radix(n: u128, x: u128, rounds in 0u64..6, exponent in 0u32..300) {
        let n = n | 1;
        let x = x % n;
        let mut power = BigUint::from(x);
        for _ in 0..rounds {
            power = &power * &power % n;
        }
        let answer = KnownAnswer {
            kernel: "square".into(),
            title: String::new(),
            given: vec![("x".into(), number(x)), ("m".into(), number(n)), ("n".into(), Argument::Bits(Bits::from_u64(32, rounds)))],
            expected: vec![("x".into(), Argument::Integer(power.clone()))],
            span: Span::default(),
        };
        prop_assert_eq!(run_known_answer(&repeated_square(), &answer, &with_radix(exponent)), Ok(vec![]));
        let wrong = KnownAnswer { expected: vec![("x".into(), Argument::Integer(&power + 1u32))], ..answer };
        let differences = run_known_answer(&repeated_square(), &wrong, &with_radix(exponent)).expect("a meaning");
        prop_assert_eq!(differences.is_empty(), n == 1);
    }
}

#[test]
fn entering_and_leaving_are_inverse() {
    let arguments = [number(1_000_003), number(77), number(12345)];
    let radix = MontgomeryRadix::one().with(BITS, 140);
    let kernel = multiply();
    let entered = enter_arguments(&kernel, &arguments, &radix).expect("odd");
    assert_ne!(entered[1], arguments[1]);
    assert_eq!(entered[0], arguments[0]);
    let left = leave_results(&kernel, &arguments, &entered[1..2], &radix).expect("odd");
    assert_eq!(left, arguments[1..2]);
    let even = [number(10), number(1), number(1)];
    assert_eq!(enter_arguments(&kernel, &even, &radix), Err(KnownAnswerError::NoModulus { name: "a".into() }));
}

#[test]
fn residues_compare_by_contract_and_the_rest_exactly() {
    let kernel = multiply();
    let arguments = [number(101), number(5), number(6)];
    let same = |multiple, actual| compare_results(&kernel, &arguments, &[number(30)], &[number(actual)], multiple);
    assert_eq!(same(1, 30), vec![]);
    assert_eq!(same(2, 131), vec![]);
    assert_eq!(same(1, 131), vec![Difference { place: "result".into(), expected: number(30), actual: number(131) }]);
    assert_eq!(same(2, 232).len(), 1);
    assert_eq!(same(2, 31).len(), 1);
}

#[test]
fn arguments_are_checked() {
    let kernel = multiply();
    let options = Interpretation::default();
    let error = |arguments: &[Argument]| interpret(&kernel, arguments, &options).expect_err("refused");
    assert_eq!(error(&[number(3)]), InterpretError::ArgumentCount { kernel: "multiply".into(), expected: 3, actual: 1 });
    assert_eq!(error(&[number(4), number(1), number(1)]), InterpretError::EvenModulus { name: "m".into() });
    assert_eq!(error(&[number(5), number(10), number(1)]), InterpretError::ResidueTooLarge { name: "a".into() });
    let bits = Argument::Bits(Bits::zero(8));
    assert_eq!(error(&[number(5), bits, number(1)]), InterpretError::ArgumentType { name: "a".into(), expected: RESIDUE });
}

/// `map x in xs, y in ys { x = TABLE[x & 3] ^ key; }`, keeping the old x in y.
fn table_map() -> Kernel {
    let byte = Type::bits(8);
    let mut block = BodyBuilder::new();
    let [x, _y, key] = ["x", "y", "key"].map(|name| block.input(name, byte.clone()));
    let elements: Vec<_> = [0x10, 0x23, 0x37, 0x4c].into_iter().map(|value| block.constant(8, value)).collect();
    let array = block.push(Op::Array(elements), Type::Array { element: byte.clone().into(), length: 4 });
    let mask = block.constant(8, 3);
    let index = block.nary(NaryOp::And, &[x, mask]);
    let looked_up = block.push(Op::Element { array, index }, byte.clone());
    let result = block.nary(NaryOp::Xor, &[looked_up, key]);
    block.output("x", result);
    block.output("y", x);
    let slice = Type::Slice { element: byte.clone().into() };
    let mut builder = BodyBuilder::new();
    let xs = builder.input("xs", slice.clone());
    let ys = builder.input("ys", slice.clone());
    let key = builder.input("key", byte.clone());
    let op = Op::Map { slices: vec![xs, ys], written: vec![0, 1], captured: vec![key], body: Box::new(block.finish()) };
    let whole = builder.push(op, slice.clone());
    for (index, name) in ["xs", "ys"].into_iter().enumerate() {
        let result = builder.push(Op::Result(whole, index as u32), slice.clone());
        builder.output(name, result);
    }
    let parameters = vec![
        parameter("xs", slice.clone(), Direction::InOut, true),
        parameter("ys", slice, Direction::InOut, true),
        parameter("key", byte, Direction::In, true),
    ];
    kernel("tables", parameters, builder.finish())
}

fn bytes(values: &[u8]) -> Argument {
    Argument::List(values.iter().map(|value| Argument::Bits(Bits::from_u64(8, u64::from(*value)))).collect())
}

#[test]
fn maps_run_over_slices_of_any_length() {
    let key = Argument::Bits(Bits::from_u64(8, 0xf0));
    let run = |xs: &[u8], ys: &[u8]| interpret(&table_map(), &[bytes(xs), bytes(ys), key.clone()], &Interpretation::default());
    assert_eq!(run(&[], &[]), Ok(vec![bytes(&[]), bytes(&[])]));
    assert_eq!(run(&[2, 7, 4], &[0; 3]), Ok(vec![bytes(&[0x37 ^ 0xf0, 0x4c ^ 0xf0, 0x10 ^ 0xf0]), bytes(&[2, 7, 4])]));
    match run(&[1, 2], &[1]) {
        Err(InterpretError::Fault(fault)) => assert_eq!(fault.kind, FaultKind::UnequalSlices { first: 2, other: 1 }),
        other => panic!("a fault, not {other:?}"),
    }
}

#[test]
fn undefined_results_are_refused() {
    let mut builder = BodyBuilder::new();
    let a = builder.input("a", Type::bits(32));
    let zero = builder.constant(32, 0);
    let quotient = builder.binary(BinaryOp::Divide, a, zero);
    builder.output("result", quotient);
    let parameters = vec![parameter("a", Type::bits(32), Direction::In, false), parameter("result", Type::bits(32), Direction::Out, false)];
    let kernel = kernel("divide", parameters, builder.finish());
    let outcome = interpret(&kernel, &[Argument::Bits(Bits::from_u64(32, 9))], &Interpretation::default());
    assert_eq!(outcome, Err(InterpretError::UndefinedResult { name: "result".into() }));
}

#[test]
fn naturals_are_exact_and_cut_where_asked() {
    // (a + b) * b, its low 70 bits, and the rest.
    let mut builder = BodyBuilder::new();
    let natural = |bits| Type::Natural { bits };
    let [a, b] = ["a", "b"].map(|name| builder.input(name, natural(64)));
    let sum = builder.push(Op::NaturalAdd(a, b), natural(65));
    let product = builder.push(Op::NaturalMultiply(sum, b), natural(129));
    for (name, start, bits) in [("low", 0, 70), ("high", 70, 59)] {
        let part = builder.push(Op::NaturalSlice { value: product, start }, natural(bits));
        builder.output(name, part);
    }
    let parameters = vec![
        parameter("a", natural(64), Direction::In, false),
        parameter("b", natural(64), Direction::In, false),
        parameter("low", natural(70), Direction::Out, false),
        parameter("high", natural(59), Direction::Out, false),
    ];
    let kernel = kernel("naturals", parameters, builder.finish());
    let (a, b) = (u64::MAX, u64::MAX - 5);
    let product = (BigUint::from(a) + b) * b;
    let low = &product % (BigUint::from(1u32) << 70);
    let results = interpret(&kernel, &[number(a.into()), number(b.into())], &Interpretation::default());
    assert_eq!(results, Ok(vec![Argument::Integer(low), Argument::Integer(product >> 70)]));
}
