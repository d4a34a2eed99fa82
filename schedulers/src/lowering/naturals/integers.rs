//! Operations on naturals of several sizes: operands are brought to one form, the result to its own.

use super::arithmetic::{self, Candidates, Join, Residue};
use super::form::NaturalForm;
use super::kernel::{Home, Walk};
use super::product;
use super::repack::{BitRange, repack};
use super::scalar::{Numbers, Scalar};
use super::setup::SetupBlock;
use crate::layout;
use crate::lowering::builder::{Lowering, ProgramBuilder};
use crate::program::RegionId;
use kgen_ir::body::{Body, Op};
use num_bigint::BigUint;

/// Whether a body has operations that are loops over limbs.
pub(super) fn has_limb_loops(body: &Body) -> bool {
    body.nodes.iter().any(|(_, node)| {
        matches!(
            node.op,
            Op::NaturalAdd(..)
                | Op::NaturalSubtract(..)
                | Op::ResidueAdd { .. }
                | Op::ResidueSubtract { .. }
                | Op::Canonical { .. }
                | Op::Loop { .. }
        )
    })
}

impl Walk {
    /// A region with the natural in the layout of a form that holds it: the value's own where layouts agree, else scratch.
    ///
    /// # Errors
    /// The value is no natural, or the machine lacks a scalar row.
    pub fn in_form(&mut self, builder: &mut ProgramBuilder<'_>, value: Home, form: &NaturalForm) -> Lowering<RegionId> {
        let (region, bits) = self.natural(builder, value)?;
        let own = self.lanes(builder, bits)?;
        if own.same_layout(form) {
            return Ok(region);
        }
        let scratch = builder.frame_region("repacked", u64::from(form.bytes()), form.register_bytes(), true);
        let range = BitRange { start: 0, bits: bits.min(form.bits) };
        repack(&mut Scalar { builder }, (region, &own), range, (scratch, form))?;
        Ok(scratch)
    }

    /// A constant natural or residue, from the constant pool.
    ///
    /// # Errors
    /// It does not fit, or the machine cannot load constants.
    pub fn constant(&mut self, builder: &mut ProgramBuilder<'_>, value: &BigUint, bits: u32, result: RegionId) -> Lowering<()> {
        let form = self.lanes(builder, bits)?;
        let layout = form.digits().layout();
        let limbs = layout::canonical_limbs(&layout, value).ok_or_else(|| self.unsupported(builder, "a constant wider than its type"))?;
        let image = layout::limbs_to_bytes(&layout, &limbs, builder.machine().byte_order);
        builder.set_name("constant");
        for (place, bytes) in image.chunks(form.register_bytes() as usize).enumerate() {
            let register = builder.constant(bytes)?;
            builder.store_lanes(register, result, place as u64 * u64::from(form.register_bytes()))?;
        }
        Ok(())
    }

    /// The product of two naturals.
    ///
    /// # Errors
    /// A lane overflows, or the columns do not fit the registers.
    pub fn multiply(&mut self, builder: &mut ProgramBuilder<'_>, operands: [Home; 2], bits: u32, result: RegionId) -> Lowering<()> {
        let sizes = [self.natural(builder, operands[0])?.1, self.natural(builder, operands[1])?.1];
        let form = self.lanes(builder, sizes[0].max(sizes[1]))?;
        let registers = builder.machine()[form.file].count.unwrap_or(u32::MAX);
        if !form.fits_registers(registers) {
            let what = format!("a product of naturals of {} limbs, which {registers} registers do not hold", form.limbs);
            return Err(self.unsupported(builder, &what));
        }
        let [a, b] = operands;
        let (a, b) = (self.in_form(builder, a, &form)?, self.in_form(builder, b, &form)?);
        let result_form = self.lanes(builder, bits)?;
        let room = result_form.limbs * result_form.radix_bits >= bits;
        if form.radix_bits == result_form.radix_bits && form.limb_bits == result_form.limb_bits && room {
            return product::plain(builder, &form, &result_form, a, b, result);
        }
        let wide = form.of_products();
        let scratch = builder.frame_region("product", u64::from(wide.bytes()), wide.register_bytes(), true);
        product::plain(builder, &form, &wide, a, b, scratch)?;
        repack(&mut Scalar { builder }, (scratch, &wide), BitRange { start: 0, bits }, (result, &result_form))
    }

    /// The sum or difference of two naturals.
    ///
    /// # Errors
    /// The machine lacks a scalar row.
    pub fn joined(
        &mut self,
        builder: &mut ProgramBuilder<'_>,
        join: Join,
        operands: [Home; 2],
        bits: u32,
        result: RegionId,
    ) -> Lowering<()> {
        let form = self.lanes(builder, bits)?;
        let [a, b] = operands;
        let (a, b) = (self.in_form(builder, a, &form)?, self.in_form(builder, b, &form)?);
        arithmetic::joined(&mut Scalar { builder }, &form, join, form.numbers(a), form.numbers(b), form.numbers(result))
    }

    /// Bits of a natural from `start` on, `bits` of them at most.
    ///
    /// # Errors
    /// The machine lacks a scalar row.
    pub fn slice(&mut self, builder: &mut ProgramBuilder<'_>, value: Home, start: u32, bits: u32, result: RegionId) -> Lowering<()> {
        let (region, whole) = self.natural(builder, value)?;
        let (own, form) = (self.lanes(builder, whole)?, self.lanes(builder, bits)?);
        let range = BitRange { start, bits: bits.min(whole.saturating_sub(start)) };
        repack(&mut Scalar { builder }, (region, &own), range, (result, &form))
    }

    /// The sum or difference of two residues.
    ///
    /// # Errors
    /// The machine lacks a scalar row.
    pub fn joined_residues(
        &mut self,
        builder: &mut ProgramBuilder<'_>,
        join: Join,
        modulus: Home,
        operands: [Home; 2],
        result: RegionId,
    ) -> Lowering<()> {
        let [a, b] = operands;
        let ((a, _), (b, _)) = (self.natural(builder, a)?, self.natural(builder, b)?);
        self.residue(builder, modulus, result, |form| Residue::Joined(join, form.numbers(a), form.numbers(b)))
    }

    /// A residue below its modulus.
    ///
    /// # Errors
    /// The machine lacks a scalar row.
    pub fn canonical(&mut self, builder: &mut ProgramBuilder<'_>, modulus: Home, value: Home, result: RegionId) -> Lowering<()> {
        let (value, _) = self.natural(builder, value)?;
        self.residue(builder, modulus, result, |form| Residue::Canonical(form.numbers(value)))
    }

    fn residue(
        &mut self,
        builder: &mut ProgramBuilder<'_>,
        modulus: Home,
        result: RegionId,
        what: impl FnOnce(&NaturalForm) -> Residue,
    ) -> Lowering<()> {
        let Home::Modulus { region, bits } = modulus else {
            return Err(self.unsupported(builder, "a modulus that is no parameter"));
        };
        let form = self.lanes(builder, bits)?;
        let n = Numbers { offset: SetupBlock::new(&form, region).plain_modulus, ..form.numbers(region) };
        let candidates = Candidates {
            plain: form.numbers(self.new_natural(builder, bits, "plain")?),
            corrected: form.numbers(self.new_natural(builder, bits, "corrected")?),
        };
        let multiple_bits = form.digits().montgomery().bound.trailing_zeros();
        arithmetic::residue(&mut Scalar { builder }, &form, what(&form), n, multiple_bits, candidates, form.numbers(result))
    }
}
