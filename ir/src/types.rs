//! The types of the language.

use std::fmt;
use std::sync::Arc;

/// Which end of a group of bytes is most significant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ByteOrder {
    /// Most significant byte at the lowest address.
    Big,
    /// Least significant byte at the lowest address.
    Little,
}

/// A type. Everything is unsigned; signed operations are named.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Type {
    /// `uW` (one lane) or `uWxN`: lane i of a vector lies at the i-th place in address order.
    Bits {
        /// Bits of a lane, 1…512.
        width: u32,
        /// Lanes, at least 1.
        lanes: u32,
    },
    /// `nat<W>`: an integer below 2^W, without limbs.
    Natural {
        /// W.
        bits: u32,
    },
    /// `modulus<BITS>`: an odd integer below 2^BITS, the first operand of `mont`.
    Modulus {
        /// BITS.
        bits: u32,
    },
    /// `residue<m>`: an integer below c·m in the layout of modulus parameter `m` (see `natural.rs` for c).
    Residue {
        /// Index of the modulus among the kernel's parameters.
        modulus: u32,
        /// BITS of that modulus.
        bits: u32,
    },
    /// `[T; N]`.
    Array {
        /// T.
        element: Arc<Type>,
        /// N.
        length: u32,
    },
    /// `[T]`, only as a parameter that a `map` runs over.
    Slice {
        /// T.
        element: Arc<Type>,
    },
}

impl Type {
    /// `uW`.
    pub const fn bits(width: u32) -> Self {
        Type::Bits { width, lanes: 1 }
    }

    /// `uWxN`.
    pub const fn vector(width: u32, lanes: u32) -> Self {
        Type::Bits { width, lanes }
    }

    /// Width × lanes of a `Bits` type.
    pub fn total_bits(&self) -> Option<u32> {
        match self {
            Type::Bits { width, lanes } => Some(width * lanes),
            _ => None,
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Type::Bits { width, lanes: 1 } => write!(formatter, "u{width}"),
            Type::Bits { width, lanes } => write!(formatter, "u{width}x{lanes}"),
            Type::Natural { bits } => write!(formatter, "nat<{bits}>"),
            Type::Modulus { bits } => write!(formatter, "modulus<{bits}>"),
            Type::Residue { modulus, .. } => write!(formatter, "residue<#{modulus}>"),
            Type::Array { element, length } => write!(formatter, "[{element}; {length}]"),
            Type::Slice { element } => write!(formatter, "[{element}]"),
        }
    }
}
