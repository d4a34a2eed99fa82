//! Lower bounds on cycles, each by name: what no order of these instructions can beat on this machine.

use crate::dependence::DependenceGraph;
use crate::machine::{FileId, Machine, UnitId};
use crate::program::{BlockId, Instruction, Loop, Program, ValueId};
use crate::schedule::Bound;
use crate::scheduling::resources::{Resources, allocatable};
use std::collections::{BTreeMap, BTreeSet};

/// The blocks that a program's figures are about: its hottest loop, or all of it.
pub fn hottest_blocks(program: &Program) -> std::ops::Range<usize> {
    let weight = |one: &Loop| {
        let rounds = enclosing(program, one).map(|outer| outer.rounds.unwrap_or(UNKNOWN_ROUNDS) as f64).product::<f64>();
        let instructions: usize = program.blocks[range(one)].iter().map(|block| block.instructions.len()).sum();
        rounds * instructions as f64
    };
    // Inner loops stand after outer ones; of equal weight the inner one is taken.
    let hottest = program.loops.iter().max_by(|a, b| weight(a).total_cmp(&weight(b)));
    hottest.map_or(0..program.blocks.len(), range)
}

/// A loop whose rounds are known at run time only counts as this many when the hottest one is looked for.
const UNKNOWN_ROUNDS: u64 = 64;

fn enclosing<'a>(program: &'a Program, inner: &'a Loop) -> impl Iterator<Item = &'a Loop> {
    program.loops.iter().filter(|outer| outer.first <= inner.first && inner.last <= outer.last)
}

fn range(one: &Loop) -> std::ops::Range<usize> {
    one.first.0 as usize..one.last.0 as usize + 1
}

/// Bounds of these blocks executed once, greatest first; of equal ones in the order in which they are listed here: units, dispatch, queues,
/// completion, renames, critical path, recurrences, registers.
pub fn bounds(program: &Program, machine: &Machine, blocks: std::ops::Range<usize>, inline_assembly: bool) -> Vec<Bound> {
    let instructions: Vec<&Instruction> = program.blocks[blocks.clone()].iter().flat_map(|block| &block.instructions).collect();
    let resources = Resources::of(machine);
    let mut found = Vec::new();
    let mut bound = |name: String, cycles: f64| found.push(Bound { name, cycles });
    unit_bounds(machine, &instructions, &mut bound);
    let count = instructions.len() as f64;
    if let Some(width) = resources.width {
        bound(if resources.bundled { "bundle width" } else { "dispatch" }.to_owned(), count / f64::from(width));
    }
    for (index, queue) in machine.queues.iter().enumerate() {
        let fed = instructions.iter().filter(|instruction| {
            let units = &machine[instruction.row].timing.units;
            units.first().is_some_and(|unit| resources.queue_of_unit[unit.0 as usize] == Some(index))
        });
        let width = f64::from(queue.dispatch.min(queue.issue).max(1));
        bound(format!("queue {}", queue.name), fed.count() as f64 / width);
    }
    if let Some(ports) = resources.memory_ports {
        let accesses = instructions.iter().filter(|instruction| instruction.memory.is_some()).count();
        bound("memory ports".to_owned(), accesses as f64 / f64::from(ports));
    }
    // From dispatch to the cycle in which the entry is free again.
    let residence = |instruction: &Instruction| f64::from(resources.residence_cycles(machine, instruction.row) + resources.free_delay);
    if let Some(entries) = resources.completion_entries {
        let taken: f64 = instructions.iter().map(|instruction| residence(instruction)).sum();
        bound("completion queue".to_owned(), taken / f64::from(entries));
    }
    if let Some(width) = resources.retire_width {
        bound("retirement".to_owned(), count / f64::from(width));
    }
    for (file, renames) in resources.renames.iter().enumerate().filter_map(|(file, renames)| Some((file, (*renames)?))) {
        let taken: f64 = instructions
            .iter()
            .map(|instruction| {
                let results = instruction.writes(machine).filter(|(_, value)| program[*value].file.0 as usize == file).count();
                results as f64 * residence(instruction)
            })
            .sum();
        bound(format!("renames {}", machine.register_files[file].name), taken / f64::from(renames));
    }
    let graph = DependenceGraph::of_instructions(program, machine, &instructions);
    let heights = graph.heights(|node| machine[instructions[node].row].timing.latency_cycles.max(1));
    bound("critical path".to_owned(), f64::from(heights.iter().copied().max().unwrap_or(0)));
    recurrence_bounds(program, machine, blocks, &instructions, &graph, &mut bound);
    if resources.exposed {
        register_bounds(program, machine, &instructions, inline_assembly, &mut bound);
    }
    found.retain(|bound| bound.cycles > 0.0);
    found.sort_by(|a, b| b.cycles.total_cmp(&a.cycles));
    found
}

/// For each set of units that some row can choose from: the cycles of all rows that can go nowhere else.
fn unit_bounds(machine: &Machine, instructions: &[&Instruction], bound: &mut impl FnMut(String, f64)) {
    let mut work: BTreeMap<BTreeSet<UnitId>, u64> = BTreeMap::new();
    for instruction in instructions {
        let timing = &machine[instruction.row].timing;
        if !timing.units.is_empty() {
            *work.entry(timing.units.iter().copied().collect()).or_default() += u64::from(timing.throughput_cycles.max(1));
        }
    }
    // Unions of overlapping sets can bind too, as long as there are few sets.
    let mut sets: BTreeSet<BTreeSet<UnitId>> = work.keys().cloned().collect();
    for a in work.keys() {
        for b in work.keys() {
            if !a.is_disjoint(b) {
                sets.insert(a.union(b).copied().collect());
            }
        }
    }
    for set in sets {
        let cycles: u64 = work.iter().filter(|(units, _)| units.is_subset(&set)).map(|(_, cycles)| *cycles).sum();
        let copies: u64 = set.iter().map(|unit| u64::from(machine[*unit].copies.max(1))).sum();
        let names: Vec<&str> = set.iter().map(|unit| machine[*unit].name.as_str()).collect();
        bound(format!("unit {}", names.join("+")), cycles as f64 / copies as f64);
    }
}

/// The longest way from a carried value to its next one, for the loop that these blocks are.
fn recurrence_bounds(
    program: &Program,
    machine: &Machine,
    blocks: std::ops::Range<usize>,
    instructions: &[&Instruction],
    graph: &DependenceGraph,
    bound: &mut impl FnMut(String, f64),
) {
    let is_these = |one: &&Loop| one.first == BlockId(blocks.start as u32) && one.last.0 as usize + 1 == blocks.end;
    let Some(one) = program.loops.iter().find(is_these) else { return };
    let mut longest: Option<(u32, ValueId)> = None;
    for carried in &one.carried {
        let mut start: Vec<Option<u32>> = vec![None; instructions.len()];
        for (node, instruction) in instructions.iter().enumerate() {
            if instruction.reads(machine).any(|(_, value)| value == carried.current) {
                start[node] = Some(0);
            }
            let through = graph.predecessors(node).filter(|edge| edge.kind == crate::dependence::DependenceKind::Value);
            let reached = through.filter_map(|edge| Some(start[edge.from as usize]? + edge.latency)).max();
            start[node] = start[node].max(reached);
            for (operand, value) in instruction.writes(machine) {
                if value == carried.next
                    && let Some(start) = start[node]
                {
                    let length = start + crate::dependence::latency_of(machine, instruction, operand);
                    if longest.is_none_or(|(known, _)| length > known) {
                        longest = Some((length, carried.current));
                    }
                }
            }
        }
    }
    if let Some((cycles, value)) = longest {
        bound(format!("recurrence {}", program[value].name), f64::from(cycles));
    }
}

/// Where latencies are exposed a register is taken at least from the landing of its value to the read of it.
fn register_bounds(
    program: &Program,
    machine: &Machine,
    instructions: &[&Instruction],
    inline_assembly: bool,
    bound: &mut impl FnMut(String, f64),
) {
    let mut results = vec![0_u64; machine.register_files.len()];
    for (_, value) in instructions.iter().flat_map(|instruction| instruction.writes(machine)) {
        results[program[value].file.0 as usize] += u64::from(program[value].tuple);
    }
    for (file, results) in results.into_iter().enumerate() {
        let id = FileId(file as u16);
        if let Some(registers) = allocatable(machine, id, inline_assembly).filter(|registers| !registers.is_empty()) {
            bound(format!("registers {}", machine[id].name), results as f64 / registers.len() as f64);
        }
    }
}
