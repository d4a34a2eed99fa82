//! Several copies of a program in one function, so that each fills the gaps of the others.
//!
//! Copy 0's parameters come first. Constants, the pool and the stack pointer exist once; loops run once for all copies, which is why their
//! rounds have to be constant.

use crate::dependence::{Place, places_of_values};
use crate::machine::{ControlKind, Machine};
use crate::program::{Block, BlockId, Carried, Instruction, Operand, Program, ProgramParameterKind, RegionId, RegionKind, ValueId};
use std::collections::{BTreeMap, BTreeSet};

/// How the copies' instructions stand in the merged program order, from which schedulers start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrangement {
    /// Copy after copy: as many registers as one copy, and overlap where one ends and the next begins.
    AfterEachOther,
    /// In turns: the most overlap, and the registers of all copies.
    InTurns,
}

/// Why a program cannot be interleaved.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InterleaveError {
    /// Less than one or more than [`MOST_COPIES`].
    #[error("`{function}` cannot be interleaved {copies} times; 1 to {MOST_COPIES} copies are possible")]
    Copies {
        /// The function.
        function: String,
        /// Asked for.
        copies: u32,
    },
    /// Copies could want different numbers of rounds.
    #[error(
        "`{function}` has a loop whose rounds are known at run time only, so copies cannot share it; interleave a kernel without it, or use `map`"
    )]
    RunTimeLoop {
        /// The function.
        function: String,
    },
}

/// Most copies of a program in one function.
pub const MOST_COPIES: u32 = 16;

/// `copies` copies of a program as one, named `NAME_xN`.
///
/// # Errors
/// The number of copies, or a loop that they cannot share.
pub fn interleave(program: &Program, machine: &Machine, copies: u32, arrangement: Arrangement) -> Result<Program, InterleaveError> {
    let function = program.name.clone();
    if !(1..=MOST_COPIES).contains(&copies) {
        return Err(InterleaveError::Copies { function, copies });
    }
    if copies == 1 {
        return Ok(program.clone());
    }
    if program.loops.iter().any(|one| one.rounds.is_none()) {
        return Err(InterleaveError::RunTimeLoop { function });
    }
    let mut merged = Program { name: format!("{function}_x{copies}"), blocks: Vec::new(), ..program.clone() };
    let mut parts: Vec<Vec<Vec<Instruction>>> = vec![program.blocks.iter().map(|block| block.instructions.clone()).collect()];
    for parameter in &mut merged.parameters {
        parameter.name.push_str("_0");
    }
    for copy in 1..copies {
        parts.push(Copier::new(program, machine, &mut merged, copy).copy());
    }
    let mut copy_of: Vec<Vec<usize>> = Vec::new();
    for block in 0..program.blocks.len() {
        let branch = branch_of(machine, &parts[0][block]);
        let mut tagged: Vec<(usize, Instruction)> = Vec::new();
        let ending = parts[0][block].split_off(branch);
        for (copy, part) in parts.iter_mut().enumerate() {
            tagged.extend(part[block].drain(..).map(|instruction| (copy, instruction)));
        }
        tagged.extend(ending.into_iter().map(|instruction| (0, instruction)));
        let (tags, instructions) = tagged.into_iter().unzip();
        copy_of.push(tags);
        merged.blocks.push(Block { instructions });
    }
    let needed = remove_unneeded(&mut merged, machine);
    if arrangement == Arrangement::InTurns {
        let places = places_of_values(&merged, machine);
        let sharing = places_shared_by_copies(&merged, machine, &places);
        for (block, tags) in copy_of.iter_mut().enumerate() {
            let mut index = 0;
            tags.retain(|_| {
                index += 1;
                needed.contains(&(block, index - 1))
            });
            let turns = in_turns(&merged, machine, block, tags, copies as usize, &sharing);
            merged.blocks[block].instructions = turns;
        }
    }
    Ok(merged)
}

/// Makes the instructions of one further copy.
struct Copier<'a> {
    program: &'a Program,
    machine: &'a Machine,
    merged: &'a mut Program,
    copy: u32,
    values: BTreeMap<ValueId, ValueId>,
    regions: BTreeMap<RegionId, RegionId>,
}

impl<'a> Copier<'a> {
    fn new(program: &'a Program, machine: &'a Machine, merged: &'a mut Program, copy: u32) -> Self {
        Self { program, machine, merged, copy, values: BTreeMap::new(), regions: BTreeMap::new() }
    }

    fn copy(mut self) -> Vec<Vec<Instruction>> {
        if let Some(stack_pointer) = self.program.stack_pointer {
            self.values.insert(stack_pointer, stack_pointer);
        }
        self.share_constants();
        self.copy_regions();
        for parameter in &self.program.parameters {
            let mut parameter = parameter.clone();
            parameter.name = format!("{}_{}", parameter.name, self.copy);
            match &mut parameter.kind {
                ProgramParameterKind::Pointer { region, value } => {
                    *region = self.regions[region];
                    *value = self.value(*value);
                }
                ProgramParameterKind::Scalar { value, .. } => *value = self.value(*value),
            }
            self.merged.parameters.push(parameter);
        }
        let mut blocks = Vec::new();
        for block in &self.program.blocks {
            let mut instructions = Vec::new();
            for instruction in &block.instructions {
                let shared = instruction.writes(self.machine).any(|(_, value)| self.values.get(&value) == Some(&value));
                // Copy 0 branches for all.
                if !shared && self.machine[instruction.row].control.is_none() {
                    instructions.push(self.instruction(instruction));
                }
            }
            blocks.push(instructions);
        }
        for (index, one) in self.program.loops.iter().enumerate() {
            let by_branch: BTreeSet<ValueId> = self.written_by_branches();
            for carried in one.carried.iter().filter(|carried| !by_branch.contains(&carried.next)) {
                let carried = Carried {
                    initial: self.value(carried.initial),
                    current: self.value(carried.current),
                    next: self.value(carried.next),
                    last: self.value(carried.last),
                };
                self.merged.loops[index].carried.push(carried);
            }
        }
        blocks
    }

    fn written_by_branches(&self) -> BTreeSet<ValueId> {
        let branches = self.program.blocks.iter().flat_map(|block| &block.instructions);
        let branches = branches.filter(|instruction| self.machine[instruction.row].control.is_some());
        branches.flat_map(|instruction| instruction.writes(self.machine).map(|(_, value)| value).collect::<Vec<_>>()).collect()
    }

    /// Values that are recomputable from nothing but constants and the pool are the same in every copy.
    fn share_constants(&mut self) {
        for instruction in self.program.blocks.iter().flat_map(|block| &block.instructions) {
            // The code has one address, whatever runs in it.
            if self.machine[instruction.row].control == Some(ControlKind::CallNext) {
                self.values.extend(instruction.writes(self.machine).map(|(_, value)| (value, value)));
            }
        }
        for instruction in self.program.blocks.iter().flat_map(|block| &block.instructions) {
            let constant = instruction.writes(self.machine).all(|(_, value)| self.program[value].rematerializable)
                && instruction.reads(self.machine).all(|(_, value)| self.values.get(&value) == Some(&value))
                && instruction.memory.as_ref().is_none_or(|access| !access.write && self.program[access.region].kind == RegionKind::Pool)
                && !instruction.operands.iter().any(|operand| matches!(operand, Operand::FrameOffset(..) | Operand::Block(_)));
            if constant {
                for (_, value) in instruction.writes(self.machine) {
                    self.values.insert(value, value);
                }
            }
        }
    }

    fn copy_regions(&mut self) {
        let first = self.merged.regions.len();
        let mut copied = Vec::new();
        for (index, region) in self.program.regions.iter().enumerate() {
            let id = RegionId(index as u32);
            if region.kind == RegionKind::Pool {
                self.regions.insert(id, id);
                continue;
            }
            self.regions.insert(id, RegionId((first + copied.len()) as u32));
            copied.push(id);
        }
        for id in copied {
            let mut region = self.program[id].clone();
            region.name = format!("{}_{}", region.name, self.copy);
            if let RegionKind::Parameter { index } = &mut region.kind {
                *index += self.copy * self.program.parameters.len() as u32;
            }
            for other in &mut region.may_alias {
                *other = self.regions[other];
            }
            self.merged.regions.push(region);
            self.merged.layouts.push(self.program.layouts[id.0 as usize].clone());
        }
    }

    fn value(&mut self, value: ValueId) -> ValueId {
        *self.values.entry(value).or_insert_with(|| {
            let mut described = self.program[value].clone();
            described.name = format!("{}_x{}", described.name, self.copy);
            self.merged.values.push(described);
            ValueId(self.merged.values.len() as u32 - 1)
        })
    }

    fn instruction(&mut self, instruction: &Instruction) -> Instruction {
        let mut copied = instruction.clone();
        for operand in &mut copied.operands {
            match operand {
                Operand::Value(value) => *value = self.value(*value),
                Operand::Symbol(region, _) | Operand::FrameOffset(region, _) => *region = self.regions[region],
                Operand::Zero | Operand::Immediate(_) | Operand::Block(BlockId(_)) | Operand::Unused => {}
            }
        }
        if let Some(access) = &mut copied.memory {
            access.region = self.regions[&access.region];
        }
        copied
    }
}

/// Where a block's last branch stands; branches of further copies are gone already.
fn branch_of(machine: &Machine, instructions: &[Instruction]) -> usize {
    let branches = instructions.last().is_some_and(|last| machine[last.row].control.is_some());
    instructions.len() - usize::from(branches)
}

/// The place of each value, where more than one value of a block has it: only such values get into each other's way.
fn places_shared_by_copies(program: &Program, machine: &Machine, places: &[Option<Place>]) -> Vec<Option<Place>> {
    let mut written: BTreeMap<Place, BTreeSet<ValueId>> = BTreeMap::new();
    for (_, value) in program.blocks.iter().flat_map(|block| &block.instructions).flat_map(|instruction| instruction.writes(machine)) {
        if let Some(place) = places[value.0 as usize] {
            written.entry(place).or_default().insert(value);
        }
    }
    places.iter().map(|place| place.filter(|place| written.get(place).is_some_and(|values| values.len() > 1))).collect()
}

/// The instructions of one block with the copies advancing in equal parts. A turn does not end while a register that exists once holds
/// something that is still to be read.
fn in_turns(
    program: &Program,
    machine: &Machine,
    block: usize,
    copy_of: &[usize],
    copies: usize,
    places: &[Option<Place>],
) -> Vec<Instruction> {
    let instructions = &program.blocks[block].instructions;
    let end = branch_of(machine, instructions);
    let mut lists: Vec<Vec<usize>> = vec![Vec::new(); copies];
    for (index, &copy) in copy_of[..end].iter().enumerate() {
        lists[copy].push(index);
    }
    let held: Vec<Vec<bool>> = lists.iter().map(|list| holding(program, machine, block, list, places)).collect();
    let mut next = vec![0; copies];
    let mut merged = Vec::with_capacity(instructions.len());
    let progress = |copy: usize, next: &[usize]| (next[copy] as u64 * SCALE / lists[copy].len() as u64, copy);
    while let Some(turn) = (0..copies).filter(|&copy| next[copy] < lists[copy].len()).min_by_key(|&copy| progress(copy, &next)) {
        loop {
            merged.push(instructions[lists[turn][next[turn]]].clone());
            next[turn] += 1;
            if next[turn] == lists[turn].len() || !held[turn][next[turn] - 1] {
                break;
            }
        }
    }
    merged.extend_from_slice(&instructions[end..]);
    merged
}

/// For comparing how far copies have come.
const SCALE: u64 = 1 << 20;

/// For each instruction of one copy whether a place holds something after it that a later instruction of the copy reads, or a later block.
fn holding(program: &Program, machine: &Machine, block: usize, list: &[usize], places: &[Option<Place>]) -> Vec<bool> {
    let instructions = &program.blocks[block].instructions;
    let mut first: BTreeMap<ValueId, usize> = BTreeMap::new();
    let mut last: BTreeMap<ValueId, usize> = BTreeMap::new();
    for (position, &index) in list.iter().enumerate() {
        for (_, value) in instructions[index].writes(machine).filter(|(_, value)| places[value.0 as usize].is_some()) {
            first.insert(value, position);
        }
        for (_, value) in instructions[index].reads(machine).filter(|(_, value)| places[value.0 as usize].is_some()) {
            last.insert(value, position);
        }
    }
    let elsewhere: BTreeSet<ValueId> = program
        .blocks
        .iter()
        .enumerate()
        .filter(|(other, _)| *other != block)
        .flat_map(|(_, other)| &other.instructions)
        .flat_map(|instruction| instruction.reads(machine).map(|(_, value)| value))
        .chain(program.loops.iter().flat_map(|one| &one.carried).flat_map(|carried| [carried.initial, carried.next]))
        .collect();
    let mut held = vec![false; list.len()];
    for (&value, &from) in &first {
        let until = if elsewhere.contains(&value) { list.len() } else { last.get(&value).copied().unwrap_or(from) };
        held[from..until].fill(true);
    }
    for (value, &until) in last.iter().filter(|(value, _)| !first.contains_key(value)) {
        debug_assert!(places[value.0 as usize].is_some());
        held[..until].fill(true);
    }
    held
}

/// Takes out what only the branches of further copies needed; returns what stays, as (block, index before).
fn remove_unneeded(program: &mut Program, machine: &Machine) -> BTreeSet<(usize, usize)> {
    let mut definition: BTreeMap<ValueId, (usize, usize)> = BTreeMap::new();
    let mut needed: BTreeSet<(usize, usize)> = BTreeSet::new();
    let mut work: Vec<ValueId> = Vec::new();
    for (block, content) in program.blocks.iter().enumerate() {
        for (index, instruction) in content.instructions.iter().enumerate() {
            definition.extend(instruction.writes(machine).map(|(_, value)| (value, (block, index))));
            let acts = instruction.memory.as_ref().is_some_and(|access| access.write) || machine[instruction.row].control.is_some();
            if acts || instruction.writes(machine).next().is_none() {
                needed.insert((block, index));
                work.extend(instruction.reads(machine).map(|(_, value)| value));
            }
        }
    }
    let mut sources: BTreeMap<ValueId, Vec<ValueId>> = BTreeMap::new();
    for carried in program.loops.iter().flat_map(|one| &one.carried) {
        for value in [carried.current, carried.last] {
            sources.entry(value).or_default().extend([carried.initial, carried.next]);
        }
    }
    let mut wanted: BTreeSet<ValueId> = BTreeSet::new();
    while let Some(value) = work.pop() {
        if !wanted.insert(value) {
            continue;
        }
        work.extend(sources.get(&value).into_iter().flatten());
        if let Some(&(block, index)) = definition.get(&value)
            && needed.insert((block, index))
        {
            work.extend(program.blocks[block].instructions[index].reads(machine).map(|(_, value)| value));
        }
    }
    for (block, content) in program.blocks.iter_mut().enumerate() {
        let mut index = 0;
        content.instructions.retain(|_| {
            index += 1;
            needed.contains(&(block, index - 1))
        });
    }
    let by_branch = |value: &ValueId| definition.get(value).is_some_and(|place| needed.contains(place));
    for one in &mut program.loops {
        one.carried.retain(|carried| wanted.contains(&carried.current) || wanted.contains(&carried.last) || by_branch(&carried.next));
    }
    needed
}
