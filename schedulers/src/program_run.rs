//! Running a Program itself, block by block, by the meanings of its rows: what replay executes on machines without assembly, and what tests of lowerings compare.

use crate::call::{CallArgument, CallError, Called};
use crate::machine::Machine;
use crate::program::{BlockId, Instruction, Operand, Program, ProgramParameterKind, RegionKind, ValueId};
use kgen_ir::bits::Bits;
use kgen_ir::domains::concrete::{Concrete, Value, defined_u64};
use kgen_ir::domains::memory::RegionMemory;
use kgen_ir::evaluate::evaluate;
use kgen_ir::natural::MontgomeryRadix;

/// Regions lie this far apart, so that a stray access meets nothing.
const REGION_STRIDE: u64 = 0x100_0000;

/// Runs longer than this many instructions are given up.
const MOST_STEPS: u64 = 500_000_000;

/// Runs the program on arguments. `seed` displaces regions without more alignment than they promise. The result has no steps: they belong to code.
///
/// # Errors
/// The arguments do not fit, a row's meaning faults, a value is read before it is there, or a written region is left undefined.
pub fn run_program(machine: &Machine, program: &Program, arguments: &[CallArgument], seed: u64) -> Result<Called, CallError> {
    let mut run =
        Run { machine, program, memory: RegionMemory::default(), addresses: Vec::new(), values: vec![None; program.values.len()] };
    run.place(arguments, seed)?;
    run.blocks()?;
    run.results()
}

struct Run<'a> {
    machine: &'a Machine,
    program: &'a Program,
    memory: RegionMemory,
    addresses: Vec<u64>,
    values: Vec<Option<Value>>,
}

impl Run<'_> {
    fn wrong(&self, reason: String) -> CallError {
        CallError::Arguments { function: self.program.name.clone(), reason }
    }

    fn meaningless(&self, instruction: &Instruction, reason: String) -> CallError {
        CallError::Row { function: self.program.name.clone(), row: self.machine[instruction.row].name.clone(), reason }
    }

    fn set(&mut self, value: ValueId, number: u64) {
        let width = self.machine[self.program[value].file].width_bits;
        self.values[value.0 as usize] = Some(Value::from(Bits::from_u64(width, number)));
    }

    fn place(&mut self, arguments: &[CallArgument], seed: u64) -> Result<(), CallError> {
        if arguments.len() != self.program.parameters.len() {
            return Err(self.wrong("another number of them".to_owned()));
        }
        for (index, region) in self.program.regions.iter().enumerate() {
            let promised = u64::from(region.align_bytes.max(1));
            let address = REGION_STRIDE * (index as u64 + 1) + promised * (1 + seed.wrapping_add(index as u64) % 15);
            let mapped = match (&region.kind, &region.contents) {
                (RegionKind::Parameter { index }, _) => match arguments.get(*index as usize) {
                    Some(CallArgument::Region(bytes)) => bytes.is_empty() || self.memory.map(address, bytes.clone(), region.written),
                    Some(CallArgument::Undefined(length)) => self.memory.map_undefined(address, *length),
                    _ => false,
                },
                (RegionKind::Pool, Some(contents)) => self.memory.map(address, contents.clone(), false),
                (RegionKind::Pool, None) => true,
                (RegionKind::Frame, _) => self.memory.map_undefined(address, region.bytes.unwrap_or(0) as usize),
            };
            if !mapped {
                return Err(self.wrong(format!("region `{}` cannot be placed", region.name)));
            }
            self.addresses.push(address);
        }
        for (parameter, argument) in self.program.parameters.iter().zip(arguments) {
            match (&parameter.kind, argument) {
                (ProgramParameterKind::Scalar { value, .. }, CallArgument::Scalar(number)) => self.set(*value, *number),
                (ProgramParameterKind::Pointer { region, value }, CallArgument::Region(_) | CallArgument::Undefined(_)) => {
                    self.set(*value, self.addresses[region.0 as usize]);
                }
                _ => return Err(self.wrong("a scalar for a region, or the other way round".to_owned())),
            }
        }
        // Frame offsets are whole addresses here: every region of the frame is apart.
        if let Some(pointer) = self.program.stack_pointer {
            self.set(pointer, 0);
        }
        Ok(())
    }

    fn blocks(&mut self) -> Result<(), CallError> {
        let program = self.program;
        let (mut block, mut steps, mut came_from) = (0, 0u64, None);
        while let Some(current) = program.blocks.get(block) {
            if let Some(from) = came_from {
                self.enter(block, from);
            }
            let mut jump = None;
            for instruction in &current.instructions {
                steps += 1;
                if steps > MOST_STEPS {
                    return Err(self.meaningless(instruction, format!("more than {MOST_STEPS} instructions")));
                }
                jump = self.step(instruction)?;
                if jump.is_some() {
                    break;
                }
            }
            came_from = Some(block);
            block = jump.map_or(block + 1, |BlockId(target)| target as usize);
        }
        Ok(())
    }

    /// Moves carried values where a block is a loop's head or comes after it.
    fn enter(&mut self, block: usize, from: usize) {
        let mut moves = Vec::new();
        for item in &self.program.loops {
            let (first, last) = (item.first.0 as usize, item.last.0 as usize);
            let from_inside = (first..=last).contains(&from);
            for carried in &item.carried {
                if block == first && !from_inside {
                    moves.push((carried.current, carried.initial));
                } else if block == first && from == last {
                    moves.push((carried.current, carried.next));
                } else if block == last + 1 {
                    moves.push((carried.last, if from_inside { carried.next } else { carried.initial }));
                }
            }
        }
        let read: Vec<_> = moves.into_iter().map(|(to, from)| (to, self.values[from.0 as usize].clone())).collect();
        for (to, value) in read.into_iter().filter(|(_, value)| value.is_some()) {
            self.values[to.0 as usize] = value;
        }
    }

    fn step(&mut self, instruction: &Instruction) -> Result<Option<BlockId>, CallError> {
        let row = &self.machine[instruction.row];
        let read = row.operands.iter().zip(&instruction.operands).filter(|(declared, _)| declared.read);
        let mut inputs = Vec::with_capacity(row.meaning.inputs.len());
        for ((declared, operand), port) in read.zip(&row.meaning.inputs) {
            let width = port.ty.total_bits().unwrap_or(0);
            let number = |value: u64| Value::from(Bits::from_words(width, [value, if (value as i64) < 0 { u64::MAX } else { 0 }]));
            inputs.push(match operand {
                Operand::Value(value) => self.values[value.0 as usize]
                    .clone()
                    .ok_or_else(|| self.meaningless(instruction, format!("`{}` is read before it is there", self.program[*value].name)))?,
                Operand::Zero => number(0),
                Operand::Immediate(value) => number(*value as u64),
                Operand::Block(target) => number(u64::from(target.0)),
                Operand::Symbol(region, offset) | Operand::FrameOffset(region, offset) => {
                    number(self.addresses[region.0 as usize] + offset)
                }
                Operand::Unused => {
                    return Err(self.meaningless(instruction, format!("operand `{}` is read and has no value", declared.name)));
                }
            });
        }
        let radix = MontgomeryRadix::one();
        let outcome = evaluate(&mut Concrete::new(&mut self.memory, &radix), &row.meaning, &inputs);
        let outcome = outcome.map_err(|fault| self.meaningless(instruction, fault.to_string()))?;
        let written = row.operands.iter().zip(&instruction.operands).filter(|(declared, _)| declared.written);
        for ((_, operand), result) in written.zip(outcome.outputs) {
            if let Operand::Value(value) = operand {
                self.values[value.0 as usize] = Some(result);
            }
        }
        let Some((condition, _)) = outcome.branch else { return Ok(None) };
        let taken = match &condition {
            None => true,
            Some(condition) => {
                defined_u64(condition).ok_or_else(|| self.meaningless(instruction, "the condition is undefined".to_owned()))? == 1
            }
        };
        let target = instruction.operands.iter().find_map(|operand| match operand {
            Operand::Block(target) => Some(*target),
            _ => None,
        });
        Ok(target.filter(|_| taken))
    }

    fn results(self) -> Result<Called, CallError> {
        let mut regions = Vec::with_capacity(self.program.parameters.len());
        for parameter in &self.program.parameters {
            let ProgramParameterKind::Pointer { region, .. } = parameter.kind else {
                regions.push(Vec::new());
                continue;
            };
            let Some(mapped) = self.memory.region(self.addresses[region.0 as usize]) else {
                regions.push(Vec::new());
                continue;
            };
            if let Some(byte) = mapped.undefined.iter().position(|undefined| *undefined != 0) {
                return Err(CallError::Undefined { function: self.program.name.clone(), region: self.program[region].name.clone(), byte });
            }
            regions.push(mapped.bytes.clone());
        }
        Ok(Called { regions, steps: Vec::new() })
    }
}
