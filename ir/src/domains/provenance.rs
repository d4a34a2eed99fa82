//! Where each bit of a result comes from: which permute, rotation, shift or mask is this body, given constants for some inputs?

use super::bit_level::{Bit, BitLevelDomain, BitValue, constant_bits};
use crate::bits::Bits;
use crate::body::Body;
use crate::evaluate::evaluate;
use crate::types::Type;
use std::sync::Arc;

/// Where a bit comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BitSource {
    /// It is always this.
    Constant(bool),
    /// It is bit `bit` of input `input` of the body.
    Input {
        /// Number of the input.
        input: u32,
        /// Bit, counted from lane 0's least significant one as in [`Bits`].
        bit: u32,
    },
    /// The inverse of that bit.
    Inverted {
        /// Number of the input.
        input: u32,
        /// Bit.
        bit: u32,
    },
    /// None of these, or not known.
    Unknown,
}

impl Bit for BitSource {
    fn constant(value: bool) -> Self {
        Self::Constant(value)
    }

    fn unknown() -> Self {
        Self::Unknown
    }

    fn as_constant(&self) -> Option<bool> {
        if let Self::Constant(value) = self { Some(*value) } else { None }
    }

    fn xor(&self, other: &Self) -> Self {
        match (*self, *other) {
            (Self::Unknown, _) | (_, Self::Unknown) => Self::Unknown,
            (Self::Constant(a), Self::Constant(b)) => Self::Constant(a ^ b),
            (Self::Constant(false), source) | (source, Self::Constant(false)) => source,
            (Self::Constant(true), Self::Input { input, bit }) | (Self::Input { input, bit }, Self::Constant(true)) => {
                Self::Inverted { input, bit }
            }
            (Self::Constant(true), Self::Inverted { input, bit }) | (Self::Inverted { input, bit }, Self::Constant(true)) => {
                Self::Input { input, bit }
            }
            (a, b) if a == b => Self::Constant(false),
            (Self::Input { input: a, bit: p }, Self::Inverted { input: b, bit: q })
            | (Self::Inverted { input: a, bit: p }, Self::Input { input: b, bit: q })
                if (a, p) == (b, q) =>
            {
                Self::Constant(true)
            }
            _ => Self::Unknown,
        }
    }
}

/// Where a byte comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ByteSource {
    /// It is always this.
    Constant(u8),
    /// It is byte `byte` of input `input` of the body.
    Input {
        /// Number of the input.
        input: u32,
        /// Byte in address order.
        byte: u32,
    },
    /// None of these, or not known.
    Unknown,
}

/// A value of this domain.
pub type Provenance = BitValue<BitSource>;

impl Provenance {
    /// All bits of input number `input`.
    pub fn input(input: u32, width: u32) -> Self {
        Self::Bits(Arc::new((0..width).map(|bit| BitSource::Input { input, bit }).collect()))
    }

    /// Byte by byte in address order; `None` where the value is not of whole bytes.
    pub fn bytes(&self) -> Option<Vec<ByteSource>> {
        let bits = self.bits()?;
        bits.len().is_multiple_of(8).then(|| bits.chunks(8).map(byte_source).collect())
    }
}

fn byte_source(bits: &[BitSource]) -> ByteSource {
    if let Some(constant) = constant_bits(bits) {
        return ByteSource::Constant(constant.low_u128() as u8);
    }
    match bits[0] {
        BitSource::Input { input, bit: first } if first % 8 == 0 => {
            let consecutive = bits.iter().zip(first..).all(|(source, bit)| *source == BitSource::Input { input, bit });
            if consecutive { ByteSource::Input { input, byte: first / 8 } } else { ByteSource::Unknown }
        }
        _ => ByteSource::Unknown,
    }
}

/// The sources of each output's bits. `constants` gives a value for inputs that are taken as known (a permute's control); it may be shorter than the inputs,
/// and a constant of another width than its input is not taken.
pub fn sources(body: &Body, constants: &[Option<Bits>]) -> Vec<Provenance> {
    let known = |index: usize, width: u32| constants.get(index).and_then(Option::as_ref).filter(|bits| bits.width() == width);
    let inputs: Vec<Provenance> = body
        .inputs
        .iter()
        .enumerate()
        .map(|(index, port)| match port.ty {
            Type::Bits { width, lanes } => match known(index, width * lanes) {
                Some(bits) => Provenance::constant(bits),
                None => Provenance::input(index as u32, width * lanes),
            },
            _ => Provenance::Other,
        })
        .collect();
    let Ok(outcome) = evaluate(&mut BitLevelDomain::default(), body, &inputs);
    outcome.outputs
}
