//! Which values are live where blocks begin and end.
//!
//! Carried values change their name on the edges of a loop: `initial` becomes `current` on entry, `next` becomes `current` on the way back
//! and `last` on the way out; where a loop may run zero times, `initial` becomes `last` on the jump around it.

use crate::machine::{ControlKind, Machine};
use crate::program::{BlockId, Operand, Program, ValueId};

/// A set of values as bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueSet {
    words: Vec<u64>,
}

impl ValueSet {
    /// The empty set over this many values.
    pub fn new(values: usize) -> Self {
        Self { words: vec![0; values.div_ceil(64)] }
    }

    /// Whether the value is in it.
    pub fn contains(&self, value: ValueId) -> bool {
        self.words[value.0 as usize / 64] >> (value.0 % 64) & 1 == 1
    }

    /// Puts the value in.
    pub fn insert(&mut self, value: ValueId) {
        self.words[value.0 as usize / 64] |= 1 << (value.0 % 64);
    }

    /// Takes the value out; whether it was in.
    pub fn remove(&mut self, value: ValueId) -> bool {
        let was = self.contains(value);
        self.words[value.0 as usize / 64] &= !(1 << (value.0 % 64));
        was
    }

    /// The values in it, by number.
    pub fn iter(&self) -> impl Iterator<Item = ValueId> + '_ {
        self.words
            .iter()
            .enumerate()
            .flat_map(|(index, &word)| (0..64).filter(move |bit| word >> bit & 1 == 1).map(move |bit| ValueId(index as u32 * 64 + bit)))
    }

    fn unite(&mut self, other: &Self) -> bool {
        let mut grown = false;
        for (word, other) in self.words.iter_mut().zip(&other.words) {
            grown |= *other & !*word != 0;
            *word |= other;
        }
        grown
    }
}

/// Values live at the borders of each block, parallel to the program's blocks.
#[derive(Clone, Debug)]
pub struct Liveness {
    /// At the start, `current` of carried values included.
    pub live_in: Vec<ValueSet>,
    /// At the end, `next` of carried values included.
    pub live_out: Vec<ValueSet>,
}

/// Blocks that may follow this one.
pub fn successors(program: &Program, machine: &Machine, block: usize) -> Vec<usize> {
    let mut found = Vec::new();
    let mut falls_through = true;
    if let Some(last) = program.blocks[block].instructions.last()
        && let Some(control) = machine[last.row].control
    {
        found.extend(last.operands.iter().filter_map(|operand| match operand {
            Operand::Block(target) => Some(target.0 as usize),
            _ => None,
        }));
        falls_through = !matches!(control, ControlKind::Jump | ControlKind::Return);
    }
    if falls_through {
        found.push(block + 1);
    }
    found.retain(|&target| target < program.blocks.len());
    found.sort_unstable();
    found.dedup();
    found
}

/// The liveness of every value.
pub fn liveness(program: &Program, machine: &Machine) -> Liveness {
    let values = program.values.len();
    let blocks = program.blocks.len();
    let mut exposed = vec![ValueSet::new(values); blocks];
    let mut defined = vec![ValueSet::new(values); blocks];
    for (index, block) in program.blocks.iter().enumerate() {
        for instruction in &block.instructions {
            for (_, value) in instruction.reads(machine) {
                if !defined[index].contains(value) {
                    exposed[index].insert(value);
                }
            }
            for (_, value) in instruction.writes(machine) {
                defined[index].insert(value);
            }
        }
    }
    let following: Vec<Vec<usize>> = (0..blocks).map(|block| successors(program, machine, block)).collect();
    let mut result = Liveness { live_in: exposed, live_out: vec![ValueSet::new(values); blocks] };
    let mut changed = true;
    while changed {
        changed = false;
        for block in (0..blocks).rev() {
            for &target in &following[block] {
                let arriving = renamed_on_edge(program, result.live_in[target].clone(), block, target);
                result.live_out[block].unite(&arriving);
            }
            let mut through = result.live_out[block].clone();
            for (word, defined) in through.words.iter_mut().zip(&defined[block].words) {
                *word &= !defined;
            }
            changed |= result.live_in[block].unite(&through);
        }
    }
    result
}

/// What is live at the start of `target` under the names that it has at the end of `block`.
fn renamed_on_edge(program: &Program, mut live: ValueSet, block: usize, target: usize) -> ValueSet {
    let (block, target) = (BlockId(block as u32), BlockId(target as u32));
    for one in program.loops.iter().filter(|one| !one.contains(target) && (one.contains(block) || block < one.first && target > one.last)) {
        for carried in &one.carried {
            if live.remove(carried.last) {
                live.insert(if one.contains(block) { carried.next } else { carried.initial });
            }
        }
    }
    for one in program.loops.iter().rev().filter(|one| one.first == target) {
        for carried in &one.carried {
            if live.remove(carried.current) {
                live.insert(if one.contains(block) { carried.next } else { carried.initial });
            }
        }
    }
    live
}
