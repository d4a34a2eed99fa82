//! Naturals and the contract of `mont`.
//!
//! For a modulus n of type `modulus<BITS>`, odd and below 2^BITS, and a radix R = 2^r, `mont(a, b)` gives a residue with
//!
//! ```text
//! result·R ≡ a·b (mod n)      result < c·n
//! ```
//!
//! where a and b are below c·n. The bound c is a lowering's choice: c = 2 needs R > 4n and no subtraction, since then
//! (a·b + (R−1)·n)/R < (4n² + R·n)/R < 2n; c = 1 needs R > n and a final subtraction. R is an argument of interpretation, so kernels have one meaning for
//! each R, and these meanings are isomorphic: x ↦ x·R mod n takes the meaning for R = 1 to the meaning for R.
//! The interpreter gives the representative below n; a lowering's output is compared by the contract.
//!
//! In a known answer a residue stands for the number it represents: x is passed as x·R mod n and an output r is read as r·R⁻¹ mod n,
//! so the texts of tests do not depend on R (see [`enter`] and [`leave`]).

use num_bigint::BigUint;
use num_traits::{One, Zero};
use std::collections::BTreeMap;

/// The radix R = 2^r that interpretation takes for each size of modulus.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MontgomeryRadix {
    /// r by BITS of the modulus type.
    exponents: BTreeMap<u32, u32>,
}

impl MontgomeryRadix {
    /// R = 1 for every modulus: `mont` is the product modulo n.
    pub const fn one() -> Self {
        Self { exponents: BTreeMap::new() }
    }

    /// The same with R = 2^`exponent` for moduli of type `modulus<bits>`.
    pub fn with(mut self, bits: u32, exponent: u32) -> Self {
        self.exponents.insert(bits, exponent);
        self
    }

    /// r of R = 2^r for moduli of type `modulus<bits>`.
    pub fn exponent(&self, bits: u32) -> u32 {
        self.exponents.get(&bits).copied().unwrap_or(0)
    }
}

/// 2^bits − 1.
pub fn mask(bits: u32) -> BigUint {
    (BigUint::one() << bits) - 1u32
}

/// R⁻¹ mod n for R = 2^`exponent`; `None` where n is even.
pub fn radix_inverse(modulus: &BigUint, exponent: u32) -> Option<BigUint> {
    if !modulus.bit(0) {
        return None;
    }
    if modulus.is_one() {
        return Some(BigUint::zero());
    }
    ((BigUint::one() << exponent) % modulus).modinv(modulus)
}

/// The representative of `value` for R = 2^`exponent`: value·R mod n. `None` where n is even.
pub fn enter(modulus: &BigUint, exponent: u32, value: &BigUint) -> Option<BigUint> {
    modulus.bit(0).then(|| (value << exponent) % modulus)
}

/// The number that a residue represents: residue·R⁻¹ mod n. `None` where n is even.
pub fn leave(modulus: &BigUint, exponent: u32, residue: &BigUint) -> Option<BigUint> {
    radix_inverse(modulus, exponent).map(|inverse| residue * inverse % modulus)
}

/// Whether `result` is a `mont(a, b)` for R = 2^`exponent` and the bound c = `multiple`: result·R ≡ a·b (mod n) and result < c·n.
/// False where n is even.
pub fn satisfies_contract(modulus: &BigUint, exponent: u32, multiple: u32, a: &BigUint, b: &BigUint, result: &BigUint) -> bool {
    modulus.bit(0) && (result << exponent) % modulus == a * b % modulus && *result < modulus * multiple
}

/// Whether two residues are the same modulo n and `actual` is below c·n, c = `multiple`. False where n is even.
pub fn same_residue(modulus: &BigUint, multiple: u32, expected: &BigUint, actual: &BigUint) -> bool {
    modulus.bit(0) && expected % modulus == actual % modulus && *actual < modulus * multiple
}
