//! Import and export: big-endian bytes to a natural's layout and back, bytes and layout, nothing else. Straight-line scalar code; time does not depend on values.

use super::form::NaturalForm;
use super::scalar::{Numbers, Scalar};
use crate::lowering::builder::{Lowering, ProgramBuilder};
use crate::lowering::shapes::LaneOp;
use crate::program::{Layout, ValueId};
use kgen_ir::kernel::Direction;

/// Bytes of a natural on the outside: most significant first.
fn outside_bytes(form: &NaturalForm) -> u32 {
    form.bits.div_ceil(8)
}

/// Builds `NAME_import(natural, bytes)`: canonical limbs.
///
/// # Errors
/// The machine lacks a scalar row.
pub(super) fn import(builder: &mut ProgramBuilder<'_>, form: &NaturalForm) -> Lowering<()> {
    let count = outside_bytes(form);
    let natural = builder.region_parameter(
        "natural",
        Direction::Out,
        true,
        Some(u64::from(form.bytes())),
        form.register_bytes(),
        form.digits().layout(),
    );
    let bytes = builder.region_parameter("bytes", Direction::In, true, Some(u64::from(count)), 1, Layout::Bytes);
    let places = form.packed_vectors() * form.packed_limbs();
    let to = Numbers { region: natural, offset: 0, number_bytes: form.limb_bits / 8, count: places };
    let from = Numbers { region: bytes, offset: 0, number_bytes: 1, count };
    let mut scalar = Scalar { builder };
    let mask = i64::try_from(form.digit_mask()).unwrap_or(i64::MAX);
    let zero = scalar.constant(0)?;
    // Bits that were read and not yet stored, `held` of them.
    let mut pending: Option<ValueId> = None;
    let mut held = 0;
    let mut next = 0;
    for limb in 0..places {
        while held < form.radix_bits && next < count && limb < form.limbs {
            scalar.builder.set_name("byte");
            let byte = scalar.load_at(from, count - 1 - next)?;
            next += 1;
            pending = Some(match pending {
                Some(low) => {
                    let placed = if held == 0 { byte } else { scalar.with(LaneOp::ShiftLeft, byte, i64::from(held))? };
                    scalar.or(low, placed)?
                }
                None => byte,
            });
            held += 8;
        }
        scalar.builder.set_name("limb");
        let value = match pending {
            Some(value) if limb < form.limbs && held > 0 => value,
            _ => zero,
        };
        if held > form.radix_bits {
            let digit = scalar.with(LaneOp::And, value, mask)?;
            scalar.store_at(digit, to, limb)?;
            pending = Some(scalar.with(LaneOp::ShiftRight, value, i64::from(form.radix_bits))?);
            held -= form.radix_bits;
        } else {
            scalar.store_at(value, to, limb)?;
            pending = None;
            held = 0;
        }
    }
    Ok(())
}

/// Builds `NAME_export(bytes, natural)` for naturals below 2^bits, whatever their limbs.
///
/// # Errors
/// The machine lacks a scalar row.
pub(super) fn export(builder: &mut ProgramBuilder<'_>, form: &NaturalForm) -> Lowering<()> {
    let count = outside_bytes(form);
    let bytes = builder.region_parameter("bytes", Direction::Out, true, Some(u64::from(count)), 1, Layout::Bytes);
    let natural = builder.region_parameter(
        "natural",
        Direction::In,
        true,
        Some(u64::from(form.bytes())),
        form.register_bytes(),
        form.digits().layout(),
    );
    let from = Numbers { region: natural, offset: 0, number_bytes: form.limb_bits / 8, count: form.limbs };
    let to = Numbers { region: bytes, offset: 0, number_bytes: 1, count };
    let mut scalar = Scalar { builder };
    let mask = i64::try_from(form.digit_mask()).unwrap_or(i64::MAX);
    let mut carry: Option<ValueId> = None;
    let mut pending: Option<ValueId> = None;
    let mut held = 0;
    let mut written = 0;
    for limb in 0..form.limbs {
        scalar.builder.set_name("limb");
        let loaded = scalar.load_at(from, limb)?;
        let sum = match carry {
            Some(carry) => scalar.add(loaded, carry)?,
            None => loaded,
        };
        let digit = scalar.with(LaneOp::And, sum, mask)?;
        scalar.builder.set_name("carry");
        carry = Some(scalar.with(LaneOp::ShiftRight, sum, i64::from(form.radix_bits))?);
        scalar.builder.set_name("bits");
        pending = Some(match pending {
            Some(low) if held > 0 => {
                let placed = scalar.with(LaneOp::ShiftLeft, digit, i64::from(held))?;
                scalar.or(low, placed)?
            }
            _ => digit,
        });
        held += form.radix_bits;
        while let (Some(value), true) = (pending, held >= 8 && written < count) {
            scalar.store_at(value, to, count - 1 - written)?;
            written += 1;
            held -= 8;
            pending = Some(scalar.with(LaneOp::ShiftRight, value, 8)?);
        }
        if written == count {
            break;
        }
    }
    if let (Some(value), true) = (pending, written < count) {
        scalar.store_at(value, to, count - 1 - written)?;
    }
    Ok(())
}
