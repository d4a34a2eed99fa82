//! From a Program and its Schedule to an Allocation, or to what does not fit. It never inserts an instruction.
//!
//! Values that must share a register (tied operands, carried values) are joined into one class where their lifetimes allow. Classes whose
//! register is given (arguments, the stack pointer, registers that exist once) come first; the others follow by the start of their lifetime and
//! take the cheapest register that is free for all of it: on a straight line that uses no more registers than are live at once.

use crate::allocation::{Allocation, AllocationFailure, SharedRegister};
use crate::dependence::{places_of_values, tied_operands};
use crate::evict::evictions;
use crate::lifetimes::{Lifetimes, Segment, lifetimes, overlap, unite};
use crate::liveness::{Liveness, liveness};
use crate::machine::{FileId, FrameStep, Machine, OperandKind};
use crate::program::{BlockId, Operand, Program, RegionKind, ValueId};
use crate::schedule::Schedule;
use crate::scheduling::resources::allocatable;
use std::collections::BTreeMap;

/// What an allocation may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllocationOptions<'a> {
    /// Keep to registers that inline assembly may name.
    pub inline_assembly: bool,
    /// Values that spilling cannot help, by number: those that spilling made, and those of files without a way to memory.
    pub unspillable: &'a [bool],
}

/// Registers for every value.
///
/// # Errors
/// What the driver should change before it tries again.
pub fn allocate(
    program: &Program,
    machine: &Machine,
    schedule: &Schedule,
    options: AllocationOptions<'_>,
) -> Result<Allocation, AllocationFailure> {
    let liveness = liveness(program, machine);
    let lifetimes = lifetimes(program, machine, schedule, &liveness);
    let mut classes = Classes::new(program, machine, lifetimes)?;
    let conflicts = classes.join(program, machine);
    if !conflicts.is_empty() {
        return Err(AllocationFailure::Copy { conflicts });
    }
    let most_live = classes.most_live(program, machine);
    let registers = match classes.assign(program, machine, options) {
        Ok(registers) => registers,
        Err(unplaced) => return Err(spill(program, machine, schedule, &liveness, options, &most_live, unplaced)),
    };
    let frame = frame(program, machine, &registers);
    Ok(Allocation { registers, frame_offsets: frame.offsets, saves: frame.saves, frame_bytes: frame.bytes, most_live })
}

/// What should leave its register so that the class at `unplaced` finds one.
fn spill(
    program: &Program,
    machine: &Machine,
    schedule: &Schedule,
    liveness: &Liveness,
    options: AllocationOptions<'_>,
    most_live: &[u32],
    unplaced: ValueId,
) -> AllocationFailure {
    let file = program[unplaced].file;
    let mut limits: Vec<Option<u32>> = (0..machine.register_files.len())
        .map(|index| {
            let file = FileId(index as u16);
            if machine[file].is_singleton() {
                None
            } else {
                allocatable(machine, file, options.inline_assembly).map(|registers| registers.len() as u32)
            }
        })
        .collect();
    let available = limits[file.0 as usize].unwrap_or(0);
    let mut found = evictions(program, machine, schedule, liveness, &limits, options.unspillable);
    // There may be registers enough in number, but not of the right kind or not adjacent: then make room for one more.
    while found.is_empty() && limits[file.0 as usize].is_some_and(|limit| limit > 1) {
        limits[file.0 as usize] = limits[file.0 as usize].map(|limit| limit.min(most_live[file.0 as usize]).saturating_sub(1));
        found = evictions(program, machine, schedule, liveness, &limits, options.unspillable);
    }
    AllocationFailure::Spill { evictions: found, file, live: most_live[file.0 as usize], available }
}

/// Values that share a register.
struct Class {
    segments: Vec<Segment>,
    forced: Option<u32>,
    /// Stands in a register-or-zero operand.
    in_base: bool,
}

struct Classes {
    /// Class of each value: an index that leads to the representative.
    parent: Vec<u32>,
    classes: Vec<Class>,
}

impl Classes {
    fn new(program: &Program, machine: &Machine, lifetimes: Lifetimes) -> Result<Self, AllocationFailure> {
        let places = places_of_values(program, machine);
        let mut classes: Vec<Class> = lifetimes
            .segments
            .into_iter()
            .zip(places)
            .map(|(segments, place)| Class { segments, forced: place.map(|(_, register)| register), in_base: false })
            .collect();
        for (value, class) in program.values.iter().zip(&mut classes) {
            if machine[value.file].is_singleton() {
                class.forced = Some(0);
            }
        }
        if let Some(abi) = &machine.abi {
            let mut position = 0;
            for parameter in &program.parameters {
                let (crate::program::ProgramParameterKind::Pointer { value, .. }
                | crate::program::ProgramParameterKind::Scalar { value, .. }) = parameter.kind;
                let registers = program[value].tuple;
                let wanted = position + registers;
                match abi.arguments.get(position as usize..wanted as usize) {
                    Some(arguments) => classes[value.0 as usize].forced = arguments.first().copied(),
                    None => return Err(AllocationFailure::Arguments { wanted, available: abi.arguments.len() as u32 }),
                }
                position = wanted;
            }
            if let Some(value) = program.stack_pointer {
                classes[value.0 as usize].forced = Some(abi.stack_pointer);
            }
        }
        for instruction in program.blocks.iter().flat_map(|block| &block.instructions) {
            for (operand, declared) in instruction.operands.iter().zip(&machine[instruction.row].operands) {
                if let (Operand::Value(value), OperandKind::RegisterOrZero(_)) = (operand, &declared.kind) {
                    classes[value.0 as usize].in_base = true;
                }
            }
        }
        Ok(Self { parent: (0..program.values.len() as u32).collect(), classes })
    }

    fn representative(&self, value: ValueId) -> usize {
        let mut index = value.0;
        while self.parent[index as usize] != index {
            index = self.parent[index as usize];
        }
        index as usize
    }

    /// Joins what must share a register; what could not be joined is returned.
    fn join(&mut self, program: &Program, machine: &Machine) -> Vec<SharedRegister> {
        let mut conflicts = Vec::new();
        for (lap, one) in program.loops.iter().enumerate() {
            for (index, carried) in one.carried.iter().enumerate() {
                let (lap, index) = (lap as u32, index as u32);
                if !self.unite(carried.current, carried.next) {
                    conflicts.push(SharedRegister::Next { lap, carried: index });
                }
                if !self.unite(carried.current, carried.initial) {
                    conflicts.push(SharedRegister::Initial { lap, carried: index });
                }
                if !self.unite(carried.next, carried.last) {
                    conflicts.push(SharedRegister::Next { lap, carried: index });
                }
            }
        }
        for (block, content) in program.blocks.iter().enumerate() {
            for (index, instruction) in content.instructions.iter().enumerate() {
                for (operand, read, written) in tied_operands(machine, instruction) {
                    if !self.unite(read, written) {
                        let block = BlockId(block as u32);
                        conflicts.push(SharedRegister::Tied { block, instruction: index as u32, operand: operand as u32 });
                    }
                }
            }
        }
        conflicts.sort_unstable();
        conflicts.dedup();
        conflicts
    }

    /// Joins two classes unless they are live together or bound to different registers.
    fn unite(&mut self, a: ValueId, b: ValueId) -> bool {
        let (a, b) = (self.representative(a), self.representative(b));
        if a == b {
            return true;
        }
        let (left, right) = (&self.classes[a], &self.classes[b]);
        let bound_apart = matches!((left.forced, right.forced), (Some(left), Some(right)) if left != right);
        if bound_apart || overlap(&left.segments, &right.segments) {
            return false;
        }
        let joined = Class {
            segments: unite(&left.segments, &right.segments),
            forced: left.forced.or(right.forced),
            in_base: left.in_base || right.in_base,
        };
        let (kept, gone) = (a.min(b), a.max(b));
        self.classes[kept] = joined;
        self.parent[gone] = kept as u32;
        true
    }

    /// Representatives in the order in which they get registers.
    fn order(&self, program: &Program) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.classes.len())
            .filter(|&index| self.parent[index] as usize == index && !self.classes[index].segments.is_empty())
            .collect();
        // Wide values first among those that start together: a gap of one register is of no use to them.
        order.sort_by_key(|&index| {
            let class = &self.classes[index];
            (class.forced.is_none(), class.segments[0].0, std::cmp::Reverse(program.values[index].tuple), !class.in_base, index)
        });
        order
    }

    fn most_live(&self, program: &Program, machine: &Machine) -> Vec<u32> {
        let mut events: Vec<BTreeMap<u32, i64>> = vec![BTreeMap::new(); machine.register_files.len()];
        for index in self.order(program) {
            let value = &program.values[index];
            for &(from, until) in &self.classes[index].segments {
                *events[value.file.0 as usize].entry(from).or_default() += i64::from(value.tuple);
                *events[value.file.0 as usize].entry(until).or_default() -= i64::from(value.tuple);
            }
        }
        let most = events.iter().map(|events| {
            let mut live = 0_i64;
            events
                .values()
                .map(|change| {
                    live += change;
                    live
                })
                .max()
                .unwrap_or(0)
                .max(0) as u32
        });
        most.collect()
    }

    fn assign(&self, program: &Program, machine: &Machine, options: AllocationOptions<'_>) -> Result<Vec<Option<u32>>, ValueId> {
        let mut files: Vec<FileRegisters> = (0..machine.register_files.len())
            .map(|file| FileRegisters::new(machine, FileId(file as u16), options.inline_assembly))
            .collect();
        let mut chosen: Vec<Option<u32>> = vec![None; program.values.len()];
        for index in self.order(program) {
            let class = &self.classes[index];
            let value = &program.values[index];
            let file = &mut files[value.file.0 as usize];
            let register = match class.forced {
                Some(register) => Some(register),
                None => file.find(machine, value.file, class, value.tuple),
            };
            let register = register.ok_or(ValueId(index as u32))?;
            file.occupy(register, value.tuple, &class.segments);
            chosen[index] = Some(register);
        }
        Ok((0..program.values.len()).map(|value| chosen[self.representative(ValueId(value as u32))]).collect())
    }
}

/// Registers of one file and when they are taken.
struct FileRegisters {
    /// Registers that may be chosen, cheapest first; `None` without limit.
    preference: Option<Vec<u32>>,
    /// By register: start of each segment and its end.
    taken: BTreeMap<u32, BTreeMap<u32, u32>>,
}

impl FileRegisters {
    fn new(machine: &Machine, file: FileId, inline_assembly: bool) -> Self {
        let preference = allocatable(machine, file, inline_assembly).map(|mut registers| {
            let file = &machine[file];
            // Registers that need no saving first; among them the one that fewest operands can take.
            registers.sort_by_key(|register| (file.saved.contains(register), file.zero_in_base != Some(*register), *register));
            registers
        });
        Self { preference, taken: BTreeMap::new() }
    }

    fn is_free(&self, register: u32, segments: &[Segment]) -> bool {
        let Some(taken) = self.taken.get(&register) else { return true };
        segments.iter().all(|&(from, until)| taken.range(..until).next_back().is_none_or(|(_, end)| *end <= from))
    }

    fn find(&self, machine: &Machine, file: FileId, class: &Class, tuple: u32) -> Option<u32> {
        let described = &machine[file];
        let alignment = described.tuples.iter().find(|(length, _)| *length == tuple).map_or(1, |(_, alignment)| (*alignment).max(1));
        let fits = |first: u32, allowed: &dyn Fn(u32) -> bool| {
            first.is_multiple_of(alignment)
                && !(class.in_base && described.zero_in_base == Some(first))
                && (first..first + tuple).all(|register| allowed(register) && self.is_free(register, &class.segments))
        };
        match &self.preference {
            Some(preference) => preference.iter().copied().find(|&first| fits(first, &|register| preference.contains(&register))),
            None => (0..).find(|&first| fits(first, &|_| true)),
        }
    }

    fn occupy(&mut self, register: u32, tuple: u32, segments: &[Segment]) {
        for register in register..register + tuple {
            self.taken.entry(register).or_default().extend(segments.iter().copied());
        }
    }
}

struct Frame {
    offsets: Vec<(crate::program::RegionId, u64)>,
    saves: Vec<(FileId, u32, u64)>,
    bytes: u64,
}

/// Places frame regions above the header, and above them the saved registers that are written.
fn frame(program: &Program, machine: &Machine, registers: &[Option<u32>]) -> Frame {
    let mut frame = Frame { offsets: Vec::new(), saves: Vec::new(), bytes: 0 };
    let Some(abi) = &machine.abi else { return frame };
    let mut top = u64::from(abi.frame_header_bytes);
    let mut place = |bytes: u64, align: u64| {
        let offset = top.next_multiple_of(align.max(1));
        top = offset + bytes;
        offset
    };
    for (index, region) in program.regions.iter().enumerate().filter(|(_, region)| region.kind == RegionKind::Frame) {
        let offset = place(region.bytes.unwrap_or(0), u64::from(region.align_bytes));
        frame.offsets.push((crate::program::RegionId(index as u32), offset));
    }
    let written = written_registers(program, machine, registers);
    for step in &abi.prologue {
        let FrameStep::EachSaved { file, .. } = step else { continue };
        let bytes = u64::from(machine[*file].width_bits.div_ceil(8));
        for &register in written.get(file).into_iter().flatten().filter(|register| machine[*file].saved.contains(register)) {
            frame.saves.push((*file, register, place(bytes, bytes)));
        }
    }
    if !frame.offsets.is_empty() || !frame.saves.is_empty() {
        frame.bytes = top.next_multiple_of(u64::from(abi.stack_align_bytes.max(1)));
    }
    frame
}

/// Registers that the program's instructions write, by file, in order.
pub fn written_registers(program: &Program, machine: &Machine, registers: &[Option<u32>]) -> BTreeMap<FileId, Vec<u32>> {
    let mut written: BTreeMap<FileId, Vec<u32>> = BTreeMap::new();
    for instruction in program.blocks.iter().flat_map(|block| &block.instructions) {
        for (_, value) in instruction.writes(machine) {
            if let Some(register) = registers[value.0 as usize] {
                written.entry(program[value].file).or_default().extend(register..register + program[value].tuple);
            }
        }
    }
    for list in written.values_mut() {
        list.sort_unstable();
        list.dedup();
    }
    written
}
