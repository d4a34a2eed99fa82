//! The timing simulation of one block's instructions in any order: what the searches ask.
//!
//! Values stand for registers, since renaming makes the registers' names irrelevant to the time. Each region of memory gets addresses of its own.

use crate::machine::{FileId, Machine, RowId, UnitId};
use crate::program::{BlockId, Operand, Program, ValueId};
use crate::timing::{EventTimes, InstructionTiming, StraightLine, StraightLineOperand, TimingModel, TraceEvent, simulate};
use crate::timing_of_machine::RowModel;
use std::collections::BTreeMap;

/// Distance between the addresses that regions get, in bytes.
const REGION_SPACING_BYTES: u64 = 1 << 20;

/// Times orders of a block's instructions, its branches left out.
#[derive(Clone, Debug)]
pub struct OrderTiming {
    line: StraightLine,
    model: TimingModel,
    instructions: Vec<InstructionTiming>,
    operands: Vec<StraightLineOperand>,
    instruction_bytes: u64,
    /// The machine's number of each unit of the model.
    units: Vec<UnitId>,
    /// Number of each instruction of the block in `line`; `None` for branches.
    number: Vec<Option<u32>>,
    order: Vec<u32>,
}

impl OrderTiming {
    /// The timing of a block, if the machine has a timing model that can time straight lines.
    pub fn new(program: &Program, machine: &Machine, model: &TimingModel, block: BlockId) -> Option<Self> {
        let mut numbers = Numbers { next: vec![0; machine.register_files.len()], of_value: BTreeMap::new() };
        let mut rows: BTreeMap<RowId, RowModel> = BTreeMap::new();
        let mut instructions = Vec::new();
        let mut operands = Vec::new();
        let mut number = Vec::new();
        for instruction in &program[block].instructions {
            if machine[instruction.row].control.is_some() {
                number.push(None);
                continue;
            }
            number.push(Some(instructions.len() as u32));
            let row = rows.entry(instruction.row).or_insert_with(|| RowModel::new(machine, model, instruction.row));
            instructions.push(row.instruction(&machine[instruction.row], |operand| match instruction.operands.get(operand) {
                Some(Operand::Value(value)) => Some(numbers.register(program, *value)),
                _ => None,
            }));
            let address =
                instruction.memory.as_ref().map_or(0, |access| (u64::from(access.region.0) + 1) * REGION_SPACING_BYTES + access.low);
            operands.push(StraightLineOperand { data_address: address, short_operand: false });
        }
        let instruction_bytes = machine.instruction_bytes.max(1);
        let line = StraightLine::new(model, &instructions, &operands, 0, instruction_bytes).ok()?;
        let named = |name: &str| machine.units.iter().position(|unit| unit.name == name).map(|index| UnitId(index as u16));
        let units = model.units.iter().filter_map(|unit| named(&unit.name)).collect();
        let instruction_bytes = u64::from(instruction_bytes);
        Some(Self { line, model: model.clone(), instructions, operands, instruction_bytes, units, number, order: Vec::new() })
    }

    fn numbered(&mut self, order: &[u32], from: usize) {
        self.order.truncate(from);
        let known = self.order.len();
        // Branches end a block, so positions agree up to there.
        self.order.extend(order[known..].iter().filter_map(|&node| self.number[node as usize]));
    }

    /// Cycles of an order, which becomes the one that [`OrderTiming::probe`] compares with.
    pub fn commit(&mut self, order: &[u32], first_changed: usize) -> u32 {
        self.numbered(order, first_changed);
        self.line.commit(&self.order, first_changed)
    }

    /// Cycles of an order that is the committed one as far as position `first_changed`, if they are at most `bound_cycles`.
    pub fn probe(&mut self, order: &[u32], first_changed: usize, bound_cycles: u32) -> Option<u32> {
        self.numbered(order, first_changed);
        let cycles = self.line.probe(&self.order, first_changed, bound_cycles);
        // What follows was only tried: the next order, which may change later, must not keep it.
        self.order.truncate(first_changed);
        cycles
    }

    /// Dispatch and unit of each instruction of an order; branches go with the last one before them.
    pub fn events(&self, order: &[u32]) -> Option<Vec<OrderEvent>> {
        let numbers = order.iter().filter_map(|&node| self.number[node as usize]);
        let trace: Vec<TraceEvent> = numbers
            .enumerate()
            .map(|(position, number)| TraceEvent {
                instruction: number,
                code_address: position as u64 * self.instruction_bytes,
                data_address: self.operands[number as usize].data_address,
                taken: false,
                short_operand: false,
            })
            .collect();
        let mut times: Vec<EventTimes> = Vec::new();
        simulate(&self.model, &self.instructions, &trace, &mut times).ok()?;
        let first = times.iter().filter_map(|times| times.dispatch).min().unwrap_or(0);
        let mut last = OrderEvent { dispatch: 0, unit: None };
        let mut timed = times.iter().map(|times| OrderEvent {
            dispatch: times.dispatch.map_or(0, |cycle| (cycle - first) as u32),
            unit: times.unit.and_then(|unit| self.units.get(unit).copied()),
        });
        let events = order.iter().map(|&node| match self.number[node as usize] {
            Some(_) => {
                last = timed.next().unwrap_or(last);
                last
            }
            None => OrderEvent { unit: None, ..last },
        });
        Some(events.collect())
    }
}

/// What the simulation says of one instruction of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderEvent {
    /// Cycle of dispatch, from that of the first instruction.
    pub dispatch: u32,
    /// The unit that executed it.
    pub unit: Option<UnitId>,
}

/// Dense numbers of values in each register file.
struct Numbers {
    next: Vec<u32>,
    of_value: BTreeMap<ValueId, u32>,
}

impl Numbers {
    fn register(&mut self, program: &Program, value: ValueId) -> (FileId, u32) {
        let described = &program[value];
        let next = &mut self.next[described.file.0 as usize];
        let number = *self.of_value.entry(value).or_insert_with(|| {
            *next += described.tuple;
            *next - described.tuple
        });
        (described.file, number)
    }
}
