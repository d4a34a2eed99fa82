//! The program builder: values, regions, blocks and loops of a [`Program`] in the making. Every instruction is asked for by what it means.
//!
//! Memory accesses are recorded with region and offset; which registers hold their addresses is decided for all of them together when the program is
//! finished (`addresses`). Constants and address registers go to the start of the entry block, so that loops never compute them again.

use super::addresses::{self, PendingAccess};
use super::constants::Pool;
use super::memory_rows::{MemoryRow, MemoryRows};
use super::own_address;
use super::selection::{RowMatch, Selector, Source, register_file};
use super::shapes::{self, LaneOp, Shape};
use crate::machine::{ControlKind, FileId, Machine, RowId, TimingClass};
use crate::program::{
    Block, BlockId, Instruction, Layout, Loop, MemoryAccess, Operand, Program, ProgramParameter, ProgramParameterKind, Region, RegionId,
    RegionKind, Value, ValueId,
};
use kgen_ir::diagnostic::Diagnostic;
use kgen_ir::kernel::Direction;
use kgen_ir::source::Span;
use kgen_ir::types::Type;
use std::collections::{BTreeMap, BTreeSet};

/// Result of a step of lowering.
pub type Lowering<T> = Result<T, Box<Diagnostic>>;

/// How addresses of the constant pool are made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PoolAddressing {
    /// From the symbol's absolute address.
    #[default]
    Absolute,
    /// Relative to the program's own address.
    PositionIndependent,
}

/// An input of an instruction: a value or a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// A register.
    Value(ValueId),
    /// A constant of the instruction.
    Constant(i64),
}

impl From<ValueId> for Input {
    fn from(value: ValueId) -> Self {
        Input::Value(value)
    }
}

/// A place in memory: `base + index + offset`, inside `region`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The region.
    pub region: RegionId,
    /// A pointer into the region instead of the region's start (a carried pointer of a loop).
    pub base: Option<ValueId>,
    /// A run-time distance in bytes, a public value unless the machine's memory does not show addresses.
    pub index: Option<ValueId>,
    /// A constant distance in bytes.
    pub offset: u64,
    /// Bytes of the region that the access may touch (half open), where `base` or `index` make it unknown; else derived from the offset.
    pub window: Option<(u64, u64)>,
}

impl Place {
    /// A constant offset in a region.
    pub fn at(region: RegionId, offset: u64) -> Self {
        Self { region, base: None, index: None, offset, window: None }
    }

    /// A run-time index in a region; the access stays inside `window`.
    pub fn indexed(region: RegionId, index: ValueId, offset: u64, window: (u64, u64)) -> Self {
        Self { region, base: None, index: Some(index), offset, window: Some(window) }
    }

    /// A constant offset from a pointer into the region; the access stays inside `window`.
    pub fn from_pointer(region: RegionId, base: ValueId, offset: u64, window: (u64, u64)) -> Self {
        Self { region, base: Some(base), index: None, offset, window: Some(window) }
    }
}

/// Where an instruction stands while the program is being built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Position {
    /// Among the constants and addresses at the start of the entry block.
    Prologue(usize),
    /// In a block.
    Block(usize, usize),
}

/// A Program in the making.
pub struct ProgramBuilder<'m> {
    pub(crate) selector: &'m Selector<'m>,
    pub(crate) memory_rows: &'m MemoryRows,
    /// The lane file: where vectors live.
    lane_file: Option<FileId>,
    /// The file of pointers.
    pointer_file: FileId,
    /// The file of public integers: counters, offsets, indices.
    integer_file: FileId,
    pub(crate) program: Program,
    pub(crate) prologue: Vec<Instruction>,
    pub(crate) pending: Vec<PendingAccess>,
    pub(crate) pool: Pool,
    pub(crate) pool_addressing: PoolAddressing,
    /// The call that leaves the program's own address, and the pointer that holds it, where something asked for them.
    pub(crate) own_address: Option<(Instruction, ValueId)>,
    pub(crate) constants: BTreeMap<(FileId, Vec<u8>), ValueId>,
    pub(crate) addresses: BTreeMap<RegionId, ValueId>,
    pub(crate) busy_singletons: Vec<FileId>,
    slice_counts: BTreeMap<RegionId, ValueId>,
    current: usize,
    in_prologue: bool,
    constants_here: bool,
    span: Span,
    hint: String,
    used_names: BTreeSet<String>,
    next_suffix: BTreeMap<String, u32>,
    /// Cycles from the start of the program to each value, along the longest chain of latencies; parallel to the values.
    ready: Vec<u32>,
}

impl<'m> ProgramBuilder<'m> {
    /// An empty program with this name.
    ///
    /// # Errors
    /// The machine has no file for addresses.
    pub fn new(name: &str, selector: &'m Selector<'m>, memory_rows: &'m MemoryRows, pool_addressing: PoolAddressing) -> Lowering<Self> {
        let machine = selector.machine();
        let missing = |what: &str| {
            Box::new(
                Diagnostic::error("no-address-file", Span::default(), format!("target `{}` has no register file for {what}", machine.name))
                    .help("give the target loads that take their address from a register, and counted or conditional jumps"),
            )
        };
        let pointer_file = memory_rows.pointer_file(machine).ok_or_else(|| missing("pointers"))?;
        let integer_file = integer_file(machine).ok_or_else(|| missing("counters"))?;
        let program = Program {
            name: name.to_string(),
            parameters: Vec::new(),
            regions: Vec::new(),
            layouts: Vec::new(),
            values: Vec::new(),
            stack_pointer: None,
            montgomery: None,
            blocks: vec![Block::default()],
            loops: Vec::new(),
            notes: Vec::new(),
        };
        Ok(Self {
            selector,
            memory_rows,
            lane_file: lane_file(machine),
            pointer_file,
            integer_file,
            program,
            prologue: Vec::new(),
            pending: Vec::new(),
            pool: Pool::default(),
            pool_addressing,
            own_address: None,
            constants: BTreeMap::new(),
            addresses: BTreeMap::new(),
            busy_singletons: Vec::new(),
            slice_counts: BTreeMap::new(),
            current: 0,
            in_prologue: false,
            constants_here: false,
            span: Span::default(),
            hint: "t".to_string(),
            used_names: BTreeSet::new(),
            next_suffix: BTreeMap::new(),
            ready: Vec::new(),
        })
    }

    /// The machine.
    pub fn machine(&self) -> &'m Machine {
        self.selector.machine()
    }

    /// The index of rows by meaning, for questions that have no emit of their own.
    pub fn selector(&self) -> &'m Selector<'m> {
        self.selector
    }

    /// The file of the widest registers, where it is wider than a scalar: vectors live there.
    pub fn lane_file(&self) -> Option<FileId> {
        self.lane_file
    }

    /// The file of pointers.
    pub fn pointer_file(&self) -> FileId {
        self.pointer_file
    }

    /// The file of public integers: counters, offsets, indices.
    pub fn integer_file(&self) -> FileId {
        self.integer_file
    }

    /// Bytes of a register of the lane file; 0 where there is none.
    pub fn lane_register_bytes(&self) -> u32 {
        self.lane_file.map_or(0, |file| self.machine()[file].width_bits / 8)
    }

    /// The place in the spec of what is built next.
    pub fn set_span(&mut self, span: Span) {
        self.span = span;
    }

    /// The place in the spec of what is being built.
    pub fn span(&self) -> Span {
        self.span
    }

    /// The source name of what is built next; values are called by it with a suffix that makes them unique.
    pub fn set_name(&mut self, name: &str) {
        if !name.is_empty() {
            self.hint = name.to_string();
        }
    }

    /// A decision worth reporting.
    pub fn note(&mut self, name: &str, text: impl Into<String>) {
        self.program.notes.push((name.to_string(), text.into()));
    }

    /// The program so far.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Whether a value depends on a secret.
    pub fn is_secret(&self, value: ValueId) -> bool {
        self.program.values[value.0 as usize].secret
    }

    /// The file of a value.
    pub fn file_of(&self, value: ValueId) -> FileId {
        self.program.values[value.0 as usize].file
    }

    /// An error at the place that is being lowered: the machine has nothing for what is asked.
    pub fn missing(&self, what: &str) -> Box<Diagnostic> {
        Box::new(
            Diagnostic::error("no-row", self.span, format!("target `{}` has no row for: {what}", self.machine().name))
                .at("this needs it")
                .help("add a row with that meaning to the target file, or choose another target"),
        )
    }

    pub(crate) fn unique_name(&mut self, wanted: &str) -> String {
        let mut name = wanted.to_string();
        while !self.used_names.insert(name.clone()) {
            let counter = self.next_suffix.entry(wanted.to_string()).or_insert(1);
            name = match *counter {
                letter @ 1..=25 => format!("{wanted}_{}", char::from(b'a' + letter as u8)),
                number => format!("{wanted}_{number}"),
            };
            *counter += 1;
        }
        name
    }

    /// A new value that no instruction defines yet.
    pub fn new_value(&mut self, file: FileId, secret: bool) -> ValueId {
        let name = self.unique_name(&self.hint.clone());
        self.program.values.push(Value { file, tuple: 1, name, secret, rematerializable: false });
        self.ready.push(0);
        ValueId(self.program.values.len() as u32 - 1)
    }

    // ---- parameters and regions

    fn push_region(&mut self, region: Region, layout: Layout) -> RegionId {
        self.program.regions.push(region);
        self.program.layouts.push(layout);
        RegionId(self.program.regions.len() as u32 - 1)
    }

    /// A pointer parameter and its region. `bytes` is `None` where only the run knows.
    pub fn region_parameter(
        &mut self,
        name: &str,
        direction: Direction,
        secret: bool,
        bytes: Option<u64>,
        align_bytes: u32,
        layout: Layout,
    ) -> RegionId {
        let index = self.program.parameters.len() as u32;
        let written = direction != Direction::In;
        let kind = RegionKind::Parameter { index };
        let region = Region { name: name.to_string(), kind, bytes, align_bytes, written, secret, may_alias: Vec::new(), contents: None };
        let region = self.push_region(region, layout);
        self.set_name(name);
        let value = self.new_value(self.pointer_file, false);
        self.addresses.insert(region, value);
        let kind = ProgramParameterKind::Pointer { region, value };
        self.program.parameters.push(ProgramParameter { name: name.to_string(), kind, direction, secret });
        region
    }

    /// The number of elements of a slice's region.
    pub fn set_slice_count(&mut self, region: RegionId, count: ValueId) {
        self.slice_counts.insert(region, count);
    }

    /// The number of elements of a slice's region, where it has been said.
    pub fn slice_count(&self, region: RegionId) -> Option<ValueId> {
        self.slice_counts.get(&region).copied()
    }

    /// Declares that two regions may overlap.
    pub fn may_alias(&mut self, a: RegionId, b: RegionId) {
        for (region, other) in [(a, b), (b, a)] {
            let list = &mut self.program.regions[region.0 as usize].may_alias;
            if !list.contains(&other) {
                list.push(other);
            }
        }
    }

    /// A scalar parameter, passed by value.
    ///
    /// # Errors
    /// It is wider than a register of the integer file.
    pub fn scalar_parameter(&mut self, name: &str, bits: u32, secret: bool) -> Lowering<ValueId> {
        let machine = self.machine();
        let exact = machine.register_files.iter().position(|file| file.width_bits == bits && !file.is_singleton());
        let file = exact.map_or(self.integer_file, |index| FileId(index as u16));
        let width = machine[file].width_bits;
        if bits > width {
            return Err(Box::new(
                Diagnostic::error(
                    "scalar-too-wide",
                    self.span,
                    format!("parameter `{name}` of {bits} bits does not fit a {width}-bit register of target `{}`", self.machine().name),
                )
                .help("pass it as an array of narrower words"),
            ));
        }
        Ok(self.push_scalar_parameter(name, bits, secret, file))
    }

    pub(crate) fn push_scalar_parameter(&mut self, name: &str, bits: u32, secret: bool, file: FileId) -> ValueId {
        self.set_name(name);
        let value = self.new_value(file, secret);
        let kind = ProgramParameterKind::Scalar { bits, value };
        self.program.parameters.push(ProgramParameter { name: name.to_string(), kind, direction: Direction::In, secret });
        value
    }

    /// Scratch memory in the function's frame.
    pub fn frame_region(&mut self, name: &str, bytes: u64, align_bytes: u32, secret: bool) -> RegionId {
        let name = self.unique_name(name);
        let region = Region {
            name,
            kind: RegionKind::Frame,
            bytes: Some(bytes),
            align_bytes,
            written: true,
            secret,
            may_alias: Vec::new(),
            contents: None,
        };
        self.push_region(region, Layout::Bytes)
    }

    /// The region of the constant pool, made on first use.
    pub(crate) fn pool_region(&mut self) -> RegionId {
        if let Some(region) = self.pool.region {
            return region;
        }
        let name = self.unique_name("pool");
        let region = Region {
            name,
            kind: RegionKind::Pool,
            bytes: None,
            align_bytes: self.lane_register_bytes().max(16),
            written: false,
            secret: false,
            may_alias: Vec::new(),
            contents: None,
        };
        let region = self.push_region(region, Layout::Bytes);
        self.pool.region = Some(region);
        region
    }

    // ---- instructions

    pub(crate) fn place_instruction(&mut self, instruction: Instruction) -> Position {
        if self.in_prologue {
            self.prologue.push(instruction);
            Position::Prologue(self.prologue.len() - 1)
        } else {
            let list = &mut self.program.blocks[self.current].instructions;
            list.push(instruction);
            Position::Block(self.current, list.len() - 1)
        }
    }

    /// Builds at the start of the entry block instead of here: for what depends on constants and parameters only.
    pub fn in_prologue<T>(&mut self, build: impl FnOnce(&mut Self) -> T) -> T {
        let (outer, hint) = (std::mem::replace(&mut self.in_prologue, true), self.hint.clone());
        let result = build(self);
        self.in_prologue = outer;
        self.hint = hint;
        result
    }

    /// Builds where constants belong: at the start of the entry block, or here inside [`Self::with_local_constants`].
    pub(crate) fn where_constants_go<T>(&mut self, build: impl FnOnce(&mut Self) -> T) -> T {
        if self.constants_here { build(self) } else { self.in_prologue(build) }
    }

    /// Builds a part whose lane constants are made where they are first needed and not kept for what comes after: for straight-line parts that need nearly all
    /// registers, where making a constant twice is cheaper than holding it.
    pub fn with_local_constants<T>(&mut self, build: impl FnOnce(&mut Self) -> T) -> T {
        let outer = std::mem::take(&mut self.constants);
        let was_here = std::mem::replace(&mut self.constants_here, true);
        let result = build(self);
        self.constants_here = was_here;
        self.constants = outer;
        result
    }

    /// Inside [`Self::with_local_constants`]: what was made so far is made again when it is needed next.
    pub fn forget_local_constants(&mut self) {
        if self.constants_here {
            self.constants.clear();
        }
    }

    fn refuse_secret_timing(&self, row: RowId, inputs: impl Iterator<Item = ValueId>) -> Lowering<()> {
        if self.machine()[row].timing.class == TimingClass::Constant {
            return Ok(());
        }
        for value in inputs {
            if self.is_secret(value) {
                let name = &self.program.values[value.0 as usize].name;
                return Err(Box::new(
                    Diagnostic::error(
                        "secret-dependent-time",
                        self.span,
                        format!("`{name}` depends on a secret, and the time of row `{}` depends on its operands", self.machine()[row].name),
                    )
                    .help("compute it with rows of constant time, or make the parameter it comes from public"),
                ));
            }
        }
        Ok(())
    }

    /// One instruction by a match; returns the shape's outputs in order.
    ///
    /// # Errors
    /// A secret would flow into a row whose time depends on its operands, or a constant does not fit.
    pub fn emit(&mut self, matched: &RowMatch, inputs: &[Input]) -> Lowering<Vec<ValueId>> {
        let row = &self.machine()[matched.row];
        let values = inputs.iter().filter_map(|input| match input {
            Input::Value(value) => Some(*value),
            Input::Constant(_) => None,
        });
        self.refuse_secret_timing(matched.row, values.clone())?;
        let secret = values.clone().any(|value| self.is_secret(value));
        for (number, input) in inputs.iter().enumerate() {
            if let Input::Constant(value) = input
                && !matched.takes_immediate(self.machine(), number as u32, *value)
            {
                return Err(self.missing(&format!("the constant {value} in row `{}`", row.name)));
            }
        }
        let outputs = matched.operands.iter().filter(|source| matches!(source, Source::Output(_))).count();
        let mut results = vec![None; outputs];
        let mut operands = Vec::with_capacity(row.operands.len());
        for (source, operand) in matched.operands.iter().zip(&row.operands) {
            operands.push(match source {
                Source::Input(number) => match inputs[*number as usize] {
                    Input::Value(value) => Operand::Value(value),
                    Input::Constant(value) => Operand::Immediate(value),
                },
                Source::Output(number) => {
                    let file = register_file(&operand.kind).ok_or_else(|| self.missing("a result in a register"))?;
                    let value = self.new_value(file, secret);
                    results[*number as usize] = Some(value);
                    Operand::Value(value)
                }
                Source::Constant(value) => Operand::Immediate(*value),
                Source::Zero => Operand::Zero,
                // What is written and not asked for still takes its register: as a value that nothing reads, so that nothing else is kept there meanwhile.
                Source::Discarded => match register_file(&operand.kind).filter(|file| operand.written && !self.machine()[*file].sticky) {
                    Some(file) => {
                        let hint = std::mem::replace(&mut self.hint, "unused".to_string());
                        let value = self.new_value(file, secret);
                        self.hint = hint;
                        Operand::Value(value)
                    }
                    None => Operand::Unused,
                },
            });
        }
        let start = values.map(|value| self.ready[value.0 as usize]).max().unwrap_or(0);
        let results: Vec<ValueId> = results.into_iter().flatten().collect();
        for result in &results {
            self.ready[result.0 as usize] = start + row.timing.latency_cycles;
        }
        let span = Some(self.span);
        self.place_instruction(Instruction { row: matched.row, operands, memory: None, span });
        Ok(results)
    }

    /// One instruction that computes the shape.
    ///
    /// # Errors
    /// The machine has no row for it; see [`Self::emit`].
    pub fn emit_shape(&mut self, shape: &Shape, inputs: &[Input]) -> Lowering<Vec<ValueId>> {
        let rows = self.selector.rows_for(shape);
        let fitting = rows.iter().find(|candidate| {
            inputs.iter().enumerate().all(|(number, input)| match input {
                Input::Constant(value) => candidate.takes_immediate(self.machine(), number as u32, *value),
                Input::Value(_) => true,
            })
        });
        match fitting {
            Some(matched) => self.emit(matched, inputs),
            None => Err(self.missing(&shape.title)),
        }
    }

    /// One instruction that computes the shape, its only output.
    ///
    /// # Errors
    /// See [`Self::emit_shape`].
    pub fn emit_single(&mut self, shape: &Shape, inputs: &[Input]) -> Lowering<ValueId> {
        let outputs = self.emit_shape(shape, inputs)?;
        outputs.first().copied().ok_or_else(|| self.missing(&shape.title))
    }

    /// A lane operation by one row on registers of the operands' file.
    ///
    /// # Errors
    /// The machine has no row for it.
    pub fn lane_row(&mut self, op: LaneOp, lane_bits: u32, operands: &[ValueId]) -> Lowering<ValueId> {
        let shape = shapes::lane_shape(self.machine(), self.file_of(operands[0]), op, lane_bits);
        let inputs: Vec<Input> = operands.iter().map(|value| Input::Value(*value)).collect();
        self.emit_single(&shape, &inputs)
    }

    /// An unordered operation on any number of operands: always the two that are ready first, so that late operands pass through few rows.
    ///
    /// # Errors
    /// The machine has no row for it.
    pub fn tree(&mut self, op: LaneOp, lane_bits: u32, operands: &[ValueId]) -> Lowering<ValueId> {
        let mut waiting = operands.to_vec();
        while waiting.len() > 1 {
            waiting.sort_by_key(|value| std::cmp::Reverse((self.ready[value.0 as usize], *value)));
            if let (Some(a), Some(b)) = (waiting.pop(), waiting.pop()) {
                waiting.push(self.lane_row(op, lane_bits, &[a, b])?);
            }
        }
        waiting.pop().ok_or_else(|| self.missing("an operation on no operands"))
    }

    /// Whether one row does this lane operation on the file.
    pub fn has_lane_row(&self, file: FileId, op: LaneOp, lane_bits: u32) -> bool {
        self.selector.row_for(&shapes::lane_shape(self.machine(), file, op, lane_bits)).is_some()
    }

    /// Rows that add, to each lane of an accumulator, the products of the limbs that share the lane; best first: most products per instruction, then shortest
    /// latency. Returns (row, limb width, products per lane).
    pub fn multiply_accumulate_rows(&self, file: FileId) -> Vec<(RowMatch, u32, u32)> {
        let mut found = Vec::new();
        for limb_bits in [8, 16, 32, 64] {
            for products in [1, 2, 4, 8] {
                let lane_bits = limb_bits * products;
                if lane_bits > self.machine()[file].width_bits.min(64) {
                    continue;
                }
                let shape = shapes::multiply_accumulate_shape(self.machine(), file, limb_bits, products);
                found.extend(self.selector.rows_for(&shape).iter().map(|row| (row.clone(), limb_bits, products)));
            }
        }
        found
    }

    /// acc + products of `a` and `b` by a row of [`Self::multiply_accumulate_rows`].
    ///
    /// # Errors
    /// See [`Self::emit`].
    pub fn multiply_accumulate(&mut self, row: &RowMatch, accumulator: ValueId, a: ValueId, b: ValueId) -> Lowering<ValueId> {
        let results = self.emit(row, &[accumulator.into(), a.into(), b.into()])?;
        results.first().copied().ok_or_else(|| self.missing("a multiply-accumulate with a result"))
    }

    /// Bytes of the sources' concatenation, chosen by the low bits of the control's bytes.
    ///
    /// # Errors
    /// The machine has no such row.
    pub fn permute_by(&mut self, sources: &[ValueId], control: ValueId) -> Lowering<ValueId> {
        let shape = shapes::byte_permute_shape(self.machine(), self.file_of(control), sources.len() as u32);
        let inputs: Vec<Input> = sources.iter().chain([&control]).map(|value| Input::Value(*value)).collect();
        self.emit_single(&shape, &inputs)
    }

    // ---- memory

    fn memory_access(&self, place: &Place, bytes: u32, write: bool) -> MemoryAccess {
        let (low, high) = place.window.unwrap_or((place.offset, place.offset + u64::from(bytes)));
        MemoryAccess { region: place.region, low, high, read: !write, write }
    }

    fn refuse_secret_address(&self, place: &Place) -> Lowering<()> {
        if self.machine().memory != crate::machine::MemoryKind::Cached {
            return Ok(());
        }
        for value in place.index.iter().chain(&place.base) {
            if self.is_secret(*value) {
                let name = &self.program.values[value.0 as usize].name;
                let region = &self.program.regions[place.region.0 as usize].name;
                return Err(Box::new(
                    Diagnostic::error(
                        "secret-address",
                        self.span,
                        format!(
                            "the address into `{region}` depends on a secret through `{name}`, and the memory of target `{}` is cached",
                            self.machine().name
                        ),
                    )
                    .help("read the whole table and select (a scan), or make the index public"),
                ));
            }
        }
        Ok(())
    }

    fn access(&mut self, row: &MemoryRow, place: Place, value: Option<ValueId>) -> Lowering<Option<ValueId>> {
        self.refuse_secret_address(&place)?;
        let write = value.is_some();
        let memory = self.memory_access(&place, row.bytes, write);
        let region_secret = self.program.regions[place.region.0 as usize].secret;
        let row_operands = &self.machine()[row.row].operands;
        let mut operands = vec![Operand::Unused; row_operands.len()];
        let result = match value {
            Some(stored) => {
                operands[row.value] = Operand::Value(stored);
                None
            }
            None => {
                let secret = region_secret || place.index.iter().chain(&place.base).any(|value| self.is_secret(*value));
                let file = register_file(&row_operands[row.value].kind).ok_or_else(|| self.missing("a load into a register"))?;
                let loaded = self.new_value(file, secret);
                operands[row.value] = Operand::Value(loaded);
                self.ready[loaded.0 as usize] = self.machine()[row.row].timing.latency_cycles;
                Some(loaded)
            }
        };
        let span = Some(self.span);
        let position = self.place_instruction(Instruction { row: row.row, operands, memory: Some(memory), span });
        self.pending.push(PendingAccess { position, place, row: row.clone() });
        Ok(result)
    }

    fn memory_row(&self, file: FileId, bytes: u32, write: bool, place: &Place) -> Lowering<MemoryRow> {
        let found = self.memory_rows.best(file, bytes, write, place.index.is_some());
        found.cloned().ok_or_else(|| {
            let what = if write { "store" } else { "load" };
            let how = if place.index.is_some() { " at base plus index" } else { "" };
            self.missing(&format!("{what} of {bytes} bytes of file {}{how}", self.machine()[file].name))
        })
    }

    /// Stores the bytes of a register that lie in it where they go in memory (the address modulo the register's size), `bytes` of them.
    ///
    /// # Errors
    /// The machine has no such store; a secret address on cached memory.
    pub fn store_element(&mut self, value: ValueId, bytes: u32, place: Place) -> Lowering<()> {
        let row = self.memory_rows.element_store(self.file_of(value), bytes).cloned();
        let row = row.ok_or_else(|| self.missing(&format!("store of one {bytes}-byte element")))?;
        self.access(&row, place, Some(value))?;
        Ok(())
    }

    /// Loads `bytes` bytes into a register of `file`: whole registers as they are, shorter ones into scalars zero filled. The address must be a multiple of
    /// the access where the machine drops low address bits.
    ///
    /// # Errors
    /// The machine has no such load; a secret address on cached memory.
    pub fn load(&mut self, file: FileId, bytes: u32, place: Place) -> Lowering<ValueId> {
        let row = self.memory_row(file, bytes, false, &place)?;
        let loaded = self.access(&row, place, None)?;
        loaded.ok_or_else(|| self.missing("a load with a result"))
    }

    /// Stores the low `bytes` bytes of a scalar, or a whole register.
    ///
    /// # Errors
    /// The machine has no such store; a secret address on cached memory.
    pub fn store(&mut self, value: ValueId, bytes: u32, place: Place) -> Lowering<()> {
        let file = self.file_of(value);
        let row = self.memory_row(file, bytes, true, &place)?;
        self.access(&row, place, Some(value))?;
        Ok(())
    }

    /// Loads a register of the lane file from an aligned constant offset.
    ///
    /// # Errors
    /// See [`Self::load`].
    pub fn load_lanes(&mut self, region: RegionId, offset: u64) -> Lowering<ValueId> {
        let file = self.lane_file.ok_or_else(|| self.missing("registers of many lanes"))?;
        self.load(file, self.lane_register_bytes(), Place::at(region, offset))
    }

    /// Stores a register of the lane file at an aligned constant offset.
    ///
    /// # Errors
    /// See [`Self::store`].
    pub fn store_lanes(&mut self, value: ValueId, region: RegionId, offset: u64) -> Lowering<()> {
        self.store(value, self.lane_register_bytes(), Place::at(region, offset))
    }

    /// A pointer moved by a constant number of bytes.
    ///
    /// # Errors
    /// The machine cannot add to a pointer.
    pub fn advance(&mut self, pointer: ValueId, bytes: u64) -> Lowering<ValueId> {
        let file = self.file_of(pointer);
        if file == self.integer_file {
            return self.with_constant(LaneOp::Add, pointer, bytes as i64);
        }
        let distance = self.integer(bytes as i64)?;
        let shape = shapes::pointer_add_shape(self.machine(), file, self.integer_file);
        self.emit_single(&shape, &[Input::Value(pointer), Input::Value(distance)])
    }

    // ---- blocks and loops

    pub(crate) fn current_block(&self) -> BlockId {
        BlockId(self.current as u32)
    }

    pub(crate) fn start_block(&mut self) -> BlockId {
        self.program.blocks.push(Block::default());
        self.current = self.program.blocks.len() - 1;
        BlockId(self.current as u32)
    }

    pub(crate) fn push_loop(&mut self, index: usize, item: Loop) {
        self.program.loops.insert(index, item);
    }

    /// The finished program: addresses are chosen, constants and addresses stand at the start of the entry block.
    ///
    /// # Errors
    /// An address cannot be made with the machine's rows.
    pub fn finish(mut self) -> Lowering<Program> {
        addresses::resolve(&mut self)?;
        let body = std::mem::take(&mut self.program.blocks[0].instructions);
        self.program.blocks[0].instructions = std::mem::take(&mut self.prologue);
        self.program.blocks[0].instructions.extend(body);
        if let Some((call, _)) = self.own_address.take() {
            own_address::put_call_first(&mut self.program, call);
        }
        if let Some(region) = self.pool.region {
            let region = &mut self.program.regions[region.0 as usize];
            region.bytes = Some(self.pool.bytes.len() as u64);
            region.contents = Some(std::mem::take(&mut self.pool.bytes));
        }
        Ok(self.program)
    }
}

/// The widest file whose registers are bytes in address order.
pub fn lane_file(machine: &Machine) -> Option<FileId> {
    let files = machine.register_files.iter().enumerate().filter(|(_, file)| matches!(file.value_type(1), Type::Bits { lanes: 2.., .. }));
    let widest = files.max_by_key(|(index, file)| (file.width_bits, std::cmp::Reverse(*index)))?;
    Some(FileId(widest.0 as u16))
}

/// The file of public integers: the calling convention's, else the widest of at most 64 bits that counted or conditional jumps look at.
pub fn integer_file(machine: &Machine) -> Option<FileId> {
    if let Some(abi) = &machine.abi {
        return Some(abi.integer_file);
    }
    let jumps = machine.rows.iter().filter(|row| matches!(row.control, Some(ControlKind::CountedJump | ControlKind::ConditionalJump)));
    let files = jumps.flat_map(|row| row.operands.iter().filter_map(|operand| register_file(&operand.kind)));
    files
        .filter(|file| (32..=64).contains(&machine[*file].width_bits) && !machine[*file].is_singleton())
        .max_by_key(|file| (machine[*file].width_bits, std::cmp::Reverse(*file)))
}
