//! Constants: the cheapest rows that make them (at most three, found by search over what the rows mean), else the constant pool.

use super::builder::{Input, Lowering, Place, ProgramBuilder};
use super::probes;
use super::selection::{RowKind, RowMatch, RowPorts, Selector, Source, register_file};
use super::shapes::{self, LaneOp, Shape, ShapeBuilder};
use crate::machine::{FileId, Machine, OperandKind};
use crate::program::{RegionId, ValueId};
use kgen_ir::body::BinaryOp;
use kgen_ir::types::{ByteOrder, Type};
use std::collections::BTreeMap;
use std::rc::Rc;

/// Most values of the immediates of one row that are tried for the table of single-row constants.
const IMMEDIATE_LIMIT: i128 = 256;

/// Lane operations by which two single-row constants are combined.
const COMBINATIONS: [LaneOp; 11] = [
    LaneOp::ShiftRight,
    LaneOp::ShiftLeft,
    LaneOp::ShiftRightSigned,
    LaneOp::RotateLeft,
    LaneOp::Add,
    LaneOp::Subtract,
    LaneOp::Nor,
    LaneOp::Xor,
    LaneOp::And,
    LaneOp::AndNot,
    LaneOp::Or,
];

/// The constant pool of a program.
#[derive(Clone, Debug, Default)]
pub struct Pool {
    /// Its region, once something is in it.
    pub region: Option<RegionId>,
    /// Its contents.
    pub bytes: Vec<u8>,
    offsets: BTreeMap<Vec<u8>, u64>,
}

impl Pool {
    /// The offset of these bytes, which are added where they are new; every entry is aligned to its own size.
    pub fn place(&mut self, bytes: &[u8]) -> u64 {
        if let Some(offset) = self.offsets.get(bytes) {
            return *offset;
        }
        let align = bytes.len().next_power_of_two();
        self.bytes.resize(self.bytes.len().next_multiple_of(align), 0);
        let offset = self.bytes.len() as u64;
        self.bytes.extend_from_slice(bytes);
        self.offsets.insert(bytes.to_vec(), offset);
        offset
    }
}

/// A constant that one row without register operands makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SingleRowConstant {
    /// The register's bytes in address order.
    pub bytes: Vec<u8>,
    /// The row with its immediates.
    pub row: RowMatch,
}

/// The constants of `file` that one row makes from its immediates alone.
pub fn single_row_constants(selector: &Selector<'_>, file: FileId) -> Rc<[SingleRowConstant]> {
    let mut found: Vec<SingleRowConstant> = Vec::new();
    for (id, row) in selector.rows_of_kind(RowKind::Compute) {
        let ports = RowPorts::of(row);
        let [result] = ports.written[..] else { continue };
        if register_file(&row.operands[result].kind) != Some(file) {
            continue;
        }
        let mut choices: Vec<Vec<i64>> = vec![Vec::new()];
        for number in &ports.read {
            let OperandKind::Immediate { low, high, step } = row.operands[*number].kind else {
                choices.clear();
                break;
            };
            let step = step.max(1);
            if (high - low) / step * choices.len() as i128 > IMMEDIATE_LIMIT {
                choices.clear();
                break;
            }
            choices = choices
                .iter()
                .flat_map(|head| (low..high).step_by(step as usize).map(|value| [&head[..], &[value as i64]].concat()))
                .collect();
        }
        for values in choices {
            let inputs: Vec<_> = values.iter().zip(&row.meaning.inputs).map(|(value, port)| probes::integer(&port.ty, *value)).collect();
            let Some(results) = probes::run(&row.meaning, &inputs) else { continue };
            let Some(bits) = results.first().and_then(|result| result.defined()) else { continue };
            let mut operands = vec![Source::Discarded; row.operands.len()];
            operands[result] = Source::Output(0);
            for (number, value) in ports.read.iter().zip(&values) {
                operands[*number] = Source::Constant(*value);
            }
            if bits.width().is_multiple_of(8) {
                found.push(SingleRowConstant { bytes: bits.to_bytes(), row: RowMatch { row: id, operands } });
            }
        }
    }
    found.into()
}

/// The number that every lane of `width` bits holds, where all lanes agree in the bits that matter; bits that do not matter are zero.
fn common_lane(bytes: &[u8], care: &[u8], width: u32, order: ByteOrder) -> Option<(u64, u64)> {
    let lane_bytes = width as usize / 8;
    let number = |chunk: &[u8]| match order {
        ByteOrder::Big => chunk.iter().fold(0u64, |value, byte| value << 8 | u64::from(*byte)),
        ByteOrder::Little => chunk.iter().rev().fold(0u64, |value, byte| value << 8 | u64::from(*byte)),
    };
    if !bytes.len().is_multiple_of(lane_bytes) {
        return None;
    }
    let (mut value, mut known) = (0, 0);
    for (chunk, mask) in bytes.chunks(lane_bytes).zip(care.chunks(lane_bytes)) {
        let (chunk, mask) = (number(chunk), number(mask));
        if (chunk ^ value) & known & mask != 0 {
            return None;
        }
        value |= chunk & mask;
        known |= mask;
    }
    Some((value, known))
}

/// A lane operation on numbers, for the search only; the emitted row has its own meaning.
fn lane_value(op: LaneOp, width: u32, a: u64, b: u64) -> u64 {
    let mask = if width == 64 { u64::MAX } else { (1 << width) - 1 };
    let count = (b % u64::from(width)) as u32;
    let result = match op {
        LaneOp::Add => a.wrapping_add(b),
        LaneOp::Subtract => a.wrapping_sub(b),
        LaneOp::And => a & b,
        LaneOp::AndNot => a & !b,
        LaneOp::Or => a | b,
        LaneOp::Xor => a ^ b,
        LaneOp::Nor => !(a | b),
        LaneOp::ShiftLeft => a << count,
        LaneOp::ShiftRight => a >> count,
        LaneOp::ShiftRightSigned => {
            let unused = 64 - width;
            (((a << unused) as i64 >> unused) >> count) as u64
        }
        LaneOp::RotateLeft if count == 0 => a,
        LaneOp::RotateLeft => a << count | a >> (width - count),
        _ => a,
    };
    result & mask
}

/// A constant that the instruction holds, brought to a register of `file`.
fn immediate_copy_shape(machine: &Machine, file: FileId) -> Shape {
    let mut shape = ShapeBuilder::new(format!("constant in file {}", machine[file].name));
    let value = shape.immediate(machine[file].width_bits);
    shape.finish(machine, vec![(value, file)])
}

/// A constant that the instruction holds, shifted left by half the register.
fn immediate_shifted_shape(machine: &Machine, file: FileId) -> Shape {
    let width = machine[file].width_bits;
    let mut shape = ShapeBuilder::new(format!("constant in the upper half of file {}", machine[file].name));
    let value = shape.immediate(width);
    let count = shape.splat(width, 1, u64::from(width / 2));
    let shifted = shape.node(kgen_ir::body::Op::Binary(BinaryOp::ShiftLeft, value, count), Type::bits(width));
    shape.finish(machine, vec![(shifted, file)])
}

impl ProgramBuilder<'_> {
    fn remember(&mut self, file: FileId, bytes: &[u8], value: ValueId, rematerializable: bool) -> ValueId {
        self.constants.insert((file, bytes.to_vec()), value);
        self.program.values[value.0 as usize].rematerializable = rematerializable;
        value
    }

    /// A register of the lane file with these bytes (as many as it has).
    ///
    /// # Errors
    /// There is no lane file, or no row that loads from the pool.
    pub fn constant(&mut self, bytes: &[u8]) -> Lowering<ValueId> {
        self.constant_under(bytes, &vec![0xff; bytes.len()])
    }

    /// A register of the lane file that has these bytes in the bits set in `care`; the others may be anything.
    ///
    /// # Errors
    /// As [`Self::constant`].
    pub fn constant_under(&mut self, bytes: &[u8], care: &[u8]) -> Lowering<ValueId> {
        let file = self.lane_file().ok_or_else(|| self.missing("registers of many lanes"))?;
        let agrees = |candidate: &[u8]| candidate.iter().zip(bytes).zip(care).all(|((have, want), care)| (have ^ want) & care == 0);
        let known = self.constants.iter().find(|((of, have), _)| *of == file && agrees(have)).map(|(_, value)| *value);
        if let Some(value) = known {
            return Ok(value);
        }
        let table = self.selector.single_row_constants(file);
        if let Some(single) = table.iter().find(|single| agrees(&single.bytes)) {
            return self.emit_single_row_constant(file, single);
        }
        if let Some((op, width, a, b)) = self.combination(file, bytes, care, &table) {
            return self.where_constants_go(|builder| {
                builder.set_name("constant");
                let left = builder.constant(&a.bytes)?;
                let right = builder.constant(&b.bytes)?;
                let value = builder.lane_row(op, width, &[left, right])?;
                let all = builder.combined_bytes(op, width, &a.bytes, &b.bytes);
                Ok(builder.remember(file, &all, value, false))
            });
        }
        self.where_constants_go(|builder| {
            builder.set_name("constant");
            let region = builder.pool_region();
            let offset = builder.pool.place(bytes);
            let value = builder.load(file, bytes.len() as u32, Place::at(region, offset))?;
            Ok(builder.remember(file, bytes, value, true))
        })
    }

    fn emit_single_row_constant(&mut self, file: FileId, single: &SingleRowConstant) -> Lowering<ValueId> {
        self.where_constants_go(|builder| {
            builder.set_name("constant");
            let results = builder.emit(&single.row, &[])?;
            let value = results.first().copied().ok_or_else(|| builder.missing("a constant with a result"))?;
            Ok(builder.remember(file, &single.bytes, value, true))
        })
    }

    fn combined_bytes(&self, op: LaneOp, width: u32, a: &[u8], b: &[u8]) -> Vec<u8> {
        let order = self.machine().byte_order;
        let all = vec![0xff; a.len()];
        let lanes = |bytes: &[u8]| common_lane(bytes, &all, width, order).map_or(0, |lane| lane.0);
        let value = lane_value(op, width, lanes(a), lanes(b));
        splat_bytes(a.len(), width, value, order)
    }

    /// Two single-row constants and an operation that make the constant; of several, the one with the fewest new rows.
    fn combination(
        &self,
        file: FileId,
        bytes: &[u8],
        care: &[u8],
        table: &[SingleRowConstant],
    ) -> Option<(LaneOp, u32, SingleRowConstant, SingleRowConstant)> {
        let order = self.machine().byte_order;
        let all = vec![0xff; bytes.len()];
        let is_known = |single: &SingleRowConstant| self.constants.contains_key(&(file, single.bytes.clone()));
        let mut best: Option<(u32, LaneOp, u32, usize, usize)> = None;
        for width in [8, 16, 32, 64] {
            let Some((wanted, known)) = common_lane(bytes, care, width, order) else { continue };
            let candidates: Vec<(usize, u64, bool)> = table
                .iter()
                .enumerate()
                .filter_map(|(index, single)| Some((index, common_lane(&single.bytes, &all, width, order)?.0, is_known(single))))
                .collect();
            for op in COMBINATIONS {
                if !self.has_lane_row(file, op, width) {
                    continue;
                }
                for (a, a_value, a_known) in &candidates {
                    for (b, b_value, b_known) in &candidates {
                        let rows = 1 + u32::from(!a_known) + u32::from(!b_known && a != b);
                        if best.is_none_or(|found| rows < found.0) && (lane_value(op, width, *a_value, *b_value) ^ wanted) & known == 0 {
                            best = Some((rows, op, width, *a, *b));
                        }
                    }
                }
            }
        }
        best.map(|(_, op, width, a, b)| (op, width, table[a].clone(), table[b].clone()))
    }

    /// A register of the lane file whose lanes of `lane_bits` all hold `value`.
    ///
    /// # Errors
    /// As [`Self::constant`].
    pub fn splat(&mut self, lane_bits: u32, value: u64) -> Lowering<ValueId> {
        let bytes = splat_bytes(self.lane_register_bytes() as usize, lane_bits, value, self.machine().byte_order);
        self.constant(&bytes)
    }

    /// A shift count in every lane of `lane_bits`: only the bits that rows look at (the count modulo the width) are fixed.
    ///
    /// # Errors
    /// As [`Self::constant`].
    pub fn splat_count(&mut self, lane_bits: u32, count: u32) -> Lowering<ValueId> {
        let (length, order) = (self.lane_register_bytes() as usize, self.machine().byte_order);
        let bytes = splat_bytes(length, lane_bits, u64::from(count), order);
        let care = splat_bytes(length, lane_bits, u64::from(lane_bits) - 1, order);
        self.constant_under(&bytes, &care)
    }

    /// A public integer in a register of the integer file.
    ///
    /// # Errors
    /// The machine cannot make it in two rows.
    pub fn integer(&mut self, value: i64) -> Lowering<ValueId> {
        self.integer_in(self.integer_file(), value)
    }

    /// An integer in a scalar file, in two's complement.
    ///
    /// # Errors
    /// The machine cannot make it in two rows.
    pub fn integer_in(&mut self, file: FileId, value: i64) -> Lowering<ValueId> {
        let machine = self.machine();
        let width = machine[file].width_bits.min(64);
        let value = if width < 64 { value << (64 - width) >> (64 - width) } else { value };
        let key = value.to_le_bytes().to_vec();
        if let Some(known) = self.constants.get(&(file, key.clone())) {
            return Ok(*known);
        }
        let unsigned = if width < 64 { value & ((1 << width) - 1) } else { value };
        self.in_prologue(|builder| {
            builder.set_name("constant");
            let copy = immediate_copy_shape(machine, file);
            for form in [value, unsigned] {
                if builder.takes_constant(&copy, 0, form) {
                    let made = builder.emit_single(&copy, &[Input::Constant(form)])?;
                    return Ok(builder.remember(file, &key, made, true));
                }
            }
            let half = width / 2;
            let mask = (1i64 << half) - 1;
            let upper_shape = immediate_shifted_shape(machine, file);
            for (op, low) in [(LaneOp::Or, unsigned & mask), (LaneOp::Add, unsigned << (64 - half) >> (64 - half))] {
                let upper = if op == LaneOp::Or { unsigned >> half } else { (unsigned - low) >> half } & mask;
                let upper =
                    [upper, upper << (64 - half) >> (64 - half)].into_iter().find(|upper| builder.takes_constant(&upper_shape, 0, *upper));
                let lower_shape = shapes::immediate_shape(machine, file, op);
                let (Some(upper), true) = (upper, low == 0 || builder.takes_constant(&lower_shape, 1, low)) else { continue };
                let mut made = builder.emit_single(&upper_shape, &[Input::Constant(upper)])?;
                if low != 0 {
                    made = builder.emit_single(&lower_shape, &[Input::Value(made), Input::Constant(low)])?;
                }
                return Ok(builder.remember(file, &key, made, low == 0));
            }
            Err(builder.missing(&format!("the constant {value} in file {}", machine[file].name)))
        })
    }

    /// Whether a row computes the shape with this constant for input `input`.
    pub fn takes_constant(&self, shape: &Shape, input: u32, value: i64) -> bool {
        self.selector.rows_for(shape).iter().any(|row| row.takes_immediate(self.machine(), input, value))
    }

    /// A scalar operation of a register and a constant: by a row that holds the constant, else with the constant in a register.
    ///
    /// # Errors
    /// The machine has neither.
    pub fn with_constant(&mut self, op: LaneOp, a: ValueId, constant: i64) -> Lowering<ValueId> {
        let file = self.file_of(a);
        let shape = shapes::immediate_shape(self.machine(), file, op);
        if self.takes_constant(&shape, 1, constant) {
            return self.emit_single(&shape, &[Input::Value(a), Input::Constant(constant)]);
        }
        let b = self.integer_in(file, constant)?;
        self.lane_row(op, self.machine()[file].width_bits, &[a, b])
    }
}

/// `length` bytes of lanes that all hold `value`.
pub fn splat_bytes(length: usize, lane_bits: u32, value: u64, order: ByteOrder) -> Vec<u8> {
    let lane_bytes = (lane_bits / 8).max(1) as usize;
    let mut lane: Vec<u8> = (0..lane_bytes).map(|byte| if byte < 8 { (value >> (8 * byte)) as u8 } else { 0 }).collect();
    if order == ByteOrder::Big {
        lane.reverse();
    }
    lane.into_iter().cycle().take(length).collect()
}
