//! Address lowering: for all memory accesses of a program together, which base and index registers hold their addresses. It runs before scheduling.
//!
//! Index registers hold small offsets and are shared over regions; bases stand at multiples of a window. The window is chosen so that the registers needed
//! are fewest. Where even those are more than the file offers, bases are made again where they are used instead of being kept from the start.

use super::builder::{Input, Lowering, Place, Position, ProgramBuilder};
use super::memory_rows::MemoryRow;
use super::own_address;
use super::probes;
use super::selection::{RowKind, RowPorts, immediate_fits, register_file};
use super::shapes::{self, LaneOp};
use crate::machine::{Machine, OperandKind, RowId};
use crate::program::{Instruction, Operand, RegionId, RegionKind, ValueId};
use std::collections::{BTreeMap, BTreeSet};

/// An access whose address registers are still to be chosen.
#[derive(Clone, Debug)]
pub struct PendingAccess {
    pub(crate) position: Position,
    pub(crate) place: Place,
    pub(crate) row: MemoryRow,
}

/// Instructions to be put before another one.
#[derive(Default)]
struct Insertions {
    before: BTreeMap<(usize, usize), Vec<Instruction>>,
}

/// The instructions so that each stands after those whose results it reads, otherwise in the order given: a load from the pool may share an offset that was made
/// for something later.
fn in_dependence_order(machine: &Machine, instructions: Vec<Instruction>) -> Vec<Instruction> {
    let mut missing: BTreeSet<ValueId> =
        instructions.iter().flat_map(|instruction| instruction.writes(machine).map(|(_, value)| value)).collect();
    let mut ordered = Vec::with_capacity(instructions.len());
    let mut waiting = instructions;
    while !waiting.is_empty() {
        let before = waiting.len();
        let mut still = Vec::new();
        for instruction in waiting {
            if instruction.reads(machine).any(|(_, value)| missing.contains(&value)) {
                still.push(instruction);
            } else {
                for (_, value) in instruction.writes(machine) {
                    missing.remove(&value);
                }
                ordered.push(instruction);
            }
        }
        waiting = still;
        if waiting.len() == before {
            // A circle cannot be: values are in single assignment. Nothing is lost if it were.
            ordered.append(&mut waiting);
        }
    }
    ordered
}

/// Chooses the address operands of every access.
pub(crate) fn resolve(builder: &mut ProgramBuilder<'_>) -> Lowering<()> {
    let pending = std::mem::take(&mut builder.pending);
    let kept = std::mem::take(&mut builder.prologue);
    let mut plan = Plan::new(builder, &pending)?;
    let mut choices = Vec::with_capacity(pending.len());
    let mut insertions = Insertions::default();
    for access in &pending {
        choices.push(plan.choose(builder, access, &mut insertions)?);
    }
    // Addresses stand before the constants, which may be loads from the pool.
    let address_count = builder.prologue.len();
    builder.prologue.extend(kept);
    for (access, chosen) in pending.iter().zip(choices) {
        let instruction = match access.position {
            Position::Prologue(index) => &mut builder.prologue[address_count + index],
            Position::Block(block, index) => &mut builder.program.blocks[block].instructions[index],
        };
        let places = [(Some(access.row.base), chosen.base), (access.row.index, chosen.index), (access.row.offset, chosen.offset)];
        for (number, operand) in places {
            if let (Some(number), Some(operand)) = (number, operand) {
                instruction.operands[number] = operand;
            }
        }
    }
    builder.prologue = in_dependence_order(builder.machine(), std::mem::take(&mut builder.prologue));
    for ((block, index), list) in insertions.before.into_iter().rev() {
        builder.program.blocks[block].instructions.splice(index..index, list);
    }
    Ok(())
}

/// The operands of one address.
struct Chosen {
    base: Option<Operand>,
    index: Option<Operand>,
    offset: Option<Operand>,
}

/// What has been decided.
struct Plan {
    /// Window of the index registers in bytes.
    window: u64,
    /// Bases are kept from the start of the program.
    keep_bases: bool,
    /// Kept bases by root and offset.
    bases: BTreeMap<(ValueId, u64), ValueId>,
    /// Bases made in a block.
    local_bases: BTreeMap<(usize, ValueId, u64), ValueId>,
    /// Values that are known from the start of the program (pointers of parameters and of the pool).
    roots: BTreeSet<ValueId>,
}

/// Offsets of accesses by base plus constant index register, by root.
fn shared_offsets(builder: &ProgramBuilder<'_>, pending: &[PendingAccess]) -> BTreeMap<ValueId, BTreeSet<u64>> {
    let mut offsets: BTreeMap<ValueId, BTreeSet<u64>> = BTreeMap::new();
    for access in pending {
        if access.row.offset.is_none()
            && access.row.index.is_some()
            && access.place.index.is_none()
            && let Some(root) = access.place.base.or_else(|| builder.addresses.get(&access.place.region).copied())
        {
            offsets.entry(root).or_default().insert(access.place.offset);
        }
    }
    offsets
}

impl Plan {
    fn new(builder: &mut ProgramBuilder<'_>, pending: &[PendingAccess]) -> Lowering<Self> {
        let regions: BTreeSet<RegionId> =
            pending.iter().filter(|access| access.place.base.is_none()).map(|access| access.place.region).collect();
        for region in regions {
            region_address(builder, region)?;
        }
        let roots: BTreeSet<ValueId> = builder.addresses.values().copied().collect();
        let offsets = shared_offsets(builder, pending);
        let all = || offsets.iter().flat_map(|(root, list)| list.iter().map(move |offset| (*root, *offset)));
        let greatest = all().map(|(_, offset)| offset).max().unwrap_or(0);
        let registers = |window: u64| {
            let indices: BTreeSet<u64> = all().map(|(_, offset)| offset % window).filter(|index| *index != 0).collect();
            let bases: BTreeSet<(ValueId, u64)> =
                all().map(|(root, offset)| (root, offset / window)).filter(|(_, base)| *base != 0).collect();
            (indices.len() + bases.len(), bases.len())
        };
        let mut windows: Vec<u64> =
            std::iter::successors(Some(16u64), |window| window.checked_mul(2)).take_while(|window| *window / 2 <= greatest).collect();
        windows.extend((1..).map(|step| step * 48).take_while(|window| *window <= greatest));
        if windows.is_empty() {
            windows.push(16);
        }
        let window = windows.into_iter().min_by_key(|window| (registers(*window), *window)).unwrap_or(16);
        let keep_bases = registers(window).0 <= available_registers(builder);
        Ok(Self { window, keep_bases, bases: BTreeMap::new(), local_bases: BTreeMap::new(), roots })
    }

    /// The operands of the access's address.
    fn choose(&mut self, builder: &mut ProgramBuilder<'_>, access: &PendingAccess, insertions: &mut Insertions) -> Lowering<Chosen> {
        let place = &access.place;
        let root = match place.base {
            Some(base) => base,
            None => region_address(builder, place.region)?,
        };
        if let Some(operand) = access.row.offset {
            let (low, high, step) = match builder.machine()[access.row.row].operands[operand].kind {
                OperandKind::Immediate { low, high, step } => (low, high, step),
                _ => (0, 1, 1),
            };
            let offset = place.offset as i64;
            // A window that every remainder fits: the greatest power of two below the limit.
            let span = 1i64 << high.clamp(1, 1 << 62).ilog2();
            let rest = if immediate_fits(low, high, step, offset) { offset } else { offset % span };
            let base = self.base(builder, access, root, (offset - rest) as u64, insertions)?;
            let index = match (access.row.index, place.index) {
                (Some(_), None) => Some(builder.integer(0)?),
                (_, index) => index,
            };
            return Ok(Chosen {
                base: Some(Operand::Value(base)),
                index: index.map(Operand::Value),
                offset: Some(Operand::Immediate(rest)),
            });
        }
        if place.index.is_some() || access.row.index.is_none() {
            let base = self.base(builder, access, root, place.offset, insertions)?;
            return Ok(Chosen { base: Some(Operand::Value(base)), index: place.index.map(Operand::Value), offset: None });
        }
        let rest = place.offset % self.window;
        let base = self.base(builder, access, root, place.offset - rest, insertions)?;
        let (base, index) = if rest == 0 && access.row.base_or_zero && builder.file_of(base) == builder.integer_file() {
            (Operand::Zero, base)
        } else {
            builder.set_name("offset");
            (Operand::Value(base), builder.integer(rest as i64)?)
        };
        Ok(Chosen { base: Some(base), index: Some(Operand::Value(index)), offset: None })
    }

    fn base(
        &mut self,
        builder: &mut ProgramBuilder<'_>,
        access: &PendingAccess,
        root: ValueId,
        offset: u64,
        insertions: &mut Insertions,
    ) -> Lowering<ValueId> {
        if offset == 0 {
            return Ok(root);
        }
        let region = builder.program.regions[access.place.region.0 as usize].name.clone();
        let name = format!("{region}_{offset}");
        match access.position {
            Position::Block(block, index) if !(self.keep_bases && self.roots.contains(&root)) => {
                if let Some(base) = self.local_bases.get(&(block, root, offset)) {
                    return Ok(*base);
                }
                let kept = std::mem::take(&mut builder.prologue);
                builder.set_name(&name);
                let constant_before = builder.constants.clone();
                let made = builder.in_prologue(|builder| builder.advance(root, offset));
                let instructions = std::mem::replace(&mut builder.prologue, kept);
                // Constants made on the way belong to this place only.
                builder.constants = constant_before;
                let base = made?;
                insertions.before.entry((block, index)).or_default().extend(instructions);
                self.local_bases.insert((block, root, offset), base);
                Ok(base)
            }
            _ => {
                if let Some(base) = self.bases.get(&(root, offset)) {
                    return Ok(*base);
                }
                builder.set_name(&name);
                let base = builder.in_prologue(|builder| builder.advance(root, offset))?;
                self.bases.insert((root, offset), base);
                Ok(base)
            }
        }
    }
}

/// Registers of the integer file that are neither reserved nor arguments, less a few for counters and pointers of loops.
fn available_registers(builder: &ProgramBuilder<'_>) -> usize {
    let machine = builder.machine();
    let file = &machine[builder.integer_file()];
    let Some(count) = file.count else { return usize::MAX };
    let loops = 2 * builder.program.loops.len();
    let carried: usize = builder.program.loops.iter().map(|item| item.carried.len()).sum();
    (count as usize).saturating_sub(file.reserved.len() + builder.program.parameters.len() + loops + carried)
}

/// The pointer to a region's first byte, in the prologue where it has to be made.
pub(crate) fn region_address(builder: &mut ProgramBuilder<'_>, region: RegionId) -> Lowering<ValueId> {
    if let Some(address) = builder.addresses.get(&region) {
        return Ok(*address);
    }
    let address = match builder.program.regions[region.0 as usize].kind {
        RegionKind::Pool => symbol_address(builder, region)?,
        RegionKind::Frame => frame_address(builder, region)?,
        RegionKind::Parameter { .. } => return Err(builder.missing("the pointer of a parameter")),
    };
    builder.addresses.insert(region, address);
    Ok(address)
}

/// A row and its operands that read the symbol and perhaps one register.
struct SymbolRow {
    row: RowId,
    symbol: usize,
    register: Option<usize>,
    result: usize,
}

fn symbol_rows(builder: &ProgramBuilder<'_>) -> Vec<SymbolRow> {
    let file = builder.pointer_file();
    let mut found = Vec::new();
    for (id, row) in builder.selector.rows_of_kind(RowKind::Compute) {
        let ports = RowPorts::of(row);
        let symbols: Vec<usize> = ports.read.iter().copied().filter(|number| row.operands[*number].kind == OperandKind::Symbol).collect();
        let registers: Vec<usize> =
            ports.read.iter().copied().filter(|number| register_file(&row.operands[*number].kind) == Some(file)).collect();
        let ([symbol], [result], true) = (&symbols[..], &ports.written[..], symbols.len() + registers.len() == ports.read.len()) else {
            continue;
        };
        if register_file(&row.operands[*result].kind) == Some(file) && registers.len() <= 1 {
            found.push(SymbolRow { row: id, symbol: *symbol, register: registers.first().copied(), result: *result });
        }
    }
    found
}

fn run_symbol_row(builder: &ProgramBuilder<'_>, row: &SymbolRow, symbol: i64, register: i64) -> Option<i64> {
    let meaning = &builder.machine()[row.row];
    let ports = RowPorts::of(meaning);
    let inputs: Vec<_> = ports
        .read
        .iter()
        .zip(&meaning.meaning.inputs)
        .map(|(number, port)| probes::integer(&port.ty, if *number == row.symbol { symbol } else { register }))
        .collect();
    let results = probes::run(&meaning.meaning, &inputs)?;
    Some(results.first()?.defined()?.to_u64()? as i64)
}

/// A region's address by one row that holds a symbol, or two (upper and lower part).
fn symbol_address(builder: &mut ProgramBuilder<'_>, region: RegionId) -> Lowering<ValueId> {
    const PROBES: [i64; 6] = [0x1000_0040, 0x1234_8770, 0x0fff_fff0, 0x0001_7ff0, 0x7ffe_8000, 0x10];
    if builder.pool_addressing == super::builder::PoolAddressing::PositionIndependent {
        return own_address::distant_address(builder, region);
    }
    let rows = symbol_rows(builder);
    let whole = |row: &SymbolRow| PROBES.iter().all(|symbol| run_symbol_row(builder, row, *symbol, 0) == Some(*symbol));
    let chain = |upper: &SymbolRow, lower: &SymbolRow| {
        PROBES.iter().all(|symbol| {
            run_symbol_row(builder, upper, *symbol, 0).and_then(|part| run_symbol_row(builder, lower, *symbol, part)) == Some(*symbol)
        })
    };
    let first: Vec<&SymbolRow> = rows.iter().filter(|row| row.register.is_none()).collect();
    let mut chosen: Vec<&SymbolRow> = first.iter().copied().filter(|row| whole(row)).take(1).collect();
    if chosen.is_empty() {
        let pair = first
            .iter()
            .flat_map(|upper| rows.iter().filter(|row| row.register.is_some()).map(move |lower| (*upper, lower)))
            .find(|(upper, lower)| chain(upper, lower));
        chosen = pair.map(|(upper, lower)| vec![upper, lower]).unwrap_or_default();
    }
    if chosen.is_empty() {
        return Err(builder.missing("an address from its symbol"));
    }
    let name = builder.program.regions[region.0 as usize].name.clone();
    let mut address = None;
    for row in chosen {
        let operands = builder.machine()[row.row].operands.len();
        address = Some(builder.in_prologue(|builder| {
            builder.set_name(&name);
            let result = builder.new_value(builder.pointer_file(), false);
            let mut list = vec![Operand::Unused; operands];
            list[row.symbol] = Operand::Symbol(region, 0);
            list[row.result] = Operand::Value(result);
            if let (Some(register), Some(part)) = (row.register, address) {
                list[register] = Operand::Value(part);
            }
            builder.place_instruction(Instruction { row: row.row, operands: list, memory: None, span: None });
            result
        }));
    }
    address.ok_or_else(|| builder.missing("an address from its symbol"))
}

/// The address of scratch in the frame: the stack pointer plus an offset that allocation fixes, or a name of its own where pointers are not calculated with.
fn frame_address(builder: &mut ProgramBuilder<'_>, region: RegionId) -> Lowering<ValueId> {
    let shape = shapes::immediate_shape(builder.machine(), builder.pointer_file(), LaneOp::Add);
    let Some(matched) = builder.selector.row_for(&shape) else { return symbol_address(builder, region) };
    let pointer = stack_pointer(builder);
    builder.in_prologue(|builder| {
        builder.set_name("frame");
        let results = builder.emit(&matched, &[Input::Value(pointer), Input::Constant(0)])?;
        let immediates: Vec<usize> = matched
            .operands
            .iter()
            .enumerate()
            .filter(|(_, source)| **source == super::selection::Source::Input(1))
            .map(|(number, _)| number)
            .collect();
        if let Some(instruction) = builder.prologue.last_mut() {
            for number in immediates {
                instruction.operands[number] = Operand::FrameOffset(region, 0);
            }
        }
        results.first().copied().ok_or_else(|| builder.missing("stack pointer plus a constant"))
    })
}

fn stack_pointer(builder: &mut ProgramBuilder<'_>) -> ValueId {
    if let Some(pointer) = builder.program.stack_pointer {
        return pointer;
    }
    builder.set_name("stack");
    let pointer = builder.new_value(builder.pointer_file(), false);
    builder.program.stack_pointer = Some(pointer);
    pointer
}
