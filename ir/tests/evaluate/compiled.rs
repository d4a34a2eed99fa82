//! Compiled meanings are the concrete domain, only faster.

use crate::common::*;
use kgen_ir::bits::Bits;
use kgen_ir::body::{BinaryOp, Effect, Op};
use kgen_ir::builder::BodyBuilder;
use kgen_ir::domains::compiled::{Branch, CompiledMeaning, Scratch};
use kgen_ir::domains::concrete::{Fault, FaultKind, ShadowedBits, Value};
use kgen_ir::domains::memory::{Memory, NoMemory, RegionMemory};
use kgen_ir::source::Span;
use kgen_ir::types::Type;
use proptest::prelude::*;

fn both(body: &kgen_ir::body::Body, inputs: &[ShadowedBits]) -> (Vec<ShadowedBits>, Vec<ShadowedBits>) {
    let compiled = CompiledMeaning::new(body);
    let references: Vec<&ShadowedBits> = inputs.iter().collect();
    let fast = compiled.run(&mut Scratch::default(), &mut NoMemory, &references).expect("no fault").outputs;
    let values: Vec<Value> = inputs.iter().cloned().map(Value::Bits).collect();
    let slow = run(body, &values).expect("no fault").into_iter().map(|value| match value {
        Value::Bits(bits) => bits,
        other => panic!("bits expected, not {other:?}"),
    });
    (fast, slow.collect())
}

proptest! {
    #![proptest_config(config(3000))]

    #[test]
    fn compiled_bodies_give_the_same(list in choices(), size in 1usize..8, registers in registers(), masks in registers(), defined in 0..4) {
        let body = random_body(&list, size);
        let inputs: Vec<ShadowedBits> = registers.into_iter().zip(masks)
            .map(|(bits, mask)| if defined == 0 { ShadowedBits::new(bits, mask) } else { bits.into() })
            .collect();
        let (fast, slow) = both(&body, &inputs);
        prop_assert_eq!(fast, slow);
    }

    #[test]
    fn compiled_operations_of_all_widths_give_the_same(((width, lanes), a, b) in two_operands(), op in prop::sample::select(BINARY.to_vec())) {
        let body = body(&[(width, lanes); 2], |builder, x| builder.binary(op, x[0], x[1]));
        let (fast, slow) = both(&body, &[a.into(), b.into()]);
        prop_assert_eq!(fast, slow);
    }
}

fn two_operands() -> impl Strategy<Value = (Shape, Bits, Bits)> {
    shapes().prop_flat_map(|shape| (Just(shape), bits(shape.0 * shape.1), bits(shape.0 * shape.1)))
}

#[test]
fn rows_of_a_128_bit_machine_are_compiled() {
    assert!(CompiledMeaning::new(&multiply_sum()).is_compiled());
    let permute = body(&[(8, 16); 3], |builder, x| {
        let both = builder.concatenate(&[x[0], x[1]]);
        let picked: Vec<_> = (0..16)
            .map(|lane| {
                let index = builder.lane(x[2], lane);
                builder.push(Op::Lane { vector: both, index }, Type::bits(8))
            })
            .collect();
        builder.lanes(&picked)
    });
    assert!(CompiledMeaning::new(&permute).is_compiled());
    let wide = body(&[(256, 1); 2], |builder, x| builder.binary(BinaryOp::Subtract, x[0], x[1]));
    assert!(!CompiledMeaning::new(&wide).is_compiled());
}

/// Loads 4 bytes, stores the sum with `x` if `c`, branches on `c` to the loaded address, and forbids x = 0.
fn with_effects() -> CompiledMeaning {
    let mut builder = BodyBuilder::new();
    let [address, x] = ["address", "x"].map(|name| builder.input(name, Type::bits(32)));
    let condition = builder.input("c", Type::bits(1));
    let loaded = builder.push(Op::Load { address }, Type::bits(32));
    let sum = builder.nary(kgen_ir::body::NaryOp::Add, &[loaded, x]);
    let zero = builder.constant(32, 0);
    let forbidden = builder.binary(BinaryOp::Equal, x, zero);
    builder.effect(Effect::Store { address, value: sum, condition: Some(condition) });
    builder.effect(Effect::Branch { condition: Some(condition), target: Some(loaded) });
    builder.effect(Effect::Forbidden { condition: forbidden, span: Span::new(3..4) });
    builder.output("sum", sum);
    CompiledMeaning::new(&builder.finish())
}

#[test]
fn effects_are_those_of_the_definition() {
    let meaning = with_effects();
    assert!(meaning.is_compiled());
    let mut memory = RegionMemory::default();
    assert!(memory.map(0x100, vec![1, 0, 0, 0], true) && memory.map_undefined(0x200, 4));
    let mut scratch = Scratch::default();
    let mut call = |address: u64, x: u64, condition: bool| {
        let inputs = [Bits::from_u64(32, address), Bits::from_u64(32, x), Bits::from_bool(condition)].map(ShadowedBits::from);
        let outcome = meaning.run(&mut scratch, &mut memory, &inputs.each_ref());
        (outcome, memory.load(0x100, 4).expect("mapped"))
    };
    let word = |value: u64| ShadowedBits::from(Bits::from_u64(32, value));
    let (outcome, stored) = call(0x100, 5, false);
    assert_eq!(outcome.as_ref().map(|outcome| outcome.branch), Ok(Some(Branch { taken: false, target: Some(1) })));
    assert_eq!((outcome.unwrap().outputs, stored), (vec![word(6)], word(1)));
    let (outcome, stored) = call(0x100, 5, true);
    assert_eq!(outcome.unwrap().branch, Some(Branch { taken: true, target: Some(1) }));
    assert_eq!(stored, word(6));
    assert_eq!(call(0x100, 0, false).0, Err(Fault { kind: FaultKind::Forbidden, span: Span::new(3..4) }));
    let unmapped = FaultKind::Unmapped { address: 0x101, bytes: 4 };
    assert_eq!(call(0x101, 1, false).0.map_err(|fault| fault.kind), Err(unmapped));
    // Undefined memory makes the target undefined, which only matters when it is taken.
    assert_eq!(call(0x200, 1, false).0.map(|outcome| outcome.outputs), Ok(vec![ShadowedBits::all_undefined(32)]));
    assert_eq!(call(0x200, 1, true).0.map_err(|fault| fault.kind), Err(FaultKind::UndefinedAddress));
}
