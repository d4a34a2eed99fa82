//! What the simulation knows of an instruction and of one execution of it.

use serde::{Deserialize, Serialize};

use super::model::TimingModel;

/// A register by its file (an index into [`TimingModel::register_files`]) and its dense number there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Register {
    /// Index of the register file.
    pub file: u8,
    /// Number in the file, from 0; not bounded by the machine's registers, so that values can stand for registers.
    pub number: u32,
}

/// A register that an instruction reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Read {
    /// The register.
    pub register: Register,
    /// Whether it is the data of a store, which the instruction does not need in order to start.
    pub store_data: bool,
}

/// A register that an instruction writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Write {
    /// The register.
    pub register: Register,
    /// Cycles from start to this result where they are not the instruction's latency (the updated base register of
    /// a load).
    pub latency: Option<u32>,
}

/// The times of an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecutionTime {
    /// Cycles from start to result.
    pub latency: u32,
    /// Cycles until the unit's copy can start the next instruction, at least 1.
    pub busy: u32,
}

/// Whether an instruction reads or writes memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum MemoryKind {
    /// Reads memory.
    Load,
    /// Writes memory.
    Store {
        /// Cycles that the store takes the exit of the finished store queue, at least 1.
        queue_cycles: u32,
    },
}

/// An access to memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryTiming {
    /// Load or store.
    pub kind: MemoryKind,
    /// Bytes accessed.
    pub bytes: u32,
}

/// What a branch waits for, besides the registers that it reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BranchTiming {
    /// Whether it may fall through: a condition or a count.
    pub conditional: bool,
    /// Whether the target is the value of a register that it reads, which must be known.
    pub to_register: bool,
    /// Whether it writes a link or count register, so that it needs a completion queue entry and is never folded.
    pub updates_state: bool,
}

/// The static description of one instruction of a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstructionTiming {
    /// Units that can execute it, as indices into [`TimingModel::units`], the preferred first, all behind one queue.
    /// Empty: it takes a dispatch slot and a completion queue entry and executes nowhere.
    pub units: Vec<u8>,
    /// Its times.
    pub time: ExecutionTime,
    /// Its times when the deciding operand is short.
    pub short_time: Option<ExecutionTime>,
    /// Registers read.
    pub reads: Vec<Read>,
    /// Registers written; each one in a file with renames takes one.
    pub writes: Vec<Write>,
    /// Access to memory.
    pub memory: Option<MemoryTiming>,
    /// Whether it starts only as the oldest instruction of the machine.
    pub serialized: bool,
    /// Whether it retires only as the oldest of its group, whatever its unit.
    pub retires_oldest: bool,
    /// Set for a branch.
    pub branch: Option<BranchTiming>,
}

impl InstructionTiming {
    /// Whether it writes memory.
    pub fn is_store(&self) -> bool {
        matches!(self.memory, Some(MemoryTiming { kind: MemoryKind::Store { .. }, .. }))
    }

    /// Whether it reads memory.
    pub fn is_load(&self) -> bool {
        matches!(self.memory, Some(MemoryTiming { kind: MemoryKind::Load, .. }))
    }

    /// The times of one execution: `short_operand` as traced, `misaligned` as [`is_misaligned`] says.
    pub fn execution_time(&self, model: &TimingModel, short_operand: bool, misaligned: bool) -> ExecutionTime {
        let mut time = match self.short_time {
            Some(short) if short_operand && model.core.mul_early_out => short,
            _ => self.time,
        };
        if misaligned {
            time.latency += model.core.misalign;
            time.busy += model.core.misalign;
        }
        time
    }

    /// Whether it retires only as the oldest of its group, by its own flag, as a store, or by a unit's rule.
    pub fn must_retire_oldest(&self, model: &TimingModel, unit: Option<usize>) -> bool {
        self.retires_oldest || (model.core.store_oldest && self.is_store()) || unit.is_some_and(|unit| model.units[unit].retires_oldest)
    }
}

/// Whether an access of `bytes` bytes at `address` is misaligned: off its natural alignment and across a multiple of
/// the model's boundary.
pub fn is_misaligned(model: &TimingModel, address: u64, bytes: u32) -> bool {
    let bytes = u64::from(bytes.max(1));
    let boundary = u64::from(model.misalign_boundary_bytes);
    !address.is_multiple_of(bytes) && address / boundary != (address + bytes - 1) / boundary
}

/// One executed instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceEvent {
    /// Index into the program's instructions.
    pub instruction: u32,
    /// Address of its code.
    pub code_address: u64,
    /// Address of the access, after any truncation that the instruction does; 0 for others.
    pub data_address: u64,
    /// Whether a branch was taken.
    pub taken: bool,
    /// Whether the operand that decides about the short time was short.
    pub short_operand: bool,
}

/// What makes `instructions` impossible to simulate on `model`; empty when nothing does.
pub fn validate_instructions(model: &TimingModel, instructions: &[InstructionTiming]) -> Vec<String> {
    let mut errors = Vec::new();
    let mut memory_unit: Option<u8> = None;
    for (index, instruction) in instructions.iter().enumerate() {
        let mut refuse = |what: String| errors.push(format!("instruction {index}: {what}"));
        let mut queues = Vec::new();
        for &unit in &instruction.units {
            match model.units.get(usize::from(unit)) {
                Some(unit) => queues.push(unit.queue),
                None => refuse(format!("there is no unit {unit}")),
            }
        }
        queues.dedup();
        if queues.len() > 1 {
            refuse("its units stand behind different queues".to_owned());
        }
        let times = [Some(instruction.time), instruction.short_time];
        if times.into_iter().flatten().any(|time| time.busy == 0) {
            refuse("it must keep its unit busy for at least one cycle".to_owned());
        }
        // The limit counts from the second cycle on, so there must be one.
        let limited = |unit: &u8| model.units.get(usize::from(*unit)).is_some_and(|unit| unit.in_flight.is_some());
        if instruction.units.iter().any(limited) && times.into_iter().flatten().any(|time| time.latency < 2) {
            refuse("in a unit with an in-flight limit it must take at least two cycles".to_owned());
        }
        let registers = instruction.reads.iter().map(|read| read.register);
        let registers = registers.chain(instruction.writes.iter().map(|write| write.register));
        for register in registers {
            if usize::from(register.file) >= model.register_files.len() {
                refuse(format!("there is no register file {}", register.file));
            }
        }
        for (file, described) in model.register_files.iter().enumerate() {
            let written = instruction.writes.iter().filter(|write| usize::from(write.register.file) == file).count();
            if let Some(renames) = described.renames
                && written > renames.min(model.core.retire_renames) as usize
            {
                refuse(format!("it writes {written} registers of file {}, more than can ever retire", described.name));
            }
        }
        if let Some(memory) = instruction.memory {
            if let MemoryKind::Store { queue_cycles: 0 } = memory.kind {
                refuse("a store must take the finished store queue's exit for at least one cycle".to_owned());
            }
            // Order of memory accesses is the order of starts in one unit.
            match (instruction.units.as_slice(), memory_unit) {
                ([unit], None) => memory_unit = Some(*unit),
                ([unit], Some(known)) if *unit == known => {}
                _ => refuse("all accesses to memory must name one and the same unit".to_owned()),
            }
        }
        if instruction.branch.is_some() && (!instruction.units.is_empty() || instruction.memory.is_some()) {
            refuse("a branch is executed by the branch unit alone".to_owned());
        }
    }
    if let Some(unit) = memory_unit
        && model.units.get(usize::from(unit)).is_some_and(|unit| unit.copies != 1)
    {
        errors.push("the unit that accesses memory must have one copy".to_owned());
    }
    errors
}
