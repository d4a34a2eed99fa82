//! Code of products by blocks of columns ([`super::blocks`]): rows written out at the edges, loops over the rows between, carries at the end of each block.
//!
//! Where a column's products do not fit a lane, every round of a loop moves what is above the radix from the accumulators to others, which count units of the next column:
//! the accumulators then start each round below the radix, and the others grow by a known amount a round. These amounts times the rounds are the proof of no overflow.

use super::blocks::{BlockSize, EdgeRow, Part, PartShape, Run, distances_per_register};
use super::columns::{CarryState, Columns, Digits, Limbs};
use super::form::NaturalForm;
use super::setup::StaggeredTable;
use crate::lowering::addresses::region_address;
use crate::lowering::builder::{Lowering, Place};
use crate::lowering::loops::Rounds;
use crate::program::{RegionId, ValueId};
use kgen_ir::diagnostic::Diagnostic;

/// A factor whose limbs are repeated in every lane: a natural in memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct RowFactor {
    /// Where.
    pub region: RegionId,
    /// Byte offset of its first limb.
    pub offset: u64,
    /// It counts twice, but for squares of limbs.
    pub doubled: bool,
}

/// One product of those that are added up.
#[derive(Clone, Copy, Debug)]
pub(super) struct Product {
    /// The factor repeated in lanes.
    pub row: RowFactor,
    /// The factor staggered in memory.
    pub table: StaggeredTable,
    /// Greatest limb of the table.
    pub table_limit: u64,
}

/// Columns of a block on their way.
#[derive(Clone, Debug)]
struct Accumulators {
    /// Sums of products.
    low: Vec<Columns>,
    /// What was moved out of them: units of the next column.
    high: Option<Vec<Columns>>,
}

/// Carries between blocks: those of the columns' accumulators, and those of the two passes.
#[derive(Clone, Debug)]
pub(super) struct BlockCarries {
    /// The last columns' moved-out part, of which the last lane belongs to the next block.
    pub high: Option<Columns>,
    /// Of the first pass.
    pub first: Columns,
    /// Of the second pass.
    pub second: Digits,
}

/// Where a part's pointers stand.
struct Pointers {
    /// Row limbs at the part's first distance.
    row: ValueId,
    /// Each class's table, `bias` registers below the loop's first column.
    tables: Vec<ValueId>,
}

/// What happens with a block's last column and with its digits.
pub(super) trait BlockSink {
    /// The last column, before its digit is taken, and what is moved into it.
    ///
    /// # Errors
    /// A row is missing.
    fn last_column(&mut self, limbs: &mut Limbs<'_, '_>, column: &Columns, moved: &Columns) -> Lowering<()>;
}

/// Nothing is kept.
pub(super) struct NoSink;

impl BlockSink for NoSink {
    fn last_column(&mut self, _: &mut Limbs<'_, '_>, _: &Columns, _: &Columns) -> Lowering<()> {
        Ok(())
    }
}

/// All columns of some runs: products, carries, digits to memory.
pub(super) struct RowLoops<'a> {
    /// Products that are added up.
    products: &'a [Product],
    /// Size of the blocks.
    size: BlockSize,
    /// Where digits go: region and byte offset of the runs' first column.
    to: (RegionId, u64),
    /// Columns do not fit their lanes, or something is to be added to the lowest one: parts of them are moved out.
    delayed: bool,
    /// The most that moves from one column to the next so.
    moved_limit: u64,
}

impl<'a> RowLoops<'a> {
    /// Of a form whose columns may or may not fit their lanes.
    pub fn new(form: &NaturalForm, products: &'a [Product], size: BlockSize, to: (RegionId, u64)) -> Self {
        let lane_limit = u64::MAX >> (64 - form.lane_bits());
        let rows = u64::from(form.rows());
        let total = products.iter().map(|product| growth(form, product, rows)).fold(0, u64::saturating_add);
        // Loops are counted with the rounds of the block that has most, beside edges of a block's width at either end.
        let most_rows = rows + u64::from(2 * size.columns * form.table_classes());
        let most = products.iter().map(|product| growth(form, product, most_rows)).fold(0, u64::saturating_add);
        let moved_limit = (most >> form.radix_bits) + 2 * most_rows * products.len() as u64;
        Self { products, size, to, delayed: total > lane_limit, moved_limit }
    }

    /// Builds the runs; carries come in and leave at the top.
    ///
    /// # Errors
    /// A lane could overflow, or a row is missing.
    pub fn build(
        mut self,
        limbs: &mut Limbs<'_, '_>,
        runs: &[Run],
        carries: BlockCarries,
        sink: &mut dyn BlockSink,
    ) -> Lowering<BlockCarries> {
        if let Some(high) = &carries.high {
            self.delayed = true;
            self.moved_limit = high.limit.iter().copied().fold(self.moved_limit, u64::max);
        }
        let mut carries = self.greatest_carries(limbs, carries)?;
        for run in runs {
            carries = self.run(limbs, run, carries, sink)?;
        }
        Ok(carries)
    }

    /// The same carries with limits that hold in every block.
    fn greatest_carries(&self, limbs: &mut Limbs<'_, '_>, carries: BlockCarries) -> Lowering<BlockCarries> {
        let form = limbs.form;
        let lane_limit = u64::MAX >> (64 - form.lane_bits());
        let first = lane_limit >> form.radix_bits;
        let widened = |columns: Columns, limit: u64| {
            let limit = columns.limit.iter().map(|known| (*known).max(limit)).collect();
            Columns { limit, ..columns }
        };
        let high_limit = self.moved_limit;
        let high = match (carries.high, self.delayed) {
            (Some(high), true) => Some(widened(high, high_limit)),
            (None, true) => Some(widened(limbs.zero()?, high_limit)),
            (_, false) => None,
        };
        let second_limit = (form.digit_mask() + first) >> form.radix_bits;
        let second = Digits { limit: carries.second.limit.iter().map(|known| (*known).max(second_limit)).collect(), ..carries.second };
        Ok(BlockCarries { high, first: widened(carries.first, first), second })
    }

    fn run(&self, limbs: &mut Limbs<'_, '_>, run: &Run, carries: BlockCarries, sink: &mut dyn BlockSink) -> Lowering<BlockCarries> {
        let form = limbs.form;
        let register_bytes = i64::from(form.register_bytes());
        let unit = i64::from(distances_per_register(form));
        let digits_offset = self.to.1 + u64::from((run.first_column % form.column_vectors()) / form.products) * register_bytes as u64;
        let to = pointer(limbs, self.to.0, digits_offset as i64)?;
        let mut rows = Vec::new();
        let mut tables = Vec::new();
        let mut counts = Vec::new();
        for (product, (part, step)) in self.products.iter().zip(run.parts.iter().zip(&run.steps)) {
            limbs.builder.set_name("row");
            rows.push(pointer(limbs, product.row.region, product.row.offset as i64 + i64::from(part.start) / unit * register_bytes)?);
            let offset = product.table.offset(form, 0, 0) as i64 + (part.table - i64::from(part.shape.bias)) * register_bytes;
            limbs.builder.set_name("table");
            tables.push(pointer(limbs, product.table.region, offset)?);
            counts.push(if step.rounds == 0 { None } else { Some(limbs.builder.integer(i64::from(part.rounds))?) });
        }
        if run.count == 1 {
            let pointers = BlockPointers { rows: &rows, tables: &tables, counts: &counts, to };
            return self.block(limbs, run, &pointers, carries, sink);
        }
        // Carried: pointers, counts that change, the pointer to digits, carries.
        let parts = self.products.len();
        let changing: Vec<ValueId> = counts.iter().flatten().copied().collect();
        let mut carried = [&rows[..], &tables[..], &changing[..], &[to]].concat();
        carried.extend(carries.high.iter().map(|high| high.value));
        carried.extend([carries.first.value, carries.second.value]);
        let Limbs { builder, .. } = limbs;
        let results = builder.counted_loop(Rounds::Constant(u64::from(run.count)), true, &carried, |builder, current| {
            let mut limbs = Limbs { builder, form };
            let (rows, rest) = current.split_at(parts);
            let (tables, rest) = rest.split_at(parts);
            let (changing, rest) = rest.split_at(changing.len());
            let mut changing_now = changing.iter();
            let counts: Vec<Option<ValueId>> = counts.iter().map(|count| count.and_then(|_| changing_now.next().copied())).collect();
            let inside = BlockCarries {
                high: carries.high.as_ref().map(|high| Columns { value: rest[1], ..high.clone() }),
                first: Columns { value: rest[rest.len() - 2], ..carries.first.clone() },
                second: Digits { value: rest[rest.len() - 1], ..carries.second.clone() },
            };
            let pointers = BlockPointers { rows, tables, counts: &counts, to: rest[0] };
            let left = self.block(&mut limbs, run, &pointers, inside, sink)?;
            let mut next = Vec::new();
            for (index, step) in run.steps.iter().enumerate() {
                next.push(advanced(&mut limbs, rows[index], step.start / unit * register_bytes)?);
            }
            for (index, step) in run.steps.iter().enumerate() {
                next.push(advanced(&mut limbs, tables[index], step.table * register_bytes)?);
            }
            for (count, step) in counts.iter().zip(&run.steps) {
                if let Some(count) = count {
                    next.push(advanced(&mut limbs, *count, step.rounds)?);
                }
            }
            next.push(advanced(&mut limbs, rest[0], i64::from(run.width / form.products) * register_bytes)?);
            next.extend(left.high.iter().map(|high| high.value));
            next.extend([left.first.value, left.second.value]);
            Ok(next)
        })?;
        let place = results.len() - 2;
        Ok(BlockCarries {
            high: carries.high.map(|high| Columns { value: results[place - 1], ..high }),
            first: Columns { value: results[place], ..carries.first },
            second: Digits { value: results[place + 1], ..carries.second },
        })
    }

    fn block(
        &self,
        limbs: &mut Limbs<'_, '_>,
        run: &Run,
        pointers: &BlockPointers<'_>,
        carries: BlockCarries,
        sink: &mut dyn BlockSink,
    ) -> Lowering<BlockCarries> {
        let mut accumulators: Option<Accumulators> = None;
        for (index, product) in self.products.iter().enumerate() {
            let part = &run.parts[index];
            let rounds = match (pointers.counts[index], part.rounds) {
                (Some(count), _) if run.fewest_rounds(index) > 0 => Some(Rounds::NonZero(count)),
                (Some(count), _) => Some(Rounds::Value(count)),
                (None, 0) => None,
                (None, rounds) => Some(Rounds::Constant(u64::from(rounds))),
            };
            let most_rounds = run.most_rounds(index);
            accumulators = Some(self.part(
                limbs,
                product,
                part,
                run.width,
                pointers,
                index,
                rounds.map(|rounds| (rounds, most_rounds)),
                accumulators,
            )?);
        }
        let accumulators = accumulators.ok_or_else(|| limbs.builder.missing("a product"))?;
        limbs.builder.set_name("digits");
        self.carry(limbs, accumulators, carries, pointers.to, sink)
    }

    /// Adds one product's rows to the block's columns.
    #[expect(clippy::too_many_arguments, reason = "one part of a block: where it reads, how often it goes around, what it adds to")]
    fn part(
        &self,
        limbs: &mut Limbs<'_, '_>,
        product: &Product,
        part: &Part,
        width: u32,
        pointers: &BlockPointers<'_>,
        index: usize,
        rounds: Option<(Rounds, u32)>,
        before: Option<Accumulators>,
    ) -> Lowering<Accumulators> {
        let form = limbs.form;
        let register_bytes = i64::from(form.register_bytes());
        let shape = &part.shape;
        let class_bytes = (product.table.offset(form, 1, 0) - product.table.offset(form, 0, 0)) as i64;
        let mut tables = Vec::new();
        for class in 0..form.table_classes() {
            limbs.builder.set_name("table");
            tables.push(advanced(limbs, pointers.tables[index], i64::from(class) * class_bytes)?);
        }
        let mut at = Pointers { row: pointers.rows[index], tables };
        let zero = limbs.zero()?;
        let mut sums = before.unwrap_or_else(|| Accumulators { low: vec![zero; width as usize], high: None });
        let edge_bias = shape.before_distances + shape.bias;
        self.edge(limbs, product, &shape.before, None, edge_bias, &at, &mut sums)?;
        let registers = i64::from(shape.before_distances / distances_per_register(form));
        at.row = advanced(limbs, at.row, registers * register_bytes)?;
        if let Some((rounds, most)) = rounds {
            self.around(limbs, product, shape, (rounds, most), &mut at, &mut sums)?;
        }
        self.edge(limbs, product, &shape.after, shape.diagonal, shape.bias, &at, &mut sums)?;
        Ok(sums)
    }

    /// The most that a column may hold, so that the part of its neighbour that was moved out still fits beside it.
    fn column_limit(&self, limbs: &Limbs<'_, '_>) -> u64 {
        let lane_limit = u64::MAX >> (64 - limbs.form.lane_bits());
        if self.delayed { lane_limit.saturating_sub(self.moved_limit) } else { lane_limit }
    }

    /// Moves parts of columns out where the products of these rows would not fit beside what is there.
    fn make_room(&self, limbs: &mut Limbs<'_, '_>, product: &Product, rows: &[EdgeRow], sums: &mut Accumulators) -> Lowering<()> {
        let column_limit = self.column_limit(limbs);
        let crowded = (0..sums.low.len() as u32).any(|column| {
            let reaching = rows.iter().filter(|row| row.columns.contains(&column)).count() as u64;
            let growth = growth(limbs.form, product, reaching);
            sums.low[column as usize].limit.iter().any(|limit| limit.saturating_add(growth) > column_limit)
        });
        if crowded && self.delayed { move_out(limbs, sums) } else { Ok(()) }
    }

    /// The loop over full rows.
    fn around(
        &self,
        limbs: &mut Limbs<'_, '_>,
        product: &Product,
        shape: &PartShape,
        (rounds, most): (Rounds, u32),
        at: &mut Pointers,
        sums: &mut Accumulators,
    ) -> Lowering<()> {
        let form = limbs.form;
        let classes = form.table_classes();
        let a_round = growth(form, product, u64::from(self.size.distances * classes));
        let all_rounds = a_round.saturating_mul(u64::from(most));
        let column_limit = self.column_limit(limbs);
        let greatest = sums.low.iter().flat_map(|column| &column.limit).copied().max().unwrap_or(0);
        // Columns that hold all rounds need not be touched in the loop.
        let every_round = self.delayed && form.digit_mask().saturating_add(all_rounds) > column_limit;
        if self.delayed && (greatest.saturating_add(all_rounds) > column_limit) && greatest > form.digit_mask() {
            move_out(limbs, sums)?;
        }
        let moved = (form.digit_mask() + a_round) >> form.radix_bits;
        // Limits at the end of the loop, every round counted.
        let low_limit = |limit: u64| if every_round { form.digit_mask() } else { limit.saturating_add(all_rounds) };
        let high_limit = |limit: u64| limit.saturating_add(moved.saturating_mul(u64::from(most)));
        let widen = |columns: &[Columns], by: &dyn Fn(u64) -> u64| -> Vec<Columns> {
            columns
                .iter()
                .map(|column| Columns { value: column.value, limit: column.limit.iter().map(|limit| by(*limit)).collect() })
                .collect()
        };
        let start_high = match (&sums.high, every_round) {
            (Some(high), true) => Some(high.clone()),
            (None, true) => Some(vec![limbs.zero()?; sums.low.len()]),
            (_, false) => None,
        };
        let ends = Accumulators { low: widen(&sums.low, &low_limit), high: start_high.as_ref().map(|high| widen(high, &high_limit)) };
        let mut carried = vec![at.row];
        carried.extend(&at.tables);
        carried.extend(sums.low.iter().chain(start_high.iter().flatten()).map(|column| column.value));
        let pointer_count = 1 + at.tables.len();
        let width = sums.low.len();
        let register_bytes = i64::from(form.register_bytes());
        let row_step = i64::from(self.size.distances / distances_per_register(form)) * register_bytes;
        let table_step = -i64::from(self.size.distances) * register_bytes;
        let rows: Vec<EdgeRow> = (0..self.size.distances)
            .flat_map(|distance| (0..classes).map(move |class| EdgeRow { distance, class, columns: 0..width as u32 }))
            .collect();
        let values = |columns: &[Columns], values: &[ValueId]| -> Vec<Columns> {
            columns.iter().zip(values).map(|(column, value)| Columns { value: *value, limit: column.limit.clone() }).collect()
        };
        let results = limbs.builder.counted_loop(rounds, false, &carried, |builder, current| {
            let mut limbs = Limbs { builder, form };
            let here = Pointers { row: current[0], tables: current[1..pointer_count].to_vec() };
            let (low, high) = current[pointer_count..].split_at(width);
            // What this round adds comes on top of what the rounds before left at most.
            let before = |columns: Vec<Columns>, growth: u64| -> Vec<Columns> {
                let limit = |limits: &[u64]| limits.iter().map(|limit| limit.saturating_sub(growth)).collect();
                columns.into_iter().map(|column| Columns { limit: limit(&column.limit), ..column }).collect()
            };
            let mut inside = Accumulators {
                low: if every_round { values(&ends.low, low) } else { before(values(&ends.low, low), a_round) },
                high: ends.high.as_ref().map(|columns| before(values(columns, high), moved)),
            };
            self.edge(&mut limbs, product, &rows, None, shape.bias, &here, &mut inside)?;
            if every_round {
                move_out(&mut limbs, &mut inside)?;
            } else if inside.high.is_some() {
                return Err(grows(&limbs, "a column"));
            }
            let pairs = ends.low.iter().zip(&inside.low).chain(ends.high.iter().flatten().zip(inside.high.iter().flatten()));
            for (promised, found) in pairs {
                if promised.limit.iter().zip(&found.limit).any(|(promised, found)| found > promised) {
                    return Err(grows(&limbs, "a column"));
                }
            }
            let mut next = vec![advanced(&mut limbs, here.row, row_step)?];
            for table in &here.tables {
                next.push(advanced(&mut limbs, *table, table_step)?);
            }
            next.extend(inside.low.iter().chain(inside.high.iter().flatten()).map(|column| column.value));
            Ok(next)
        })?;
        at.row = results[0];
        at.tables = results[1..pointer_count].to_vec();
        let (low, high) = results[pointer_count..].split_at(width);
        sums.low = values(&ends.low, low);
        if let Some(columns) = &ends.high {
            sums.high = Some(values(columns, high));
        }
        for limits in sums.low.iter().chain(sums.high.iter().flatten()) {
            limbs.assert_fits(&limits.limit, form.lane_bits(), "a column of all rounds")?;
        }
        Ok(())
    }

    /// Rows that are written out, a register of row limbs at a time.
    #[expect(clippy::too_many_arguments, reason = "rows, where they read, what they add to")]
    fn edge(
        &self,
        limbs: &mut Limbs<'_, '_>,
        product: &Product,
        rows: &[EdgeRow],
        diagonal: Option<i64>,
        bias: u32,
        at: &Pointers,
        sums: &mut Accumulators,
    ) -> Lowering<()> {
        let form = limbs.form;
        let unit = distances_per_register(form);
        let row_window = (product.row.offset, product.row.offset + u64::from(form.bytes()));
        for group in rows.chunk_by(|a, b| a.distance / unit == b.distance / unit) {
            self.make_room(limbs, product, group, sums)?;
            let place = u64::from(group[0].distance / unit);
            limbs.builder.set_name("rows");
            let from = Place::from_pointer(product.row.region, at.row, place * u64::from(form.register_bytes()), row_window);
            let value = limbs.builder.load(form.file, form.register_bytes(), from)?;
            let digits = Digits { value, limit: vec![form.digit_limit; form.packed_limbs() as usize] };
            let digits = if product.row.doubled { limbs.doubled(&digits)? } else { digits };
            self.group(limbs, product, group, &digits, diagonal, bias, at, sums)?;
        }
        Ok(())
    }

    /// The rows of one register of row limbs, table register by table register, so that each of these is needed for a short time only. The classes are half the block apart
    /// and the farther rows come first, so that a column waits for its last sum as little as can be.
    #[expect(clippy::too_many_arguments, reason = "rows, where they read, what they add to")]
    fn group(
        &self,
        limbs: &mut Limbs<'_, '_>,
        product: &Product,
        rows: &[EdgeRow],
        digits: &Digits,
        diagonal: Option<i64>,
        bias: u32,
        at: &Pointers,
        sums: &mut Accumulators,
    ) -> Lowering<()> {
        let form = limbs.form;
        let (classes, unit) = (form.table_classes(), distances_per_register(form));
        let mut splats = Vec::with_capacity(rows.len());
        for row in rows {
            limbs.builder.set_name("splat");
            splats.push(limbs.splat_row(digits, row.distance % unit * classes + row.class)?);
        }
        let place = |row: &EdgeRow, column: u32| column + bias - row.distance;
        let lowest = rows.iter().map(|row| place(row, row.columns.start)).min().unwrap_or(0);
        let highest = rows.iter().map(|row| place(row, row.columns.end - 1)).max().unwrap_or(0);
        let span = highest + 1 - lowest;
        for step in 0..span {
            let mut loaded: Vec<Option<Digits>> = vec![None; classes as usize];
            for (row, splat) in rows.iter().zip(&splats).rev() {
                let register = lowest + (step + row.class * span / classes) % span;
                let column = register + row.distance;
                let Some(column) = column.checked_sub(bias).filter(|column| row.columns.contains(column)) else { continue };
                let multiplicand = match &loaded[row.class as usize] {
                    Some(digits) => digits.clone(),
                    None => {
                        limbs.builder.set_name("table");
                        let window = (product.table.offset(form, row.class, 0), product.table.offset(form, row.class + 1, 0));
                        let offset = u64::from(register * form.register_bytes());
                        let from = Place::from_pointer(product.table.region, at.tables[row.class as usize], offset, window);
                        let value = limbs.builder.load(form.file, form.register_bytes(), from)?;
                        let digits = Digits { value, limit: vec![product.table_limit; form.packed_limbs() as usize] };
                        loaded[row.class as usize] = Some(digits.clone());
                        digits
                    }
                };
                let multiplier = match diagonal {
                    Some(diagonal) => {
                        let first_limb = i64::from(form.products * (row.distance * classes + row.class));
                        limbs.weighted(splat, diagonal + i64::from(form.lanes * column) - 2 * first_limb)?
                    }
                    None => splat.clone(),
                };
                limbs.builder.set_name("column");
                let sum = &mut sums.low[column as usize];
                *sum = limbs.multiply_accumulate(sum, &multiplier, &multiplicand)?;
            }
        }
        Ok(())
    }

    /// Two carry passes over the block's columns; digits go to memory.
    fn carry(
        &self,
        limbs: &mut Limbs<'_, '_>,
        accumulators: Accumulators,
        carries: BlockCarries,
        to: ValueId,
        sink: &mut dyn BlockSink,
    ) -> Lowering<BlockCarries> {
        let form = limbs.form;
        let mut columns = accumulators.low;
        let mut high_left = None;
        if let Some(before) = &carries.high {
            let high = match accumulators.high {
                Some(high) => high,
                None => vec![limbs.zero()?; columns.len()],
            };
            let mut below = before.clone();
            for (column, high) in columns.iter_mut().zip(&high) {
                let moved = limbs.move_up(&below, high)?;
                *column = limbs.add(column, &moved)?;
                below = high.clone();
            }
            if below.limit.iter().zip(&before.limit).any(|(found, promised)| found > promised) {
                return Err(grows(limbs, "what is moved out of a column"));
            }
            high_left = Some(Columns { limit: before.limit.clone(), ..below });
        }
        let mut state = CarryState { first: Some(carries.first.clone()), second: Some(carries.second.clone()) };
        let register_bytes = u64::from(form.register_bytes());
        let window = (self.to.1, self.to.1 + u64::from(form.bytes()));
        limbs.carry_passes(
            &columns,
            &mut state,
            |limbs, column, moved| sink.last_column(limbs, column, moved),
            |limbs, place, packed| {
                if packed.limit.iter().any(|limit| *limit > form.digit_limit) {
                    return Err(grows(limbs, "a digit"));
                }
                let there = Place::from_pointer(self.to.0, to, u64::from(place) * register_bytes, window);
                limbs.builder.store(packed.value, form.register_bytes(), there)
            },
        )?;
        let (Some(first), Some(second)) = (state.first, state.second) else { return Err(limbs.builder.missing("carries of a block")) };
        let fits = |found: &[u64], promised: &[u64]| found.iter().zip(promised).all(|(found, promised)| found <= promised);
        if !fits(&first.limit, &carries.first.limit) || !fits(&second.limit, &carries.second.limit) {
            return Err(grows(limbs, "a carry"));
        }
        Ok(BlockCarries {
            high: high_left,
            first: Columns { limit: carries.first.limit, ..first },
            second: Digits { limit: carries.second.limit, ..second },
        })
    }
}

/// Greatest growth of a lane by `rows` rows.
fn growth(form: &NaturalForm, product: &Product, rows: u64) -> u64 {
    let weight = if product.row.doubled { 2 } else { 1 };
    rows.saturating_mul(u64::from(form.products)).saturating_mul(weight * form.digit_limit).saturating_mul(product.table_limit)
}

/// Where a block's parts read and its digits go.
struct BlockPointers<'a> {
    rows: &'a [ValueId],
    tables: &'a [ValueId],
    /// Rounds, where they change from block to block.
    counts: &'a [Option<ValueId>],
    to: ValueId,
}

/// Moves what is above the radix out of the accumulators.
fn move_out(limbs: &mut Limbs<'_, '_>, sums: &mut Accumulators) -> Lowering<()> {
    limbs.builder.set_name("above");
    let mut high = Vec::with_capacity(sums.low.len());
    for (index, column) in sums.low.iter_mut().enumerate() {
        let above = limbs.shift_right(column, limbs.form.radix_bits)?;
        *column = limbs.low_digit(column)?;
        high.push(match &sums.high {
            Some(before) => limbs.add(&before[index], &above)?,
            None => above,
        });
    }
    sums.high = Some(high);
    Ok(())
}

/// A pointer into a region.
fn pointer(limbs: &mut Limbs<'_, '_>, region: RegionId, offset: i64) -> Lowering<ValueId> {
    let base = region_address(limbs.builder, region)?;
    advanced(limbs, base, offset)
}

/// A pointer or a count moved by a constant.
fn advanced(limbs: &mut Limbs<'_, '_>, value: ValueId, by: i64) -> Lowering<ValueId> {
    // Pointers wrap, so that a step back is a step forward by its complement.
    if by == 0 { Ok(value) } else { limbs.builder.advance(value, by as u64) }
}

/// A limit that was assumed at the head of a loop does not hold at its end.
fn grows(limbs: &Limbs<'_, '_>, what: &str) -> Box<Diagnostic> {
    Box::new(
        Diagnostic::error("lane-overflow", limbs.builder.span(), format!("{what} can exceed in a loop what is proved for its start"))
            .help("a smaller radix is needed; this is a limit of the lowering, not of the spec"),
    )
}
