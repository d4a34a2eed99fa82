//! Which values should leave their registers where more are live than there are: the ones whose next use is farthest (Belady).

use crate::allocation::Eviction;
use crate::liveness::{Liveness, ValueSet};
use crate::machine::Machine;
use crate::program::{BlockId, Program, ValueId};
use crate::schedule::Schedule;
use std::collections::BTreeSet;

/// A value that can be recomputed is worth evicting at this fraction of the distance of one that has to be stored.
const RECOMPUTE_ADVANTAGE: u64 = 2;

/// What to evict so that no more registers than `limits` are held in any file, walking the schedule; in its order.
pub fn evictions(
    program: &Program,
    machine: &Machine,
    schedule: &Schedule,
    liveness: &Liveness,
    limits: &[Option<u32>],
    unspillable: &[bool],
) -> Vec<Eviction> {
    let mut found = Vec::new();
    for block in 0..program.blocks.len() {
        BlockWalk::new(program, machine, schedule, liveness, limits, unspillable, block).run(&mut found);
    }
    found
}

struct BlockWalk<'a> {
    program: &'a Program,
    machine: &'a Machine,
    schedule: &'a Schedule,
    liveness: &'a Liveness,
    limits: &'a [Option<u32>],
    unspillable: &'a [bool],
    block: usize,
    /// Slots that read each value, last first, so that the next one is at the end.
    uses: Vec<Vec<u32>>,
    /// Values in registers.
    resident: BTreeSet<ValueId>,
    held: Vec<u32>,
    evicted: ValueSet,
}

impl<'a> BlockWalk<'a> {
    fn new(
        program: &'a Program,
        machine: &'a Machine,
        schedule: &'a Schedule,
        liveness: &'a Liveness,
        limits: &'a [Option<u32>],
        unspillable: &'a [bool],
        block: usize,
    ) -> Self {
        let mut uses = vec![Vec::new(); program.values.len()];
        for (index, slot) in schedule.blocks[block].slots.iter().enumerate().rev() {
            for (_, value) in program.blocks[block].instructions[slot.instruction as usize].reads(machine) {
                if uses[value.0 as usize].last() != Some(&(index as u32)) {
                    uses[value.0 as usize].push(index as u32);
                }
            }
        }
        let mut walk = Self {
            program,
            machine,
            schedule,
            liveness,
            limits,
            unspillable,
            block,
            uses,
            resident: BTreeSet::new(),
            held: vec![0; machine.register_files.len()],
            evicted: ValueSet::new(program.values.len()),
        };
        let entry = program.entry_values().filter(|value| block == 0 && !walk.uses[value.0 as usize].is_empty());
        for value in liveness.live_in[block].iter().chain(entry.collect::<Vec<_>>()) {
            walk.enter(value);
        }
        walk
    }

    fn enter(&mut self, value: ValueId) {
        if self.resident.insert(value) {
            self.held[self.program[value].file.0 as usize] += self.program[value].tuple;
        }
    }

    fn leave(&mut self, value: ValueId) {
        if self.resident.remove(&value) {
            self.held[self.program[value].file.0 as usize] -= self.program[value].tuple;
        }
    }

    fn run(mut self, found: &mut Vec<Eviction>) {
        self.make_room(0, &[], found);
        let slots = &self.schedule.blocks[self.block].slots;
        for (index, slot) in slots.iter().enumerate() {
            let index = index as u32;
            let instruction = &self.program.blocks[self.block].instructions[slot.instruction as usize];
            let mut busy: Vec<ValueId> = instruction.reads(self.machine).map(|(_, value)| value).collect();
            for &value in &busy {
                self.evicted.remove(value);
                self.enter(value);
            }
            self.make_room(index, &busy, found);
            let early = self.machine[instruction.row].operands.iter().any(|operand| operand.early_clobber);
            if !early {
                self.release(&busy, index);
            }
            let written: Vec<ValueId> = instruction.writes(self.machine).map(|(_, value)| value).collect();
            for &value in &written {
                self.enter(value);
            }
            // Operands that are still needed may leave once they have been read.
            let protected = if early {
                busy.extend(&written);
                &busy
            } else {
                &written
            };
            self.make_room(index + 1, protected, found);
            self.release(&busy, index);
            self.release(&written, index);
        }
    }

    /// Values that nothing reads any more give their registers back.
    fn release(&mut self, values: &[ValueId], index: u32) {
        for &value in values {
            let uses = &mut self.uses[value.0 as usize];
            while uses.last().is_some_and(|next| *next <= index) {
                uses.pop();
            }
            if uses.is_empty() && !self.liveness.live_out[self.block].contains(value) {
                self.leave(value);
            }
        }
    }

    fn make_room(&mut self, slot: u32, protected: &[ValueId], found: &mut Vec<Eviction>) {
        for file in 0..self.limits.len() {
            while self.limits[file].is_some_and(|limit| self.held[file] > limit) {
                let candidates = self.resident.iter().copied().filter(|value| {
                    self.program[*value].file.0 as usize == file && !self.unspillable[value.0 as usize] && !protected.contains(value)
                });
                let Some(victim) = candidates.max_by_key(|value| (self.worth(*value, slot), std::cmp::Reverse(*value))) else { break };
                self.leave(victim);
                self.evicted.insert(victim);
                found.push(Eviction { value: victim, block: BlockId(self.block as u32), slot });
            }
        }
    }

    fn worth(&self, value: ValueId, slot: u32) -> u64 {
        let next = self.uses[value.0 as usize].iter().rev().find(|next| **next >= slot);
        let distance = match next {
            Some(next) => u64::from(*next - slot),
            None => (self.schedule.blocks[self.block].slots.len() as u64).saturating_sub(u64::from(slot)) + self.distance_after(value),
        };
        if self.program[value].rematerializable { distance * RECOMPUTE_ADVANTAGE } else { distance }
    }

    /// Instructions from the end of the block to the next read of the value, once around the innermost loop before what follows it.
    fn distance_after(&self, value: ValueId) -> u64 {
        let around = self.program.loops.iter().rev().find(|one| one.contains(BlockId(self.block as u32)));
        let blocks = self.program.blocks.len();
        let path = match around {
            Some(one) => {
                let (first, last) = (one.first.0 as usize, one.last.0 as usize);
                (self.block + 1..=last).chain(first..=self.block).chain(last + 1..blocks).collect::<Vec<_>>()
            }
            None => (self.block + 1..blocks).collect(),
        };
        let mut distance = 0;
        for block in path {
            let instructions = &self.program.blocks[block].instructions;
            let read = instructions.iter().position(|instruction| instruction.reads(self.machine).any(|(_, read)| read == value));
            if let Some(position) = read {
                return distance + position as u64;
            }
            distance += instructions.len() as u64;
        }
        distance
    }
}
