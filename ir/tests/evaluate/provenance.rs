//! Byte provenance: what it claims holds for random inputs, and it finds the permutes it is for.

use crate::common::*;
use kgen_ir::bits::Bits;
use kgen_ir::body::{BinaryOp, NaryOp, Op};
use kgen_ir::domains::concrete::{ShadowedBits, Value};
use kgen_ir::domains::provenance::{BitSource, ByteSource, sources};
use kgen_ir::types::{ByteOrder, Type};
use proptest::prelude::*;

proptest! {
    #![proptest_config(config(1500))]

    #[test]
    fn claims_hold_for_all_inputs(list in choices(), size in 1usize..8, registers in registers(), control in any::<bool>()) {
        let body = random_body(&list, size);
        let constants = if control { vec![None, None, Some(registers[2].clone())] } else { vec![] };
        let claims = sources(&body, &constants);
        let values: Vec<Value> = registers.iter().cloned().map(Value::from).collect();
        for (claim, actual) in claims.iter().zip(run(&body, &values).expect("no fault")) {
            let Value::Bits(actual) = actual else { panic!("bits expected") };
            for (bit, source) in claim.bits().expect("bits").iter().enumerate() {
                let expected = match source {
                    BitSource::Constant(value) => *value,
                    BitSource::Input { input, bit } => registers[*input as usize].bit(*bit),
                    BitSource::Inverted { input, bit } => !registers[*input as usize].bit(*bit),
                    BitSource::Unknown => continue,
                };
                let actual = actual.extract(bit as u32, 1);
                prop_assert_eq!(actual, ShadowedBits::from(Bits::from_bool(expected)), "bit {} from {:?}", bit, source);
            }
        }
    }
}

/// `d[i] = (a ++ b)[c[i] & 31]`.
fn permute() -> kgen_ir::body::Body {
    body(&[(8, 16); 3], |builder, x| {
        let both = builder.concatenate(&[x[0], x[1]]);
        let low = builder.constant(8, 31);
        let lanes: Vec<_> = (0..16)
            .map(|lane| {
                let control = builder.lane(x[2], lane);
                let index = builder.nary(NaryOp::And, &[control, low]);
                builder.push(Op::Lane { vector: both, index }, Type::bits(8))
            })
            .collect();
        builder.lanes(&lanes)
    })
}

#[test]
fn a_permute_with_known_control_is_found() {
    let control: Vec<u8> = (0..16).map(|lane: u8| lane.wrapping_mul(37) ^ 0xc0).collect();
    let expected: Vec<_> =
        control.iter().map(|byte| ByteSource::Input { input: u32::from((byte & 31) / 16), byte: u32::from(byte & 15) }).collect();
    let found = sources(&permute(), &[None, None, Some(Bits::from_bytes(&control))]);
    assert_eq!(found[0].bytes(), Some(expected));
    assert_eq!(sources(&permute(), &[])[0].bytes(), Some(vec![ByteSource::Unknown; 16]));
}

#[test]
fn shifts_and_masks_of_words_move_bytes() {
    let shifted = body(&[(8, 4)], |builder, x| {
        let word = builder.reinterpret(x[0], 32, ByteOrder::Big);
        let eight = builder.constant(32, 8);
        let left = builder.binary(BinaryOp::ShiftLeft, word, eight);
        let seven = builder.constant(32, 0x37);
        let sum = builder.nary(NaryOp::Add, &[left, seven]);
        builder.reinterpret(sum, 8, ByteOrder::Big)
    });
    let input = |byte| ByteSource::Input { input: 0, byte };
    assert_eq!(sources(&shifted, &[])[0].bytes(), Some(vec![input(1), input(2), input(3), ByteSource::Constant(0x37)]));
}
