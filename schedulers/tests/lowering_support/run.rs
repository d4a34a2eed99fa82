//! Runs a Program by the meanings of its rows, block by block, over concrete memory.

use kgen_ir::bits::Bits;
use kgen_ir::domains::concrete::{Concrete, Value, defined_u64};
use kgen_ir::domains::memory::RegionMemory;
use kgen_ir::evaluate::evaluate;
use kgen_ir::natural::MontgomeryRadix;
use kgen_schedulers::machine::Machine;
use kgen_schedulers::program::{BlockId, Operand, Program, ProgramParameterKind, RegionKind, ValueId};
use std::collections::HashMap;

/// What a parameter is given: the bytes of a region (changed in place), or a scalar.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Given {
    Region(Vec<u8>),
    Scalar(u64),
}

/// A region is surrounded by foreign bytes up to multiples of this, as memory is protected in pages and not in bytes; they may be read and not written.
const PROTECTED_BYTES: u64 = 16;
const FOREIGN: u8 = 0xa5;

/// Runs the program; every region without alignment lies `misalignment` bytes past a multiple of 2^20.
pub fn run(machine: &Machine, program: &Program, given: &mut [Given], misalignment: u64) {
    let mut memory = RegionMemory::default();
    let mut addresses = Vec::new();
    let mut values: HashMap<ValueId, Value> = HashMap::new();
    for (index, region) in program.regions.iter().enumerate() {
        let base = 0x10_0000 * (index as u64 + 1);
        let address = if region.align_bytes == 1 { base + misalignment } else { base };
        let mapped = match (&region.kind, &region.contents) {
            (RegionKind::Parameter { index }, _) => match &given[*index as usize] {
                Given::Region(bytes) => {
                    let mut surrounded = vec![FOREIGN; (address % PROTECTED_BYTES) as usize];
                    surrounded.extend(bytes);
                    surrounded.resize(surrounded.len().next_multiple_of(PROTECTED_BYTES as usize), FOREIGN);
                    bytes.is_empty() || memory.map(address - address % PROTECTED_BYTES, surrounded, region.written)
                }
                Given::Scalar(_) => panic!("region parameter {} is given a scalar", region.name),
            },
            (RegionKind::Pool, Some(contents)) => memory.map(address, contents.clone(), false),
            (RegionKind::Pool, None) => true,
            (RegionKind::Frame, _) => memory.map_undefined(address, region.bytes.unwrap_or(0) as usize),
        };
        assert!(mapped, "region {} cannot be mapped", region.name);
        addresses.push(address);
    }
    let scalar = |value: ValueId, number: u64| Value::from(Bits::from_u64(machine[program[value].file].width_bits, number));
    for (index, parameter) in program.parameters.iter().enumerate() {
        match (&parameter.kind, &given[index]) {
            (ProgramParameterKind::Pointer { region, value }, _) => {
                values.insert(*value, scalar(*value, addresses[region.0 as usize]));
            }
            (ProgramParameterKind::Scalar { value, .. }, Given::Scalar(number)) => {
                values.insert(*value, scalar(*value, *number));
            }
            _ => panic!("parameter {} is a scalar", parameter.name),
        }
    }
    if let Some(pointer) = program.stack_pointer {
        values.insert(pointer, scalar(pointer, 0));
    }
    let radix = MontgomeryRadix::one();
    let mut block = 0;
    let mut steps = 0;
    let mut came_from: Option<usize> = None;
    while block < program.blocks.len() {
        enter(program, block, came_from, &mut values);
        let mut jump = None;
        for instruction in &program.blocks[block].instructions {
            steps += 1;
            assert!(steps < 50_000_000, "{} does not end", program.name);
            let row = &machine[instruction.row];
            let read = row.operands.iter().zip(&instruction.operands).filter(|(declared, _)| declared.read);
            let inputs: Vec<Value> = read
                .zip(&row.meaning.inputs)
                .map(|((declared, operand), port)| {
                    let width = port.ty.total_bits().expect("operands are bits");
                    let number = |value: u64| Value::from(Bits::from_words(width, [value, if (value as i64) < 0 { u64::MAX } else { 0 }]));
                    match operand {
                        Operand::Value(value) => {
                            values.get(value).unwrap_or_else(|| panic!("{} reads {} undefined", row.name, program[*value].name)).clone()
                        }
                        Operand::Zero => number(0),
                        Operand::Immediate(value) => number(*value as u64),
                        Operand::Block(target) => number(u64::from(target.0)),
                        Operand::Symbol(region, offset) | Operand::FrameOffset(region, offset) => {
                            number(addresses[region.0 as usize] + offset)
                        }
                        Operand::Unused => panic!("{}: operand {} is read and has no value", row.name, declared.name),
                    }
                })
                .collect();
            let outcome = evaluate(&mut Concrete::new(&mut memory, &radix), &row.meaning, &inputs)
                .unwrap_or_else(|fault| panic!("{} in {}: {fault}", row.name, program.name));
            let written = row.operands.iter().zip(&instruction.operands).filter(|(declared, _)| declared.written);
            for ((_, operand), result) in written.zip(outcome.outputs) {
                match operand {
                    Operand::Value(value) => {
                        values.insert(*value, result);
                    }
                    Operand::Unused => {}
                    other => panic!("{} writes {other:?}", row.name),
                }
            }
            if let Some((condition, _)) = outcome.branch
                && condition.is_none_or(|condition| defined_u64(&condition) == Some(1))
            {
                jump = instruction.operands.iter().find_map(|operand| match operand {
                    Operand::Block(BlockId(target)) => Some(*target as usize),
                    _ => None,
                });
                break;
            }
        }
        came_from = Some(block);
        block = jump.unwrap_or(block + 1);
    }
    leave(program, &memory, &addresses, given);
}

/// Moves carried values where a block is a loop's head or comes after it.
fn enter(program: &Program, block: usize, came_from: Option<usize>, values: &mut HashMap<ValueId, Value>) {
    let Some(from) = came_from else { return };
    let mut moves = Vec::new();
    for item in &program.loops {
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
    let read: Vec<(ValueId, Option<Value>)> = moves.into_iter().map(|(to, from)| (to, values.get(&from).cloned())).collect();
    for (to, value) in read {
        if let Some(value) = value {
            values.insert(to, value);
        }
    }
}

fn leave(program: &Program, memory: &RegionMemory, addresses: &[u64], given: &mut [Given]) {
    for (index, region) in program.regions.iter().enumerate() {
        if let RegionKind::Parameter { index: parameter } = region.kind
            && let Given::Region(bytes) = &mut given[parameter as usize]
            && let Some(mapped) = memory.region(addresses[index])
        {
            assert!(mapped.undefined.iter().all(|byte| *byte == 0), "undefined bytes in {}", region.name);
            let start = (addresses[index] - mapped.address) as usize;
            let end = start + bytes.len();
            let foreign = mapped.bytes[..start].iter().chain(&mapped.bytes[end..]);
            assert!(foreign.into_iter().all(|byte| *byte == FOREIGN), "bytes around {} were written", region.name);
            bytes.clone_from_slice(&mapped.bytes[start..end]);
        }
    }
}
