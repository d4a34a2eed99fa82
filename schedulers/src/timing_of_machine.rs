//! What the timing simulation asks for of rows, code and executed steps.

use crate::code::{Code, CodeOperand, Misfit};
use crate::execute::Step;
use crate::machine::{ControlKind, FileId, Machine, OperandKind, Row, RowId, RowMemory};
use crate::timing::{
    BranchTiming, ExecutionTime, InstructionTiming, MemoryKind, MemoryTiming, Read, Register, TimingModel, TraceEvent, Write,
};
use kgen_ir::body::{Body, Effect, NodeHandle, Op};
use std::collections::{BTreeMap, BTreeSet};

/// What does not depend on registers in a row's timing; made once per row.
#[derive(Clone, Debug)]
pub struct RowModel {
    /// The description without reads and writes.
    without_registers: InstructionTiming,
    /// Operand numbers that are read and only go to memory as data.
    store_data: BTreeSet<usize>,
    /// Files whose writers wait for nobody.
    sticky: BTreeSet<FileId>,
}

impl RowModel {
    /// The model of a row. Units that stand behind no queue (the branch unit) are the simulation's own and left out.
    pub fn new(machine: &Machine, model: &TimingModel, row: RowId) -> Self {
        let row = &machine[row];
        let units = row.timing.units.iter().filter_map(|unit| model.unit(&machine[*unit].name).and_then(|index| u8::try_from(index).ok()));
        let memory = row.memory().map(|memory| match memory {
            RowMemory::Load { bytes } => MemoryTiming { kind: MemoryKind::Load, bytes },
            RowMemory::Store { bytes } => MemoryTiming { kind: MemoryKind::Store { queue_cycles: 1 }, bytes },
        });
        let branch = row.control.map(|control| BranchTiming {
            conditional: matches!(control, ControlKind::ConditionalJump | ControlKind::CountedJump),
            to_register: row.meaning.effects.iter().any(|effect| matches!(effect, Effect::Branch { target: Some(_), .. })),
            updates_state: row.operands.iter().any(|operand| operand.written),
        });
        let timing = &row.timing;
        let sticky = machine.register_files.iter().enumerate().filter(|(_, file)| file.sticky).map(|(index, _)| FileId(index as u16));
        Self {
            without_registers: InstructionTiming {
                units: units.collect(),
                time: ExecutionTime { latency: timing.latency_cycles, busy: timing.throughput_cycles },
                short_time: timing.short.map(|(_, latency, busy)| ExecutionTime { latency, busy }),
                reads: Vec::new(),
                writes: Vec::new(),
                memory,
                serialized: timing.serialized,
                retires_oldest: timing.retires_oldest,
                branch,
            },
            store_data: store_data(row),
            sticky: sticky.collect(),
        }
    }

    /// The description of one instruction of this row over registers, or values in their place: `register` gives file and dense number of each
    /// operand (by its number in the row) that is one.
    pub fn instruction(&self, row: &Row, mut register: impl FnMut(usize) -> Option<(FileId, u32)>) -> InstructionTiming {
        let mut result = self.without_registers.clone();
        for (number, operand) in row.operands.iter().enumerate() {
            let Some((file, first)) = register(number) else { continue };
            let Ok(file_index) = u8::try_from(file.0) else { continue };
            for part in 0..operand.tuple {
                let register = Register { file: file_index, number: first + part };
                if operand.read {
                    result.reads.push(Read { register, store_data: self.store_data.contains(&number) });
                }
                if operand.written && !self.sticky.contains(&file) {
                    let latency = row.timing.latency_of.iter().find(|(of, _)| *of as usize == number);
                    result.writes.push(Write { register, latency: latency.map(|(_, cycles)| *cycles) });
                }
            }
        }
        result
    }
}

/// The static description of every instruction of a code.
///
/// # Errors
/// Where an instruction does not fit its row.
pub fn instruction_timings(machine: &Machine, model: &TimingModel, code: &Code) -> Result<Vec<InstructionTiming>, Misfit> {
    let mut models: BTreeMap<RowId, RowModel> = BTreeMap::new();
    let mut list = Vec::with_capacity(code.instructions.len());
    for instruction in &code.instructions {
        let operands = instruction.all_operands(machine)?;
        let row_model = models.entry(instruction.row).or_insert_with(|| RowModel::new(machine, model, instruction.row));
        list.push(row_model.instruction(&machine[instruction.row], |number| match operands[number] {
            CodeOperand::Register(file, number) => Some((file, number)),
            _ => None,
        }));
    }
    Ok(list)
}

/// What the simulation wants to know of an executed instruction.
pub fn trace_event(step: &Step) -> TraceEvent {
    TraceEvent {
        instruction: step.instruction,
        code_address: step.code_address,
        data_address: step.access.map_or(0, |(address, _)| address),
        taken: step.taken,
        short_operand: step.short_operand,
    }
}

/// Operands that a store reads as data only: the value stored depends on them; its address, its condition and the row's results do not.
fn store_data(row: &Row) -> BTreeSet<usize> {
    let body = &row.meaning;
    let store = body.effects.iter().find_map(|effect| match effect {
        Effect::Store { address, value, condition } => Some((*address, *value, *condition)),
        _ => None,
    });
    let Some((address, value, condition)) = store else { return BTreeSet::new() };
    let needed_first: Vec<NodeHandle> = body.outputs.iter().map(|(_, node)| *node).chain([address]).chain(condition).collect();
    let needed_first = inputs_behind(body, &needed_first);
    let data = inputs_behind(body, &[value]);
    // Inputs of the meaning are the operands read, in order.
    let read = row.operands.iter().enumerate().filter(|(_, operand)| operand.read).enumerate();
    read.filter(|(input, (_, operand))| {
        let input = *input as u32;
        matches!(operand.kind, OperandKind::Register(_)) && data.contains(&input) && !needed_first.contains(&input)
    })
    .map(|(_, (number, _))| number)
    .collect()
}

/// The inputs of a body on which these nodes depend.
fn inputs_behind(body: &Body, nodes: &[NodeHandle]) -> BTreeSet<u32> {
    let mut wanted = vec![false; body.nodes.len()];
    for node in nodes {
        wanted[node.index()] = true;
    }
    let mut inputs = BTreeSet::new();
    for (handle, node) in body.nodes.iter().rev() {
        if !wanted[handle.index()] {
            continue;
        }
        if let Op::Input(input) = node.op {
            inputs.insert(input);
        }
        for operand in node.op.operands() {
            wanted[operand.index()] = true;
        }
    }
    inputs
}
