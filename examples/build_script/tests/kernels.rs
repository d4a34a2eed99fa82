//! The kernels against arithmetic of the language.

use kgen_example_build_script::{mix, product};

/// 32 big-endian bytes of a number of 128 bits.
fn bytes(number: u128) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes[16..].copy_from_slice(&number.to_be_bytes());
    bytes
}

#[test]
fn products_are_right() {
    let numbers = [0, 1, 7, u128::from(u64::MAX), 0x0123_4567_89ab_cdef_u128 << 3];
    for a in numbers {
        for b in numbers.map(|number| number & u128::from(u64::MAX)) {
            let Some(expected) = a.checked_mul(b) else { continue };
            let found = product(&bytes(a), &bytes(b));
            assert_eq!(found[48..], expected.to_be_bytes(), "{a} * {b}");
            assert!(found[..48].iter().all(|byte| *byte == 0));
        }
    }
    let largest = product(&[0xff; 32], &[0xff; 32]);
    // (2²⁵⁶ − 1)² = 2⁵¹² − 2²⁵⁷ + 1.
    let mut expected = [0xff; 64];
    expected[31] = 0xfe;
    expected[32..].fill(0);
    expected[63] = 1;
    assert_eq!(largest, expected);
}

#[test]
fn words_are_mixed() {
    let (x, y) = ([1, 0x8000_0000, 0xffff_ffff, 0x0123_4567], [2, 0x8000_0001, 1, 0x89ab_cdef]);
    let expected: [u32; 4] = std::array::from_fn(|i| u32::wrapping_add(x[i], y[i]).rotate_left(7) ^ y[i]);
    assert_eq!(mix(x, y), expected);
}
