//! The plain product of two naturals: all columns, low half first.

use super::columns::{CarryState, Columns, Limbs};
use super::form::NaturalForm;
use super::montgomery::Factors;
use crate::lowering::builder::{Lowering, ProgramBuilder};
use crate::program::RegionId;

/// result = a·b. The result's form has the same radix and at least as many registers as hold the product.
pub(super) fn plain(
    builder: &mut ProgramBuilder<'_>,
    form: &NaturalForm,
    result_form: &NaturalForm,
    a: RegionId,
    b: RegionId,
    result: RegionId,
) -> Lowering<()> {
    let mut limbs = Limbs { builder, form };
    let factors = Factors { row: a, table: b, square: a == b };
    let all = 2 * form.column_vectors();
    // Carries are packed in groups, so the halves meet between two groups.
    let middle = form.column_vectors().next_multiple_of(form.products).min(all);
    let mut state = CarryState::default();
    for (name, span) in [("low", 0..middle), ("high", middle..all)] {
        limbs.builder.set_name(name);
        let first_group = span.start / form.products;
        let mut columns: Vec<Option<Columns>> = vec![None; span.len()];
        limbs.rows(&factors, span, &mut columns)?;
        let columns = limbs.filled(columns)?;
        limbs.carry_passes(
            &columns,
            &mut state,
            |_, _, _| Ok(()),
            |limbs, place, packed| {
                let register = first_group + place;
                // Past the result's registers the product's digits are zero, since a·b is below 2^(bits of the result).
                if register < result_form.packed_vectors() {
                    limbs.builder.store_lanes(packed.value, result, u64::from(register * form.register_bytes()))?;
                }
                Ok(())
            },
        )?;
    }
    let zero = limbs.zero()?;
    for register in all.div_ceil(form.products)..result_form.packed_vectors() {
        limbs.builder.store_lanes(zero.value, result, u64::from(register * form.register_bytes()))?;
    }
    Ok(())
}
