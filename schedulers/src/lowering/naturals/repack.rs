//! Bits of a natural in the digits of another form: radix to radix, slices included. Straight-line scalar code; time does not depend on values.

use super::form::NaturalForm;
use super::scalar::{Numbers, Scalar};
use crate::lowering::builder::Lowering;
use crate::lowering::shapes::LaneOp;
use crate::program::{RegionId, ValueId};

/// Which bits of the source become the target, from its bit 0 upward.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BitRange {
    /// First bit of the source.
    pub start: u32,
    /// How many; the target's bits above them are zero.
    pub bits: u32,
}

/// Digits that were made and not yet stored: some low bits of a number.
struct Pending {
    value: Option<ValueId>,
    bits: u32,
}

/// Writes the bits of `source` as canonical digits of `target`. Source limbs may exceed their radix.
///
/// # Errors
/// The machine lacks a scalar row, or its registers do not hold a digit of both forms.
pub(super) fn repack(
    scalar: &mut Scalar<'_, '_>,
    source: (RegionId, &NaturalForm),
    range: BitRange,
    target: (RegionId, &NaturalForm),
) -> Lowering<()> {
    let (from, to) = (source.1, target.1);
    let width = scalar.builder.machine()[scalar.builder.integer_file()].width_bits;
    if from.radix_bits + to.radix_bits > width {
        return Err(scalar.builder.missing("registers that hold a digit of either radix"));
    }
    let read = Numbers { region: source.0, offset: 0, number_bytes: from.limb_bits / 8, count: from.limbs };
    let write = to.numbers(target.0);
    let mut carry: Option<ValueId> = None;
    let mut pending = Pending { value: None, bits: 0 };
    let mut written = 0;
    for limb in 0..from.limbs {
        let first_bit = limb * from.radix_bits;
        if first_bit >= range.start + range.bits {
            break;
        }
        scalar.builder.set_name("limb");
        let loaded = scalar.load_at(read, limb)?;
        let sum = match carry {
            Some(carry) => scalar.add(loaded, carry)?,
            None => loaded,
        };
        scalar.builder.set_name("carry");
        carry = Some(scalar.with(LaneOp::ShiftRight, sum, i64::from(from.radix_bits))?);
        let skipped = range.start.saturating_sub(first_bit);
        if skipped >= from.radix_bits {
            continue;
        }
        scalar.builder.set_name("bits");
        let mut digit = scalar.with(LaneOp::And, sum, mask(from.radix_bits))?;
        if skipped > 0 {
            digit = scalar.with(LaneOp::ShiftRight, digit, i64::from(skipped))?;
        }
        pending.value = Some(match pending.value {
            Some(low) => {
                let placed = scalar.with(LaneOp::ShiftLeft, digit, i64::from(pending.bits))?;
                scalar.or(low, placed)?
            }
            None => digit,
        });
        pending.bits += from.radix_bits - skipped;
        while pending.bits >= to.radix_bits {
            store_digit(scalar, &mut pending, range, write, to, &mut written)?;
        }
    }
    while pending.value.is_some() {
        store_digit(scalar, &mut pending, range, write, to, &mut written)?;
    }
    let zero = scalar.constant(0)?;
    (written..write.count).try_for_each(|limb| scalar.store_at(zero, write, limb))
}

/// Stores the lowest pending digit, without bits past the range.
fn store_digit(
    scalar: &mut Scalar<'_, '_>,
    pending: &mut Pending,
    range: BitRange,
    write: Numbers,
    to: &NaturalForm,
    written: &mut u32,
) -> Lowering<()> {
    let Some(value) = pending.value else { return Ok(()) };
    let kept = range.bits.saturating_sub(*written * to.radix_bits).min(to.radix_bits);
    if kept > 0 && *written < write.count {
        let digit = if kept < pending.bits { scalar.with(LaneOp::And, value, mask(kept))? } else { value };
        scalar.store_at(digit, write, *written)?;
        *written += 1;
    }
    pending.value = if pending.bits > to.radix_bits && kept == to.radix_bits {
        Some(scalar.with(LaneOp::ShiftRight, value, i64::from(to.radix_bits))?)
    } else {
        None
    };
    pending.bits = pending.bits.saturating_sub(to.radix_bits);
    Ok(())
}

fn mask(bits: u32) -> i64 {
    (1 << bits) - 1
}
