//! A block as the schedulers see it: the dependence graph, what each instruction takes, and which registers values hold.

use crate::dependence::{DependenceGraph, latency_of, operand_file};
use crate::liveness::Liveness;
use crate::machine::{FileId, Machine, RowId, UnitId};
use crate::program::{BlockId, Program, ValueId};
use crate::scheduling::resources::{Resources, allocatable};
use smallvec::SmallVec;

/// An instruction.
#[derive(Clone, Debug)]
pub struct Node {
    /// Its row.
    pub row: RowId,
    /// Units that can execute it.
    pub units: SmallVec<[UnitId; 4]>,
    /// Longest latency of its results in cycles.
    pub latency: u32,
    /// Cycles its unit stays busy.
    pub throughput: u32,
    /// Cycles from dispatch to the earliest retirement.
    pub residence: u32,
    /// Values read, each once, as indices into [`BlockProblem::values`].
    pub reads: SmallVec<[u32; 4]>,
    /// Values written.
    pub writes: SmallVec<[u32; 2]>,
    /// File and latency of each register written, those that nothing reads included.
    pub landings: SmallVec<[(FileId, u32); 2]>,
    /// Cluster of each register read, where it has one.
    pub sides_read: SmallVec<[u8; 4]>,
    /// Whether a result is written before the operands are read.
    pub early_clobber: bool,
    /// Whether it touches memory.
    pub memory: bool,
    /// Whether it ends the block.
    pub control: bool,
}

/// A value that occurs in the block.
#[derive(Clone, Copy, Debug)]
pub struct BlockValue {
    /// Which.
    pub value: ValueId,
    /// Its file.
    pub file: FileId,
    /// Registers.
    pub registers: u32,
    /// Instructions of the block that read it.
    pub readers: u32,
    /// Live at the block's start.
    pub live_in: bool,
    /// Live at the block's end.
    pub live_out: bool,
}

/// A block to be scheduled.
#[derive(Clone, Debug)]
pub struct BlockProblem {
    /// What must come before what.
    pub graph: DependenceGraph,
    /// The instructions, parallel to the graph's nodes.
    pub nodes: Vec<Node>,
    /// The values that occur in it.
    pub values: Vec<BlockValue>,
    /// Registers held at the block's start, by file; values that only pass through included.
    pub live_at_start: Vec<u32>,
    /// Registers that values may take, by file; `None` where unlimited or where order alone decides (files of one register).
    pub limits: Vec<Option<u32>>,
    /// The machine's limits.
    pub resources: Resources,
    /// How much of the block's work may want each unit: an instruction with a choice counts less on each.
    pub unit_demand: Vec<u32>,
}

/// What an instruction without a choice counts in [`BlockProblem::unit_demand`]; it has many divisors.
const DEMAND: u32 = 12;

impl BlockProblem {
    /// The problem of one block.
    pub fn new(program: &Program, machine: &Machine, liveness: &Liveness, block: BlockId, inline_assembly: bool) -> Self {
        let resources = Resources::of(machine);
        let (live_in, live_out) = (&liveness.live_in[block.0 as usize], &liveness.live_out[block.0 as usize]);
        let mut live_at_start = vec![0; machine.register_files.len()];
        for value in live_in.iter() {
            live_at_start[program[value].file.0 as usize] += program[value].tuple;
        }
        let mut local = vec![u32::MAX; program.values.len()];
        let mut values: Vec<BlockValue> = Vec::new();
        let mut nodes = Vec::with_capacity(program[block].instructions.len());
        for instruction in &program[block].instructions {
            let mut local_of = |value: ValueId| {
                let slot = &mut local[value.0 as usize];
                if *slot == u32::MAX {
                    *slot = values.len() as u32;
                    let described = &program[value];
                    let (live_in, live_out) = (live_in.contains(value), live_out.contains(value));
                    values.push(BlockValue { value, file: described.file, registers: described.tuple, readers: 0, live_in, live_out });
                }
                *slot
            };
            let mut reads: SmallVec<[u32; 4]> = instruction.reads(machine).map(|(_, value)| local_of(value)).collect();
            reads.sort_unstable();
            reads.dedup();
            let writes = instruction.writes(machine).map(|(_, value)| local_of(value)).collect();
            for &read in &reads {
                values[read as usize].readers += 1;
            }
            let row = &machine[instruction.row];
            let written = row.operands.iter().enumerate().filter(|(_, operand)| operand.written);
            let landings = written.filter_map(|(number, operand)| Some((operand_file(operand)?, latency_of(machine, instruction, number))));
            let read_files = row.operands.iter().filter(|operand| operand.read).filter_map(operand_file);
            let special = row.timing.latency_of.iter().map(|(_, cycles)| *cycles).max().unwrap_or(0);
            nodes.push(Node {
                row: instruction.row,
                units: row.timing.units.iter().copied().collect(),
                latency: row.timing.latency_cycles.max(special),
                throughput: row.timing.throughput_cycles.max(1),
                residence: resources.residence_cycles(machine, instruction.row),
                reads,
                writes,
                landings: landings.collect(),
                sides_read: read_files.filter_map(|file| machine.side_of(file)).collect(),
                early_clobber: row.operands.iter().any(|operand| operand.early_clobber),
                memory: instruction.memory.is_some(),
                control: row.control.is_some(),
            });
        }
        let limits = (0..machine.register_files.len()).map(|file| {
            let file = FileId(file as u16);
            if machine[file].is_singleton() {
                None
            } else {
                allocatable(machine, file, inline_assembly).map(|registers| registers.len() as u32)
            }
        });
        let limits = limits.collect();
        let mut unit_demand = vec![0; machine.units.len()];
        for node in &nodes {
            for unit in &node.units {
                unit_demand[unit.0 as usize] += DEMAND / node.units.len() as u32;
            }
        }
        Self { graph: DependenceGraph::of_block(program, machine, block), nodes, values, live_at_start, limits, resources, unit_demand }
    }

    /// Longest way from each instruction to the end, in cycles.
    pub fn heights(&self) -> Vec<u32> {
        self.graph.heights(|node| self.nodes[node].latency)
    }
}

/// Registers held while an order is walked.
#[derive(Clone, Debug)]
pub struct LiveRegisters {
    /// By file.
    pub live: Vec<u32>,
    /// Most held so far, by file.
    pub most: Vec<u32>,
    remaining: Vec<u32>,
}

/// What an instruction does to the registers held in one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PressureChange {
    /// The file.
    pub file: FileId,
    /// Registers held while it executes, above those held before it.
    pub peak: i64,
    /// Registers held after it, above those held before it.
    pub after: i64,
}

impl LiveRegisters {
    /// At the start of a block.
    pub fn new(problem: &BlockProblem) -> Self {
        let remaining = problem.values.iter().map(|value| value.readers).collect();
        Self { live: problem.live_at_start.clone(), most: problem.live_at_start.clone(), remaining }
    }

    /// What `node` would change, one entry per file that it touches.
    pub fn change(&self, problem: &BlockProblem, node: usize) -> SmallVec<[PressureChange; 4]> {
        let mut changes: SmallVec<[PressureChange; 4]> = SmallVec::new();
        let node = &problem.nodes[node];
        let mut freed: SmallVec<[(FileId, i64); 4]> = SmallVec::new();
        for &read in &node.reads {
            let value = &problem.values[read as usize];
            if self.remaining[read as usize] == 1 && !value.live_out {
                freed.push((value.file, i64::from(value.registers)));
            }
        }
        let mut add = |file: FileId, peak: i64, after: i64| match changes.iter_mut().find(|change| change.file == file) {
            Some(change) => {
                change.peak += peak;
                change.after += after;
            }
            None => changes.push(PressureChange { file, peak, after }),
        };
        for (file, registers) in freed {
            add(file, if node.early_clobber { 0 } else { -registers }, -registers);
        }
        for &write in &node.writes {
            let value = &problem.values[write as usize];
            let registers = i64::from(value.registers);
            // A result that nothing reads takes a register for the moment only.
            add(value.file, registers, if value.readers > 0 || value.live_out { registers } else { 0 });
        }
        changes
    }

    /// Executes `node`.
    pub fn apply(&mut self, problem: &BlockProblem, node: usize) {
        for change in self.change(problem, node) {
            let file = change.file.0 as usize;
            let before = i64::from(self.live[file]);
            self.most[file] = self.most[file].max((before + change.peak).max(before + change.after).max(0) as u32);
            self.live[file] = (before + change.after).max(0) as u32;
        }
        for &read in &problem.nodes[node].reads {
            self.remaining[read as usize] -= 1;
        }
    }

    /// Registers held beyond the limits at the worst point so far, summed over the files.
    pub fn overflow(&self, problem: &BlockProblem) -> u32 {
        let over = self.most.iter().zip(&problem.limits).map(|(most, limit)| limit.map_or(0, |limit| most.saturating_sub(limit)));
        over.sum()
    }
}
