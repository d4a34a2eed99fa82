//! From Program, Schedule and Allocation to Code: registers for values, labels for blocks, the calling convention's entry and exit.

use crate::allocation::Allocation;
use crate::code::{Code, CodeInstruction, CodeOperand, DataObject};
use crate::machine::{FrameStep, Machine, OperandKind};
use crate::program::{BlockId, Operand, Program, RegionId, RegionKind, ValueId};
use crate::schedule::Schedule;
use crate::scheduling::resources::Resources;
use std::collections::BTreeSet;

/// Reads lines of the machine's assembly: how the frame steps of its calling convention become instructions.
pub type AssemblyReader<'a> = dyn Fn(&Machine, &str) -> Result<Vec<CodeInstruction>, String> + 'a;

/// Why products could not be put together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AssembleError {
    /// A line of the target file's entry or exit is not the target's assembly.
    #[error("entry or exit line `{line}` of target `{target}`: {reason}")]
    FrameStep {
        /// The line, its holes filled.
        line: String,
        /// The target.
        target: String,
        /// What the reader said.
        reason: String,
    },
    /// A value that is read or written has no register.
    #[error("value `{value}` of `{row}` has no register")]
    NoRegister {
        /// The value.
        value: String,
        /// The instruction's row.
        row: String,
    },
    /// An operand that the text needs is missing or of the wrong kind.
    #[error("operand `{operand}` of `{row}` cannot be written")]
    Operand {
        /// The operand.
        operand: String,
        /// The instruction's row.
        row: String,
    },
    /// An offset in the frame is outside the range of the operand.
    #[error("frame offset {offset} does not fit operand `{operand}` of `{row}`; spill less or use a smaller kernel")]
    FrameOffset {
        /// The offset in bytes.
        offset: i64,
        /// The operand.
        operand: String,
        /// The instruction's row.
        row: String,
    },
}

/// The code of a function. On a machine without calling convention it is the body alone.
///
/// # Errors
/// Something of the target file or the program does not fit together.
pub fn assemble(
    program: &Program,
    machine: &Machine,
    schedule: &Schedule,
    allocation: &Allocation,
    read_assembly: &AssemblyReader<'_>,
) -> Result<Code, AssembleError> {
    let mut assembler = Assembler { program, machine, allocation, bundled: Resources::of(machine).bundled, code: Code::default() };
    assembler.label(program.name.clone());
    if let Some(abi) = &machine.abi {
        assembler.frame_steps(&abi.prologue, read_assembly)?;
    }
    assembler.label(format!(".Lbody_{}", program.name));
    assembler.body(schedule)?;
    assembler.label(format!(".Lend_{}", program.name));
    if let Some(abi) = &machine.abi {
        assembler.frame_steps(&abi.epilogue, read_assembly)?;
    }
    for (index, region) in program.regions.iter().enumerate().filter(|(_, region)| region.kind == RegionKind::Pool) {
        let bytes = region.contents.clone().unwrap_or_default();
        let symbol = symbol(program, RegionId(index as u32));
        assembler.code.data.push(DataObject { symbol, align_bytes: region.align_bytes, bytes });
    }
    Ok(assembler.code)
}

/// The symbol of a pool region, local to the file.
fn symbol(program: &Program, region: RegionId) -> String {
    format!(".L{}_{}", program[region].name, program.name)
}

struct Assembler<'a> {
    program: &'a Program,
    machine: &'a Machine,
    allocation: &'a Allocation,
    bundled: bool,
    code: Code,
}

impl Assembler<'_> {
    fn label(&mut self, name: String) {
        self.code.labels.push((name, self.code.instructions.len()));
    }

    fn block_label(&self, block: BlockId) -> String {
        format!(".L{}_{}", block.0, self.program.name)
    }

    fn frame_steps(&mut self, steps: &[FrameStep], read_assembly: &AssemblyReader<'_>) -> Result<(), AssembleError> {
        let frame = self.allocation.frame_bytes.to_string();
        for step in steps {
            match step {
                FrameStep::Always(line) => self.frame_line(line.replace("{frame}", &frame), read_assembly)?,
                FrameStep::Once(line) if self.allocation.frame_bytes > 0 => {
                    self.frame_line(line.replace("{frame}", &frame), read_assembly)?
                }
                FrameStep::Once(_) => {}
                FrameStep::EachSaved { file, lines } => {
                    for (_, register, offset) in self.allocation.saves.iter().filter(|(saved, _, _)| saved == file) {
                        for line in lines {
                            let line = line.replace("{register}", &register.to_string()).replace("{offset}", &offset.to_string());
                            self.frame_line(line.replace("{frame}", &frame), read_assembly)?;
                        }
                    }
                }
            }
        }
        Ok(())
    }

    fn frame_line(&mut self, line: String, read_assembly: &AssemblyReader<'_>) -> Result<(), AssembleError> {
        let read = read_assembly(self.machine, &line);
        let instructions = read.map_err(|reason| AssembleError::FrameStep { line, target: self.machine.name.clone(), reason })?;
        self.code.instructions.extend(instructions);
        Ok(())
    }

    fn body(&mut self, schedule: &Schedule) -> Result<(), AssembleError> {
        let instructions = || self.program.blocks.iter().flat_map(|block| &block.instructions);
        let targets: BTreeSet<BlockId> = instructions()
            .flat_map(|instruction| &instruction.operands)
            .filter_map(|operand| match operand {
                Operand::Block(block) => Some(*block),
                _ => None,
            })
            .collect();
        for (index, scheduled) in schedule.blocks.iter().enumerate() {
            let block = BlockId(index as u32);
            if targets.contains(&block) {
                self.label(self.block_label(block));
            }
            let mut previous_cycle = None;
            for slot in &scheduled.slots {
                let parallel = self.bundled && previous_cycle == Some(slot.cycle);
                previous_cycle = Some(slot.cycle);
                let mut written = self.instruction(block, slot.instruction as usize)?;
                written.parallel = parallel;
                written.unit = slot.unit.filter(|_| self.bundled);
                self.code.instructions.push(written);
            }
        }
        let exit = BlockId(self.program.blocks.len() as u32);
        if targets.contains(&exit) {
            self.label(self.block_label(exit));
        }
        Ok(())
    }

    fn instruction(&self, block: BlockId, index: usize) -> Result<CodeInstruction, AssembleError> {
        let instruction = &self.program[block].instructions[index];
        let row = &self.machine[instruction.row];
        let mut operands = Vec::new();
        for ((operand, declared), number) in instruction.operands.iter().zip(&row.operands).zip(0..) {
            if declared.implicit {
                continue;
            }
            let unwritable = || AssembleError::Operand { operand: declared.name.clone(), row: row.name.clone() };
            operands.push(match operand {
                Operand::Value(value) => {
                    let (OperandKind::Register(file) | OperandKind::RegisterOrZero(file)) = declared.kind else { return Err(unwritable()) };
                    CodeOperand::Register(file, self.register(*value, &row.name)?)
                }
                Operand::Zero => CodeOperand::Zero,
                Operand::Immediate(value) => CodeOperand::Immediate(*value),
                Operand::Block(target) => CodeOperand::Label(self.block_label(*target)),
                Operand::Symbol(region, offset) => CodeOperand::Symbol(symbol(self.program, *region), *offset),
                Operand::FrameOffset(region, offset) => {
                    let base = self.allocation.frame_offsets.iter().find(|(placed, _)| placed == region).map(|(_, base)| *base);
                    let offset = i64::try_from(base.ok_or_else(unwritable)? + offset).map_err(|_| unwritable())?;
                    if let OperandKind::Immediate { low, high, step } = row.operands[number].kind
                        && !((low..high).contains(&i128::from(offset)) && i128::from(offset) % step == 0)
                    {
                        return Err(AssembleError::FrameOffset { offset, operand: declared.name.clone(), row: row.name.clone() });
                    }
                    CodeOperand::Immediate(offset)
                }
                Operand::Unused => return Err(unwritable()),
            });
        }
        let names = |wanted: fn(&crate::machine::RowOperand) -> bool| {
            let values = instruction.operands.iter().zip(&row.operands).filter_map(|(operand, declared)| match operand {
                Operand::Value(value) if wanted(declared) => Some(self.program[*value].name.as_str()),
                _ => None,
            });
            values.collect::<Vec<_>>().join(", ")
        };
        let (written, read) = (names(|operand| operand.written), names(|operand| operand.read));
        let comment = match (written.is_empty(), read.is_empty()) {
            (false, false) => format!("{written} = {read}"),
            _ => format!("{written}{read}"),
        };
        Ok(CodeInstruction { row: instruction.row, operands, parallel: false, unit: None, comment, span: instruction.span })
    }

    fn register(&self, value: ValueId, row: &str) -> Result<u32, AssembleError> {
        let register = self.allocation.registers.get(value.0 as usize).copied().flatten();
        register.ok_or_else(|| AssembleError::NoRegister { value: self.program[value].name.clone(), row: row.to_owned() })
    }
}
