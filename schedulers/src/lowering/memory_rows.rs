//! What the machine's load and store rows do, found by running them over a memory that records: operands of the address, bytes moved, low address bits dropped.

use super::probes;
use super::selection::{RowKind, RowPorts, Selector, register_file};
use super::shapes::content_type;
use crate::machine::{FileId, Machine, OperandKind, Row, RowId, RowOperand};
use kgen_ir::bits::Bits;
use kgen_ir::domains::concrete::{FaultKind, ShadowedBits, Value};
use kgen_ir::domains::memory::Memory;
use kgen_ir::types::{ByteOrder, Type};

/// A load or store row as the address lowering sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryRow {
    /// The row.
    pub row: RowId,
    /// File of the value.
    pub file: FileId,
    /// Bytes moved.
    pub bytes: u32,
    /// It stores.
    pub write: bool,
    /// The bytes are those of the register at the same place modulo its size, instead of its lowest ones (element stores of vectors).
    pub in_place: bool,
    /// Operand number of the value.
    pub value: usize,
    /// Operand number of the base register.
    pub base: usize,
    /// The base may be the constant zero.
    pub base_or_zero: bool,
    /// Operand number of a register that is added to the base.
    pub index: Option<usize>,
    /// Operand number of a constant that is added to the base.
    pub offset: Option<usize>,
    /// Low bits of the address that are dropped, as a mask (15 where the access is forced to multiples of 16).
    pub dropped: u64,
}

/// All plain loads and stores of a machine.
#[derive(Clone, Debug, Default)]
pub struct MemoryRows {
    rows: Vec<MemoryRow>,
}

impl MemoryRows {
    /// Finds them.
    pub fn of(selector: &Selector<'_>) -> Self {
        let machine = selector.machine();
        let mut rows = Vec::new();
        for (kind, write) in [(RowKind::Load, false), (RowKind::Store, true)] {
            rows.extend(selector.rows_of_kind(kind).filter_map(|(id, row)| recognize(machine, id, row, write)));
        }
        Self { rows }
    }

    /// The file of base registers: where pointers live.
    pub fn pointer_file(&self, machine: &Machine) -> Option<FileId> {
        self.rows.first().and_then(|row| register_file(&machine[row.row].operands[row.base].kind))
    }

    /// All of them, loads first.
    pub fn all(&self) -> &[MemoryRow] {
        &self.rows
    }

    /// The best plain access of `bytes` bytes of a register of `file`; with `run_time_index`, one that adds a register to the base. Constant offsets in the
    /// instruction are preferred to offsets in registers.
    pub fn best(&self, file: FileId, bytes: u32, write: bool, run_time_index: bool) -> Option<&MemoryRow> {
        let fits = |row: &&MemoryRow| row.file == file && row.bytes == bytes && row.write == write && !row.in_place;
        self.rows
            .iter()
            .filter(fits)
            .filter(|row| !run_time_index || row.index.is_some())
            .min_by_key(|row| (row.offset.is_none(), row.index.is_some() != run_time_index))
    }

    /// The store of `bytes` bytes of a register of `file` that lie in it where they go in memory.
    pub fn element_store(&self, file: FileId, bytes: u32) -> Option<&MemoryRow> {
        self.rows.iter().find(|row| row.file == file && row.bytes == bytes && row.write && row.in_place)
    }
}

/// Memory whose byte at an address is a function of the address; remembers the one access.
#[derive(Default)]
struct Recorder {
    accesses: Vec<(u64, u32)>,
    stored: Option<ShadowedBits>,
}

fn byte_at(address: u64) -> u8 {
    probes::mix(address as u32, (address >> 20) as u32, 0x5a) as u8
}

impl Memory for Recorder {
    fn load(&mut self, address: u64, bytes: u32) -> Result<ShadowedBits, FaultKind> {
        self.accesses.push((address, bytes));
        Ok(Bits::from_bytes(&(0..u64::from(bytes)).map(|offset| byte_at(address.wrapping_add(offset))).collect::<Vec<_>>()).into())
    }

    fn store(&mut self, address: u64, value: &ShadowedBits) -> Result<(), FaultKind> {
        self.accesses.push((address, value.width() / 8));
        self.stored = Some(value.clone());
        Ok(())
    }
}

/// One run of the row.
struct Trial {
    address: u64,
    bytes: u32,
    stored: Option<ShadowedBits>,
    loaded: Option<probes::Results>,
}

fn run(row: &Row, inputs: &[Value]) -> Option<Trial> {
    let mut memory = Recorder::default();
    let outcome = probes::run_with(&row.meaning, inputs, &mut memory)?;
    let [(address, bytes)] = memory.accesses[..] else { return None };
    Some(Trial { address, bytes, stored: memory.stored, loaded: probes::results(&outcome) })
}

fn recognize(machine: &Machine, id: RowId, row: &Row, write: bool) -> Option<MemoryRow> {
    let ports = RowPorts::of(row);
    let unfit = |operand: &RowOperand| operand.tuple != 1 || matches!(operand.kind, OperandKind::Symbol | OperandKind::Label);
    if row.operands.iter().any(unfit) {
        return None;
    }
    // Inputs of trial t, with operand `shifted` moved by a page.
    let inputs = |trial: u32, shifted: Option<usize>| -> Vec<Value> {
        let shift = |position: usize| if shifted == Some(position) { 0x1000 } else { 0 };
        let number = |position: usize, number: &usize| {
            let ty = &row.meaning.inputs[position].ty;
            match (&row.operands[*number].kind, ty) {
                (OperandKind::Immediate { low, high, step }, _) => {
                    let steps = ((high - low) / step.max(&1)).clamp(2, 1 << 12) as u64;
                    let chosen = low + step.max(&1) * i128::from(probes::mix(trial, position as u32, 9) % (steps / 2));
                    probes::integer(ty, chosen as i64 + shift(position))
                }
                (_, Type::Bits { lanes: 1, width }) => {
                    let mask = if *width >= 32 { 0x0fff_ffff } else { u64::MAX };
                    probes::integer(ty, (probes::mix(trial, position as u32, 8) & mask) as i64 + shift(position))
                }
                (_, ty) => probes::register(trial % 8, position as u32, ty),
            }
        };
        ports.read.iter().enumerate().map(|(position, operand)| number(position, operand)).collect()
    };
    let first = run(row, &inputs(0, None))?;
    let mut address_operands = Vec::new();
    let mut other = Vec::new();
    for (position, operand) in ports.read.iter().enumerate() {
        let is_scalar = matches!(row.meaning.inputs[position].ty, Type::Bits { lanes: 1, .. });
        let moved = is_scalar && run(row, &inputs(0, Some(position)))?.address != first.address;
        if moved { address_operands.push((position, *operand)) } else { other.push(*operand) }
    }
    let value = match (write, &other[..], &ports.written[..]) {
        (true, [value], []) => *value,
        (false, [], [value]) => *value,
        _ => return None,
    };
    let file = register_file(&row.operands[value].kind)?;
    let is_register = |operand: usize| register_file(&row.operands[operand].kind).is_some();
    let or_zero = |operand: usize| matches!(row.operands[operand].kind, OperandKind::RegisterOrZero(_));
    let numbers = |wanted: bool| -> Vec<usize> {
        address_operands.iter().map(|(_, operand)| *operand).filter(|operand| is_register(*operand) == wanted).collect()
    };
    let (base, index) = match numbers(true)[..] {
        [base] => (base, None),
        [a, b] if or_zero(a) || !or_zero(b) => (a, Some(b)),
        [a, b] => (b, Some(a)),
        _ => return None,
    };
    let offset = match numbers(false)[..] {
        [] => None,
        [offset] => Some(offset),
        _ => return None,
    };
    let width = address_operands.iter().map(|(position, _)| row.meaning.inputs[*position].ty.total_bits().unwrap_or(0)).max()?;
    let modulus_mask = if width >= 64 { u64::MAX } else { (1 << width) - 1 };
    let mut dropped_candidates = vec![0, u64::from(first.bytes) - 1, u64::from(machine[file].width_bits / 8).max(1) - 1];
    let (mut plain, mut in_place) = (true, true);
    for trial in 0..12 {
        let given = inputs(trial, None);
        let result = run(row, &given)?;
        if result.bytes != first.bytes {
            return None;
        }
        let sum = address_operands.iter().try_fold(0u64, |sum, (position, _)| {
            let value = match &given[*position] {
                Value::Bits(bits) => bits.defined()?.to_u64()?,
                Value::Integer(_) | Value::List(_) => return None,
            };
            let ty = &row.meaning.inputs[*position].ty;
            Some(sum.wrapping_add(sign_filled(value, ty, &row.operands[ports.read[*position]].kind)))
        })? & modulus_mask;
        dropped_candidates.retain(|mask| result.address & modulus_mask == sum & !mask & modulus_mask);
        let place = (result.address % u64::from((machine[file].width_bits / 8).max(1))) as u32;
        let moved = if write {
            let position = ports.read.iter().position(|operand| *operand == value)?;
            let Value::Bits(register) = &given[position] else { return None };
            (result.stored?, register_bytes(machine, register.bits(), result.bytes), register.bits().extract(place * 8, result.bytes * 8))
        } else {
            let loaded = result.loaded?.first()?.clone();
            let bytes: Vec<u8> = (0..u64::from(result.bytes)).map(|offset| byte_at(result.address.wrapping_add(offset))).collect();
            let expected = content_of(machine, file, &bytes)?;
            (loaded, Some(expected.clone()), expected)
        };
        plain &= moved.1.is_some() && moved.0.defined() == moved.1.as_ref();
        in_place &= write && content_type(machine, file) != Type::bits(machine[file].width_bits) && moved.0.defined() == Some(&moved.2);
    }
    if !(plain || in_place) {
        return None;
    }
    Some(MemoryRow {
        row: id,
        file,
        bytes: first.bytes,
        write,
        in_place: !plain,
        value,
        base,
        base_or_zero: or_zero(base),
        index,
        offset,
        dropped: *dropped_candidates.first()?,
    })
}

/// An immediate with negative values counts signed.
fn sign_filled(value: u64, ty: &Type, kind: &OperandKind) -> u64 {
    let width = ty.total_bits().unwrap_or(64);
    let signed = matches!(kind, OperandKind::Immediate { low, .. } if *low < 0);
    if signed && width < 64 && value >> (width - 1) & 1 == 1 { value | u64::MAX << width } else { value }
}

/// The bytes that a plain store of the lowest `bytes` of a register writes.
fn register_bytes(machine: &Machine, register: &Bits, bytes: u32) -> Option<Bits> {
    if register.width() > 64 {
        return (register.width() == bytes * 8).then(|| register.clone());
    }
    let mut list = register.extract(0, bytes * 8).to_bytes();
    if machine.byte_order == ByteOrder::Big {
        list.reverse();
    }
    Some(Bits::from_bytes(&list))
}

/// The content of a register after a plain load of these bytes.
fn content_of(machine: &Machine, file: FileId, bytes: &[u8]) -> Option<Bits> {
    let width = machine[file].width_bits;
    if width > 64 {
        return (bytes.len() as u32 * 8 == width).then(|| Bits::from_bytes(bytes));
    }
    let mut list = bytes.to_vec();
    if machine.byte_order == ByteOrder::Big {
        list.reverse();
    }
    let bits = Bits::from_bytes(&list);
    (bits.width() <= width).then(|| bits.extract(0, width))
}
