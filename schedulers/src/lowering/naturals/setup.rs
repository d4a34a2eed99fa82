//! What depends on the modulus only: n' = −n⁻¹ mod R, R² mod n, and the staggered tables. Scalar loops over limbs without multiplications, whose time could tell a
//! secret modulus; see [`super::digit_serial`] for the two numbers.

use super::digit_serial::{DigitSerial, Spread, shift_reach};
use super::digits::Digits;
use super::form::NaturalForm;
use super::scalar::{Numbers, Scalar};
use crate::lowering::builder::{Lowering, ProgramBuilder};
use crate::lowering::shapes::LaneOp;
use crate::program::{Layout, RegionId};
use kgen_ir::kernel::Direction;

/// A staggered table in the setup block: for every class the registers one after another.
#[derive(Clone, Copy, Debug)]
pub(super) struct StaggeredTable {
    /// The block.
    pub region: RegionId,
    /// Where the table starts.
    pub start: u64,
    /// Registers of a class.
    pub vectors: u32,
}

impl StaggeredTable {
    /// Where a register of the table lies.
    pub fn offset(&self, form: &NaturalForm, class: u32, vector: u32) -> u64 {
        self.start + u64::from((class * self.vectors + vector) * form.register_bytes())
    }

    fn bytes(&self, form: &NaturalForm) -> u64 {
        u64::from(form.table_classes() * self.vectors * form.register_bytes())
    }
}

/// Limbs in falling order, so that a lane-wise product with rising limbs is one column.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReversedLimbs {
    /// The block.
    pub region: RegionId,
    /// Where they start.
    pub offset: u64,
}

/// The setup block of a modulus: R² mod n first, in the layout of naturals, so that a pointer to the block is a pointer to it.
#[derive(Clone, Copy, Debug)]
pub(super) struct SetupBlock {
    /// n', staggered.
    pub negative_inverse: StaggeredTable,
    /// n, staggered.
    pub modulus: StaggeredTable,
    /// n's limbs as they meet rising limbs in column L−1.
    pub top_column: ReversedLimbs,
    /// … in column L−2.
    pub below_top_column: ReversedLimbs,
    /// n itself, canonical, in the layout of naturals.
    pub plain_modulus: u64,
    /// Size.
    pub bytes: u64,
}

impl SetupBlock {
    /// The block in a region. Shape only: it depends on the form alone.
    pub fn new(form: &NaturalForm, region: RegionId) -> Self {
        let natural = u64::from(form.bytes());
        let negative_inverse = StaggeredTable { region, start: natural, vectors: form.column_vectors() };
        let modulus =
            StaggeredTable { region, start: negative_inverse.start + negative_inverse.bytes(form), vectors: form.column_vectors() + 1 };
        let top_column = ReversedLimbs { region, offset: modulus.start + modulus.bytes(form) };
        let below_top_column = ReversedLimbs { region, offset: top_column.offset + natural };
        let plain_modulus = below_top_column.offset + natural;
        Self { negative_inverse, modulus, top_column, below_top_column, plain_modulus, bytes: plain_modulus + natural }
    }
}

/// Builds the program `NAME_setup(block, modulus)`.
///
/// # Errors
/// The machine lacks a scalar row that it needs.
pub(super) fn build(builder: &mut ProgramBuilder<'_>, form: &NaturalForm) -> Lowering<()> {
    let align = form.register_bytes();
    let shape = SetupBlock::new(form, RegionId(0));
    let bytes = u32::try_from(shape.bytes).map_err(|_| builder.missing("a setup block below 4 GiB"))?;
    let block = builder.region_parameter("setup", Direction::Out, true, Some(shape.bytes), align, Layout::SetupBlock { bytes });
    let modulus = builder.region_parameter("modulus", Direction::In, true, Some(u64::from(form.bytes())), align, form.digits().layout());
    let setup = SetupBlock::new(form, block);
    let limb_bytes = form.limb_bits / 8;
    let limbs = form.limbs;
    // The limbs with zeros on both sides, so that tables read past either end.
    let padding = form.packed_limbs() + form.lanes;
    let n = Spread::new(builder, form, "modulus_limbs", padding, padding);
    let inverse = Spread::new(builder, form, "inverse_limbs", padding, padding);
    let normal = Spread::new(builder, form, "normal", shift_reach(limbs), 0);
    // One place below, for sums that move down.
    let running = Spread::new(builder, form, "running", 1, shift_reach(limbs));
    let digit_serial = DigitSerial::new(builder, form)?;
    let mut scalar = Scalar { builder };
    scalar.clear(n.whole)?;
    scalar.clear(inverse.whole)?;
    let given = Numbers { region: modulus, offset: 0, number_bytes: limb_bytes, count: limbs };
    normalize(&mut scalar, form, given, n.limbs)?;
    digit_serial.negative_inverse(&mut scalar, n.limbs, inverse.limbs, &running)?;
    digit_serial.radix_squared(&mut scalar, n.limbs, &normal, &running)?;
    let square = Numbers { region: block, offset: 0, number_bytes: limb_bytes, count: form.packed_vectors() * form.packed_limbs() };
    scalar.clear(square)?;
    copy(&mut scalar, running.limbs, square)?;
    for (table, padded, count) in [(setup.negative_inverse, inverse, form.column_vectors()), (setup.modulus, n, form.column_vectors() + 1)]
    {
        for class in 0..form.table_classes() {
            stagger(
                &mut scalar,
                form,
                padded,
                Numbers {
                    region: block,
                    offset: table.offset(form, class, 0),
                    number_bytes: limb_bytes,
                    count: count * form.packed_limbs(),
                },
                class,
            )?;
        }
    }
    let natural = form.packed_vectors() * form.packed_limbs();
    for (reversed, column) in [(setup.top_column, limbs - 1), (setup.below_top_column, limbs - 2)] {
        let target = Numbers { region: block, offset: reversed.offset, number_bytes: limb_bytes, count: natural };
        reverse(&mut scalar, n.whole, n.below + column, target)?;
    }
    let plain = Numbers { region: block, offset: setup.plain_modulus, number_bytes: limb_bytes, count: natural };
    scalar.clear(plain)?;
    copy(&mut scalar, n.limbs, plain)
}

/// Canonical digits of limbs that may exceed the radix.
fn normalize(scalar: &mut Scalar<'_, '_>, form: &NaturalForm, from: Numbers, to: Numbers) -> Lowering<()> {
    let zero = scalar.constant(0)?;
    let mask = i64::try_from(form.digit_mask()).unwrap_or(i64::MAX);
    scalar.for_each(form.limbs, from.number_bytes, &[zero, zero], |scalar, index, carried| {
        scalar.builder.set_name("limb");
        let limb = scalar.load(from, index)?;
        let sum = scalar.add(limb, carried[0])?;
        let digit = scalar.with(LaneOp::And, sum, mask)?;
        scalar.store(digit, to, carried[1])?;
        scalar.builder.set_name("carry");
        let carry = scalar.with(LaneOp::ShiftRight, sum, i64::from(form.radix_bits))?;
        scalar.builder.set_name("to");
        Ok(vec![carry, scalar.with(LaneOp::Add, carried[1], i64::from(to.number_bytes))?])
    })?;
    Ok(())
}

/// to = from, which may have numbers of another width and not more of them.
pub(super) fn copy(scalar: &mut Scalar<'_, '_>, from: Numbers, to: Numbers) -> Lowering<()> {
    if from.number_bytes == to.number_bytes {
        scalar.for_each(from.count, from.number_bytes, &[], |scalar, index, _| {
            let limb = scalar.load(from, index)?;
            scalar.store(limb, to, index)?;
            Ok(Vec::new())
        })?;
        return Ok(());
    }
    let zero = scalar.constant(0)?;
    scalar.for_each(from.count, from.number_bytes, &[zero], |scalar, index, carried| {
        let limb = scalar.load(from, index)?;
        scalar.store(limb, to, carried[0])?;
        scalar.builder.set_name("to");
        Ok(vec![scalar.with(LaneOp::Add, carried[0], i64::from(to.number_bytes))?])
    })?;
    Ok(())
}

/// to = R² mod n: 1 doubled modulo n as often as R² has bits. `doubled` holds 2x and `reduced` 2x − n; which of them is x is decided by the borrow.
pub(super) fn radix_squared(
    scalar: &mut Scalar<'_, '_>,
    digits: &Digits,
    n: Numbers,
    doubled: Numbers,
    reduced: Numbers,
    to: Numbers,
) -> Lowering<()> {
    let radix = 1i64 << digits.radix_bits;
    let mask = radix - 1;
    let bits = i64::from(digits.radix_bits);
    let zero = scalar.constant(0)?;
    let one = scalar.constant(1)?;
    scalar.clear(doubled)?;
    scalar.clear(reduced)?;
    scalar.store_at(one, doubled, 0)?;
    let rounds = 2 * digits.radix_bits * digits.limbs;
    let chosen = scalar.for_each_outer(rounds, 1, &[zero], |scalar, _, chosen| {
        let ends = scalar.for_each(digits.limbs, n.number_bytes, &[zero, zero], |scalar, index, carried| {
            let x = choose(scalar, doubled, reduced, index, chosen[0])?;
            scalar.builder.set_name("double");
            let twice = scalar.add(x, x)?;
            let sum = scalar.add(twice, carried[0])?;
            let digit = scalar.with(LaneOp::And, sum, mask)?;
            scalar.store(digit, doubled, index)?;
            let limb = scalar.load(n, index)?;
            scalar.builder.set_name("difference");
            let less = scalar.subtract(digit, limb)?;
            let less = scalar.subtract(less, carried[1])?;
            let rest = scalar.with(LaneOp::And, less, mask)?;
            scalar.store(rest, reduced, index)?;
            scalar.builder.set_name("carry");
            let carry = scalar.with(LaneOp::ShiftRight, sum, bits)?;
            scalar.builder.set_name("borrow");
            // A negative difference has ones above the digit.
            let above = scalar.with(LaneOp::ShiftRight, less, bits)?;
            Ok(vec![carry, scalar.with(LaneOp::And, above, 1)?])
        })?;
        // Without a borrow 2x − n is taken: all ones.
        scalar.builder.set_name("chosen");
        Ok(vec![scalar.with(LaneOp::Add, ends[1], -1)?])
    })?;
    scalar.for_each(digits.limbs, to.number_bytes, &[], |scalar, index, _| {
        let x = choose(scalar, doubled, reduced, index, chosen[0])?;
        scalar.store(x, to, index)?;
        Ok(Vec::new())
    })?;
    Ok(())
}

/// `b` where the mask is ones, `a` where it is zero.
pub(super) fn choose(
    scalar: &mut Scalar<'_, '_>,
    a: Numbers,
    b: Numbers,
    index: crate::program::ValueId,
    mask: crate::program::ValueId,
) -> Lowering<crate::program::ValueId> {
    let first = scalar.load(a, index)?;
    let second = scalar.load(b, index)?;
    let differ = scalar.xor(first, second)?;
    let kept = scalar.and(differ, mask)?;
    scalar.xor(first, kept)
}

/// Column u of the table holds limbs u − k·class, u − k·class − 1, … (k of them).
fn stagger(scalar: &mut Scalar<'_, '_>, form: &NaturalForm, padded: Spread, table: Numbers, class: u32) -> Lowering<()> {
    let (from_bytes, to_bytes) = (padded.whole.number_bytes, table.number_bytes);
    let start = scalar.constant(i64::from((padded.below - form.products * class) * from_bytes))?;
    scalar.for_each(table.count / form.products, form.products * to_bytes, &[start], |scalar, index, carried| {
        for place in 0..form.products {
            let from = scalar.with(LaneOp::Add, carried[0], -i64::from(place * from_bytes))?;
            let limb = scalar.load(padded.whole, from)?;
            let there = Numbers { offset: table.offset + u64::from(place * to_bytes), ..table };
            scalar.store(limb, Numbers { count: table.count - place, ..there }, index)?;
        }
        scalar.builder.set_name("from");
        Ok(vec![scalar.with(LaneOp::Add, carried[0], i64::from(from_bytes))?])
    })?;
    Ok(())
}

/// Number i of the target is number `start` − i of the padded limbs, or zero below them.
fn reverse(scalar: &mut Scalar<'_, '_>, padded: Numbers, start: u32, target: Numbers) -> Lowering<()> {
    let from_bytes = padded.number_bytes;
    let first = scalar.constant(i64::from(start * from_bytes))?;
    let available = target.count.min(start + 1);
    scalar.for_each(available, target.number_bytes, &[first], |scalar, index, carried| {
        let limb = scalar.load(padded, carried[0])?;
        scalar.store(limb, target, index)?;
        scalar.builder.set_name("from");
        Ok(vec![scalar.with(LaneOp::Add, carried[0], -i64::from(from_bytes))?])
    })?;
    Ok(())
}
