//! Sums and differences of naturals and of residues, and the residue below its modulus: limb loops in integer registers, whose time depends on sizes only.
//!
//! Limbs of operands may exceed the radix a little and differences of limbs are negative, so carries are signed. They are kept as carry + [`BIAS`]: a sum of limbs is
//! never below −BIAS·2^radix, so that the biased one is never negative and a shift with zeros gives the next biased carry.

use super::form::NaturalForm;
use super::scalar::{Numbers, Scalar};
use super::setup::choose;
use crate::lowering::builder::Lowering;
use crate::lowering::shapes::LaneOp;
use crate::program::ValueId;

/// What signed carries are raised by. A limb's sum is at least −2·(2^radix − 1) (twice a canonical digit is subtracted) with a carry of at least −2: not below −2·2^radix.
const BIAS: i64 = 2;

/// What two operands are joined by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Join {
    /// a + b.
    Sum,
    /// a − b.
    Difference,
}

impl Join {
    fn limbs(self, scalar: &mut Scalar<'_, '_>, a: ValueId, b: ValueId) -> Lowering<ValueId> {
        match self {
            Join::Sum => scalar.add(a, b),
            Join::Difference => scalar.subtract(a, b),
        }
    }
}

/// Adds the carry from below to a limb's sum, stores the canonical digit, and gives the carry above; carries are biased.
fn digit(scalar: &mut Scalar<'_, '_>, form: &NaturalForm, sum: ValueId, carry: ValueId, to: Numbers, index: ValueId) -> Lowering<ValueId> {
    scalar.builder.set_name("sum");
    let carried = scalar.add(sum, carry)?;
    let biased = scalar.with(LaneOp::Add, carried, (BIAS << form.radix_bits) - BIAS)?;
    scalar.builder.set_name("digit");
    let digit = scalar.with(LaneOp::And, biased, i64::try_from(form.digit_mask()).unwrap_or(i64::MAX))?;
    scalar.store(digit, to, index)?;
    scalar.builder.set_name("carry");
    scalar.with(LaneOp::ShiftRight, biased, i64::from(form.radix_bits))
}

/// to = a + b or a − b of naturals that the form holds, the difference not negative. All three are in the form's layout; `to` may be an operand.
pub(super) fn joined(scalar: &mut Scalar<'_, '_>, form: &NaturalForm, join: Join, a: Numbers, b: Numbers, to: Numbers) -> Lowering<()> {
    let none = scalar.constant(BIAS)?;
    scalar.for_each(form.limbs, to.number_bytes, &[none], |scalar, index, carried| {
        scalar.builder.set_name("limb");
        let (left, right) = (scalar.load(a, index)?, scalar.load(b, index)?);
        let sum = join.limbs(scalar, left, right)?;
        Ok(vec![digit(scalar, form, sum, carried[0], to, index)?])
    })?;
    clear_padding(scalar, form, to)
}

/// Scratch of one natural each.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidates {
    /// The number as it is.
    pub plain: Numbers,
    /// The number with the modulus's multiple added or subtracted.
    pub corrected: Numbers,
}

/// A residue modulo n from one or two residues below c·n, c = 2^`multiple_bits`.
#[derive(Clone, Copy, Debug)]
pub(super) enum Residue {
    /// a + b or a − b, below c·n again.
    Joined(Join, Numbers, Numbers),
    /// a below n; c ≤ 2.
    Canonical(Numbers),
}

/// Writes a residue: both candidates are computed and one is kept by a mask, so that neither time nor addresses tell which. `n` has canonical digits.
pub(super) fn residue(
    scalar: &mut Scalar<'_, '_>,
    form: &NaturalForm,
    what: Residue,
    n: Numbers,
    multiple_bits: u32,
    candidates: Candidates,
    to: Numbers,
) -> Lowering<()> {
    let (multiple_bits, adds) = match what {
        Residue::Joined(join, ..) => (multiple_bits, join == Join::Difference),
        Residue::Canonical(_) => (0, false),
    };
    let none = scalar.constant(BIAS)?;
    let ends = scalar.for_each(form.limbs, to.number_bytes, &[none, none], |scalar, index, carried| {
        scalar.builder.set_name("limb");
        let sum = match what {
            Residue::Joined(join, a, b) => {
                let (left, right) = (scalar.load(a, index)?, scalar.load(b, index)?);
                join.limbs(scalar, left, right)?
            }
            Residue::Canonical(a) => scalar.load(a, index)?,
        };
        scalar.builder.set_name("modulus");
        let limb = scalar.load(n, index)?;
        let multiple = if multiple_bits == 0 { limb } else { scalar.with(LaneOp::ShiftLeft, limb, i64::from(multiple_bits))? };
        let corrected = if adds { scalar.add(sum, multiple)? } else { scalar.subtract(sum, multiple)? };
        let plain = digit(scalar, form, sum, carried[0], candidates.plain, index)?;
        Ok(vec![plain, digit(scalar, form, corrected, carried[1], candidates.corrected, index)?])
    })?;
    // The carry out of the topmost limb is −1 where the number is negative, else 0: a mask.
    scalar.builder.set_name("negative");
    let negative = scalar.with(LaneOp::Add, if adds { ends[0] } else { ends[1] }, -BIAS)?;
    let (otherwise, where_negative) =
        if adds { (candidates.plain, candidates.corrected) } else { (candidates.corrected, candidates.plain) };
    scalar.for_each(form.limbs, to.number_bytes, &[], |scalar, index, _| {
        let kept = choose(scalar, otherwise, where_negative, index, negative)?;
        scalar.store(kept, to, index)?;
        Ok(Vec::new())
    })?;
    clear_padding(scalar, form, to)
}

/// Zeros in a register's places past the last limb.
fn clear_padding(scalar: &mut Scalar<'_, '_>, form: &NaturalForm, to: Numbers) -> Lowering<()> {
    if form.limbs == to.count {
        return Ok(());
    }
    let zero = scalar.constant(0)?;
    (form.limbs..to.count).try_for_each(|limb| scalar.store_at(zero, to, limb))
}
