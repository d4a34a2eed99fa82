//! Calling an emitted function by the machine's calling convention in the executor: arguments placed in memory with nothing mapped beside them,
//! every saved register poisoned, results read back.

use crate::code::Code;
use crate::execute::{Executor, Fault, Placement, Registers, Step};
use crate::machine::{Abi, FileId, Machine};
use crate::program::{Program, ProgramParameterKind, RegionKind};
use kgen_ir::bits::Bits;
use kgen_ir::domains::memory::RegionMemory;

/// An argument of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallArgument {
    /// Bytes of a region; `None` where the function must not read it before it has written it (undefined bytes, that many).
    Region(Vec<u8>),
    /// Undefined bytes that the function writes.
    Undefined(usize),
    /// A scalar.
    Scalar(u64),
}

/// What a call left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Called {
    /// Bytes of every region parameter, in order of the parameters; empty for scalars.
    pub regions: Vec<Vec<u8>>,
    /// Executed instructions in order.
    pub steps: Vec<Step>,
}

/// Why a call failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// The machine has no calling convention.
    #[error("the target has no calling convention")]
    NoConvention,
    /// The arguments do not fit the function's parameters.
    #[error("`{function}` takes other arguments: {reason}")]
    Arguments {
        /// The function.
        function: String,
        /// What is wrong.
        reason: String,
    },
    /// The code faulted.
    #[error("`{function}`: {fault}")]
    Fault {
        /// The function.
        function: String,
        /// The fault.
        fault: Fault,
    },
    /// A row of a program that runs without code has no meaning on what it was given.
    #[error("`{function}`: `{row}`: {reason}")]
    Row {
        /// The function.
        function: String,
        /// The row's name.
        row: String,
        /// Why.
        reason: String,
    },
    /// A register that must be kept was changed.
    #[error("`{function}` does not keep register {register}")]
    NotKept {
        /// The function.
        function: String,
        /// The register as assembly writes it.
        register: String,
    },
    /// Bytes beside a region were changed.
    #[error("`{function}` writes outside of `{region}`, {distance} bytes from its start")]
    Outside {
        /// The function.
        function: String,
        /// The region.
        region: String,
        /// Distance in bytes, negative before the region.
        distance: i64,
    },
    /// A written region has undefined bits.
    #[error("`{function}` leaves undefined bits in `{region}`, byte {byte}")]
    Undefined {
        /// The function.
        function: String,
        /// The region.
        region: String,
        /// The first such byte.
        byte: usize,
    },
}

/// Regions of arguments lie this far apart, so that a stray access meets nothing.
const REGION_STRIDE: u64 = 0x100_0000;
const FIRST_REGION: u64 = 0x4000_0000;
/// The stack pointer at entry.
const STACK_END: u64 = 0x3810_0000;
/// Stack below it, besides what the function's frame regions take: saved registers, spills, headers.
const STACK_BYTES: u64 = 0x1_0000;
/// Above the stack pointer at entry: the caller's frame, of which the callee may use the header.
const CALLER_BYTES: u64 = 64;

/// Runs `program`'s code. `seed` makes the poison of saved registers and the displacement of regions without alignment.
///
/// # Errors
/// See [`CallError`].
pub fn call(machine: &Machine, program: &Program, code: &Code, arguments: &[CallArgument], seed: u64) -> Result<Called, CallError> {
    let abi = machine.abi.as_ref().ok_or(CallError::NoConvention)?;
    let function = || program.name.clone();
    let wrong = |reason: &str| CallError::Arguments { function: function(), reason: reason.to_owned() };
    if arguments.len() != program.parameters.len() || arguments.len() > abi.arguments.len() {
        return Err(wrong("another number of them"));
    }
    let mut memory = RegionMemory::default();
    let mut registers = Registers::new(machine);
    let poison = poison(machine, seed);
    for (file, number, value) in &poison {
        registers.set(*file, *number, value.clone());
    }
    let stack_pointer = STACK_END;
    let frame = program.regions.iter().filter(|region| region.kind == RegionKind::Frame).filter_map(|region| region.bytes).sum::<u64>();
    let stack_bytes = STACK_BYTES + frame.next_multiple_of(STACK_BYTES);
    memory.map_undefined(stack_pointer - stack_bytes, (stack_bytes + CALLER_BYTES) as usize);
    set_integer(&mut registers, machine, abi, abi.stack_pointer, stack_pointer);
    let mut addresses = Vec::with_capacity(arguments.len());
    let block = widest_access_bytes(machine);
    for (index, (parameter, argument)) in program.parameters.iter().zip(arguments).enumerate() {
        let value = match (&parameter.kind, argument) {
            (ProgramParameterKind::Scalar { .. }, CallArgument::Scalar(value)) => *value,
            (ProgramParameterKind::Pointer { region, .. }, CallArgument::Region(_) | CallArgument::Undefined(_)) => {
                let region = &program[*region];
                let base = FIRST_REGION + REGION_STRIDE * index as u64;
                // The alignment that was promised, and no more.
                let address = base + u64::from(region.align_bytes) * (1 + (seed.wrapping_add(index as u64) % 15));
                if !place(&mut memory, block, address, argument, region.written) {
                    return Err(wrong("a region that cannot be placed"));
                }
                address
            }
            _ => return Err(wrong("a scalar for a region, or the other way round")),
        };
        addresses.push(value);
        set_integer(&mut registers, machine, abi, abi.arguments[index], value);
    }
    let mut steps = Vec::new();
    let fault = |fault: Fault| CallError::Fault { function: function(), fault };
    let executor = Executor::new(machine, code, Placement::default()).map_err(fault)?;
    // The body's own label may carry a prefix; the function starts with its first instruction.
    let start = code.labels.iter().find(|(_, place)| *place == 0).map(|(name, _)| name.clone()).unwrap_or_else(|| program.name.clone());
    executor.run(&start, &mut registers, &mut memory, |step| steps.push(step)).map_err(fault)?;
    let text = |file: FileId, number: u32| format!("{} {}", machine[file].name, machine[file].text.replace("{n}", &number.to_string()));
    for (file, number, value) in &poison {
        if registers.get(*file, *number).defined() != Some(value) {
            return Err(CallError::NotKept { function: function(), register: text(*file, *number) });
        }
    }
    let width = machine[abi.integer_file].width_bits;
    if registers.get(abi.integer_file, abi.stack_pointer).defined() != Some(&Bits::from_u64(width, stack_pointer)) {
        return Err(CallError::NotKept { function: function(), register: text(abi.integer_file, abi.stack_pointer) });
    }
    let mut regions = Vec::with_capacity(arguments.len());
    for (parameter, address) in program.parameters.iter().zip(&addresses) {
        let ProgramParameterKind::Pointer { region, .. } = parameter.kind else {
            regions.push(Vec::new());
            continue;
        };
        let length = match &arguments[regions.len()] {
            CallArgument::Region(bytes) => bytes.len(),
            CallArgument::Undefined(length) => *length,
            CallArgument::Scalar(_) => 0,
        };
        let Some(mapped) = memory.region(*address).filter(|_| length > 0) else {
            regions.push(Vec::new());
            continue;
        };
        let before = (address - mapped.address) as usize;
        let inside = before..before + length;
        if let Some(byte) = mapped.undefined[inside.clone()].iter().position(|undefined| *undefined != 0) {
            return Err(CallError::Undefined { function: function(), region: program[region].name.clone(), byte });
        }
        // The bytes around the region were undefined or poison, and must be so still.
        let poisoned = matches!(arguments[regions.len()], CallArgument::Region(_));
        let outside = (0..mapped.bytes.len()).filter(|byte| !inside.contains(byte));
        let kept = |byte: usize| if poisoned { mapped.bytes[byte] == POISON } else { mapped.undefined[byte] == u8::MAX };
        if let Some(byte) = outside.into_iter().find(|byte| !kept(*byte)) {
            let distance = byte as i64 - before as i64;
            return Err(CallError::Outside { function: function(), region: program[region].name.clone(), distance });
        }
        regions.push(mapped.bytes[inside].to_vec());
    }
    Ok(Called { regions, steps })
}

/// What stands beside a region in its first and last aligned block.
const POISON: u8 = 0xa5;

/// Bytes of the widest access: machines that drop low address bits read whole aligned blocks, parts of which may lie beside a region.
pub fn widest_access_bytes(machine: &Machine) -> u64 {
    machine.register_files.iter().map(|file| u64::from(file.width_bits / 8)).filter(|bytes| bytes.is_power_of_two()).max().unwrap_or(1)
}

/// Maps an argument with its first and last aligned block.
fn place(memory: &mut RegionMemory, block: u64, address: u64, argument: &CallArgument, written: bool) -> bool {
    let first = address / block * block;
    let before = (address - first) as usize;
    let whole = |length: usize| (before + length).next_multiple_of(block as usize);
    match argument {
        CallArgument::Region(bytes) if bytes.is_empty() => true,
        CallArgument::Region(bytes) => {
            let mut image = vec![POISON; whole(bytes.len())];
            image[before..before + bytes.len()].copy_from_slice(bytes);
            memory.map(first, image, written)
        }
        CallArgument::Undefined(0) => true,
        CallArgument::Undefined(length) => memory.map_undefined(first, whole(*length)),
        CallArgument::Scalar(_) => false,
    }
}

fn set_integer(registers: &mut Registers, machine: &Machine, abi: &Abi, number: u32, value: u64) {
    registers.set(abi.integer_file, number, Bits::from_u64(machine[abi.integer_file].width_bits, value));
}

/// A value for every register that must be kept, but the stack pointer and what the executor sets itself (the return address).
fn poison(machine: &Machine, seed: u64) -> Vec<(FileId, u32, Bits)> {
    let mut word = seed;
    let mut list = Vec::new();
    for (index, file) in machine.register_files.iter().enumerate() {
        let id = FileId(index as u16);
        for number in file.saved.iter().filter(|_| !file.is_singleton()) {
            let words = (0..file.width_bits.div_ceil(64)).map(|_| {
                word = crate::random::mix(word);
                word
            });
            list.push((id, *number, Bits::from_words(file.width_bits, words.collect::<Vec<_>>())));
        }
    }
    list
}
