//! Products by columns: rows of a splat group times a staggered table, with a bound for every lane that proves that no lane overflows.

use super::form::NaturalForm;
use crate::lowering::builder::{Lowering, ProgramBuilder};
use crate::lowering::permutes::Byte;
use crate::lowering::shapes::LaneOp;
use crate::program::{RegionId, ValueId};
use kgen_ir::types::ByteOrder;

/// A register of lanes with the greatest value of each lane.
#[derive(Clone, Debug)]
pub(super) struct Columns {
    /// The register.
    pub value: ValueId,
    /// Greatest value, by lane.
    pub limit: Vec<u64>,
}

/// A register of limbs with the greatest value of each.
#[derive(Clone, Debug)]
pub(super) struct Digits {
    /// The register.
    pub value: ValueId,
    /// Greatest value, by limb.
    pub limit: Vec<u64>,
}

/// Carries on their way from one run of columns to the next.
#[derive(Clone, Debug, Default)]
pub(super) struct CarryState {
    /// First pass: the carries of the last columns, of which the last lane moves up.
    pub first: Option<Columns>,
    /// Second pass: the packed carries, of which the last limb moves up.
    pub second: Option<Digits>,
}

/// Builds the lanes' arithmetic of one form.
pub(super) struct Limbs<'b, 'm> {
    /// Where instructions go.
    pub builder: &'b mut ProgramBuilder<'m>,
    /// The form.
    pub form: &'b NaturalForm,
}

impl Limbs<'_, '_> {
    /// Bits of an accumulator lane.
    pub fn lane_bits(&self) -> u32 {
        self.form.lane_bits()
    }

    /// All zero.
    pub fn zero(&mut self) -> Lowering<Columns> {
        let value = self.builder.splat(self.form.lane_bits(), 0)?;
        Ok(Columns { value, limit: vec![0; self.form.lanes as usize] })
    }

    /// Register `place` of a factor in memory.
    pub fn packed(&mut self, factor: RegionId, place: u32) -> Lowering<Digits> {
        let offset = u64::from(place * self.form.register_bytes());
        let value = self.builder.load_lanes(factor, offset)?;
        let first = place * self.form.packed_limbs();
        let limit =
            (first..first + self.form.packed_limbs()).map(|limb| if limb < self.form.limbs { self.form.digit_limit } else { 0 }).collect();
        Ok(Digits { value, limit })
    }

    /// Twice the digits, for squares.
    pub fn doubled(&mut self, digits: &Digits) -> Lowering<Digits> {
        let value = self.builder.lane_row(LaneOp::Add, self.form.limb_bits, &[digits.value, digits.value])?;
        let limit: Vec<u64> = digits.limit.iter().map(|limit| 2 * limit).collect();
        self.assert_fits(&limit, self.form.limb_bits, "doubled limbs")?;
        Ok(Digits { value, limit })
    }

    /// The group of limbs of a row, repeated in every lane. `digits` holds it.
    pub fn splat_row(&mut self, digits: &Digits, row: u32) -> Lowering<Digits> {
        let lane = row % self.form.lanes;
        let bytes = self.lane_bits() / 8;
        let pattern: Vec<Option<(ValueId, u32)>> =
            (0..self.form.lanes).flat_map(|_| (0..bytes).map(move |byte| Some((digits.value, lane * bytes + byte)))).collect();
        let value = byte_permute(self.builder, &pattern)?;
        let group = (lane * self.form.products) as usize..((lane + 1) * self.form.products) as usize;
        let limit = (0..self.form.lanes).flat_map(|_| digits.limit[group.clone()].iter().copied()).collect();
        Ok(Digits { value, limit })
    }

    /// Register `vector` of the table of class `class`: lane w holds limbs m, m−1, …, m−k+1 of the factor, m = lanes·vector + w − k·class, k the products a lane.
    pub fn table(&mut self, packed: &[Option<Digits>], class: u32, vector: u32) -> Lowering<Digits> {
        let form = self.form;
        let limb_bytes = form.limb_bits / 8;
        let mut pattern = Vec::new();
        let mut limit = Vec::new();
        for lane in 0..form.lanes {
            for place in 0..form.products {
                let limb = i64::from(form.lanes * vector + lane) - i64::from(form.products * class) - i64::from(place);
                let source = u32::try_from(limb).ok().filter(|limb| *limb < form.limbs).and_then(|limb| {
                    let digits = packed[(limb / form.packed_limbs()) as usize].as_ref()?;
                    Some((digits, limb % form.packed_limbs()))
                });
                limit.push(source.map_or(0, |(digits, limb)| digits.limit[limb as usize]));
                pattern.extend((0..limb_bytes).map(|byte| source.map(|(digits, limb)| (digits.value, limb * limb_bytes + byte))));
            }
        }
        Ok(Digits { value: byte_permute(self.builder, &pattern)?, limit })
    }

    /// acc + the products that share a lane; refuses what could leave the lane.
    pub fn multiply_accumulate(&mut self, accumulator: &Columns, a: &Digits, b: &Digits) -> Lowering<Columns> {
        let products = self.form.products as usize;
        let mut limit = accumulator.limit.clone();
        for (lane, sum) in limit.iter_mut().enumerate() {
            let group = lane * products..(lane + 1) * products;
            let added = a.limit[group.clone()].iter().zip(&b.limit[group]).map(|(a, b)| u128::from(*a) * u128::from(*b)).sum::<u128>();
            *sum = u64::try_from(u128::from(*sum) + added).unwrap_or(u64::MAX);
        }
        self.assert_fits(&limit, self.lane_bits(), "a column of products")?;
        let value = self.builder.multiply_accumulate(&self.form.row, accumulator.value, a.value, b.value)?;
        Ok(Columns { value, limit })
    }

    /// a + b, lane by lane.
    pub fn add(&mut self, a: &Columns, b: &Columns) -> Lowering<Columns> {
        let limit: Vec<u64> = a.limit.iter().zip(&b.limit).map(|(a, b)| a.saturating_add(*b)).collect();
        self.assert_fits(&limit, self.lane_bits(), "a sum of columns")?;
        let value = self.builder.lane_row(LaneOp::Add, self.lane_bits(), &[a.value, b.value])?;
        Ok(Columns { value, limit })
    }

    /// Every lane shifted right.
    pub fn shift_right(&mut self, a: &Columns, count: u32) -> Lowering<Columns> {
        let counts = self.builder.splat_count(self.lane_bits(), count)?;
        let value = self.builder.lane_row(LaneOp::ShiftRight, self.lane_bits(), &[a.value, counts])?;
        Ok(Columns { value, limit: a.limit.iter().map(|limit| limit >> count).collect() })
    }

    /// The low digit of every lane.
    pub fn low_digit(&mut self, a: &Columns) -> Lowering<Columns> {
        let mask = self.form.digit_mask();
        let masks = self.builder.splat(self.lane_bits(), mask)?;
        let value = self.builder.lane_row(LaneOp::And, self.lane_bits(), &[a.value, masks])?;
        Ok(Columns { value, limit: a.limit.iter().map(|limit| mask.min(*limit)).collect() })
    }

    /// Lane w of the result is lane w−1 of `a`; lane 0 is the last lane of `before`.
    pub fn move_up(&mut self, before: &Columns, a: &Columns) -> Lowering<Columns> {
        let bytes = self.lane_bits() / 8;
        let last = self.form.lanes - 1;
        let sources = std::iter::once((before, last)).chain((0..last).map(|lane| (a, lane)));
        let limit = sources.clone().map(|(from, lane)| from.limit[lane as usize]).collect();
        let pattern: Vec<_> =
            sources.flat_map(|(from, lane)| (0..bytes).map(move |byte| Some((from.value, lane * bytes + byte)))).collect();
        Ok(Columns { value: byte_permute(self.builder, &pattern)?, limit })
    }

    /// The low halves of the lanes of `products` registers, one after another, as limbs.
    fn pack(&mut self, columns: &[Columns]) -> Lowering<Digits> {
        let (lane_bytes, limb_bytes) = (self.lane_bits() / 8, self.form.limb_bits / 8);
        let low = match self.builder.machine().byte_order {
            ByteOrder::Big => lane_bytes - limb_bytes,
            ByteOrder::Little => 0,
        };
        let mut pattern = Vec::new();
        let mut limit = Vec::new();
        for column in columns {
            for lane in 0..self.form.lanes {
                pattern.extend((0..limb_bytes).map(|byte| Some((column.value, lane * lane_bytes + low + byte))));
                limit.push(column.limit[lane as usize]);
            }
        }
        Ok(Digits { value: byte_permute(self.builder, &pattern)?, limit })
    }

    /// Two carry passes over columns from the lowest upward, the second one on packed limbs. `state` holds the carries that come in from the columns below and takes
    /// those that leave the top. `sees_last` gets the last columns unmasked and what is moved into them; `takes` the digits, register by register.
    pub fn carry_passes(
        &mut self,
        columns: &[Columns],
        state: &mut CarryState,
        mut sees_last: impl FnMut(&mut Self, &Columns, &Columns) -> Lowering<()>,
        mut takes: impl FnMut(&mut Self, u32, Digits) -> Lowering<()>,
    ) -> Lowering<()> {
        let group = self.form.products as usize;
        let mut digits = Vec::new();
        let mut seconds = Vec::new();
        for (index, column) in columns.iter().enumerate() {
            let low = self.low_digit(column)?;
            let carry = self.shift_right(column, self.form.radix_bits)?;
            let before = match state.first.take() {
                Some(before) => before,
                None => self.zero()?,
            };
            let moved = self.move_up(&before, &carry)?;
            state.first = Some(carry);
            let digit = self.add(&low, &moved)?;
            if index + 1 == columns.len() {
                sees_last(self, column, &moved)?;
            }
            seconds.push(self.shift_right(&digit, self.form.radix_bits)?);
            digits.push(digit);
            if digits.len() == group || index + 1 == columns.len() {
                while digits.len() < group {
                    digits.push(self.zero()?);
                    seconds.push(self.zero()?);
                }
                let packed = self.pack(&digits)?;
                let carries = self.pack(&seconds)?;
                let result = self.finish_digits(&packed, state.second.as_ref(), &carries)?;
                takes(self, (index / group) as u32, result)?;
                state.second = Some(carries);
                digits.clear();
                seconds.clear();
            }
        }
        Ok(())
    }

    /// Packed digits without their second carry, plus the second carries of the limbs below.
    fn finish_digits(&mut self, packed: &Digits, before: Option<&Digits>, carries: &Digits) -> Lowering<Digits> {
        let (limb_bits, mask) = (self.form.limb_bits, self.form.digit_mask());
        let masks = self.builder.splat(limb_bits, mask)?;
        let low = self.builder.lane_row(LaneOp::And, limb_bits, &[packed.value, masks])?;
        let zero = self.zero()?;
        let bytes = limb_bits / 8;
        let last = self.form.packed_limbs() - 1;
        let mut pattern = Vec::new();
        let mut limit = Vec::new();
        for place in 0..=last {
            let (value, from, greatest) = match (place, before) {
                (0, None) => (zero.value, 0, 0),
                (0, Some(before)) => (before.value, last, before.limit[last as usize]),
                _ => (carries.value, place - 1, carries.limit[place as usize - 1]),
            };
            pattern.extend((0..bytes).map(|byte| Some((value, from * bytes + byte))));
            limit.push(mask.min(packed.limit[place as usize]) + greatest);
        }
        let moved = byte_permute(self.builder, &pattern)?;
        self.assert_fits(&limit, limb_bits, "digits")?;
        Ok(Digits { value: self.builder.lane_row(LaneOp::Add, limb_bits, &[low, moved])?, limit })
    }

    /// Refuses values that could exceed their lane: the proof of no overflow.
    pub fn assert_fits(&self, limits: &[u64], bits: u32, what: &str) -> Lowering<()> {
        match limits.iter().find(|limit| bits < 64 && **limit >> bits != 0) {
            None => Ok(()),
            Some(limit) => Err(Box::new(
                kgen_ir::diagnostic::Diagnostic::error(
                    "lane-overflow",
                    self.builder.span(),
                    format!(
                        "{what} can reach {limit}, more than a lane of {bits} bits holds (radix 2^{}, {} limbs)",
                        self.form.radix_bits, self.form.limbs
                    ),
                )
                .help("a smaller radix or an earlier carry pass is needed; this is a limit of the lowering, not of the spec"),
            )),
        }
    }
}

/// A register of bytes chosen from registers; `None` is zero.
pub(super) fn byte_permute(builder: &mut ProgramBuilder<'_>, pattern: &[Option<(ValueId, u32)>]) -> Lowering<ValueId> {
    let mut sources: Vec<ValueId> = Vec::new();
    let wanted: Vec<Byte> = pattern
        .iter()
        .map(|byte| match byte {
            None => Byte::Zero,
            Some((value, byte)) => {
                let source = sources.iter().position(|known| known == value).unwrap_or_else(|| {
                    sources.push(*value);
                    sources.len() - 1
                });
                Byte::Of { source: source as u32, byte: *byte }
            }
        })
        .collect();
    builder.permute(&sources, &wanted)
}

/// Bytes of a register whose lanes of `lane_bits` hold these values.
pub(super) fn lane_bytes(values: &[u64], lane_bits: u32, order: ByteOrder) -> Vec<u8> {
    let size = lane_bits as usize / 8;
    values
        .iter()
        .flat_map(|value| match order {
            ByteOrder::Big => value.to_be_bytes()[8 - size..].to_vec(),
            ByteOrder::Little => value.to_le_bytes()[..size].to_vec(),
        })
        .collect()
}
