//! Affine maps: what is claimed holds for random inputs, and linear layers are found to be linear.

use crate::common::*;
use kgen_ir::bits::Bits;
use kgen_ir::body::{BinaryOp, NaryOp, Op};
use kgen_ir::domains::affine::maps;
use kgen_ir::domains::concrete::{ShadowedBits, Value};
use kgen_ir::types::{ByteOrder, Type};
use proptest::prelude::*;

proptest! {
    #![proptest_config(config(1500))]

    #[test]
    fn maps_give_what_the_body_gives(list in choices(), size in 1usize..6, registers in registers()) {
        let body = random_body(&list, size);
        let all = ShadowedBits::concatenate(&registers.clone().map(ShadowedBits::from));
        let values: Vec<Value> = registers.into_iter().map(Value::from).collect();
        for (map, actual) in maps(&body).iter().zip(run(&body, &values).expect("no fault")) {
            if let Some(map) = map {
                prop_assert_eq!(Value::from(map.apply(all.bits())), actual);
            }
        }
    }
}

#[test]
fn a_linear_layer_is_found_and_a_product_is_not() {
    // b = rotl(a, 5) ^ (a >> 3 & 0x0f0f…) ^ 2·a in GF(2^8), words and bytes mixed.
    let layer = body(&[(8, 16)], |builder, x| {
        let words = builder.reinterpret(x[0], 32, ByteOrder::Big);
        let [five, three] = [5, 3].map(|count| builder.constant(8, count));
        let rotated = builder.binary(BinaryOp::RotateLeft, words, five);
        let shifted = builder.binary(BinaryOp::ShiftRight, words, three);
        let mask = builder.push(Op::Constant(Bits::from_words(128, [0x0f0f_0f0f_0f0f_0f0f; 2])), Type::vector(32, 4));
        let masked = builder.nary(NaryOp::And, &[shifted, mask]);
        let mixed = builder.nary(NaryOp::Xor, &[rotated, masked]);
        let bytes = builder.reinterpret(mixed, 8, ByteOrder::Big);
        let two = builder.push(Op::Constant(Bits::from_words(128, [0x0202_0202_0202_0202; 2])), Type::vector(8, 16));
        let doubled = builder.push(Op::FieldMultiply { polynomial: Bits::from_u64(8, 0x1b), a: x[0], b: two }, Type::vector(8, 16));
        builder.nary(NaryOp::Xor, &[bytes, doubled])
    });
    let map = maps(&layer).swap_remove(0).expect("linear");
    for seed in 0..20u64 {
        let input = Bits::from_words(128, [seed.wrapping_mul(0x9e37_79b9_7f4a_7c15), !seed]);
        assert_eq!(ShadowedBits::from(map.apply(&input)), run_bits(&layer, &[input.into()]));
    }
    let product = body(&[(8, 16)], |builder, x| builder.nary(NaryOp::And, &[x[0], x[0]]));
    assert!(maps(&product)[0].is_some(), "x & x is x");
    let product = body(&[(8, 16); 2], |builder, x| builder.nary(NaryOp::And, &[x[0], x[1]]));
    assert_eq!(maps(&product), [None]);
}
