//! Products whose columns are more than registers: which rows meet which columns, block of columns by block of columns. Plain data, no instructions.
//!
//! A block of column registers stays in registers while rows go by. Rows come in *distances*: the rows of every table class that lie equally far from their table. As the
//! distance rises by one, the same columns meet the table one register lower, so that rows which reach every column of a block are one loop body over pointers that move.
//! Rows at the ends of the parallelogram (or, of a square, at its diagonal) reach some columns only; they are written out before and after the loop. Blocks whose parts
//! differ by a constant step are one loop again.

use super::form::NaturalForm;
use std::ops::Range;

/// A product, as far as it is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProductKind {
    /// Every row meets the whole table.
    Plain,
    /// Both factors are the same: pairs of different limbs are met once and count twice.
    Square,
}

/// Which of a product's columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Half {
    /// Column registers 0 … n−1, n those of a factor.
    Low,
    /// Column registers n … 2n−1.
    High,
}

/// Widths that are tried and how many distances a loop body takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BlockSize {
    /// Column registers of a block.
    pub columns: u32,
    /// Distances of a loop body, a multiple of those in a register of row limbs.
    pub distances: u32,
}

/// A row that is written out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct EdgeRow {
    /// Distances after the part's first one (rows before the loop), or after the loop.
    pub distance: u32,
    /// Table class.
    pub class: u32,
    /// Columns of the block that it meets.
    pub columns: Range<u32>,
}

/// What blocks of one loop have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PartShape {
    /// Rows before the loop.
    pub before: Vec<EdgeRow>,
    /// Distances that the rows before the loop take.
    pub before_distances: u32,
    /// Rows after the loop.
    pub after: Vec<EdgeRow>,
    /// Table registers by which the pointer lies below the loop's first one, so that every offset from it is positive.
    pub bias: u32,
    /// Of a square: limbs by which the block's first column lies above twice the first limb after the loop; weights depend on it.
    pub diagonal: Option<i64>,
}

/// One product in one block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part {
    /// Its rows.
    pub shape: PartShape,
    /// First distance, a multiple of those in a register of row limbs.
    pub start: u32,
    /// Rounds of the loop.
    pub rounds: u32,
    /// Table register of the block's first column at the loop's first distance.
    pub table: i64,
}

/// Blocks of one width whose parts advance by the same step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Run {
    /// First column register.
    pub first_column: u32,
    /// Column registers of a block.
    pub width: u32,
    /// Blocks.
    pub count: u32,
    /// Parts of the first block, one for each product that is added up.
    pub parts: Vec<Part>,
    /// Steps from block to block, parallel to the parts.
    pub steps: Vec<Step>,
}

/// What changes from a block to the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Step {
    /// Distances by which the first one rises.
    pub start: i64,
    /// Rounds more.
    pub rounds: i64,
    /// Table registers by which the table pointer rises.
    pub table: i64,
}

impl Run {
    /// The greatest number of rounds of a part's loop.
    pub fn most_rounds(&self, part: usize) -> u32 {
        let last = i64::from(self.parts[part].rounds) + self.steps[part].rounds * i64::from(self.count - 1);
        self.parts[part].rounds.max(u32::try_from(last).unwrap_or(0))
    }

    /// The least number of rounds of a part's loop.
    pub fn fewest_rounds(&self, part: usize) -> u32 {
        let last = i64::from(self.parts[part].rounds) + self.steps[part].rounds * i64::from(self.count - 1);
        self.parts[part].rounds.min(u32::try_from(last).unwrap_or(0))
    }
}

/// Distances in a register of row limbs.
pub(super) fn distances_per_register(form: &NaturalForm) -> u32 {
    (form.lanes / form.table_classes()).max(1)
}

/// The column registers of the block that row (distance, class) meets, and whether each pair of limbs counts alike there.
fn meets(form: &NaturalForm, kind: ProductKind, distance: u32, class: u32, block: Range<u32>) -> (Range<u32>, bool) {
    let row = distance * form.table_classes() + class;
    let last_limb = form.products * (row + 1) - 1;
    let first = match kind {
        ProductKind::Plain => distance,
        ProductKind::Square => form.products * 2 * row / form.lanes,
    };
    let end = distance + form.column_vectors() + 1;
    let columns = first.max(block.start)..end.min(block.end).max(first.max(block.start));
    let alike = kind == ProductKind::Plain || 2 * last_limb < block.start * form.lanes;
    (columns.start - block.start..columns.end - block.start, alike)
}

impl Part {
    /// The part of a product in the column registers `block`.
    pub fn new(form: &NaturalForm, kind: ProductKind, block: Range<u32>, size: BlockSize) -> Self {
        let (classes, unit) = (form.table_classes(), distances_per_register(form));
        let distances = form.rows().div_ceil(classes);
        let width = block.end - block.start;
        let row = |distance: u32, class: u32| meets(form, kind, distance, class, block.clone());
        let reaches = |distance: &u32| (0..classes).any(|class| !row(*distance, class).0.is_empty());
        let full = |distance: &u32| (0..classes).all(|class| row(*distance, class) == (0..width, true));
        let first = (0..distances).find(reaches).unwrap_or(0);
        let end = (0..distances).rev().find(reaches).map_or(first, |last| last + 1);
        let start = first / unit * unit;
        // Full distances are one range.
        let full_start = (start..end).find(full).unwrap_or(start);
        let full_end = (full_start..end).find(|distance| !full(distance)).unwrap_or(end);
        let aligned = full_start.next_multiple_of(unit);
        // Where no loop can start, all rows stand after the loop that there is not: only there a diagonal is weighed.
        let (loop_start, rounds) = if aligned <= full_end { (aligned, (full_end - aligned) / size.distances) } else { (start, 0) };
        let after_start = loop_start + rounds * size.distances;
        let edge = |range: Range<u32>| -> Vec<EdgeRow> {
            let from = range.start;
            range
                .flat_map(|distance| (0..classes).map(move |class| (distance, class)))
                .filter_map(|(distance, class)| {
                    let (columns, _) = row(distance, class);
                    (!columns.is_empty()).then_some(EdgeRow { distance: distance - from, class, columns })
                })
                .collect()
        };
        let after = edge(after_start..end);
        let lowest = after.iter().map(|row| row.distance.saturating_sub(row.columns.start)).max().unwrap_or(0);
        let diagonal = (kind == ProductKind::Square)
            .then(|| i64::from(block.start * form.lanes) - 2 * i64::from(after_start * classes * form.products));
        let shape = PartShape {
            before: edge(start..loop_start),
            before_distances: loop_start - start,
            after,
            bias: lowest.max(size.distances - 1),
            diagonal,
        };
        Self { shape, start, rounds, table: i64::from(block.start) - i64::from(loop_start) }
    }

    /// Multiply-accumulates.
    fn multiplies(&self, form: &NaturalForm, width: u32, size: BlockSize) -> u64 {
        let edges: u32 = self.shape.before.iter().chain(&self.shape.after).map(|row| row.columns.len() as u32).sum();
        u64::from(edges) + u64::from(self.rounds) * u64::from(size.distances * form.table_classes() * width)
    }

    /// What must be added to `self` for `next`, where that is the same code.
    fn step_to(&self, next: &Self) -> Option<Step> {
        (self.shape == next.shape).then(|| Step {
            start: i64::from(next.start) - i64::from(self.start),
            rounds: i64::from(next.rounds) - i64::from(self.rounds),
            table: next.table - self.table,
        })
    }
}

/// The sizes that are worth a trial: columns, what is moved out of them, the repeated limbs of a loop body and a few registers more fit.
pub(super) fn sizes(form: &NaturalForm, registers: u32) -> impl Iterator<Item = BlockSize> {
    /// Table registers, carries, constants.
    const REST: u32 = 8;
    let (unit, classes, group) = (distances_per_register(form), form.table_classes(), form.products);
    let most = form.column_vectors();
    [unit, 2 * unit, 4 * unit].into_iter().flat_map(move |distances| {
        let columns = (1..=most.div_ceil(group)).map(move |groups| groups * group);
        columns
            .filter(move |columns| *columns <= group || 2 * columns + unit * classes + REST <= registers)
            .map(move |columns| BlockSize { columns, distances })
    })
}

/// The runs of blocks that make up a half of the columns; `kinds` are the products that are added up there.
pub(super) fn runs(form: &NaturalForm, kinds: &[ProductKind], half: Half, size: BlockSize) -> Vec<Run> {
    let vectors = form.column_vectors();
    let base = if half == Half::Low { 0 } else { vectors };
    let mut runs: Vec<Run> = Vec::new();
    let mut last: Vec<Part> = Vec::new();
    for first in (0..vectors).step_by(size.columns.max(1) as usize) {
        let width = size.columns.min(vectors - first);
        let block = base + first..base + first + width;
        let parts: Vec<Part> = kinds.iter().map(|kind| Part::new(form, *kind, block.clone(), size)).collect();
        let steps: Option<Vec<Step>> = last.iter().zip(&parts).map(|(before, part)| before.step_to(part)).collect();
        match (runs.last_mut(), steps) {
            (Some(run), Some(steps)) if run.width == width && !last.is_empty() && (run.count == 1 || run.steps == steps) => {
                run.steps = steps;
                run.count += 1;
            }
            _ => runs.push(Run {
                first_column: block.start,
                width,
                count: 1,
                steps: vec![Step::default(); parts.len()],
                parts: parts.clone(),
            }),
        }
        last = parts;
    }
    runs
}

/// Cycles that a block takes beside its multiplications, and those that a round of its loop takes: what pipelines lose at their ends. Estimates that only decide between
/// block sizes.
const BLOCK_CYCLES: u64 = 40;
const ROUND_CYCLES: u64 = 5;

/// An estimate of the time of some runs.
pub(super) fn estimated_cycles(form: &NaturalForm, runs: &[Run], size: BlockSize) -> u64 {
    let mut cycles = 0;
    for run in runs {
        for block in 0..i64::from(run.count) {
            cycles += BLOCK_CYCLES;
            for (part, step) in run.parts.iter().zip(&run.steps) {
                let rounds = u32::try_from(i64::from(part.rounds) + step.rounds * block).unwrap_or(0);
                let part = Part { rounds, ..part.clone() };
                cycles += part.multiplies(form, run.width, size) + u64::from(rounds) * ROUND_CYCLES;
            }
        }
    }
    cycles
}

/// Multiply-accumulates that are written out.
pub(super) fn written_multiplies(form: &NaturalForm, runs: &[Run], size: BlockSize) -> u64 {
    let parts = runs.iter().flat_map(|run| run.parts.iter().enumerate().map(move |(index, part)| (run, index, part)));
    parts.map(|(run, index, part)| Part { rounds: run.most_rounds(index).min(1), ..part.clone() }.multiplies(form, run.width, size)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lowering::selection::RowMatch;
    use crate::machine::{FileId, RowId};
    use std::collections::BTreeMap;

    fn form(limbs: u32) -> NaturalForm {
        let row = RowMatch { row: RowId(0), operands: Vec::new() };
        NaturalForm {
            bits: 13 * limbs - 3,
            row,
            file: FileId(0),
            limb_bits: 16,
            products: 2,
            lanes: 4,
            radix_bits: 13,
            limbs,
            digit_limit: 8255,
        }
    }

    /// What a run's code does: (row, column register) to (table register, limbs of the column above twice the row's first limb, where it is weighed).
    fn met(form: &NaturalForm, runs: &[Run], product: usize, size: BlockSize) -> BTreeMap<(u32, u32), (i64, Option<i64>)> {
        let classes = form.table_classes();
        let mut met = BTreeMap::new();
        for run in runs {
            for block in 0..run.count {
                let (part, step) = (&run.parts[product], &run.steps[product]);
                let first_column = run.first_column + block * run.width;
                let after = |value: i64, step: i64| value + step * i64::from(block);
                let start = after(i64::from(part.start), step.start) as u32;
                let rounds = after(i64::from(part.rounds), step.rounds) as u32;
                let pointer = after(part.table, step.table) - i64::from(part.shape.bias);
                let mut meet = |first: u32, row: &EdgeRow, pointer: i64, bias: u32, diagonal: Option<i64>| {
                    for column in row.columns.clone() {
                        let number = (first + row.distance) * classes + row.class;
                        let place = i64::from(column) + i64::from(bias) - i64::from(row.distance);
                        let limb = i64::from(form.products * (row.distance * classes + row.class));
                        let above = diagonal.map(|diagonal| diagonal + i64::from(form.lanes * column) - 2 * limb);
                        let known = met.insert((number, first_column + column), (pointer + place, above));
                        assert!(place >= 0 && known.is_none(), "row {number}, column {column} of {run:?}");
                    }
                };
                let shape = &part.shape;
                for row in &shape.before {
                    meet(start, row, pointer, shape.bias + shape.before_distances, None);
                }
                let loop_start = start + shape.before_distances;
                for round in 0..rounds {
                    for (distance, class) in (0..size.distances).flat_map(|distance| (0..classes).map(move |class| (distance, class))) {
                        let row = EdgeRow { distance, class, columns: 0..run.width };
                        let done = round * size.distances;
                        meet(loop_start + done, &row, pointer - i64::from(done), shape.bias, None);
                    }
                }
                let done = rounds * size.distances;
                for row in &shape.after {
                    meet(loop_start + done, row, pointer - i64::from(done), shape.bias, shape.diagonal);
                }
            }
        }
        met
    }

    #[test]
    fn every_row_meets_every_column_once() {
        for limbs in [48, 64, 72, 80, 120, 160, 240, 320] {
            let form = form(limbs);
            for size in sizes(&form, 32) {
                for kind in [ProductKind::Plain, ProductKind::Square] {
                    for half in [Half::Low, Half::High] {
                        let runs = runs(&form, &[ProductKind::Plain, kind], half, size);
                        let met = met(&form, &runs, 1, size);
                        let base = if half == Half::Low { 0 } else { form.column_vectors() };
                        for row in 0..form.rows() {
                            let (distance, class) = (row / form.table_classes(), row % form.table_classes());
                            for column in base..base + form.column_vectors() {
                                let wanted = !meets(&form, kind, distance, class, column..column + 1).0.is_empty();
                                let found = met.get(&(row, column));
                                assert_eq!(found.is_some(), wanted, "{kind:?} {half:?} {limbs} limbs {size:?}: row {row}, column {column}");
                                let Some((table, above)) = found else { continue };
                                assert_eq!(*table, i64::from(column) - i64::from(distance));
                                let exact = i64::from(form.lanes * column) - 2 * i64::from(form.products * row);
                                let unweighted = kind == ProductKind::Plain || exact > 2 * i64::from(form.products) - 2;
                                assert!(
                                    above.map_or(unweighted, |above| above == exact),
                                    "{limbs} limbs {size:?}: row {row}, column {column}"
                                );
                            }
                        }
                    }
                }
            }
        }
    }
}
