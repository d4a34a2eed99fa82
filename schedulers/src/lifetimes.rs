//! When each value holds its register, in points along the schedule.
//!
//! Every slot has two points: at the first its operands are read, at the second its results are written. On a machine with bundles all slots of
//! one cycle share their points. A block has one more place at its start, so that what is live there is seen to be.

use crate::dependence::{latency_is_exposed, latency_of};
use crate::liveness::Liveness;
use crate::machine::{Enforcement, HazardKind, Machine};
use crate::program::{Program, ValueId};
use crate::schedule::Schedule;

/// Half-open range of points.
pub type Segment = (u32, u32);

/// Lifetimes of all values.
#[derive(Clone, Debug)]
pub struct Lifetimes {
    /// Disjoint segments in order, parallel to the program's values; empty where nothing defines the value.
    pub segments: Vec<Vec<Segment>>,
    /// First point of each block, and the point after the last block.
    pub block_start: Vec<u32>,
}

/// The lifetimes that a schedule gives.
pub fn lifetimes(program: &Program, machine: &Machine, schedule: &Schedule, liveness: &Liveness) -> Lifetimes {
    let bundled = machine.hazard(HazardKind::BundleShape).is_some_and(|hazard| hazard.enforcement == Enforcement::Must);
    let exposed = latency_is_exposed(machine);
    let mut segments: Vec<Vec<Segment>> = vec![Vec::new(); program.values.len()];
    let mut block_start = Vec::with_capacity(program.blocks.len() + 1);
    let mut start = 0_u32;
    let mut from: Vec<Option<u32>> = vec![None; program.values.len()];
    let mut until: Vec<u32> = vec![0; program.values.len()];
    for (index, (block, scheduled)) in program.blocks.iter().zip(&schedule.blocks).enumerate() {
        block_start.push(start);
        let mut touched: Vec<ValueId> = Vec::new();
        let mut point = start;
        let mut points = Vec::with_capacity(scheduled.slots.len());
        let mut previous_cycle = None;
        for slot in &scheduled.slots {
            if !bundled || previous_cycle != Some(slot.cycle) {
                point += 2;
            }
            previous_cycle = Some(slot.cycle);
            points.push(point);
        }
        let end = point + 2;
        let mut open = |value: ValueId, at: u32, from: &mut Vec<Option<u32>>, until: &mut Vec<u32>| {
            if from[value.0 as usize].is_none() {
                from[value.0 as usize] = Some(at);
                until[value.0 as usize] = at + 1;
                touched.push(value);
            }
        };
        for value in liveness.live_in[index].iter() {
            open(value, start, &mut from, &mut until);
        }
        if index == 0 {
            for value in program.entry_values() {
                open(value, start, &mut from, &mut until);
            }
        }
        for (slot, &point) in scheduled.slots.iter().zip(&points) {
            let instruction = &block.instructions[slot.instruction as usize];
            for (_, value) in instruction.reads(machine) {
                until[value.0 as usize] = until[value.0 as usize].max(point + 1);
            }
            for (operand, value) in instruction.writes(machine) {
                let early = machine[instruction.row].operands[operand].early_clobber;
                open(value, if early { point } else { point + 1 }, &mut from, &mut until);
                until[value.0 as usize] = until[value.0 as usize].max(point + 2);
                if exposed {
                    // Nothing else may stand in the register while the result is under way.
                    let lands = slot.cycle + latency_of(machine, instruction, operand);
                    let landing =
                        scheduled.slots.iter().zip(&points).find(|(other, _)| other.cycle >= lands).map_or(end, |(_, point)| *point);
                    until[value.0 as usize] = until[value.0 as usize].max(landing);
                }
            }
        }
        for value in liveness.live_out[index].iter() {
            until[value.0 as usize] = end;
        }
        for value in touched {
            let Some(begin) = from[value.0 as usize].take() else { continue };
            let list = &mut segments[value.0 as usize];
            match list.last_mut() {
                Some(last) if last.1 == begin => last.1 = until[value.0 as usize],
                _ => list.push((begin, until[value.0 as usize])),
            }
        }
        start = end;
    }
    block_start.push(start);
    Lifetimes { segments, block_start }
}

/// Whether two lists of segments in order have a point in common.
pub fn overlap(a: &[Segment], b: &[Segment]) -> bool {
    let (mut left, mut right) = (0, 0);
    while left < a.len() && right < b.len() {
        if a[left].0 < b[right].1 && b[right].0 < a[left].1 {
            return true;
        }
        if a[left].1 <= b[right].1 { left += 1 } else { right += 1 }
    }
    false
}

/// The union of two lists of segments in order.
pub fn unite(a: &[Segment], b: &[Segment]) -> Vec<Segment> {
    let mut all = [a, b].concat();
    all.sort_unstable();
    let mut united: Vec<Segment> = Vec::with_capacity(all.len());
    for segment in all {
        match united.last_mut() {
            Some(last) if segment.0 <= last.1 => last.1 = last.1.max(segment.1),
            _ => united.push(segment),
        }
    }
    united
}
