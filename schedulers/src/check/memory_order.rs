//! Rule *memory*: accesses that may touch a common byte, one of them writing, keep their program order inside a block (blocks keep theirs anyway).

use super::Violation;
use crate::machine::Machine;
use crate::program::{MemoryAccess, Program, RegionId};
use crate::schedule::Schedule;
use std::collections::BTreeMap;

/// Accesses are compared in granules of this many bytes first, so that long straight-line kernels cost little; exact ranges decide.
const GRANULE_BYTES: u64 = 16;
/// A wider access is compared with everything in its region.
const GRANULES_LISTED: u64 = 64;

pub(super) fn check(machine: &Machine, program: &Program, schedule: &Schedule, violations: &mut Vec<Violation>) {
    for (number, block) in program.blocks.iter().enumerate() {
        let mut position = vec![0; block.instructions.len()];
        for (place, slot) in schedule.blocks[number].slots.iter().enumerate() {
            position[slot.instruction as usize] = place;
        }
        let accesses: Vec<(usize, &MemoryAccess)> = block
            .instructions
            .iter()
            .enumerate()
            .filter_map(|(index, instruction)| instruction.memory.as_ref().map(|access| (index, access)))
            .collect();
        let mut buckets: BTreeMap<(RegionId, u64), Vec<usize>> = BTreeMap::new();
        let mut wide: Vec<usize> = Vec::new();
        for (current, (index, access)) in accesses.iter().enumerate() {
            let mut earlier: Vec<usize> = wide.clone();
            let granules = access.low / GRANULE_BYTES..access.high.div_ceil(GRANULE_BYTES);
            let aliased = !program.regions[access.region.0 as usize].may_alias.is_empty();
            if aliased || granules.end - granules.start > GRANULES_LISTED {
                earlier = (0..current).collect();
                wide.push(current);
            } else {
                for granule in granules {
                    let bucket = buckets.entry((access.region, granule)).or_default();
                    earlier.extend(bucket.iter().copied());
                    bucket.push(current);
                }
            }
            for other in earlier {
                let (before, first) = accesses[other];
                if conflict(program, first, access) && position[before] >= position[*index] {
                    let text = format!(
                        "block {number}: instruction {index} ({}) was moved before instruction {before} ({}), and both touch `{}`",
                        machine[block.instructions[*index].row].name,
                        machine[block.instructions[before].row].name,
                        program.regions[access.region.0 as usize].name
                    );
                    violations.push(Violation { rule: "memory", instruction: None, text });
                }
            }
        }
    }
}

fn conflict(program: &Program, a: &MemoryAccess, b: &MemoryAccess) -> bool {
    if !(a.write || b.write) {
        return false;
    }
    if a.region == b.region {
        return a.low < b.high && b.low < a.high;
    }
    let regions = &program.regions;
    regions[a.region.0 as usize].may_alias.contains(&b.region) || regions[b.region.0 as usize].may_alias.contains(&a.region)
}
