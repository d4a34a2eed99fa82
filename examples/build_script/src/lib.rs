//! What the build script made of `specs/product.ir`, behind functions of bytes and words.

mod kernels {
    #![allow(dead_code, missing_docs)]
    include!(concat!(env!("OUT_DIR"), "/product.portable.rs"));
}

/// The product of two numbers of 32 big-endian bytes.
pub fn product(a: &[u8; 32], b: &[u8; 32]) -> [u8; 64] {
    let (mut left, mut right) = (kernels::Limbs5x62([0; 40]), kernels::Limbs5x62([0; 40]));
    kernels::product_import_256(&mut left, a);
    kernels::product_import_256(&mut right, b);
    let mut limbs = kernels::Limbs9x62([0; 72]);
    kernels::product(&left, &right, &mut limbs);
    let mut bytes = [0; 64];
    kernels::product_export_512(&mut bytes, &limbs);
    bytes
}

/// Four words, each added to its fellow, rotated and mixed.
pub fn mix(x: [u32; 4], y: [u32; 4]) -> [u32; 4] {
    let block = |words: [u32; 4]| {
        let mut bytes = [0; 16];
        bytes.chunks_exact_mut(4).zip(words).for_each(|(chunk, word)| chunk.copy_from_slice(&word.to_le_bytes()));
        kernels::Bytes16Align4(bytes)
    };
    let mut mixed = block(x);
    kernels::mix(&mut mixed, &block(y));
    std::array::from_fn(|i| u32::from_le_bytes(mixed.0[4 * i..][..4].try_into().expect("four bytes")))
}
