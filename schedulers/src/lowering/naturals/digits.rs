//! A natural in memory: digits of a radix, one after another from the lowest. What layouts, import and export, and the setup's scalar code know of a form.

use crate::program::{Layout, MontgomeryForm};

/// Bits by which R exceeds the modulus, at least: residues below 2m give (4m² + 1.01·R·m)/R < 2m when R > 4.1·m.
pub(crate) const MONTGOMERY_SLACK_BITS: u32 = 3;

/// The digits of naturals of one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Digits {
    /// Bits of the integer.
    pub bits: u32,
    /// Weight step.
    pub radix_bits: u32,
    /// Digits.
    pub limbs: u32,
    /// Places for digits; those past the last digit are zero.
    pub places: u32,
    /// Bytes of a place.
    pub limb_bytes: u32,
    /// Alignment of a natural.
    pub align_bytes: u32,
    /// Greatest digit that functions take and leave; 2^radix − 1 where digits are exact.
    pub digit_limit: u64,
}

impl Digits {
    /// Bytes of a natural.
    pub fn bytes(&self) -> u32 {
        self.places * self.limb_bytes
    }

    /// Mask of a canonical digit.
    pub fn digit_mask(&self) -> u64 {
        (1 << self.radix_bits) - 1
    }

    /// R and the bound of residues.
    pub fn montgomery(&self) -> MontgomeryForm {
        MontgomeryForm { radix_bits: self.radix_bits * self.limbs, bound: 2 }
    }

    /// As replay, headers and import/export see it.
    pub fn layout(&self) -> Layout {
        let limit = (0, i64::try_from(self.digit_limit).unwrap_or(i64::MAX));
        Layout::Limbs {
            radix_bits: self.radix_bits,
            limb_bytes: self.limb_bytes,
            signed: false,
            limb_order: (0..self.limbs).collect(),
            bytes: self.bytes(),
            limb_limits: vec![limit; self.limbs as usize],
        }
    }
}
