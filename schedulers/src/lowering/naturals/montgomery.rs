//! The full-width Montgomery product with all columns in registers: T = a·b, M = T·n' mod R, (T + M·n) / R.
//!
//! Tables lie in registers, one alignment at a time; rows go by alignment, so that a table register always meets the column register of its row's distance. The columns
//! are cut in two halves, so four phases (T low, M, T high, U) each hold one half of the columns, one table and a few more. T high comes after M: its products fill
//! the time in which M's carries are moved, and its columns go straight on as U's. No column is ever spilled.
//!
//! The low half of T + M·n is a multiple of R; the carry out of it is rounded from its two topmost columns: everything below adds less than half a unit (see
//! [`LowCarry`]).

use super::columns::{CarryState, Columns, Digits, Limbs, byte_permute, lane_bytes};
use super::form::NaturalForm;
use super::setup::SetupBlock;
use crate::lowering::builder::{Lowering, ProgramBuilder};
use crate::lowering::shapes::LaneOp;
use crate::program::RegionId;

/// Scratch memory of a product.
pub(super) struct Scratch {
    /// The topmost low column of T and the digits of T.
    pub region: RegionId,
}

impl Scratch {
    /// Scratch for a form.
    pub fn new(builder: &mut ProgramBuilder<'_>, form: &NaturalForm) -> Self {
        let registers = form.packed_vectors() + 1;
        let bytes = form.register_bytes();
        Self { region: builder.frame_region("product", u64::from(registers * bytes), bytes, true) }
    }
}

/// result = a·b/R mod n, in the form's layout, all limbs within the digit limit.
pub(super) fn product(
    builder: &mut ProgramBuilder<'_>,
    form: &NaturalForm,
    setup: &SetupBlock,
    scratch: &Scratch,
    a: RegionId,
    b: RegionId,
    result: RegionId,
) -> Lowering<()> {
    builder.with_local_constants(|builder| phases(&mut Limbs { builder, form }, setup, scratch, a, b, result))
}

fn phases(limbs: &mut Limbs<'_, '_>, setup: &SetupBlock, scratch: &Scratch, a: RegionId, b: RegionId, result: RegionId) -> Lowering<()> {
    let form = limbs.form;
    let vectors = form.column_vectors();
    let factors = Factors { row: a, table: b, square: a == b };
    let register_bytes = u64::from(form.register_bytes());
    let kept_column = u64::from(form.packed_vectors()) * register_bytes;

    limbs.builder.set_name("t_low");
    let mut low: Vec<Option<Columns>> = vec![None; vectors as usize];
    limbs.rows(&factors, 0..vectors, &mut low)?;
    let low = limbs.filled(low)?;
    let mut digits = Vec::new();
    let carry = LowCarry::new(form, 1);
    limbs.carry_passes(
        &low,
        &mut CarryState::default(),
        |limbs, last, moved| {
            let whole = limbs.add(last, moved)?;
            let scaled = limbs.shift_right(&whole, carry.scale_bits)?;
            limbs.builder.store_lanes(scaled.value, scratch.region, kept_column)
        },
        |_, _, packed| {
            digits.push(packed);
            Ok(())
        },
    )?;

    limbs.builder.set_name("m");
    let mut columns: Vec<Option<Columns>> = vec![None; vectors as usize];
    limbs.rows_by_setup(&digits, setup.negative_inverse, 0..vectors, &mut columns)?;
    let columns = limbs.filled(columns)?;
    let mut multiplier = Vec::new();
    limbs.carry_passes(
        &columns,
        &mut CarryState::default(),
        |_, _, _| Ok(()),
        |_, _, packed| {
            multiplier.push(packed);
            Ok(())
        },
    )?;

    limbs.builder.set_name("t_high");
    limbs.builder.forget_local_constants();
    let mut high: Vec<Option<Columns>> = vec![None; vectors as usize];
    limbs.rows(&factors, vectors..2 * vectors, &mut high)?;
    let mut high = limbs.filled(high)?;
    limbs.make_room(&mut high, &multiplier)?;

    limbs.builder.set_name("u");
    let mut columns: Vec<Option<Columns>> = high.into_iter().map(Some).collect();
    let classes = form.table_classes();
    for class in 0..classes {
        limbs.class_by_setup(&multiplier, setup.modulus, class, vectors..2 * vectors, &mut columns)?;
        if class == 0 {
            let kept = Columns { value: limbs.builder.load_lanes(scratch.region, kept_column)?, limit: carry.kept_limit(form) };
            let quotient = limbs.low_carry(&carry, setup, |_, place| Ok(multiplier[place as usize].clone()), &kept)?;
            let zero = limbs.zero()?;
            let quotient = limbs.last_lane_alone(&quotient, &zero)?;
            let first = columns[0].take().ok_or_else(|| limbs.builder.missing("a first column"))?;
            columns[0] = Some(limbs.add(&first, &quotient)?);
        }
    }
    let columns = limbs.filled(columns)?;
    limbs.builder.set_name("result");
    limbs.carry_passes(
        &columns,
        &mut CarryState::default(),
        |_, _, _| Ok(()),
        |limbs, place, packed| limbs.builder.store_lanes(packed.value, result, u64::from(place) * register_bytes),
    )
}

/// The factors of T.
pub(super) struct Factors {
    /// Its limbs are repeated in every lane.
    pub row: RegionId,
    /// Its limbs are staggered in tables.
    pub table: RegionId,
    /// They are the same: pairs of different limbs count twice and are met once.
    pub square: bool,
}

/// How the carry out of the low half is rounded.
///
/// Let t be the two topmost low columns of T + M·n, in units of the topmost one. The exact carry is an integer multiple of 2^r units; t misses the columns below (a column
/// has at most twice as many products as there are limbs and weighs 2^−2r of a unit or less, all below it less than one unit more; one unit of T's column below the topmost,
/// whose carry alone is counted) and what is cut off by the shifts (one unit a lane and sum for the first, 2^scale for each summand for the second). Half of 2^r units,
/// spread over the lanes, is added, so the rounding is exact while the sum of these is below 2^(r−1) units.
pub(super) struct LowCarry {
    /// Added in every lane before the first shift.
    rounding: u64,
    /// Bits cut off so that the sum over the lanes fits a lane.
    pub scale_bits: u32,
    /// Sums side by side.
    sums: u32,
}

impl LowCarry {
    /// For `sums` sums side by side: one where registers are few, as many as a multiplication takes cycles where limbs are many.
    pub fn new(form: &NaturalForm, sums: u32) -> Self {
        let rounding = 1 << (2 * form.radix_bits - 1 - form.lanes.ilog2());
        // The lanes' sums and the kept column: summands of full lanes at most.
        let summands = form.lanes * sums + 1;
        let scale_bits = summands.next_power_of_two().ilog2();
        let column = 2 * u128::from(form.limbs) * u128::from(form.digit_limit).pow(2);
        let missed = (column >> (2 * form.radix_bits)) + 3 + u128::from(form.lanes * sums) + u128::from(summands) * (1 << scale_bits);
        assert!(
            missed < 1 << (form.radix_bits - 1),
            "the form's choice keeps the carry exact: {missed} units are missed at radix 2^{}",
            form.radix_bits
        );
        Self { rounding, scale_bits, sums }
    }

    /// Greatest values of the kept column.
    pub fn kept_limit(&self, form: &NaturalForm) -> Vec<u64> {
        vec![(u64::MAX >> (64 - form.lane_bits())) >> self.scale_bits; form.lanes as usize]
    }
}

impl Limbs<'_, '_> {
    /// Columns that no product reached are zero.
    pub fn filled(&mut self, columns: Vec<Option<Columns>>) -> Lowering<Vec<Columns>> {
        columns.into_iter().map(|column| column.map_or_else(|| self.zero(), Ok)).collect()
    }

    fn accumulate(&mut self, column: &mut Option<Columns>, a: &Digits, b: &Digits) -> Lowering<()> {
        let before = match column.take() {
            Some(columns) => columns,
            None => self.zero()?,
        };
        *column = Some(self.multiply_accumulate(&before, a, b)?);
        Ok(())
    }

    /// Products of rows by a table made of a factor in the column vectors `span`; `columns` is parallel to the span.
    pub fn rows(&mut self, factors: &Factors, span: std::ops::Range<u32>, columns: &mut [Option<Columns>]) -> Lowering<()> {
        let form = self.form;
        let classes = form.table_classes();
        for class in 0..classes {
            let rows: Vec<u32> = (0..form.rows()).filter(|row| row % classes == class).collect();
            let range = |row: u32| {
                let distance = row / classes;
                let first = if factors.square { 2 * form.products * row / form.lanes } else { distance };
                first.max(span.start)..(distance + form.column_vectors() + 1).min(span.end)
            };
            let needed: std::collections::BTreeSet<u32> =
                rows.iter().flat_map(|row| range(*row).map(move |vector| vector - row / classes)).collect();
            let mut packed = vec![None; form.packed_vectors() as usize];
            for vector in &needed {
                for limb in table_limbs(form, class, *vector) {
                    let place = (limb / form.packed_limbs()) as usize;
                    if packed[place].is_none() {
                        packed[place] = Some(self.packed(factors.table, place as u32)?);
                    }
                }
            }
            let mut table = vec![None; form.column_vectors() as usize + 2];
            for vector in &needed {
                table[*vector as usize] = Some(self.table(&packed, class, *vector)?);
            }
            let mut group: Option<(u32, Digits)> = None;
            for row in rows {
                if range(row).is_empty() {
                    continue;
                }
                let place = row / form.lanes;
                if group.as_ref().is_none_or(|(loaded, _)| *loaded != place) {
                    let digits = self.packed(factors.row, place)?;
                    group = Some((place, if factors.square { self.doubled(&digits)? } else { digits }));
                }
                let Some((_, digits)) = &group else { continue };
                let splat = self.splat_row(digits, row)?;
                for vector in range(row) {
                    let multiplicand =
                        table[(vector - row / classes) as usize].clone().ok_or_else(|| self.builder.missing("a table register"))?;
                    let multiplier = if factors.square { self.square_weights(&splat, row, vector)? } else { splat.clone() };
                    self.accumulate(&mut columns[(vector - span.start) as usize], &multiplier, &multiplicand)?;
                }
            }
        }
        Ok(())
    }

    /// The doubled limbs of a row as they count in one column vector of a square: limb p meets limb q twice where p < q, once where p = q, never where p > q.
    /// Shifting the doubled limb right by 0, 1 or all its bits says so.
    fn square_weights(&mut self, splat: &Digits, row: u32, vector: u32) -> Lowering<Digits> {
        self.weighted(splat, i64::from(self.form.lanes * vector) - 2 * i64::from(self.form.products * row))
    }

    /// The same where the column vector's first column lies `above` limbs above twice the row's first limb.
    pub fn weighted(&mut self, splat: &Digits, above: i64) -> Lowering<Digits> {
        let form = self.form;
        let mut shifts = Vec::new();
        for lane in 0..form.lanes {
            for place in 0..form.products {
                shifts.push(match (2 * i64::from(place)).cmp(&(above + i64::from(lane))) {
                    std::cmp::Ordering::Less => 0,
                    std::cmp::Ordering::Equal => 1,
                    std::cmp::Ordering::Greater => u64::from(form.limb_bits) - 1,
                });
            }
        }
        if shifts.iter().all(|shift| *shift == 0) {
            return Ok(splat.clone());
        }
        let counts = self.builder.constant(&lane_bytes(&shifts, form.limb_bits, self.builder.machine().byte_order))?;
        let value = self.builder.lane_row(LaneOp::ShiftRight, form.limb_bits, &[splat.value, counts])?;
        let limit = splat.limit.iter().zip(&shifts).map(|(limit, shift)| limit >> shift).collect();
        Ok(Digits { value, limit })
    }

    /// Rows of digits in registers by a staggered table that lies in the setup block.
    fn rows_by_setup(
        &mut self,
        digits: &[Digits],
        table: super::setup::StaggeredTable,
        span: std::ops::Range<u32>,
        columns: &mut [Option<Columns>],
    ) -> Lowering<()> {
        (0..self.form.table_classes()).try_for_each(|class| self.class_by_setup(digits, table, class, span.clone(), columns))
    }

    fn class_by_setup(
        &mut self,
        digits: &[Digits],
        table: super::setup::StaggeredTable,
        class: u32,
        span: std::ops::Range<u32>,
        columns: &mut [Option<Columns>],
    ) -> Lowering<()> {
        let form = self.form;
        let classes = form.table_classes();
        let mut loaded = vec![None; form.column_vectors() as usize + 1];
        for row in (0..form.rows()).filter(|row| row % classes == class) {
            let distance = row / classes;
            let range = distance.max(span.start)..(distance + form.column_vectors() + 1).min(span.end);
            if range.is_empty() {
                continue;
            }
            let splat = self.splat_row(&digits[(row / form.lanes) as usize], row)?;
            for vector in range {
                let place = &mut loaded[(vector - distance) as usize];
                if place.is_none() {
                    let value = self.builder.load_lanes(table.region, table.offset(form, class, vector - distance))?;
                    *place = Some(Digits { value, limit: table_limits(form, class, vector - distance) });
                }
                let Some(multiplicand) = place.clone() else { continue };
                self.accumulate(&mut columns[(vector - span.start) as usize], &splat, &multiplicand)?;
            }
        }
        Ok(())
    }

    /// Moves carries out of the lowest of T's high columns where the products of M and n would not fit beside them.
    fn make_room(&mut self, high: &mut [Columns], multiplier: &[Digits]) -> Lowering<()> {
        let form = self.form;
        let lane_limit = u64::MAX >> (64 - form.lane_bits());
        let greatest = multiplier.iter().flat_map(|digits| digits.limit.iter().copied()).max().unwrap_or(0);
        let crowded = (0..high.len()).rev().find(|index| {
            high[*index].limit.iter().enumerate().any(|(lane, limit)| {
                // Column c of M·n, c ≥ L, has 2L−1−c products; one more digit's carry comes in below.
                let column = form.limbs + *index as u32 * form.lanes + lane as u32;
                let products = u64::from((2 * form.limbs).saturating_sub(column + 1));
                let carry_in = lane_limit >> form.radix_bits;
                limit.saturating_add(products * greatest * form.digit_mask()).saturating_add(carry_in) > lane_limit
            })
        });
        let Some(last) = crowded else { return Ok(()) };
        let mut before = self.zero()?;
        for column in high.iter_mut().take(last + 1) {
            let low = self.low_digit(column)?;
            let carry = self.shift_right(column, form.radix_bits)?;
            let moved = self.move_up(&before, &carry)?;
            *column = self.add(&low, &moved)?;
            before = carry;
        }
        if let Some(next) = high.get(last + 1).cloned() {
            let zero = self.zero()?;
            let moved = self.move_up(&before, &zero)?;
            high[last + 1] = self.add(&next, &moved)?;
        }
        Ok(())
    }

    /// The carry out of the low half of T + M·n, in every lane. `multiplier` gives the registers of M.
    pub fn low_carry(
        &mut self,
        carry: &LowCarry,
        setup: &SetupBlock,
        mut multiplier: impl FnMut(&mut Self, u32) -> Lowering<Digits>,
        kept: &Columns,
    ) -> Lowering<Columns> {
        let form = self.form;
        let rounding = self.builder.splat(form.lane_bits(), carry.rounding)?;
        let mut sums = vec![Columns { value: rounding, limit: vec![carry.rounding; form.lanes as usize] }];
        for _ in 1..carry.sums {
            sums.push(self.zero()?);
        }
        for (reversed, last) in [(setup.below_top_column, false), (setup.top_column, true)] {
            for place in 0..form.packed_vectors() {
                let digits = multiplier(self, place)?;
                let value = self.builder.load_lanes(reversed.region, reversed.offset + u64::from(place * form.register_bytes()))?;
                let factor = Digits { value, limit: vec![form.digit_mask(); digits.limit.len()] };
                let sum = &mut sums[(place % carry.sums) as usize];
                *sum = self.multiply_accumulate(sum, &digits, &factor)?;
            }
            let bits = if last { carry.scale_bits } else { form.radix_bits };
            for sum in &mut sums {
                *sum = self.shift_right(sum, bits)?;
            }
        }
        // Only the last lane of the kept column is the topmost column; the lanes of the sum belong together, so it may join any of them.
        let zero = self.zero()?;
        let mut sum = self.last_lane_alone(kept, &zero)?;
        for part in &sums {
            sum = self.add(part, &sum)?;
        }
        let mut step = form.lanes / 2;
        while step > 0 {
            let rotated = self.rotate_lanes(&sum, step)?;
            sum = self.add(&sum, &rotated)?;
            step /= 2;
        }
        self.shift_right(&sum, form.radix_bits - carry.scale_bits)
    }

    fn lanes_from(&mut self, sources: &[(&Columns, u32)]) -> Lowering<Columns> {
        let bytes = self.lane_bits() / 8;
        let limit = sources.iter().map(|(from, lane)| from.limit[*lane as usize]).collect();
        let pattern: Vec<_> =
            sources.iter().flat_map(|(from, lane)| (0..bytes).map(move |byte| Some((from.value, lane * bytes + byte)))).collect();
        Ok(Columns { value: byte_permute(self.builder, &pattern)?, limit })
    }

    /// The last lane in lane 0, zero elsewhere.
    pub fn last_lane_alone(&mut self, a: &Columns, zero: &Columns) -> Lowering<Columns> {
        let last = self.form.lanes - 1;
        let sources: Vec<(&Columns, u32)> = std::iter::once((a, last)).chain((0..last).map(|lane| (zero, lane))).collect();
        self.lanes_from(&sources)
    }

    fn rotate_lanes(&mut self, a: &Columns, step: u32) -> Lowering<Columns> {
        let sources: Vec<(&Columns, u32)> = (0..self.form.lanes).map(|lane| (a, (lane + step) % self.form.lanes)).collect();
        self.lanes_from(&sources)
    }
}

/// The limbs that stand in a table register.
pub(super) fn table_limbs(form: &NaturalForm, class: u32, vector: u32) -> impl Iterator<Item = u32> + '_ {
    let (lanes, products, limbs) = (form.lanes, form.products, form.limbs);
    (0..lanes).flat_map(move |lane| (0..products).map(move |place| (lane, place))).filter_map(move |(lane, place)| {
        let limb = i64::from(lanes * vector + lane) - i64::from(products * class) - i64::from(place);
        u32::try_from(limb).ok().filter(|limb| *limb < limbs)
    })
}

/// Greatest values of a table register made in setup, whose digits are canonical.
fn table_limits(form: &NaturalForm, class: u32, vector: u32) -> Vec<u64> {
    (0..form.lanes)
        .flat_map(|lane| (0..form.products).map(move |place| (lane, place)))
        .map(|(lane, place)| {
            let limb = i64::from(form.lanes * vector + lane) - i64::from(form.products * class) - i64::from(place);
            if (0..i64::from(form.limbs)).contains(&limb) { form.digit_mask() } else { 0 }
        })
        .collect()
}
