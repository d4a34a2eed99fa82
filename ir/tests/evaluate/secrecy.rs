//! Secrets are followed to addresses and loop counts, through loops and maps.

use crate::interpret::{kernel, parameter};
use kgen_ir::body::{BinaryOp, Body, NaryOp, NodeHandle, Op};
use kgen_ir::builder::BodyBuilder;
use kgen_ir::kernel::{Direction, Kernel};
use kgen_ir::secrecy::{Secrecy, analyze};
use kgen_ir::types::Type;

/// A kernel over u32 parameters given as (name, secret).
fn scalars(parameters: &[(&str, bool)], make: impl FnOnce(&mut BodyBuilder, &[NodeHandle]) -> NodeHandle) -> Kernel {
    let mut builder = BodyBuilder::new();
    let inputs: Vec<_> = parameters.iter().map(|(name, _)| builder.input(name, Type::bits(32))).collect();
    let result = make(&mut builder, &inputs);
    builder.output("result", result);
    let mut list: Vec<_> = parameters.iter().map(|(name, secret)| parameter(name, Type::bits(32), Direction::In, *secret)).collect();
    list.push(parameter("result", Type::bits(32), Direction::Out, true));
    kernel("k", list, builder.finish())
}

/// A loop whose carried values rotate: x ← y, y ← z, z ← z. A secret z reaches x after two rounds only.
fn rotating(builder: &mut BodyBuilder, count: NodeHandle, values: [NodeHandle; 3]) -> NodeHandle {
    let mut round = BodyBuilder::new();
    round.input("i", Type::bits(32));
    let [_x, y, z] = ["x", "y", "z"].map(|name| round.input(name, Type::bits(32)));
    for (name, value) in [("x", y), ("y", z), ("z", z)] {
        round.output(name, value);
    }
    let op = Op::Loop { count, carried: values.to_vec(), captured: vec![], body: Box::new(round.finish()) };
    let whole = builder.push(op, Type::bits(32));
    builder.push(Op::Result(whole, 0), Type::bits(32))
}

#[test]
fn a_secret_reaches_carried_values_after_any_number_of_rounds() {
    let of = |secret: bool| {
        analyze(&scalars(&[("n", false), ("p", false), ("s", secret)], |builder, x| rotating(builder, x[0], [x[1], x[1], x[2]])))
    };
    assert_eq!(of(true).outputs, [true]);
    assert_eq!(of(false).outputs, [false]);
    assert!(of(true).errors.is_empty());
}

#[test]
fn a_secret_loop_count_is_an_error_with_its_way() {
    let Secrecy { errors, .. } = analyze(&scalars(&[("s", true), ("p", false)], |builder, x| {
        let count = builder.binary(BinaryOp::Subtract, x[1], x[0]);
        rotating(builder, count, [x[1], x[1], x[1]])
    }));
    assert_eq!(errors.len(), 1);
    assert_eq!(errors[0].rule, "secret-loop-count");
    assert_eq!(errors[0].message, "the number of rounds depends on the secret `s`");
    assert_eq!(errors[0].labels[0].text, "the secret comes from here");
    assert!(errors[0].help.is_some());
}

fn table_lookup(builder: &mut BodyBuilder, index: NodeHandle) -> NodeHandle {
    let elements: Vec<_> = (0..4).map(|value| builder.constant(32, value * 7)).collect();
    let array = builder.push(Op::Array(elements), Type::Array { element: Type::bits(32).into(), length: 4 });
    builder.push(Op::Element { array, index }, Type::bits(32))
}

#[test]
fn secret_indices_are_reported_where_they_stand() {
    let secrecy = analyze(&scalars(&[("s", true), ("p", false)], |builder, x| {
        let by_public = table_lookup(builder, x[1]);
        let sum = builder.nary(NaryOp::Add, &[by_public, x[0]]);
        table_lookup(builder, sum)
    }));
    assert!(secrecy.errors.is_empty());
    assert_eq!(secrecy.addresses.len(), 1);
    let address = &secrecy.addresses[0];
    assert!(address.within.is_empty());
    assert_eq!(address.path[0].name, "s");
    // The lookup by the public index is public, the other one is not.
    let lookups: Vec<bool> = secrecy.body.nodes.to_vec();
    assert!(lookups[address.node.index()]);
    assert_eq!(lookups.iter().filter(|secret| **secret).count(), 3, "the secret, the sum, the lookup");
}

fn body_with_lookup_in_a_map() -> Body {
    let mut block = BodyBuilder::new();
    let x = block.input("x", Type::bits(32));
    let key = block.input("key", Type::bits(32));
    let mixed = block.nary(NaryOp::Xor, &[x, key]);
    let found = table_lookup(&mut block, mixed);
    block.output("x", found);
    let slice = Type::Slice { element: Type::bits(32).into() };
    let mut builder = BodyBuilder::new();
    let xs = builder.input("xs", slice.clone());
    let key = builder.input("key", Type::bits(32));
    let op = Op::Map { slices: vec![xs], written: vec![0], captured: vec![key], body: Box::new(block.finish()) };
    let whole = builder.push(op, slice.clone());
    let result = builder.push(Op::Result(whole, 0), slice);
    builder.output("xs", result);
    builder.finish()
}

#[test]
fn maps_take_secrets_from_what_they_capture() {
    let body = body_with_lookup_in_a_map();
    let (map, _) = body.nodes.iter().find(|(_, node)| matches!(node.op, Op::Map { .. })).expect("a map");
    let slice = Type::Slice { element: Type::bits(32).into() };
    let of = |secret: bool| {
        let parameters =
            vec![parameter("xs", slice.clone(), Direction::InOut, false), parameter("key", Type::bits(32), Direction::In, secret)];
        analyze(&kernel("k", parameters, body.clone()))
    };
    let secrecy = of(true);
    assert_eq!(secrecy.outputs, [true]);
    assert_eq!(secrecy.addresses.iter().map(|address| address.within.clone()).collect::<Vec<_>>(), [vec![map]]);
    assert!(secrecy.body.nodes[map.index()]);
    let inner = &secrecy.body.nested[&map];
    assert!(!inner.nodes[0] && inner.nodes[1] && inner.nodes.last() == Some(&true));
    assert!(of(false).addresses.is_empty() && of(false).outputs == [false]);
}

#[test]
fn nested_loops_report_each_place_once() {
    let secrecy = analyze(&scalars(&[("n", false), ("p", false), ("s", true)], |builder, x| {
        // for n rounds { x ← TABLE[y]; y ← s }: the index is secret from the second round on, and met in every pass of the fixpoint.
        let mut round = BodyBuilder::new();
        round.input("i", Type::bits(32));
        let [_x, y, s] = ["x", "y", "s"].map(|name| round.input(name, Type::bits(32)));
        let found = table_lookup(&mut round, y);
        round.output("x", found);
        round.output("y", s);
        let op = Op::Loop { count: x[0], carried: vec![x[1], x[1]], captured: vec![x[2]], body: Box::new(round.finish()) };
        let whole = builder.push(op, Type::bits(32));
        builder.push(Op::Result(whole, 0), Type::bits(32))
    }));
    assert_eq!(secrecy.addresses.len(), 1);
    assert_eq!(secrecy.addresses[0].within.len(), 1);
    assert_eq!(secrecy.outputs, [true]);
}
