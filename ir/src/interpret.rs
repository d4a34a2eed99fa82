//! Interpreting a kernel is its meaning: arguments in, results out, without a machine.

use crate::bits::Bits;
use num_bigint::BigUint;

/// A value passed to or got from a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Argument {
    /// Of a `Bits` type.
    Bits(Bits),
    /// A natural, modulus or residue.
    Integer(BigUint),
    /// An array or slice.
    List(Vec<Argument>),
}
