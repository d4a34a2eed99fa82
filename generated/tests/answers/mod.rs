// Included by `known_answers.rs` once for each form of the kernels, which it calls `kernels`.

use kernels::{mont_mul_512, mont_select_512, mont_sqr_512, mont_sqr_n_512, mul_128};

/// Bytes of a number in hexadecimal digits, most significant first, with zeros in front.
fn number<const BYTES: usize>(digits: &str) -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    let padded = format!("{digits:0>width$}", width = 2 * BYTES);
    for (index, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&padded[2 * index..2 * index + 2], 16).expect("digits");
    }
    bytes
}

#[test]
fn products_of_128_bits() {
    let cases = [
        ("0", "f768064f958507ad239eed24c2c063fe", "0"),
        (
            "ffffffffffffffffffffffffffffffff",
            "ffffffffffffffffffffffffffffffff",
            "fffffffffffffffffffffffffffffffe00000000000000000000000000000001",
        ),
        (
            "b9c48cb01720800e4ca82984fcb042d9",
            "a83c546dbc4d13dcd6c93f01a9f18630",
            "7a14c3a8a7f0b41161acac695d8d18fdff7d38757e6adbfc85ca4d1cd3531eb0",
        ),
        (
            "ffff0000ffff0000ffff0000ffff0000",
            "0000ffff0000ffff0000ffff0000ffff",
            "0000fffe0002fffc0004fffa0006fff80006fffa0004fffc0002fffe00010000",
        ),
    ];
    for (a, b, product) in cases {
        let mut factors = [mul_128::Limbs12x13([0; 32]); 2];
        let mut result = mul_128::Limbs20x13([0; 48]);
        let mut bytes = [0; 32];
        // SAFETY: this is compiled for, and run on, a processor with these instructions.
        unsafe {
            mul_128::mul_128_import_128(&mut factors[0], &number(a));
            mul_128::mul_128_import_128(&mut factors[1], &number(b));
            mul_128::mul_128(&factors[0], &factors[1], &mut result);
            mul_128::mul_128_export_256(&mut bytes, &result);
        }
        assert_eq!(bytes, number(product), "{a} * {b}");
    }
}

const MODULUS: &str = "a54b4bc7313a297a0b5780bedd288afc86198f9a335fc1072ad1ca58b43436ab";
const A: &str = "36118590b5e16f41de892456cba5fb4d098a80d5dd58ab9054dec454cc23d4b";
const B: &str = "159d7c88159a8859b07132756740a5ea5223ff5969fa5fc6195aad37fbd841a";

type Residue = mont_mul_512::Limbs40x13;

fn import(bytes: &[u8; 64]) -> Residue {
    let mut residue = mont_mul_512::Limbs40x13([0; 80]);
    // SAFETY: the processor has these instructions.
    unsafe { mont_mul_512::mont_mul_512_import(&mut residue, bytes) };
    residue
}

/// a·b/R modulo [`MODULUS`].
fn multiply(a: &Residue, b: &Residue) -> Residue {
    let mut setup = mont_mul_512::Modulus512Setup([0; 992]);
    let mut result = mont_mul_512::Limbs40x13([0; 80]);
    // SAFETY: the processor has these instructions.
    unsafe {
        mont_mul_512::mont_mul_512_setup(&mut setup, &import(&number(MODULUS)));
        mont_mul_512::mont_mul_512(&setup, a, b, &mut result);
    }
    result
}

/// The number that a residue a·R stands for. Residues are below twice the modulus.
fn leave(residue: &Residue) -> [u8; 64] {
    let mut bytes = [0; 64];
    // SAFETY: the processor has these instructions.
    unsafe { mont_mul_512::mont_mul_512_export(&mut bytes, &multiply(residue, &import(&number("1")))) };
    reduce(bytes)
}

/// A number below twice [`MODULUS`] brought below it.
fn reduce(mut value: [u8; 64]) -> [u8; 64] {
    let modulus: [u8; 64] = number(MODULUS);
    if value >= modulus {
        let mut borrow = false;
        for index in (0..64).rev() {
            let (digit, first) = value[index].overflowing_sub(modulus[index]);
            let (digit, second) = digit.overflowing_sub(u8::from(borrow));
            (value[index], borrow) = (digit, first || second);
        }
    }
    value
}

/// Twice a number modulo [`MODULUS`], which is far below 2^512.
fn double(value: &[u8; 64]) -> [u8; 64] {
    let mut twice = [0; 64];
    let mut carry = 0;
    for index in (0..64).rev() {
        twice[index] = value[index] << 1 | carry;
        carry = value[index] >> 7;
    }
    reduce(twice)
}

/// R² modulo [`MODULUS`]. R is the power of two that leaves as one.
fn radix_squared() -> Residue {
    let one = number("1");
    let mut power = one;
    for bits in 1..2048 {
        power = double(&power);
        if bits >= 512 && leave(&import(&power)) == one {
            (0..bits).for_each(|_| power = double(&power));
            return import(&power);
        }
    }
    panic!("no power of two is R");
}

#[test]
fn montgomery_products_squares_and_entries() {
    let square = radix_squared();
    let enter = |digits: &str| multiply(&import(&number(digits)), &square);
    let (a, b) = (enter(A), enter(B));
    assert_eq!(leave(&a), number(A));
    assert_eq!(leave(&multiply(&a, &b)), number("5a8d2a2a77d4e32257a462c999966fa6a8c05fc83318d0595ad74ff81db53515"));
    let modulus = import(&number(MODULUS)).0;
    let mut result = mont_sqr_512::Limbs40x13([0; 80]);
    // SAFETY: the processor has these instructions.
    unsafe {
        let mut setup = mont_sqr_512::Modulus512Setup([0; 992]);
        mont_sqr_512::mont_sqr_512_setup(&mut setup, &mont_sqr_512::Limbs40x13(modulus));
        mont_sqr_512::mont_sqr_512(&setup, &mont_sqr_512::Limbs40x13(a.0), &mut result);
    }
    let square = mont_mul_512::Limbs40x13(result.0);
    assert_eq!(leave(&square), number("630781c969b4b363f2a8e12e1e0a74061f93c4fc31a440c3cc66c8ad45fc530a"));
    let fifth = "789b6abe277d2e2a2178c8bc700ae0d4448dab287cc8e8b689a5c8cec0588ff5";
    for (count, expected) in [(0, A), (5, fifth)] {
        let mut result = mont_sqr_n_512::Limbs40x13([0; 80]);
        // SAFETY: the processor has these instructions.
        unsafe {
            let mut setup = mont_sqr_n_512::Modulus512Setup([0; 992]);
            mont_sqr_n_512::mont_sqr_n_512_setup(&mut setup, &mont_sqr_n_512::Limbs40x13(modulus));
            mont_sqr_n_512::mont_sqr_n_512(&setup, &mont_sqr_n_512::Limbs40x13(a.0), count, &mut result);
        }
        assert_eq!(leave(&mont_mul_512::Limbs40x13(result.0)), number(expected), "{count} squarings");
    }
    let mut table = mont_select_512::Limbs40x13Table32([0; 2560]);
    for (index, entry) in table.0.chunks_mut(80).enumerate() {
        entry.copy_from_slice(&import(&number(&format!("{index:x}"))).0);
    }
    for index in [0u32, 1, 17, 31] {
        let mut entry = mont_select_512::Limbs40x13([0; 80]);
        let mut bytes = [0; 64];
        // SAFETY: the processor has these instructions.
        unsafe {
            let mut setup = mont_select_512::Modulus512Setup([0; 992]);
            mont_select_512::mont_select_512_setup(&mut setup, &mont_select_512::Limbs40x13(modulus));
            mont_select_512::mont_select_512(&setup, &table, index, &mut entry);
            mont_select_512::mont_select_512_export(&mut bytes, &entry);
        }
        assert_eq!(bytes, number(&format!("{index:x}")));
    }
}
