//! Rows that the driver adds to a Program so that it fits the registers: stores and reloads, recomputation, copies.
//!
//! Before rows are added the instructions are put into the order of the schedule that did not fit. So the new program order fits (up to what
//! the added rows need themselves), and scheduling again can only improve on it.

use crate::allocation::{Eviction, SharedRegister};
use crate::machine::{FileId, Machine};
use crate::machine_moves::{FrameOffsetForm, FrameRow, frame_load, frame_store, register_copy};
use crate::program::{BlockId, Instruction, Layout, MemoryAccess, Operand, Program, Region, RegionId, RegionKind, Value, ValueId};
use crate::schedule::Schedule;
use std::collections::{BTreeMap, BTreeSet};

/// A Program under change, and what was added to it.
#[derive(Clone, Debug)]
pub struct Rewriter {
    /// The program.
    pub program: Program,
    /// Values stored to the frame.
    pub spills: u32,
    /// Values computed again.
    pub rematerialized: u32,
    /// Copies added.
    pub copies: u32,
    /// Frame slot in which a value (or the value that it reloads) lies.
    homes: BTreeMap<ValueId, RegionId>,
    /// Instruction that computes a rematerializable value.
    origins: BTreeMap<ValueId, Instruction>,
    /// Values that are copies made here.
    copied: BTreeSet<ValueId>,
    names: u32,
}

/// Why a value could not be moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoSuchRow {
    /// File of the value.
    pub file: FileId,
    /// What was looked for.
    pub purpose: &'static str,
}

/// Instructions to be put before an index of a block; later ones with the same place come later.
type Insertions = BTreeMap<(BlockId, u32), Vec<Instruction>>;

impl Rewriter {
    /// Starts with a lowered program. A result in the text of an instruction that nothing reads gets a value, since it takes a register.
    pub fn new(mut program: Program, machine: &Machine) -> Self {
        let mut values = std::mem::take(&mut program.values);
        for instruction in program.blocks.iter_mut().flat_map(|block| &mut block.instructions) {
            let declared = &machine[instruction.row].operands;
            for (operand, declared) in instruction.operands.iter_mut().zip(declared) {
                if let (Operand::Unused, false, Some(file)) = (&*operand, declared.implicit, crate::dependence::operand_file(declared)) {
                    let name = format!("unused_{}", values.len());
                    *operand = Operand::Value(ValueId(values.len() as u32));
                    values.push(Value { file, tuple: declared.tuple, name, secret: true, rematerializable: false });
                }
            }
        }
        program.values = values;
        Self {
            program,
            spills: 0,
            rematerialized: 0,
            copies: 0,
            homes: BTreeMap::new(),
            origins: BTreeMap::new(),
            copied: BTreeSet::new(),
            names: 0,
        }
    }

    /// Values that spilling cannot help, by number.
    pub fn unspillable(&self, machine: &Machine) -> Vec<bool> {
        let has_frame: Vec<bool> = (0..machine.register_files.len())
            .map(|file| frame_store(machine, FileId(file as u16)).is_some() && frame_load(machine, FileId(file as u16)).is_some())
            .collect();
        let values = self.program.values.iter().enumerate();
        let fixed = |value: &Value| value.tuple != 1 || !has_frame[value.file.0 as usize] && !value.rematerializable;
        values.map(|(index, value)| Some(ValueId(index as u32)) == self.program.stack_pointer || fixed(value)).collect()
    }

    /// Puts every block's instructions into the order of its schedule.
    pub fn reorder(&mut self, schedule: &Schedule) {
        for (block, scheduled) in self.program.blocks.iter_mut().zip(&schedule.blocks) {
            let mut old: Vec<Option<Instruction>> = block.instructions.drain(..).map(Some).collect();
            block.instructions.extend(scheduled.slots.iter().filter_map(|slot| old[slot.instruction as usize].take()));
        }
    }

    fn new_value(&mut self, like: ValueId, suffix: &str) -> ValueId {
        let value = self.program[like].clone();
        let name = format!("{}_{suffix}_{}", value.name, self.names);
        self.names += 1;
        self.program.values.push(Value { name, ..value });
        ValueId(self.program.values.len() as u32 - 1)
    }

    /// Takes values out of their registers where the evictions say; program order must be the order that they refer to.
    ///
    /// # Errors
    /// The machine has no row to store or load a register of that file.
    pub fn evict(&mut self, machine: &Machine, evictions: &[Eviction]) -> Result<(), NoSuchRow> {
        let mut cuts: BTreeMap<ValueId, BTreeMap<BlockId, Vec<u32>>> = BTreeMap::new();
        for eviction in evictions {
            cuts.entry(eviction.value).or_default().entry(eviction.block).or_default().push(eviction.slot);
        }
        let mut insertions = Insertions::new();
        let mut indices: BTreeMap<(BlockId, RegionId), ValueId> = BTreeMap::new();
        for (value, cuts) in cuts {
            let definition = self.definition(machine, value);
            if self.program[value].rematerializable && !self.homes.contains_key(&value) && !self.origins.contains_key(&value) {
                let (block, index) = definition;
                let origin = index.checked_sub(1).map(|index| self.program[block].instructions[index as usize].clone());
                if let Some(origin) = origin
                    .filter(|origin| origin.writes(machine).count() == 1 && origin.writes(machine).any(|(_, written)| written == value))
                {
                    self.origins.insert(value, origin);
                }
            }
            if !self.origins.contains_key(&value) && !self.homes.contains_key(&value) {
                let home = self.frame_slot(machine, value);
                self.homes.insert(value, home);
                self.spills += 1;
                let file = self.program[value].file;
                let row = frame_store(machine, file).ok_or(NoSuchRow { file, purpose: "store to the frame" })?;
                let access = self.frame_access(machine, row, value, home, definition.0, &mut indices);
                insertions.entry(definition).or_default().extend(access);
            }
            for block in 0..self.program.blocks.len() as u32 {
                let block = BlockId(block);
                let mut sections = cuts.get(&block).cloned().unwrap_or_default();
                if block != definition.0 && self.follows_eviction(block, definition.0, cuts.keys().copied()) {
                    sections.insert(0, 0);
                }
                if !sections.is_empty() {
                    self.reload_sections(machine, value, block, &sections, &mut insertions, &mut indices)?;
                }
            }
        }
        self.insert(insertions);
        Ok(())
    }

    /// The place after which a value exists: a block and the index of the instruction after its definition.
    fn definition(&self, machine: &Machine, value: ValueId) -> (BlockId, u32) {
        for (block, content) in self.program.blocks.iter().enumerate() {
            let defined =
                content.instructions.iter().position(|instruction| instruction.writes(machine).any(|(_, written)| written == value));
            if let Some(index) = defined {
                return (BlockId(block as u32), index as u32 + 1);
            }
        }
        for one in &self.program.loops {
            if one.carried.iter().any(|carried| carried.current == value) {
                return (one.first, 0);
            }
            if one.carried.iter().any(|carried| carried.last == value) {
                return (BlockId(one.last.0 + 1), 0);
            }
        }
        (BlockId(0), 0)
    }

    /// Whether the value may have left its register before this block: in an earlier one, or in an earlier round of a loop that does not make it.
    fn follows_eviction(&self, block: BlockId, definition: BlockId, mut evicting: impl Iterator<Item = BlockId>) -> bool {
        evicting.any(|other| {
            other < block || self.program.loops.iter().any(|one| one.contains(other) && one.contains(block) && !one.contains(definition))
        })
    }

    /// Gives the reads of `value` in each section of a block a value of their own, made before the first of them.
    fn reload_sections(
        &mut self,
        machine: &Machine,
        value: ValueId,
        block: BlockId,
        sections: &[u32],
        insertions: &mut Insertions,
        indices: &mut BTreeMap<(BlockId, RegionId), ValueId>,
    ) -> Result<(), NoSuchRow> {
        let length = self.program[block].instructions.len() as u32;
        let mut sections = sections.to_vec();
        sections.sort_unstable();
        sections.dedup();
        for (index, &start) in sections.iter().enumerate() {
            let end = sections.get(index + 1).copied().unwrap_or(length);
            let reads = |instruction: &Instruction| instruction.reads(machine).any(|(_, read)| read == value);
            let first = (start..end).find(|&index| reads(&self.program[block].instructions[index as usize]));
            let carried_on = end == length && self.is_carried_out(block, value);
            if first.is_none() && !carried_on {
                continue;
            }
            let place = first.unwrap_or_else(|| self.before_branch(machine, block));
            let fresh = self.reload(machine, value, block, place, insertions, indices)?;
            for index in place..end {
                let instruction = &mut self.program.blocks[block.0 as usize].instructions[index as usize];
                let declared = &machine[instruction.row].operands;
                for (operand, _) in instruction.operands.iter_mut().zip(declared).filter(|(_, declared)| declared.read) {
                    if *operand == Operand::Value(value) {
                        *operand = Operand::Value(fresh);
                    }
                }
            }
            if carried_on {
                self.replace_carried_out(block, value, fresh);
            }
        }
        Ok(())
    }

    fn reload(
        &mut self,
        machine: &Machine,
        value: ValueId,
        block: BlockId,
        place: u32,
        insertions: &mut Insertions,
        indices: &mut BTreeMap<(BlockId, RegionId), ValueId>,
    ) -> Result<ValueId, NoSuchRow> {
        if let Some(origin) = self.origins.get(&value).cloned() {
            let fresh = self.new_value(value, "again");
            let mut again = origin.clone();
            let declared = &machine[again.row].operands;
            for (operand, _) in again.operands.iter_mut().zip(declared).filter(|(_, declared)| declared.written) {
                if matches!(operand, Operand::Value(_)) {
                    *operand = Operand::Value(fresh);
                }
            }
            self.origins.insert(fresh, again.clone());
            self.rematerialized += 1;
            insertions.entry((block, place)).or_default().push(again);
            return Ok(fresh);
        }
        let file = self.program[value].file;
        let row = frame_load(machine, file).ok_or(NoSuchRow { file, purpose: "load from the frame" })?;
        let home = self.homes[&value];
        let fresh = self.new_value(value, "reload");
        self.program.values[fresh.0 as usize].rematerializable = false;
        self.homes.insert(fresh, home);
        let access = self.frame_access(machine, row, fresh, home, block, indices);
        insertions.entry((block, place)).or_default().extend(access);
        Ok(fresh)
    }

    fn is_carried_out(&self, block: BlockId, value: ValueId) -> bool {
        self.program.loops.iter().any(|one| {
            let enters = block.0 + 1 == one.first.0;
            one.carried.iter().any(|carried| enters && carried.initial == value || block == one.last && carried.next == value)
        })
    }

    fn replace_carried_out(&mut self, block: BlockId, value: ValueId, fresh: ValueId) {
        for one in &mut self.program.loops {
            let enters = block.0 + 1 == one.first.0;
            for carried in &mut one.carried {
                if enters && carried.initial == value {
                    carried.initial = fresh;
                }
                if block == one.last && carried.next == value {
                    carried.next = fresh;
                }
            }
        }
    }

    /// Index of the branch that ends a block, or its length.
    fn before_branch(&self, machine: &Machine, block: BlockId) -> u32 {
        let instructions = &self.program[block].instructions;
        let branches = instructions.last().is_some_and(|last| machine[last.row].control.is_some());
        instructions.len() as u32 - u32::from(branches)
    }

    fn frame_slot(&mut self, machine: &Machine, value: ValueId) -> RegionId {
        let described = &self.program[value];
        let bytes = machine[described.file].width_bits.div_ceil(8);
        let region = Region {
            name: format!("{}_slot", described.name),
            kind: RegionKind::Frame,
            bytes: Some(u64::from(bytes)),
            align_bytes: bytes.next_power_of_two(),
            written: true,
            secret: described.secret,
            may_alias: Vec::new(),
            contents: None,
        };
        self.program.regions.push(region);
        self.program.layouts.push(Layout::Bytes);
        RegionId(self.program.regions.len() as u32 - 1)
    }

    fn stack_pointer(&mut self, machine: &Machine) -> ValueId {
        if let Some(value) = self.program.stack_pointer {
            return value;
        }
        // Rows with a frame offset are only found where there is a calling convention.
        let file = machine.abi.as_ref().map_or(FileId(0), |abi| abi.integer_file);
        let value = ValueId(self.program.values.len() as u32);
        self.program.values.push(Value { file, tuple: 1, name: "stack_pointer".to_owned(), secret: false, rematerializable: false });
        self.program.stack_pointer = Some(value);
        value
    }

    /// The instructions that store or load `data`; an index register is made once per block and slot.
    fn frame_access(
        &mut self,
        machine: &Machine,
        frame_row: FrameRow,
        data: ValueId,
        home: RegionId,
        block: BlockId,
        indices: &mut BTreeMap<(BlockId, RegionId), ValueId>,
    ) -> Vec<Instruction> {
        let mut added = Vec::new();
        let offset = match frame_row.offset {
            FrameOffsetForm::Immediate { operand } => (operand, Operand::FrameOffset(home, 0)),
            FrameOffsetForm::Register { operand, constant } => {
                let known = indices.get(&(block, home)).copied();
                let index = known.unwrap_or_else(|| {
                    let file = crate::dependence::operand_file(&machine[constant.row].operands[constant.result]).unwrap_or(FileId(0));
                    let value = ValueId(self.program.values.len() as u32);
                    let name = format!("{}_offset_{}", self.program[home].name, self.names);
                    self.names += 1;
                    self.program.values.push(Value { file, tuple: 1, name, secret: false, rematerializable: true });
                    value
                });
                if known.is_none() {
                    let mut operands = vec![Operand::Unused; machine[constant.row].operands.len()];
                    operands[constant.result] = Operand::Value(index);
                    operands[constant.immediate] = Operand::FrameOffset(home, 0);
                    if let Some(zero) = constant.zero {
                        operands[zero] = Operand::Zero;
                    }
                    added.push(Instruction { row: constant.row, operands, memory: None, span: None });
                }
                (operand, Operand::Value(index))
            }
        };
        let row = &machine[frame_row.row];
        let mut operands = vec![Operand::Unused; row.operands.len()];
        operands[frame_row.data] = Operand::Value(data);
        operands[frame_row.base] = Operand::Value(self.stack_pointer(machine));
        operands[offset.0] = offset.1;
        let write = row.operands[frame_row.data].read;
        let high = self.program[home].bytes.unwrap_or(0);
        let memory = Some(MemoryAccess { region: home, low: 0, high, read: !write, write });
        added.push(Instruction { row: frame_row.row, operands, memory, span: None });
        added
    }

    fn insert(&mut self, insertions: Insertions) {
        for (block, content) in self.program.blocks.iter_mut().enumerate() {
            let block = BlockId(block as u32);
            if insertions.range((block, 0)..=(block, u32::MAX)).next().is_none() {
                continue;
            }
            let old = std::mem::take(&mut content.instructions);
            let length = old.len() as u32;
            for (index, instruction) in old.into_iter().enumerate() {
                content.instructions.extend(insertions.get(&(block, index as u32)).into_iter().flatten().cloned());
                content.instructions.push(instruction);
            }
            content.instructions.extend(insertions.get(&(block, length)).into_iter().flatten().cloned());
        }
    }

    /// Adds copies where values that should share a register cannot.
    ///
    /// # Errors
    /// The machine has no row that copies a register of that file.
    pub fn separate(&mut self, machine: &Machine, conflicts: &[SharedRegister]) -> Result<(), NoSuchRow> {
        let mut insertions = Insertions::new();
        for &conflict in conflicts {
            match conflict {
                SharedRegister::Tied { block, instruction, operand } => {
                    let Operand::Value(value) = self.program[block].instructions[instruction as usize].operands[operand as usize] else {
                        continue;
                    };
                    let fresh = self.copy(machine, value, (block, instruction), &mut insertions)?;
                    self.program.blocks[block.0 as usize].instructions[instruction as usize].operands[operand as usize] =
                        Operand::Value(fresh);
                }
                SharedRegister::Initial { lap, carried } => {
                    if self.program.loops[lap as usize].first.0 == 0 {
                        self.add_entry_block();
                        insertions = insertions.into_iter().map(|((block, index), list)| ((BlockId(block.0 + 1), index), list)).collect();
                    }
                    let one = &self.program.loops[lap as usize];
                    let block = BlockId(one.first.0 - 1);
                    let initial = one.carried[carried as usize].initial;
                    let place = (block, self.before_branch(machine, block));
                    let fresh = self.copy(machine, initial, place, &mut insertions)?;
                    self.program.loops[lap as usize].carried[carried as usize].initial = fresh;
                }
                SharedRegister::Next { lap, carried } => {
                    let one = &self.program.loops[lap as usize];
                    let (first, last) = (one.first, one.last);
                    let values = one.carried[carried as usize];
                    if !self.copied.contains(&values.next) {
                        let place = (last, self.before_branch(machine, last));
                        let fresh = self.copy(machine, values.next, place, &mut insertions)?;
                        self.program.loops[lap as usize].carried[carried as usize].next = fresh;
                        continue;
                    }
                    // The copy at the end still meets readers of `current`: let them read a copy made at the head.
                    let fresh = self.copy(machine, values.current, (first, 0), &mut insertions)?;
                    for block in first.0..=last.0 {
                        for instruction in &mut self.program.blocks[block as usize].instructions {
                            let declared = &machine[instruction.row].operands;
                            for (operand, _) in instruction.operands.iter_mut().zip(declared).filter(|(_, declared)| declared.read) {
                                if *operand == Operand::Value(values.current) {
                                    *operand = Operand::Value(fresh);
                                }
                            }
                        }
                    }
                    for one in &mut self.program.loops {
                        let inside = first <= one.first && one.last <= last;
                        for other in &mut one.carried {
                            if inside && other.next == values.current {
                                other.next = fresh;
                            }
                        }
                    }
                }
            }
        }
        self.insert(insertions);
        Ok(())
    }

    fn copy(
        &mut self,
        machine: &Machine,
        value: ValueId,
        place: (BlockId, u32),
        insertions: &mut Insertions,
    ) -> Result<ValueId, NoSuchRow> {
        let file = self.program[value].file;
        let row = register_copy(machine, file).ok_or(NoSuchRow { file, purpose: "copy a register" })?;
        let fresh = self.new_value(value, "copy");
        self.program.values[fresh.0 as usize].rematerializable = false;
        let mut operands = vec![Operand::Unused; machine[row.row].operands.len()];
        operands[row.result] = Operand::Value(fresh);
        for &source in &row.sources {
            operands[source] = Operand::Value(value);
        }
        insertions.entry(place).or_default().push(Instruction { row: row.row, operands, memory: None, span: None });
        self.copied.insert(fresh);
        self.copies += 1;
        Ok(fresh)
    }

    /// An empty block before the first one, so that there is a place before a loop that begins the program.
    fn add_entry_block(&mut self) {
        self.program.blocks.insert(0, crate::program::Block::default());
        for one in &mut self.program.loops {
            one.first.0 += 1;
            one.last.0 += 1;
        }
        for operand in
            self.program.blocks.iter_mut().flat_map(|block| &mut block.instructions).flat_map(|instruction| &mut instruction.operands)
        {
            if let Operand::Block(target) = operand {
                target.0 += 1;
            }
        }
    }
}
