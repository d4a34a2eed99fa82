//! What must come before what in a straight line of instructions: values, registers that exist once (carry, flags, count), memory, control.
//!
//! Every edge goes forward in program order, so that program order is always one of the orders that the graph allows.
//! Shapes: node `i` is the i-th instruction given; edges are sorted by (from, to).

use crate::machine::{Enforcement, FileId, HazardKind, Machine, OperandKind, RowOperand};
use crate::program::{BlockId, Instruction, MemoryAccess, Operand, Program, RegionId, ValueId};
use std::collections::BTreeMap;

/// Why one instruction comes before another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DependenceKind {
    /// A value is made and read.
    Value,
    /// A register is read before it is written again.
    Anti,
    /// A register is written before it is written again.
    Output,
    /// Bytes of memory are touched in order.
    Memory,
    /// A branch ends the block.
    Control,
}

/// An edge: `to` starts at least `latency` cycles after `from`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Dependence {
    /// Earlier instruction.
    pub from: u32,
    /// Later instruction.
    pub to: u32,
    /// Cycles between their starts.
    pub latency: u32,
    /// Why.
    pub kind: DependenceKind,
}

/// The graph of one straight line.
#[derive(Clone, Debug)]
pub struct DependenceGraph {
    nodes: usize,
    edges: Vec<Dependence>,
    successor_start: Vec<u32>,
    predecessor_start: Vec<u32>,
    /// Indices of edges by their `to`.
    predecessor_edges: Vec<u32>,
}

/// Cycles from the start of an instruction to its result in operand `operand`.
pub fn latency_of(machine: &Machine, instruction: &Instruction, operand: usize) -> u32 {
    let timing = &machine[instruction.row].timing;
    let special = timing.latency_of.iter().find(|(number, _)| *number as usize == operand);
    special.map_or(timing.latency_cycles, |(_, cycles)| *cycles)
}

impl DependenceGraph {
    /// The graph of one block of a program.
    pub fn of_block(program: &Program, machine: &Machine, block: BlockId) -> Self {
        Self::of_instructions(program, machine, &program[block].instructions.iter().collect::<Vec<_>>())
    }

    /// The graph of these instructions of a program one after another.
    pub fn of_instructions(program: &Program, machine: &Machine, instructions: &[&Instruction]) -> Self {
        let mut builder = Builder { machine, edges: Vec::new() };
        let readers = readers_in_program(program, machine);
        builder.values(instructions, program.values.len());
        builder.places(program, instructions, &readers);
        builder.shared_registers(program, instructions);
        builder.memory(program, instructions);
        builder.control(instructions);
        Self::from_edges(instructions.len(), builder.edges)
    }

    /// The graph with these edges; of several between two nodes the longest counts.
    pub fn from_edges(nodes: usize, mut edges: Vec<Dependence>) -> Self {
        edges.sort_unstable_by_key(|edge| (edge.from, edge.to, std::cmp::Reverse(edge.latency), edge.kind));
        edges.dedup_by_key(|edge| (edge.from, edge.to));
        let starts = |end: fn(&Dependence) -> u32| {
            let mut starts = vec![0_u32; nodes + 1];
            for edge in &edges {
                starts[end(edge) as usize + 1] += 1;
            }
            for index in 0..nodes {
                starts[index + 1] += starts[index];
            }
            starts
        };
        let successor_start = starts(|edge| edge.from);
        let predecessor_start = starts(|edge| edge.to);
        let mut predecessor_edges: Vec<u32> = (0..edges.len() as u32).collect();
        predecessor_edges.sort_by_key(|&index| edges[index as usize].to);
        Self { nodes, edges, successor_start, predecessor_start, predecessor_edges }
    }

    /// Number of instructions.
    pub fn len(&self) -> usize {
        self.nodes
    }

    /// Whether there is no instruction.
    pub fn is_empty(&self) -> bool {
        self.nodes == 0
    }

    /// All edges, by (from, to).
    pub fn edges(&self) -> &[Dependence] {
        &self.edges
    }

    /// Edges to later instructions.
    pub fn successors(&self, node: usize) -> &[Dependence] {
        &self.edges[self.successor_start[node] as usize..self.successor_start[node + 1] as usize]
    }

    /// Edges from earlier instructions.
    pub fn predecessors(&self, node: usize) -> impl ExactSizeIterator<Item = &Dependence> {
        let range = self.predecessor_start[node] as usize..self.predecessor_start[node + 1] as usize;
        self.predecessor_edges[range].iter().map(|&edge| &self.edges[edge as usize])
    }

    /// For each node the longest way from its start to the end of the last result, where `own` gives a node's own latency in cycles.
    pub fn heights(&self, own: impl Fn(usize) -> u32) -> Vec<u32> {
        let mut heights = vec![0; self.nodes];
        for node in (0..self.nodes).rev() {
            let below = self.successors(node).iter().map(|edge| edge.latency + heights[edge.to as usize]).max();
            heights[node] = below.unwrap_or(0).max(own(node));
        }
        heights
    }

    /// For each node the earliest start that the edges allow.
    pub fn depths(&self) -> Vec<u32> {
        let mut depths = vec![0; self.nodes];
        for edge in &self.edges {
            depths[edge.to as usize] = depths[edge.to as usize].max(depths[edge.from as usize] + edge.latency);
        }
        depths
    }
}

/// Whether each value of a program is read anywhere, carried around a loop included.
fn readers_in_program(program: &Program, machine: &Machine) -> Vec<bool> {
    let mut read = vec![false; program.values.len()];
    for (_, value) in program.blocks.iter().flat_map(|block| &block.instructions).flat_map(|instruction| instruction.reads(machine)) {
        read[value.0 as usize] = true;
    }
    for carried in program.loops.iter().flat_map(|one| &one.carried) {
        read[carried.initial.0 as usize] = true;
        read[carried.next.0 as usize] = true;
    }
    read
}

struct Builder<'a> {
    machine: &'a Machine,
    edges: Vec<Dependence>,
}

/// What a place holds while the line is walked.
#[derive(Default)]
struct PlaceState {
    definition: Option<usize>,
    reads: Vec<usize>,
    clobbers: Vec<usize>,
}

impl Builder<'_> {
    fn edge(&mut self, from: usize, to: usize, latency: u32, kind: DependenceKind) {
        debug_assert!(from < to, "edges go forward");
        self.edges.push(Dependence { from: from as u32, to: to as u32, latency, kind });
    }

    fn values(&mut self, instructions: &[&Instruction], values: usize) {
        let mut definition: Vec<Option<(usize, u32)>> = vec![None; values];
        for (index, instruction) in instructions.iter().enumerate() {
            for (_, value) in instruction.reads(self.machine) {
                if let Some((from, latency)) = definition[value.0 as usize] {
                    self.edge(from, index, latency, DependenceKind::Value);
                }
            }
            for (operand, value) in instruction.writes(self.machine) {
                definition[value.0 as usize] = Some((index, latency_of(self.machine, instruction, operand)));
            }
        }
    }

    /// A register that exists once, or that an instruction cannot choose, holds one value at a time: its values keep program order,
    /// and what only clobbers it stays out of the way.
    fn places(&mut self, program: &Program, instructions: &[&Instruction], read_anywhere: &[bool]) {
        let machine = self.machine;
        let place_of = places_of_values(program, machine);
        let mut states: BTreeMap<Place, PlaceState> = BTreeMap::new();
        for (index, instruction) in instructions.iter().enumerate() {
            let declared = &machine[instruction.row].operands;
            for (_, value) in instruction.reads(machine) {
                if let Some(place) = place_of[value.0 as usize] {
                    states.entry(place).or_default().reads.push(index);
                }
            }
            for (number, (operand, declared)) in
                instruction.operands.iter().zip(declared).enumerate().filter(|(_, (_, declared))| declared.written)
            {
                let (place, live) = match operand {
                    Operand::Value(value) => (place_of[value.0 as usize], read_anywhere[value.0 as usize]),
                    _ => (place_of_operand(machine, declared), false),
                };
                let Some(place) = place else { continue };
                let state = states.entry(place).or_default();
                let latency = latency_of(machine, instruction, number);
                // The later write must also land later.
                let landing = |from: usize| machine[instructions[from].row].timing.latency_cycles.saturating_sub(latency) + 1;
                let mut before: Vec<_> = state.reads.iter().map(|&read| (read, 0, DependenceKind::Anti)).collect();
                before.extend(state.definition.map(|definition| (definition, landing(definition), DependenceKind::Output)));
                if live {
                    before.extend(state.clobbers.iter().map(|&clobber| (clobber, landing(clobber), DependenceKind::Output)));
                    *state = PlaceState { definition: Some(index), ..PlaceState::default() };
                } else {
                    state.clobbers.push(index);
                }
                for (from, latency, kind) in before.into_iter().filter(|(from, _, _)| *from != index) {
                    self.edge(from, index, latency, kind);
                }
            }
        }
    }

    /// Other reads of a tied operand come before the instruction that overwrites its register, and reads of a carried value before the
    /// next one is made, where program order has them so; where it has not, the driver adds a copy.
    fn shared_registers(&mut self, program: &Program, instructions: &[&Instruction]) {
        let machine = self.machine;
        let mut overwritten: BTreeMap<ValueId, usize> = BTreeMap::new();
        let mut next_of: BTreeMap<ValueId, ValueId> = BTreeMap::new();
        for carried in program.loops.iter().flat_map(|one| &one.carried) {
            next_of.insert(carried.next, carried.current);
        }
        for (index, instruction) in instructions.iter().enumerate() {
            for (_, value, _) in tied_operands(machine, instruction) {
                overwritten.insert(value, index);
            }
            for (_, value) in instruction.writes(machine) {
                if let Some(current) = next_of.get(&value) {
                    overwritten.insert(*current, index);
                }
            }
        }
        if overwritten.is_empty() {
            return;
        }
        for (index, instruction) in instructions.iter().enumerate() {
            for (_, value) in instruction.reads(machine) {
                if let Some(&writer) = overwritten.get(&value)
                    && index < writer
                {
                    self.edge(index, writer, 0, DependenceKind::Anti);
                }
            }
        }
    }

    fn memory(&mut self, program: &Program, instructions: &[&Instruction]) {
        let mut regions: BTreeMap<RegionId, RegionAccesses> = BTreeMap::new();
        let aliases = alias_lists(program);
        for (index, instruction) in instructions.iter().enumerate() {
            let Some(access) = &instruction.memory else { continue };
            let mut earlier = Vec::new();
            if let Some(same) = regions.get(&access.region) {
                same.conflicts(access, &mut earlier);
            }
            for other in aliases.get(&access.region).into_iter().flatten() {
                if let Some(other) = regions.get(other) {
                    other.any_conflicts(access, &mut earlier);
                }
            }
            earlier.sort_unstable();
            earlier.dedup();
            for from in earlier {
                let latency = match (&instructions[from].memory, access.read) {
                    (Some(before), true) if before.write => self.machine[instructions[from].row].timing.latency_cycles,
                    (Some(before), _) if before.write => 1,
                    _ => 0,
                };
                self.edge(from, index, latency, DependenceKind::Memory);
            }
            regions.entry(access.region).or_default().add(index, access);
        }
    }

    /// Everything before a branch comes before it, everything after it after it.
    fn control(&mut self, instructions: &[&Instruction]) {
        let mut barrier: Option<usize> = None;
        for (index, instruction) in instructions.iter().enumerate() {
            if let Some(barrier) = barrier {
                self.edge(barrier, index, 0, DependenceKind::Control);
            }
            if self.machine[instruction.row].control.is_some() {
                for from in barrier.map_or(0, |barrier| barrier + 1)..index {
                    self.edge(from, index, 0, DependenceKind::Control);
                }
                barrier = Some(index);
            }
        }
    }
}

/// A register that instructions do not choose: the only one of its file, or one that a row fixes.
pub type Place = (FileId, u32);

/// The file of a register operand.
pub fn operand_file(operand: &RowOperand) -> Option<FileId> {
    match operand.kind {
        OperandKind::Register(file) | OperandKind::RegisterOrZero(file) => Some(file),
        OperandKind::Immediate { .. } | OperandKind::Label | OperandKind::Symbol => None,
    }
}

/// The place that an operand's value must have. Writes to a sticky register only add to it, so its values exclude nothing.
fn place_of_operand(machine: &Machine, operand: &RowOperand) -> Option<Place> {
    let file = operand_file(operand)?;
    match operand.fixed_register {
        Some(register) => Some((file, register)),
        None => (machine[file].is_singleton() && !machine[file].sticky).then_some((file, 0)),
    }
}

/// For each value the place that an instruction which makes or reads it fixes.
pub fn places_of_values(program: &Program, machine: &Machine) -> Vec<Option<Place>> {
    let mut places = vec![None; program.values.len()];
    for instruction in program.blocks.iter().flat_map(|block| &block.instructions) {
        for (operand, declared) in instruction.operands.iter().zip(&machine[instruction.row].operands) {
            if let Operand::Value(value) = operand
                && let Some(place) = place_of_operand(machine, declared)
            {
                places[value.0 as usize] = Some(place);
            }
        }
    }
    for carried in program.loops.iter().flat_map(|one| &one.carried) {
        let all = [carried.initial, carried.current, carried.next, carried.last];
        if let Some(place) = all.iter().find_map(|value| places[value.0 as usize]) {
            for value in all {
                places[value.0 as usize] = Some(place);
            }
        }
    }
    places
}

/// Operands that are read in the register of a result: (number of the operand read, value read, value written).
pub fn tied_operands(machine: &Machine, instruction: &Instruction) -> Vec<(usize, ValueId, ValueId)> {
    let declared = &machine[instruction.row].operands;
    let mut pairs = Vec::new();
    for (number, operand) in declared.iter().enumerate() {
        let Some(other) = operand.tied.map(|other| other as usize).filter(|other| *other < declared.len()) else { continue };
        let (read, written) = if operand.written { (other, number) } else { (number, other) };
        if let (Some(Operand::Value(from)), Some(Operand::Value(to))) = (instruction.operands.get(read), instruction.operands.get(written))
        {
            pairs.push((read, *from, *to));
        }
    }
    pairs
}

fn alias_lists(program: &Program) -> BTreeMap<RegionId, Vec<RegionId>> {
    let mut lists: BTreeMap<RegionId, Vec<RegionId>> = BTreeMap::new();
    for (index, region) in program.regions.iter().enumerate() {
        let id = RegionId(index as u32);
        for &other in region.may_alias.iter().filter(|other| **other != id) {
            lists.entry(id).or_default().push(other);
            lists.entry(other).or_default().push(id);
        }
    }
    for list in lists.values_mut() {
        list.sort_unstable();
        list.dedup();
    }
    lists
}

/// Bytes of a granule: accesses of known place are found by it, so that long blocks do not compare every pair.
const GRANULE_BYTES: u64 = 16;
/// Accesses over more granules than this are compared with everything in their region.
const WIDE_GRANULES: u64 = 64;

/// Accesses of one region so far that later ones may have to follow.
#[derive(Default)]
struct RegionAccesses {
    granules: BTreeMap<u64, Vec<(usize, MemoryAccess)>>,
    wide: Vec<(usize, MemoryAccess)>,
}

impl RegionAccesses {
    fn conflicts(&self, access: &MemoryAccess, found: &mut Vec<usize>) {
        let mut compare = |list: &[(usize, MemoryAccess)]| {
            let overlapping = |before: &MemoryAccess| before.low < access.high && access.low < before.high;
            found.extend(list.iter().filter(|(_, before)| (before.write || access.write) && overlapping(before)).map(|(index, _)| *index));
        };
        compare(&self.wide);
        match granules_of(access) {
            Some(granules) => self.granules.range(granules).for_each(|(_, list)| compare(list)),
            None => self.granules.values().for_each(|list| compare(list)),
        }
    }

    fn any_conflicts(&self, access: &MemoryAccess, found: &mut Vec<usize>) {
        let all = self.granules.values().flatten().chain(&self.wide);
        found.extend(all.filter(|(_, before)| before.write || access.write).map(|(index, _)| *index));
    }

    fn add(&mut self, index: usize, access: &MemoryAccess) {
        let Some(granules) = granules_of(access) else {
            self.wide.push((index, access.clone()));
            return;
        };
        for granule in granules {
            let list = self.granules.entry(granule).or_default();
            if access.write {
                // What this write covers, later accesses follow through it.
                list.retain(|(_, before)| before.low < access.low || before.high > access.high);
            }
            list.push((index, access.clone()));
        }
    }
}

fn granules_of(access: &MemoryAccess) -> Option<std::ops::Range<u64>> {
    let first = access.low / GRANULE_BYTES;
    let end = access.high.max(access.low + 1).div_ceil(GRANULE_BYTES);
    (end - first <= WIDE_GRANULES).then_some(first..end)
}

/// Whether the machine leaves latencies to the schedule.
pub fn latency_is_exposed(machine: &Machine) -> bool {
    machine.hazard(HazardKind::Latency).is_some_and(|hazard| hazard.enforcement == Enforcement::Must)
}
