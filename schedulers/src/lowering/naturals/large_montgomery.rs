//! The full-width Montgomery product of naturals whose columns do not fit the registers: T = a·b, M = T·n' mod R, (T + M·n) / R, each in blocks of columns with loops over
//! rows ([`super::row_loops`]). T's high half and M·n are added up in the same columns.

use super::blocks::{self, BlockSize, Half, ProductKind, Run};
use super::columns::{Columns, Digits, Limbs};
use super::form::NaturalForm;
use super::montgomery::LowCarry;
use super::row_loops::{BlockCarries, BlockSink, NoSink, Product, RowFactor, RowLoops};
use super::setup::{SetupBlock, StaggeredTable};
use crate::lowering::builder::{Lowering, ProgramBuilder};
use crate::program::RegionId;

/// Scratch memory of a product, as offsets in one region.
#[derive(Clone, Copy, Debug)]
pub(super) struct LargeScratch {
    region: RegionId,
    /// M.
    multiplier: u64,
    /// T's topmost low column.
    kept_column: u64,
    /// One factor, staggered.
    table: StaggeredTable,
    /// Size.
    pub bytes: u64,
}

impl LargeScratch {
    /// Scratch in a region: T's low digits first. Shape only: it depends on the form alone.
    pub fn new(form: &NaturalForm, region: RegionId) -> Self {
        let natural = u64::from(form.bytes());
        let kept_column = 2 * natural;
        let start = kept_column + u64::from(form.register_bytes());
        let table = StaggeredTable { region, start, vectors: form.column_vectors() + 1 };
        Self { region, multiplier: natural, kept_column, table, bytes: table.offset(form, form.table_classes(), 0) }
    }
}

/// result = a·b/R mod n, in the form's layout, all limbs within the digit limit.
pub(super) fn product(
    builder: &mut ProgramBuilder<'_>,
    form: &NaturalForm,
    setup: &SetupBlock,
    scratch: &LargeScratch,
    a: RegionId,
    b: RegionId,
    result: RegionId,
) -> Lowering<()> {
    let latency = builder.machine()[form.row.row].timing.latency_cycles.max(1);
    let plan = Plan::choose(builder, form, a == b);
    let mut limbs = Limbs { builder, form };
    // Rows are read until the end, while results are written; the staggered factor is not.
    let (row, staggered) = if a == result { (b, a) } else { (a, b) };
    limbs.builder.set_name("staggered");
    limbs.stagger(staggered, scratch.table)?;
    let whole = Product { row: RowFactor { region: row, offset: 0, doubled: a == b }, table: scratch.table, table_limit: form.digit_limit };
    let by_inverse = Product {
        row: RowFactor { region: scratch.region, offset: 0, doubled: false },
        table: setup.negative_inverse,
        table_limit: form.digit_mask(),
    };
    let by_modulus = Product {
        row: RowFactor { region: scratch.region, offset: scratch.multiplier, doubled: false },
        table: setup.modulus,
        table_limit: form.digit_mask(),
    };

    limbs.builder.set_name("t_low");
    let carry = LowCarry::new(form, latency);
    let mut sink = KeptColumn { carry: &carry, scratch };
    let none = limbs.no_carries()?;
    let left = RowLoops::new(form, &[whole], plan.size, (scratch.region, 0)).build(&mut limbs, &plan.low, none, &mut sink)?;

    limbs.builder.set_name("m");
    let none = limbs.no_carries()?;
    let to = (scratch.region, scratch.multiplier);
    RowLoops::new(form, &[by_inverse], plan.size, to).build(&mut limbs, &plan.multiplier, none, &mut NoSink)?;

    limbs.builder.set_name("quotient");
    let kept = Columns { value: limbs.builder.load_lanes(scratch.region, scratch.kept_column)?, limit: carry.kept_limit(form) };
    let quotient = limbs.low_carry(
        &carry,
        setup,
        |limbs, place| {
            let offset = scratch.multiplier + u64::from(place * form.register_bytes());
            let value = limbs.builder.load_lanes(scratch.region, offset)?;
            Ok(Digits { value, limit: vec![form.digit_limit; form.packed_limbs() as usize] })
        },
        &kept,
    )?;
    // What was moved out of T's topmost low column counts units of the lowest high one, as the carry does; the last lanes move there.
    let lowest = match &left.high {
        Some(high) => limbs.add(&quotient, high)?,
        None => quotient,
    };

    limbs.builder.set_name("u");
    let carries = BlockCarries { high: Some(lowest), ..limbs.no_carries()? };
    // A square of what the result is written over: T's low digits are not needed any more.
    let to = if row == result { (scratch.region, 0) } else { (result, 0) };
    RowLoops::new(form, &[whole, by_modulus], plan.size, to).build(&mut limbs, &plan.high, carries, &mut NoSink)?;
    if row == result {
        limbs.builder.set_name("result");
        for vector in 0..form.packed_vectors() {
            let offset = u64::from(vector * form.register_bytes());
            let digits = limbs.builder.load_lanes(scratch.region, offset)?;
            limbs.builder.store_lanes(digits, result, offset)?;
        }
    }
    Ok(())
}

/// The runs of the three phases.
struct Plan {
    size: BlockSize,
    low: Vec<Run>,
    multiplier: Vec<Run>,
    high: Vec<Run>,
}

impl Plan {
    /// The block size with the least estimated time of those whose columns fit the registers and whose code leaves most of the instruction cache to the caller.
    fn choose(builder: &ProgramBuilder<'_>, form: &NaturalForm, square: bool) -> Self {
        let registers = builder.machine()[form.file].count.unwrap_or(u32::MAX);
        let cache = builder.machine().instruction_cache_bytes.map_or(u64::MAX, u64::from);
        let instruction_bytes = u64::from(builder.machine()[form.row.row].code_bytes.max(1));
        let kind = if square { ProductKind::Square } else { ProductKind::Plain };
        let plans = blocks::sizes(form, registers).map(|size| Self {
            size,
            low: blocks::runs(form, &[kind], Half::Low, size),
            multiplier: blocks::runs(form, &[ProductKind::Plain], Half::Low, size),
            high: blocks::runs(form, &[kind, ProductKind::Plain], Half::High, size),
        });
        plans
            .min_by_key(|plan| {
                let phases = [&plan.low, &plan.multiplier, &plan.high];
                let code: u64 = phases.iter().map(|runs| blocks::written_multiplies(form, runs, plan.size)).sum();
                let cycles: u64 = phases.iter().map(|runs| blocks::estimated_cycles(form, runs, plan.size)).sum();
                (INSTRUCTIONS_A_MULTIPLY * instruction_bytes * code > cache / CACHE_SHARE, cycles)
            })
            .unwrap_or_else(|| unreachable!("there is always a size to choose"))
    }
}

/// Instructions that are written out for a multiplication: itself, loads, carries.
const INSTRUCTIONS_A_MULTIPLY: u64 = 2;

/// The part of the instruction cache that one function may take: exponentiations alternate between a square, a product and a selection, and have code of their own.
const CACHE_SHARE: u64 = 4;

/// Keeps T's topmost low column, with what is carried into it.
struct KeptColumn<'a> {
    carry: &'a LowCarry,
    scratch: &'a LargeScratch,
}

impl BlockSink for KeptColumn<'_> {
    fn last_column(&mut self, limbs: &mut Limbs<'_, '_>, column: &Columns, moved: &Columns) -> Lowering<()> {
        let whole = limbs.add(column, moved)?;
        let scaled = limbs.shift_right(&whole, self.carry.scale_bits)?;
        limbs.builder.store_lanes(scaled.value, self.scratch.region, self.scratch.kept_column)
    }
}

impl Limbs<'_, '_> {
    /// No carries from below.
    pub fn no_carries(&mut self) -> Lowering<BlockCarries> {
        let zero = self.zero()?;
        let second = Digits { value: zero.value, limit: vec![0; self.form.packed_limbs() as usize] };
        Ok(BlockCarries { high: None, first: zero, second })
    }

    /// Staggers a natural into memory.
    pub fn stagger(&mut self, from: RegionId, table: StaggeredTable) -> Lowering<()> {
        let form = self.form;
        let mut packed = vec![None; form.packed_vectors() as usize];
        for vector in 0..table.vectors {
            for class in 0..form.table_classes() {
                for limb in super::montgomery::table_limbs(form, class, vector) {
                    let place = limb / form.packed_limbs();
                    if packed[place as usize].is_none() {
                        packed[place as usize] = Some(self.packed(from, place)?);
                    }
                }
                let digits = self.table(&packed, class, vector)?;
                self.builder.store_lanes(digits.value, table.region, table.offset(form, class, vector))?;
            }
        }
        Ok(())
    }
}
