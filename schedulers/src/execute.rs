//! Architectural execution of [`Code`] by the meanings of its rows: registers and memory with undefined bits, labels, control. It yields the trace that
//! the timing simulation asks for. Where the machine exposes its latencies (`latency must`), results land late; branch delay is kept as well.

use crate::code::{Code, CodeOperand, Misfit};
use crate::machine::{ControlKind, Enforcement, FileId, HazardKind, Machine, OperandKind, RowId};
use kgen_ir::bits::Bits;
use kgen_ir::domains::compiled::{CompiledMeaning, Scratch};
use kgen_ir::domains::concrete::{Fault as MeaningFault, FaultKind, ShadowedBits};
use kgen_ir::domains::memory::{Memory, RegionMemory};
use kgen_ir::source::Span;
use smallvec::SmallVec;
use std::collections::BTreeMap;

/// Registers of all files; what was never written is undefined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registers {
    files: Vec<Vec<ShadowedBits>>,
    widths: Vec<u32>,
}

impl Registers {
    /// Every register undefined.
    pub fn new(machine: &Machine) -> Self {
        let widths: Vec<u32> = machine.register_files.iter().map(|file| file.width_bits).collect();
        Self { files: vec![Vec::new(); widths.len()], widths }
    }

    /// A register's value.
    pub fn get(&self, file: FileId, number: u32) -> ShadowedBits {
        let known = self.files[usize::from(file.0)].get(number as usize);
        known.cloned().unwrap_or_else(|| ShadowedBits::all_undefined(self.widths[usize::from(file.0)]))
    }

    /// Gives a register a value, cut or widened with zeros to its width.
    pub fn set(&mut self, file: FileId, number: u32, value: impl Into<ShadowedBits>) {
        let width = self.widths[usize::from(file.0)];
        let registers = &mut self.files[usize::from(file.0)];
        if registers.len() <= number as usize {
            registers.resize(number as usize + 1, ShadowedBits::all_undefined(width));
        }
        let value = value.into();
        registers[number as usize] = if value.width() == width { value } else { value.extract(0, width) };
    }
}

/// Where code and data lie, and how long it may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Address of the first instruction.
    pub code_address: u64,
    /// Address of the first constant.
    pub data_address: u64,
    /// Address to which the code returns; holds no code.
    pub return_address: u64,
    /// Most instructions to execute.
    pub step_budget: u64,
}

impl Default for Placement {
    fn default() -> Self {
        Self { code_address: 0x1000_0000, data_address: 0x2000_0000, return_address: 0x3000_0000, step_budget: 100_000_000 }
    }
}

/// One executed instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Index in [`Code::instructions`].
    pub instruction: u32,
    /// Address of its code.
    pub code_address: u64,
    /// Address and bytes of its access to memory.
    pub access: Option<(u64, u32)>,
    /// It is a branch and was taken.
    pub taken: bool,
    /// The operand that decides about its shorter time fits 16 bits.
    pub short_operand: bool,
}

/// Why execution cannot go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FaultReason {
    /// The label to start from is not there.
    #[error("there is no label `{0}` to start from")]
    NoStart(String),
    /// The instruction does not fit its row.
    #[error(transparent)]
    Misfit(#[from] Misfit),
    /// What the meaning says.
    #[error("{0}")]
    Meaning(FaultKind),
    /// Control goes where no instruction is.
    #[error("control goes to address {0:#x}, where no instruction is")]
    NoCode(u64),
    /// Control runs past the last instruction.
    #[error("control runs past the last instruction")]
    PastEnd,
    /// A label or symbol that is not there.
    #[error("there is no label or symbol `{0}`")]
    NoSymbol(String),
    /// A second branch in the delay of a first.
    #[error("a branch in the delay of another one")]
    BranchInDelay,
    /// The budget of steps is used up.
    #[error("not finished after {0} steps")]
    Budget(u64),
    /// Constants do not fit where they are placed.
    #[error("constant `{0}` overlaps other memory")]
    DataOverlap(String),
}

/// A fault with the instruction that met it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("instruction {instruction}: {reason}")]
pub struct Fault {
    /// Index in [`Code::instructions`].
    pub instruction: usize,
    /// Why.
    pub reason: FaultReason,
    /// Where the instruction was written.
    pub span: Option<Span>,
}

/// Memory that remembers the access of the instruction being executed.
struct Watched<'m> {
    memory: &'m mut RegionMemory,
    access: Option<(u64, u32)>,
}

impl Memory for Watched<'_> {
    fn load(&mut self, address: u64, bytes: u32) -> Result<ShadowedBits, FaultKind> {
        self.access = Some((address, bytes));
        self.memory.load(address, bytes)
    }
    fn store(&mut self, address: u64, value: &ShadowedBits) -> Result<(), FaultKind> {
        self.access = Some((address, value.width() / 8));
        self.memory.store(address, value)
    }
}

/// A result on its way to its register.
struct Landing {
    cycle: u64,
    file: FileId,
    number: u32,
    value: ShadowedBits,
}

/// Code placed in memory, its rows' meanings ready to run.
pub struct Executor<'a> {
    machine: &'a Machine,
    code: &'a Code,
    placement: Placement,
    addresses: Vec<u64>,
    operands: Vec<Vec<CodeOperand>>,
    /// Values of labels, symbols and immediates, per instruction and operand; registers have none.
    constants: Vec<Vec<Option<ShadowedBits>>>,
    symbols: BTreeMap<&'a str, u64>,
    labels: BTreeMap<&'a str, usize>,
    /// The rows' meanings, each once.
    meanings: Vec<CompiledMeaning>,
    /// Which of them each instruction has.
    meaning_of: Vec<u32>,
    exposed: bool,
    branch_delay: u32,
}

/// What a bundle does to control.
enum Flow {
    Next,
    To(usize),
    Return,
}

impl<'a> Executor<'a> {
    /// Places the code.
    ///
    /// # Errors
    /// Where an instruction does not fit its row or names a symbol that is not there.
    pub fn new(machine: &'a Machine, code: &'a Code, placement: Placement) -> Result<Self, Fault> {
        let mut addresses = Vec::with_capacity(code.instructions.len() + 1);
        let mut address = placement.code_address;
        for instruction in &code.instructions {
            addresses.push(address);
            address = address.wrapping_add(u64::from(machine[instruction.row].code_bytes));
        }
        addresses.push(address);
        let mut symbols = BTreeMap::new();
        let labels: BTreeMap<&str, usize> = code.labels.iter().map(|(name, place)| (name.as_str(), *place)).collect();
        for (name, place) in &labels {
            symbols.insert(*name, addresses.get(*place).copied().unwrap_or(address));
        }
        let mut next = placement.data_address;
        for object in &code.data {
            next = next.next_multiple_of(u64::from(object.align_bytes.max(1)));
            symbols.insert(object.symbol.as_str(), next);
            next += object.bytes.len() as u64;
        }
        let mut meanings = Vec::new();
        let mut known: BTreeMap<RowId, u32> = BTreeMap::new();
        let mut meaning_of = Vec::with_capacity(code.instructions.len());
        for instruction in &code.instructions {
            meaning_of.push(*known.entry(instruction.row).or_insert_with(|| {
                meanings.push(CompiledMeaning::new(&machine[instruction.row].meaning));
                meanings.len() as u32 - 1
            }));
        }
        let exposed = machine.hazard(HazardKind::Latency).is_some_and(|hazard| hazard.enforcement == Enforcement::Must);
        let branch_delay = machine.hazard(HazardKind::BranchDelay).and_then(|hazard| hazard.limit).unwrap_or(0);
        let mut executor = Self {
            machine,
            code,
            placement,
            addresses,
            operands: Vec::new(),
            constants: Vec::new(),
            symbols,
            labels,
            meanings,
            meaning_of,
            exposed,
            branch_delay,
        };
        for (index, instruction) in code.instructions.iter().enumerate() {
            let operands = instruction.all_operands(machine).map_err(|misfit| executor.fault(index, misfit.into()))?;
            let constants = operands.iter().map(|operand| executor.constant(operand)).collect::<Result<_, _>>();
            executor.constants.push(constants.map_err(|reason| executor.fault(index, reason))?);
            executor.operands.push(operands);
        }
        Ok(executor)
    }

    /// Runs from a label to the return. Constants are mapped into memory first, read-only; where a register that returns read is undefined it
    /// gets the return address. Each executed instruction is handed to `trace`.
    ///
    /// # Errors
    /// The first fault.
    pub fn run(
        &self,
        start: &str,
        registers: &mut Registers,
        memory: &mut RegionMemory,
        mut trace: impl FnMut(Step),
    ) -> Result<u64, Fault> {
        let Some(mut at) = self.labels.get(start).copied() else { return Err(self.fault(0, FaultReason::NoStart(start.to_owned()))) };
        self.map_data(memory)?;
        self.set_return_address(registers);
        let (mut steps, mut cycle) = (0u64, 0u64);
        let mut scratch = Scratch::default();
        let mut landing: Vec<Landing> = Vec::new();
        let mut delayed: Option<(u32, Flow)> = None;
        loop {
            if at >= self.code.instructions.len() {
                return Err(self.fault(at, FaultReason::PastEnd));
            }
            let mut end = at + 1;
            while self.code.instructions.get(end).is_some_and(|instruction| instruction.parallel) {
                end += 1;
            }
            land(self.machine, &mut landing, cycle, registers);
            let mut flow = Flow::Next;
            // Loads of a bundle see memory before its stores.
            let mut order: SmallVec<[usize; 8]> = (at..end).collect();
            if order.len() > 1 {
                order.sort_by_key(|index| {
                    self.machine[self.code.instructions[*index].row].memory().is_some_and(crate::machine::RowMemory::is_store)
                });
            }
            for index in order {
                steps += 1;
                if steps > self.placement.step_budget {
                    return Err(self.fault(index, FaultReason::Budget(self.placement.step_budget)));
                }
                let (step, next) = self.step(index, registers, memory, &mut scratch, cycle, &mut landing)?;
                trace(step);
                if !matches!(next, Flow::Next) {
                    flow = next;
                }
            }
            cycle += 1;
            if !self.exposed {
                land(self.machine, &mut landing, u64::MAX, registers);
            }
            if !matches!(flow, Flow::Next) {
                if delayed.is_some() {
                    return Err(self.fault(at, FaultReason::BranchInDelay));
                }
                delayed = Some((self.branch_delay, flow));
            }
            at = end;
            match delayed.take() {
                Some((0, Flow::To(target))) => at = target,
                Some((0, Flow::Return)) => {
                    land(self.machine, &mut landing, u64::MAX, registers);
                    return Ok(steps);
                }
                Some((0, Flow::Next)) | None => {}
                Some((left, flow)) => delayed = Some((left - 1, flow)),
            }
        }
    }

    fn map_data(&self, memory: &mut RegionMemory) -> Result<(), Fault> {
        for object in self.code.data.iter().filter(|object| !object.bytes.is_empty()) {
            let address = self.symbols.get(object.symbol.as_str()).copied().unwrap_or(0);
            // A second run over the same memory finds them mapped already.
            let mapped = memory.region(address).is_some_and(|region| region.address == address && region.bytes == object.bytes);
            if !mapped && !memory.map(address, object.bytes.clone(), false) {
                return Err(self.fault(0, FaultReason::DataOverlap(object.symbol.clone())));
            }
        }
        Ok(())
    }

    fn set_return_address(&self, registers: &mut Registers) {
        for instruction in &self.code.instructions {
            let row = &self.machine[instruction.row];
            if row.control != Some(ControlKind::Return) {
                continue;
            }
            for operand in row.operands.iter().filter(|operand| operand.read && operand.implicit) {
                if let OperandKind::Register(file) = operand.kind {
                    let number = operand.fixed_register.unwrap_or(0);
                    if registers.get(file, number).undefined().is_some() {
                        registers.set(file, number, Bits::from_u64(self.machine[file].width_bits, self.placement.return_address));
                    }
                }
            }
        }
    }

    /// The address of a label or data symbol.
    pub fn symbol_address(&self, name: &str) -> Option<u64> {
        self.symbols.get(name).copied()
    }

    fn fault(&self, instruction: usize, reason: FaultReason) -> Fault {
        Fault { instruction, reason, span: self.code.instructions.get(instruction).and_then(|instruction| instruction.span) }
    }

    fn constant(&self, operand: &CodeOperand) -> Result<Option<ShadowedBits>, FaultReason> {
        let word = self.machine.word_bits;
        let value = match operand {
            CodeOperand::Register(..) => return Ok(None),
            CodeOperand::Zero => 0,
            CodeOperand::Immediate(value) => *value as u64,
            CodeOperand::Label(name) => self.symbols.get(name.as_str()).copied().ok_or_else(|| FaultReason::NoSymbol(name.clone()))?,
            CodeOperand::Symbol(name, offset) => {
                let base = self.symbols.get(name.as_str()).ok_or_else(|| FaultReason::NoSymbol(name.clone()))?;
                base.wrapping_add(*offset)
            }
        };
        Ok(Some(Bits::from_u64(word, value).into()))
    }

    fn step(
        &self,
        index: usize,
        registers: &Registers,
        memory: &mut RegionMemory,
        scratch: &mut Scratch,
        cycle: u64,
        landing: &mut Vec<Landing>,
    ) -> Result<(Step, Flow), Fault> {
        let instruction = &self.code.instructions[index];
        let row = &self.machine[instruction.row];
        let operands = &self.operands[index];
        let mut inputs: SmallVec<[ShadowedBits; 4]> = SmallVec::new();
        let mut short_operand = false;
        for (number, operand) in row.operands.iter().enumerate().filter(|(_, operand)| operand.read) {
            let value = match (&operands[number], &self.constants[index][number]) {
                (CodeOperand::Register(file, first), _) if operand.tuple > 1 => {
                    let parts: Vec<ShadowedBits> = (0..operand.tuple).map(|part| registers.get(*file, first + part)).collect();
                    ShadowedBits::concatenate(&parts)
                }
                (CodeOperand::Register(file, number), _) => registers.get(*file, *number),
                (_, Some(constant)) => match operand.kind {
                    OperandKind::RegisterOrZero(file) => Bits::zero(self.machine[file].width_bits * operand.tuple).into(),
                    _ => constant.clone(),
                },
                (_, None) => ShadowedBits::all_undefined(self.machine.word_bits),
            };
            if row.timing.short.is_some_and(|(decides, ..)| decides as usize == number) {
                short_operand = value.defined().and_then(Bits::to_u64).is_some_and(|value| value >> 16 == 0);
            }
            inputs.push(value);
        }
        let references: SmallVec<[&ShadowedBits; 4]> = inputs.iter().collect();
        let mut watched = Watched { memory, access: None };
        let outcome = self.meanings[self.meaning_of[index] as usize]
            .run(scratch, &mut watched, &references)
            .map_err(|MeaningFault { kind, .. }| self.fault(index, FaultReason::Meaning(kind)))?;
        let written = row.operands.iter().enumerate().filter(|(_, operand)| operand.written);
        for ((number, operand), value) in written.zip(outcome.outputs) {
            let CodeOperand::Register(file, first) = operands[number] else { continue };
            let latency = row.timing.latency_of.iter().find(|(result, _)| *result as usize == number);
            let latency = latency.map_or(row.timing.latency_cycles, |(_, cycles)| *cycles);
            let width = self.machine[file].width_bits;
            for part in 0..operand.tuple {
                let value = if operand.tuple == 1 { value.clone() } else { value.extract(part * width, width) };
                landing.push(Landing { cycle: cycle + u64::from(latency), file, number: first + part, value });
            }
        }
        let taken = outcome.branch.is_some_and(|branch| branch.taken);
        let flow = if taken { self.target(index, outcome.branch.and_then(|branch| branch.target))? } else { Flow::Next };
        let step = Step { instruction: index as u32, code_address: self.addresses[index], access: watched.access, taken, short_operand };
        Ok((step, flow))
    }

    fn target(&self, index: usize, address: Option<u64>) -> Result<Flow, Fault> {
        match address {
            Some(address) if address == self.placement.return_address => Ok(Flow::Return),
            Some(address) => match self.addresses[..self.code.instructions.len()].binary_search(&address) {
                Ok(place) => Ok(Flow::To(place)),
                Err(_) => Err(self.fault(index, FaultReason::NoCode(address))),
            },
            None => {
                let label = self.operands[index].iter().find_map(|operand| match operand {
                    CodeOperand::Label(name) => Some(name),
                    _ => None,
                });
                match label.and_then(|name| self.labels.get(name.as_str())) {
                    Some(place) => Ok(Flow::To(*place)),
                    None => Err(self.fault(index, FaultReason::NoSymbol(label.cloned().unwrap_or_default()))),
                }
            }
        }
    }
}

/// Writes the results that have landed by now, earlier ones first.
fn land(machine: &Machine, landing: &mut Vec<Landing>, cycle: u64, registers: &mut Registers) {
    if landing.is_empty() {
        return;
    }
    landing.sort_by_key(|result| result.cycle);
    let landed = landing.partition_point(|result| result.cycle <= cycle);
    for result in landing.drain(..landed) {
        // Sticky registers collect what is written to them.
        let value = if machine[result.file].sticky { or(&result.value, &registers.get(result.file, result.number)) } else { result.value };
        registers.set(result.file, result.number, value);
    }
}

/// Or of bits, where a one is one whatever the other is.
fn or(a: &ShadowedBits, b: &ShadowedBits) -> ShadowedBits {
    let ones = a.bits().or(b.bits());
    let zero = Bits::zero(a.width());
    let undefined = a.undefined().unwrap_or(&zero).or(b.undefined().unwrap_or(&zero)).and_not(&ones);
    ShadowedBits::new(ones, undefined)
}
