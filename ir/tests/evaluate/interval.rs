//! Intervals: bounds and wrap reports hold for random inputs, and survive the regroupings that limb arithmetic does.

use crate::common::*;
use kgen_ir::bits::Bits;
use kgen_ir::body::{BinaryOp, Body, NaryOp, NodeHandle, Op};
use kgen_ir::domains::concrete::{Concrete, Value};
use kgen_ir::domains::interval::{Interval, IntervalDomain, Range};
use kgen_ir::domains::memory::NoMemory;
use kgen_ir::evaluate::{evaluate, evaluate_nodes};
use kgen_ir::natural::MontgomeryRadix;
use kgen_ir::types::{ByteOrder, Type};
use num_bigint::BigUint;
use proptest::prelude::*;

/// A register with bounds on its lanes of `width` bits in `order`, and a member of them.
#[derive(Clone, Debug)]
struct Bounded {
    width: u32,
    order: ByteOrder,
    ranges: Vec<Range>,
    member: Vec<u128>,
}

fn bounded() -> impl Strategy<Value = Bounded> {
    (prop::sample::select(vec![8u32, 16, 32, 64]), any::<bool>()).prop_flat_map(|(width, big)| {
        let order = if big { ByteOrder::Big } else { ByteOrder::Little };
        let lane = (0u32..=width, any::<u64>(), any::<u64>(), any::<u64>()).prop_map(move |(bits, a, b, c)| {
            let cap = |value: u64| u128::from(value) & ((1 << bits) - 1);
            let (low, high) = (cap(a).min(cap(b)), cap(a).max(cap(b)));
            (Range { low, high }, low + u128::from(c) % (high - low + 1))
        });
        prop::collection::vec(lane, (128 / width) as usize).prop_map(move |lanes| {
            let (ranges, member) = lanes.into_iter().unzip();
            Bounded { width, order, ranges, member }
        })
    })
}

impl Bounded {
    fn interval(&self, domain: &mut IntervalDomain) -> Interval {
        IntervalDomain::view(&domain.value(self.width, &self.ranges), self.width, 8, self.order)
    }

    fn bits(&self) -> Bits {
        let bytes = self.member.iter().flat_map(|value| {
            let bytes = value.to_le_bytes().into_iter().take(self.width as usize / 8);
            let bytes: Vec<u8> = if self.order == ByteOrder::Big { bytes.rev().collect() } else { bytes.collect() };
            bytes
        });
        Bits::from_bytes(&bytes.collect::<Vec<_>>())
    }
}

fn lanes(value: &Bits, width: u32) -> Vec<BigUint> {
    (0..value.width() / width).map(|lane| value.extract(lane * width, width).to_integer()).collect()
}

/// Lanes of a node whose exact result does not fit, by integer arithmetic on its concrete operands.
fn wrapping_lanes(body: &Body, handle: NodeHandle, values: &[Option<Value>]) -> Vec<u32> {
    let node = &body.nodes[handle];
    let Type::Bits { width, .. } = node.ty else { return vec![] };
    let operand = |handle: NodeHandle| {
        let (Some(Value::Bits(bits)), Type::Bits { width, .. }) = (&values[handle.index()], &body.nodes[handle].ty) else { panic!("bits") };
        lanes(bits.defined().expect("defined"), *width)
    };
    let limit = BigUint::from(1u32) << width;
    let pairs = |a: NodeHandle, b: NodeHandle, wraps: &dyn Fn(&BigUint, &BigUint) -> bool| {
        let (a, b) = (operand(a), operand(b));
        (0..a.len()).filter(|lane| wraps(&a[*lane], &b[if b.len() == 1 { 0 } else { *lane }])).map(|lane| lane as u32).collect()
    };
    match &node.op {
        Op::Nary(NaryOp::Add, terms) => {
            let terms: Vec<_> = terms.iter().map(|term| operand(*term)).collect();
            (0..terms[0].len())
                .filter(|lane| terms.iter().map(|term| &term[*lane]).sum::<BigUint>() >= limit)
                .map(|lane| lane as u32)
                .collect()
        }
        Op::Binary(BinaryOp::Subtract, a, b) => pairs(*a, *b, &|a, b| a < b),
        Op::Binary(BinaryOp::Multiply, a, b) => pairs(*a, *b, &|a, b| a * b >= limit),
        Op::Binary(BinaryOp::ShiftLeft, a, b) => pairs(*a, *b, &|a, b| {
            let count = b.iter_u64_digits().next().unwrap_or(0).min(1000);
            (a << count) >= limit
        }),
        _ => vec![],
    }
}

proptest! {
    #![proptest_config(config(2500))]

    #[test]
    fn every_node_lies_in_its_bounds(list in choices(), size in 1usize..7, registers in [bounded(), bounded(), bounded()]) {
        let body = random_body(&list, size);
        let concrete: Vec<Value> = registers.iter().map(|register| register.bits().into()).collect();
        let radix = MontgomeryRadix::one();
        let exact = evaluate_nodes(&mut Concrete::new(&mut NoMemory, &radix), &body, &concrete).expect("no fault").nodes;
        // Divisions by zero make nodes undefined, which says nothing about bounds.
        prop_assume!(exact.iter().all(|value| !matches!(value, Some(Value::Bits(bits)) if bits.undefined().is_some())));
        let mut domain = IntervalDomain::new();
        let inputs: Vec<Interval> = registers.iter().map(|register| register.interval(&mut domain)).collect();
        let Ok(bounds) = evaluate_nodes(&mut domain, &body, &inputs);
        let wraps = domain.take_wraps();
        for (handle, node) in body.nodes.iter() {
            let (Type::Bits { width, lanes: count }, Some(Value::Bits(actual)), Some(bound)) =
                (&node.ty, &exact[handle.index()], &bounds.nodes[handle.index()]) else { continue };
            for width in [*width, 8, 16, 32, 64].into_iter().filter(|other| (width * count).is_multiple_of(*other) && *other <= 128) {
                let ranges = bound.ranges(width).expect("at most 128 bits");
                for (lane, (range, value)) in ranges.iter().zip(lanes(actual.bits(), width)).enumerate() {
                    prop_assert!(BigUint::from(range.low) <= value && value <= BigUint::from(range.high),
                        "lane {lane} of {width} bits of {handle:?} {:?}: {value} not in {range:?}", node.op);
                }
            }
            for lane in wrapping_lanes(&body, handle, &exact) {
                prop_assert!(wraps.iter().any(|wrap| wrap.node == handle && wrap.lane == lane), "unreported wrap of {handle:?} lane {lane}");
            }
        }
    }

    #[test]
    fn views_lose_nothing(register in bounded(), other in prop::sample::select(vec![8u32, 16, 32, 64, 128])) {
        let mut domain = IntervalDomain::new();
        let value = domain.value(register.width, &register.ranges);
        let there = IntervalDomain::view(&value, register.width, other, register.order);
        prop_assert_eq!(IntervalDomain::view(&there, other, register.width, register.order), value.clone());
        prop_assert_eq!(value.ranges(register.width).unwrap(), register.ranges);
    }
}

/// Bounds of the big-endian 32-bit lanes of a multiply-sum of 16-bit limbs up to `limb` and sums up to `sum`, and whether it may wrap.
fn multiply_sum_bounds(limb: u128, sum: u128) -> (Range, bool) {
    let mut domain = IntervalDomain::new();
    let limbs = domain.value(16, &[Range::up_to(limb); 8]);
    let limbs = IntervalDomain::view(&limbs, 16, 8, ByteOrder::Big);
    let sums = domain.value(32, &[Range::up_to(sum); 4]);
    let sums = IntervalDomain::view(&sums, 32, 8, ByteOrder::Big);
    let Ok(outcome) = evaluate(&mut domain, &multiply_sum(), &[limbs.clone(), limbs, sums]);
    let words = IntervalDomain::view(&outcome.outputs[0], 8, 32, ByteOrder::Big);
    (words.ranges(32).unwrap()[0], !domain.take_wraps().is_empty())
}

#[test]
fn a_lane_holds_64_products_of_13_bits_and_no_more() {
    let limb = (1 << 13) - 1;
    let product = limb * limb;
    assert_eq!(multiply_sum_bounds(limb, 62 * product), (Range::up_to(64 * product), false));
    assert_eq!(multiply_sum_bounds(limb, 64 * product), (Range::full(32), true));
    // Two full products overflow already.
    assert_eq!(multiply_sum_bounds(0xffff, 0), (Range::full(32), true));
    assert!(multiply_sum_bounds(0xffff, 0).1);
}

#[test]
fn limbs_keep_their_bounds_through_a_byte_permute() {
    // Bytes 2..18 of a ++ b: whole limbs move by one place.
    let shifted = body(&[(8, 16); 2], |builder, x| {
        let both = builder.concatenate(&[x[0], x[1]]);
        let slice = builder.push(Op::Slice { vector: both, start: 2 }, Type::vector(8, 16));
        let picked: Vec<_> = (0..16).map(|lane| builder.lane(slice, lane)).collect();
        builder.lanes(&picked)
    });
    let mut domain = IntervalDomain::new();
    let ranges = |first: u128| -> Vec<Range> { (0..8).map(|lane| Range { low: first, high: first + 300 * (lane + 1) }).collect() };
    let [a, b] = [ranges(0), ranges(7)].map(|ranges| {
        let value = domain.value(16, &ranges);
        IntervalDomain::view(&value, 16, 8, ByteOrder::Big)
    });
    let Ok(outcome) = evaluate(&mut domain, &shifted, &[a, b]);
    let expected: Vec<Range> = ranges(0)[1..].iter().copied().chain([ranges(7)[0]]).collect();
    assert_eq!(IntervalDomain::view(&outcome.outputs[0], 8, 16, ByteOrder::Big).ranges(16), Some(expected));
}

#[test]
fn low_bits_and_carry_of_a_lane_are_exact() {
    let mut domain = IntervalDomain::new();
    let sum = domain.value(32, &[Range::up_to(1_000_000)]);
    let split = |op: BinaryOp, count: u64, mask: u64| {
        body(&[(32, 1)], |builder, x| {
            let count = builder.constant(8, count);
            let shifted = builder.binary(op, x[0], count);
            let mask = builder.constant(32, mask);
            builder.nary(NaryOp::And, &[shifted, mask])
        })
    };
    let Ok(low) = evaluate(&mut domain, &split(BinaryOp::ShiftRight, 0, 0x1fff), std::slice::from_ref(&sum));
    let Ok(carry) = evaluate(&mut domain, &split(BinaryOp::ShiftRight, 13, u64::from(u32::MAX)), &[sum]);
    assert_eq!(low.outputs[0].ranges(32), Some(vec![Range::up_to(0x1fff)]));
    assert_eq!(carry.outputs[0].ranges(32), Some(vec![Range::up_to(1_000_000 >> 13)]));
}
