//! General dataflow: kernels without naturals, node by node. Values stand in registers of many lanes where the machine has them, else lane by lane in
//! scalars; permutes and views are collected until they must be made.

mod arrays;
mod repeated;

use super::builder::{Lowering, ProgramBuilder};
use super::held::{Files, Held, Scalar, Stored, bits_shape};
use super::permutes::Byte;
use super::regions::bytes_of;
use super::shapes::LaneOp;
use super::superword;
use crate::program::ValueId;
use kgen_ir::bits::Bits;
use kgen_ir::body::{BinaryOp, Body, NaryOp, Node, NodeHandle, Op, UnaryOp};
use kgen_ir::types::{ByteOrder, Type};
use std::collections::BTreeMap;
use std::rc::Rc;

/// Lowers a body over held inputs; the outputs in order.
///
/// # Errors
/// What the machine has no rows for, at its place in the spec.
pub fn lower_body(builder: &mut ProgramBuilder<'_>, files: &Files, body: &Body, inputs: Vec<Held>) -> Lowering<Vec<Held>> {
    let machine = builder.machine();
    let body = superword::vectorize(body, |width, lanes| files.in_registers(machine, width, lanes));
    let mut flow = Flow {
        files,
        held: vec![None; body.nodes.len()],
        spilled: BTreeMap::new(),
        results: BTreeMap::new(),
        body: &body,
        inputs,
        builder,
    };
    let live = flow.live_nodes();
    for (handle, node) in body.nodes.iter() {
        if live[handle.index()] {
            flow.builder.set_span(node.span);
            flow.builder.set_name(&node.name);
            let held = flow.node(handle, node)?;
            flow.held[handle.index()] = Some(held);
        }
    }
    body.outputs.iter().map(|(_, handle)| flow.held(*handle)).collect()
}

struct Flow<'f, 'b, 'm> {
    builder: &'b mut ProgramBuilder<'m>,
    files: &'f Files,
    body: &'f Body,
    inputs: Vec<Held>,
    held: Vec<Option<Held>>,
    /// Scalars of vectors that were written to the frame to be taken apart.
    spilled: BTreeMap<NodeHandle, Vec<Scalar>>,
    /// Results of loops and maps.
    results: BTreeMap<NodeHandle, Vec<Held>>,
}

/// The constant of a node, where it is one.
fn constant_of(body: &Body, handle: NodeHandle) -> Option<&Bits> {
    if let Op::Constant(bits) = &body.nodes[handle].op { Some(bits) } else { None }
}

impl Flow<'_, '_, '_> {
    fn live_nodes(&self) -> Vec<bool> {
        let mut live = vec![false; self.body.nodes.len()];
        for (_, output) in &self.body.outputs {
            live[output.index()] = true;
        }
        for (handle, node) in self.body.nodes.iter().rev() {
            if !live[handle.index()] {
                continue;
            }
            // A permute of lanes needs the vectors, not the lanes one by one.
            let operands = match (self.picked_lanes(node), &node.op) {
                (Some(picked), _) => picked.into_iter().map(|(vector, _)| vector).collect(),
                // A scan by lanes makes its own constants of the entries.
                (None, Op::Element { array, index }) if self.is_scan_of_constants(node, *array, *index) => vec![*index],
                (None, op) => op.operands(),
            };
            for operand in operands {
                live[operand.index()] = true;
            }
        }
        live
    }

    /// For a vector of constant lanes of other vectors: (vector, lane) each.
    fn picked_lanes(&self, node: &Node) -> Option<Vec<(NodeHandle, u32)>> {
        let Op::Lanes(list) = &node.op else { return None };
        let Type::Bits { width, lanes } = node.ty else { return None };
        if !self.files.in_registers(self.builder.machine(), width, lanes) {
            return None;
        }
        list.iter()
            .map(|item| {
                let Op::Lane { vector, index } = &self.body.nodes[*item].op else { return None };
                let lane = constant_of(self.body, *index)?.to_u64()?;
                let in_registers = match self.body.nodes[*vector].ty {
                    Type::Bits { width: of, lanes } => {
                        of == width && lanes > 1 && self.files.in_registers(self.builder.machine(), of, lanes)
                    }
                    _ => false,
                };
                in_registers.then_some((*vector, lane as u32))
            })
            .collect()
    }

    fn held(&mut self, handle: NodeHandle) -> Lowering<Held> {
        self.held[handle.index()].clone().ok_or_else(|| self.builder.missing("a value that was not lowered"))
    }

    /// A value in registers, loaded where it is still in memory.
    fn value(&mut self, handle: NodeHandle) -> Lowering<Held> {
        let held = self.held(handle)?;
        if let Held::Memory(stored) = &held {
            let loaded = self.builder.load_held(self.files, &self.body.nodes[handle].ty, stored)?;
            self.held[handle.index()] = Some(loaded.clone());
            return Ok(loaded);
        }
        Ok(held)
    }

    fn registers(&mut self, handle: NodeHandle) -> Lowering<Vec<ValueId>> {
        match self.value(handle)? {
            Held::Registers(registers) => Ok(registers),
            Held::Lanes(scalars) => {
                let ty = self.body.nodes[handle].ty.clone();
                self.scalars_to_registers(&ty, &scalars)
            }
            _ => Err(self.builder.missing(&format!("a {} in registers of many lanes", self.body.nodes[handle].ty))),
        }
    }

    fn scalars(&mut self, handle: NodeHandle) -> Lowering<Vec<Scalar>> {
        match self.value(handle)? {
            Held::Lanes(scalars) => Ok(scalars),
            Held::Registers(registers) => {
                if let Some(known) = self.spilled.get(&handle) {
                    return Ok(known.clone());
                }
                let ty = self.body.nodes[handle].ty.clone();
                let scalars = self.registers_to_scalars(&ty, &registers)?;
                self.spilled.insert(handle, scalars.clone());
                Ok(scalars)
            }
            Held::Mask { lane_bits, registers } => {
                let (_, lanes) = bits_shape(self.builder, &self.body.nodes[handle].ty.clone())?;
                let scalars = self.registers_to_scalars(&Type::vector(lane_bits, lanes), &registers)?;
                scalars.iter().map(|scalar| self.builder.resize_scalar(self.files, scalar, 1)).collect()
            }
            _ => Err(self.builder.missing(&format!("a {} in scalars", self.body.nodes[handle].ty))),
        }
    }

    fn scalar(&mut self, handle: NodeHandle) -> Lowering<Scalar> {
        let scalars = self.scalars(handle)?;
        scalars.first().cloned().ok_or_else(|| self.builder.missing("a number"))
    }

    fn frame(&mut self, bytes: u64, secret: bool) -> Stored {
        let align_bytes = self.builder.lane_register_bytes().max(8);
        let region = self.builder.frame_region("scratch", bytes.next_multiple_of(u64::from(align_bytes)), align_bytes, secret);
        Stored { region, base: None, offset: 0, window: None, align_bytes }
    }

    /// By way of memory: a machine may have no other road between its files.
    fn registers_to_scalars(&mut self, ty: &Type, registers: &[ValueId]) -> Lowering<Vec<Scalar>> {
        let (width, lanes) = bits_shape(self.builder, ty)?;
        let secret = registers.iter().any(|register| self.builder.is_secret(*register));
        let stored = self.frame(registers.len() as u64 * u64::from(self.builder.lane_register_bytes()), secret);
        let whole = Type::vector(8, registers.len() as u32 * self.builder.lane_register_bytes());
        self.builder.store_held(self.files, &whole, &Held::Registers(registers.to_vec()), &stored)?;
        self.builder.load_lanes_as_scalars(self.files, width, lanes, &stored)
    }

    fn scalars_to_registers(&mut self, ty: &Type, scalars: &[Scalar]) -> Lowering<Vec<ValueId>> {
        let bytes = bytes_of(ty).ok_or_else(|| self.builder.missing("a vector of bytes"))?;
        let secret = scalars.iter().flat_map(|scalar| &scalar.words).any(|word| self.builder.is_secret(*word));
        let size = u64::from(self.builder.lane_register_bytes());
        let stored = self.frame(bytes, secret);
        self.builder.store_held(self.files, ty, &Held::Lanes(scalars.to_vec()), &stored)?;
        let whole = Type::vector(8, bytes.next_multiple_of(size) as u32);
        match self.builder.load_held(self.files, &whole, &stored)? {
            Held::Registers(registers) => Ok(registers),
            _ => Err(self.builder.missing("registers of many lanes")),
        }
    }

    fn is_in_registers(&self, ty: &Type) -> bool {
        matches!(ty, Type::Bits { width, lanes } if self.files.in_registers(self.builder.machine(), *width, *lanes))
    }

    fn node(&mut self, handle: NodeHandle, node: &Node) -> Lowering<Held> {
        match &node.op {
            Op::Input(index) => Ok(self.inputs[*index as usize].clone()),
            Op::Undefined => self.constant(&node.ty, &Bits::zero(node.ty.total_bits().unwrap_or(0))),
            Op::Constant(bits) => self.constant(&node.ty, bits),
            Op::Array(list) => {
                let elements: Lowering<Vec<Held>> = list.iter().map(|item| self.held(*item)).collect();
                Ok(Held::Array(Rc::new(elements?)))
            }
            Op::Element { array, index } => self.element(node, *array, *index),
            Op::WithElement { array, index, value } => self.with_element(*array, *index, *value),
            Op::Loop { count, carried, captured, body } => {
                let results = self.counted_loop(*count, carried, captured, body)?;
                self.results.insert(handle, results);
                Ok(Held::Lanes(Vec::new()))
            }
            Op::Map { slices, written, captured, body } => {
                let results = self.map(slices, written, captured, body)?;
                self.results.insert(handle, results);
                Ok(Held::Lanes(Vec::new()))
            }
            Op::Result(of, index) => {
                let results = self.results.get(of).and_then(|results| results.get(*index as usize)).cloned();
                results.ok_or_else(|| self.builder.missing("the result of a loop"))
            }
            _ => self.operation(node),
        }
    }

    fn constant(&mut self, ty: &Type, bits: &Bits) -> Lowering<Held> {
        let (width, lanes) = bits_shape(self.builder, ty)?;
        let lane_bits = (0..lanes).map(|lane| bits.extract(lane * width, width));
        if !self.is_in_registers(ty) {
            let scalars: Lowering<Vec<Scalar>> = lane_bits.map(|lane| self.builder.scalar_constant(self.files, &lane)).collect();
            return Ok(Held::Lanes(scalars?));
        }
        let big = self.builder.machine().byte_order == ByteOrder::Big;
        let bytes: Vec<u8> = lane_bits
            .flat_map(|lane| {
                let mut bytes = lane.to_bytes();
                if big {
                    bytes.reverse();
                }
                bytes
            })
            .collect();
        let size = self.builder.lane_register_bytes() as usize;
        let registers: Lowering<Vec<ValueId>> = bytes
            .chunks(size)
            .map(|chunk| {
                let mut care = vec![0xff; chunk.len()];
                let mut whole = chunk.to_vec();
                whole.resize(size, 0);
                care.resize(size, 0);
                self.builder.constant_under(&whole, &care)
            })
            .collect();
        Ok(Held::Registers(registers?))
    }

    /// Operations on values of `Bits` types.
    fn operation(&mut self, node: &Node) -> Lowering<Held> {
        let (width, lanes) = bits_shape(self.builder, &node.ty)?;
        match &node.op {
            Op::Nary(op, list) => self.nary(*op, width, list),
            Op::Unary(op, a) => self.unary(*op, *a),
            Op::Binary(op, a, b) => self.binary(*op, *a, *b),
            Op::Select { condition, then, otherwise } => self.select(*condition, *then, *otherwise),
            Op::Resize(a) => self.resize(*a, width, lanes),
            Op::ResizeSigned(a) => self.resize_signed(*a, width, lanes),
            Op::Reinterpret(a, order) => self.reinterpret(*a, node, *order),
            Op::Lane { vector, index } => self.lane(*vector, *index, width),
            Op::Lanes(list) => self.lanes(node, list),
            Op::Concatenate(list) => self.concatenate(node, list),
            Op::Slice { vector, start } => self.slice(node, *vector, *start),
            other => {
                let text = format!("{other:?}");
                let name = text.split([' ', '(', '{']).next().unwrap_or_default();
                Err(self.builder.missing(&format!("{name} of {}", node.ty)))
            }
        }
    }

    fn nary(&mut self, op: NaryOp, width: u32, list: &[NodeHandle]) -> Lowering<Held> {
        match self.value(list[0])? {
            Held::Registers(_) => {
                let operands: Lowering<Vec<Vec<ValueId>>> = list.iter().map(|item| self.registers(*item)).collect();
                Ok(Held::Registers(self.builder.nary_lanes(op, width, &operands?)?))
            }
            Held::Mask { lane_bits, .. } => {
                let masks: Lowering<Vec<Vec<ValueId>>> = list.iter().map(|item| self.mask(*item, lane_bits)).collect();
                let op = if op == NaryOp::Add { NaryOp::Xor } else { op };
                Ok(Held::Mask { lane_bits, registers: self.builder.nary_lanes(op, 8, &masks?)? })
            }
            _ => {
                let operands: Lowering<Vec<Vec<Scalar>>> = list.iter().map(|item| self.scalars(*item)).collect();
                let operands = operands?;
                let results: Lowering<Vec<Scalar>> = (0..operands[0].len())
                    .map(|lane| {
                        let column: Vec<Scalar> = operands.iter().map(|operand| operand[lane].clone()).collect();
                        let op = if op == NaryOp::Add && column[0].width == 1 { NaryOp::Xor } else { op };
                        self.builder.scalar_nary(op, &column)
                    })
                    .collect();
                Ok(Held::Lanes(results?))
            }
        }
    }

    fn mask(&mut self, handle: NodeHandle, wanted: u32) -> Lowering<Vec<ValueId>> {
        let (_, lanes) = bits_shape(self.builder, &self.body.nodes[handle].ty.clone())?;
        match self.value(handle)? {
            Held::Mask { lane_bits, registers } => self.builder.resize_mask(lane_bits, wanted, lanes, &registers),
            Held::Lanes(bits) => {
                let words: Lowering<Vec<Scalar>> = bits
                    .iter()
                    .map(|bit| {
                        let zero = self.builder.scalar_constant(self.files, &Bits::zero(wanted))?;
                        let one = self.builder.resize_scalar(self.files, bit, wanted)?;
                        self.builder.subtract_scalars(self.files, &zero, &one)
                    })
                    .collect();
                self.scalars_to_registers(&Type::vector(wanted, lanes), &words?)
            }
            _ => Err(self.builder.missing("a mask of lanes")),
        }
    }

    fn unary(&mut self, op: UnaryOp, a: NodeHandle) -> Lowering<Held> {
        match op {
            UnaryOp::Not => {
                let held = self.value(a)?;
                self.not_held(held)
            }
            _ => Err(self.builder.missing(&format!("{op:?}"))),
        }
    }

    fn not_held(&mut self, held: Held) -> Lowering<Held> {
        match held {
            Held::Registers(registers) => Ok(Held::Registers(self.complement(&registers)?)),
            Held::Mask { lane_bits, registers } => Ok(Held::Mask { lane_bits, registers: self.complement(&registers)? }),
            Held::Lanes(scalars) => {
                let results: Lowering<Vec<Scalar>> = scalars.iter().map(|scalar| self.builder.not_scalar(scalar)).collect();
                Ok(Held::Lanes(results?))
            }
            _ => Err(self.builder.missing("the complement of a value in memory")),
        }
    }

    fn complement(&mut self, registers: &[ValueId]) -> Lowering<Vec<ValueId>> {
        registers.iter().map(|register| self.builder.lane_row(LaneOp::Not, 8, &[*register])).collect()
    }

    /// A shift count that is one constant for all lanes.
    fn common_count(&self, handle: NodeHandle) -> Option<u32> {
        let bits = constant_of(self.body, handle)?;
        let Type::Bits { width, lanes } = self.body.nodes[handle].ty else { return None };
        let first = bits.extract(0, width);
        let same = (1..lanes).all(|lane| bits.extract(lane * width, width) == first);
        same.then(|| first.to_u64().map_or(u32::MAX, |count| count.min(u64::from(u32::MAX)) as u32))
    }

    fn binary(&mut self, op: BinaryOp, a: NodeHandle, b: NodeHandle) -> Lowering<Held> {
        let (width, lanes) = bits_shape(self.builder, &self.body.nodes[a].ty.clone())?;
        let is_shift = matches!(op, BinaryOp::ShiftLeft | BinaryOp::ShiftRight | BinaryOp::ShiftRightSigned | BinaryOp::RotateLeft);
        let is_comparison = matches!(op, BinaryOp::Equal | BinaryOp::Less | BinaryOp::LessSigned);
        if op == BinaryOp::Multiply
            && let (Op::Resize(narrow_a), Op::Resize(narrow_b)) = (&self.body.nodes[a].op, &self.body.nodes[b].op)
            && let Some(product) = self.wide_product(width, lanes, a, b, *narrow_a, *narrow_b)?
        {
            return Ok(product);
        }
        let count = if is_shift { self.common_count(b) } else { None };
        if let Held::Registers(left) = self.value(a)? {
            if let Some(count) = count {
                return Ok(Held::Registers(self.builder.shift_lanes(op, width, &left, count)?));
            }
            let right = if is_shift { self.lane_counts(op, width, lanes, b)? } else { self.registers(b)? };
            return Ok(if is_comparison {
                Held::Mask { lane_bits: width, registers: self.builder.compare_lanes(op, width, &left, &right)? }
            } else {
                Held::Registers(self.builder.binary_lanes(op, width, &left, &right)?)
            });
        }
        if width == 1 && !is_shift {
            return self.binary_of_bits(op, a, b);
        }
        let left = self.scalars(a)?;
        if let Some(count) = count {
            let results: Lowering<Vec<Scalar>> = left.iter().map(|left| self.builder.shift_scalar(self.files, left, op, count)).collect();
            return Ok(Held::Lanes(results?));
        }
        let right = self.scalars(b)?;
        let results: Lowering<Vec<Scalar>> = left
            .iter()
            .zip(right.iter().cycle())
            .map(|(left, right)| match op {
                BinaryOp::Subtract => self.builder.subtract_scalars(self.files, left, right),
                BinaryOp::Multiply => self.builder.multiply_scalars(left, right, None),
                BinaryOp::Equal | BinaryOp::Less | BinaryOp::LessSigned => self.builder.compare_scalars(self.files, op, left, right),
                BinaryOp::Minimum | BinaryOp::Maximum | BinaryOp::MinimumSigned | BinaryOp::MaximumSigned => {
                    let signed = matches!(op, BinaryOp::MinimumSigned | BinaryOp::MaximumSigned);
                    let less = self.builder.compare_scalars(
                        self.files,
                        if signed { BinaryOp::LessSigned } else { BinaryOp::Less },
                        left,
                        right,
                    )?;
                    let (then, otherwise) =
                        if matches!(op, BinaryOp::Minimum | BinaryOp::MinimumSigned) { (left, right) } else { (right, left) };
                    self.builder.select_scalars(self.files, &less, then, otherwise)
                }
                _ if is_shift => self.builder.shift_scalar_by(self.files, left, op, right),
                _ => Err(self.builder.missing(&format!("{op:?} of numbers"))),
            })
            .collect();
        Ok(Held::Lanes(results?))
    }

    /// Operations on single bits, in the forms that conditions have.
    fn binary_of_bits(&mut self, op: BinaryOp, a: NodeHandle, b: NodeHandle) -> Lowering<Held> {
        // As a signed number, 1 is less than 0.
        match op {
            BinaryOp::Subtract => self.nary(NaryOp::Xor, 1, &[a, b]),
            BinaryOp::Multiply | BinaryOp::Minimum | BinaryOp::MaximumSigned => self.nary(NaryOp::And, 1, &[a, b]),
            BinaryOp::Maximum | BinaryOp::MinimumSigned => self.nary(NaryOp::Or, 1, &[a, b]),
            BinaryOp::Equal => {
                let differ = self.nary(NaryOp::Xor, 1, &[a, b])?;
                self.not_held(differ)
            }
            BinaryOp::Less | BinaryOp::LessSigned => {
                let (low, high) = if op == BinaryOp::Less { (a, b) } else { (b, a) };
                // low < high just where high is 1 and they differ.
                match self.nary(NaryOp::Xor, 1, &[low, high])? {
                    Held::Mask { lane_bits, registers } => {
                        let high = self.mask(high, lane_bits)?;
                        Ok(Held::Mask { lane_bits, registers: self.builder.nary_lanes(NaryOp::And, 8, &[registers, high])? })
                    }
                    Held::Lanes(differ) => {
                        let high = self.scalars(high)?;
                        let both: Lowering<Vec<Scalar>> =
                            differ.into_iter().zip(high).map(|(a, b)| self.builder.scalar_nary(NaryOp::And, &[a, b])).collect();
                        Ok(Held::Lanes(both?))
                    }
                    _ => Err(self.builder.missing(&format!("{op:?} of bits"))),
                }
            }
            _ => Err(self.builder.missing(&format!("{op:?} of bits"))),
        }
    }

    /// Counts of shifts as lanes as wide as what they shift.
    fn lane_counts(&mut self, op: BinaryOp, width: u32, lanes: u32, counts: NodeHandle) -> Lowering<Vec<ValueId>> {
        let (of, how_many) = bits_shape(self.builder, &self.body.nodes[counts].ty.clone())?;
        if how_many > 1 && of == width {
            return self.registers(counts);
        }
        if how_many > 1
            && let Held::Registers(registers) = self.value(counts)?
        {
            let whole = self.builder.splat(of, u64::from(width))?;
            let fitting = match of > width && op != BinaryOp::RotateLeft {
                true => self.builder.binary_lanes(BinaryOp::Minimum, of, &registers, &vec![whole; registers.len()])?,
                false => registers,
            };
            return self.builder.resize_lanes(of, width, lanes, &fitting);
        }
        let counts = self.scalars(counts)?;
        let counts: Lowering<Vec<Scalar>> = counts.iter().map(|count| self.builder.shift_count(self.files, op, count, width)).collect();
        let all: Vec<Scalar> = counts?.into_iter().cycle().take(lanes as usize).collect();
        self.scalars_to_registers(&Type::vector(width, lanes), &all)
    }

    /// Products of zero-filled halves: by rows that multiply narrow lanes into wide ones.
    fn wide_product(
        &mut self,
        width: u32,
        lanes: u32,
        a: NodeHandle,
        b: NodeHandle,
        narrow_a: NodeHandle,
        narrow_b: NodeHandle,
    ) -> Lowering<Option<Held>> {
        let half = |handle: NodeHandle| matches!(self.body.nodes[handle].ty, Type::Bits { width: of, .. } if of * 2 == width);
        if !half(narrow_a) || !half(narrow_b) {
            return Ok(None);
        }
        if self.is_in_registers(&Type::vector(width, lanes)) {
            let (Held::Registers(a), Held::Registers(b)) = (self.value(narrow_a)?, self.value(narrow_b)?) else { return Ok(None) };
            return Ok(Some(Held::Registers(self.builder.multiply_wide(width / 2, lanes, &a, &b)?)));
        }
        let (wide_a, wide_b) = (self.scalars(a)?, self.scalars(b)?);
        let (narrow_a, narrow_b) = (self.scalars(narrow_a)?, self.scalars(narrow_b)?);
        let results: Lowering<Vec<Scalar>> = (0..lanes as usize)
            .map(|lane| self.builder.multiply_scalars(&wide_a[lane], &wide_b[lane], Some((&narrow_a[lane], &narrow_b[lane]))))
            .collect();
        Ok(Some(Held::Lanes(results?)))
    }

    fn select(&mut self, condition: NodeHandle, then: NodeHandle, otherwise: NodeHandle) -> Lowering<Held> {
        let (width, lanes) = bits_shape(self.builder, &self.body.nodes[then].ty.clone())?;
        let (then_registers, otherwise_registers, lane_bits) = match self.value(then)? {
            Held::Registers(then) => (then, self.registers(otherwise)?, width),
            Held::Mask { lane_bits, registers } => (registers, self.mask(otherwise, lane_bits)?, lane_bits),
            _ => (Vec::new(), Vec::new(), 0),
        };
        if lane_bits > 0 {
            let (_, conditions) = bits_shape(self.builder, &self.body.nodes[condition].ty.clone())?;
            let masks = if conditions == lanes && lanes > 1 {
                self.mask(condition, lane_bits)?
            } else {
                // One condition for the whole value: its mask in every register.
                let mask = self.whole_mask(condition)?;
                vec![mask; then_registers.len()]
            };
            let chosen: Lowering<Vec<ValueId>> = masks
                .iter()
                .zip(then_registers.iter().zip(&otherwise_registers))
                .map(|(mask, (then, otherwise))| self.builder.select_bits(*mask, *then, *otherwise))
                .collect();
            let registers = chosen?;
            return Ok(if width == 1 { Held::Mask { lane_bits, registers } } else { Held::Registers(registers) });
        }
        let (conditions, then, otherwise) = (self.scalars(condition)?, self.scalars(then)?, self.scalars(otherwise)?);
        let results: Lowering<Vec<Scalar>> = then
            .iter()
            .zip(&otherwise)
            .zip(conditions.iter().cycle())
            .map(|((then, otherwise), condition)| self.builder.select_scalars(self.files, condition, then, otherwise))
            .collect();
        Ok(Held::Lanes(results?))
    }

    /// A register of all ones or zeros by a number of one bit.
    fn whole_mask(&mut self, condition: NodeHandle) -> Lowering<ValueId> {
        let bit = self.scalar(condition)?;
        let zero = self.builder.scalar_constant(self.files, &Bits::zero(32))?;
        let one = self.builder.resize_scalar(self.files, &bit, 32)?;
        let word = self.builder.subtract_scalars(self.files, &zero, &one)?;
        let count = self.builder.lane_register_bytes() / 4;
        let registers = self.scalars_to_registers(&Type::vector(32, count), &vec![word; count as usize])?;
        registers.first().copied().ok_or_else(|| self.builder.missing("a mask"))
    }

    fn resize(&mut self, a: NodeHandle, width: u32, lanes: u32) -> Lowering<Held> {
        let (from, _) = bits_shape(self.builder, &self.body.nodes[a].ty.clone())?;
        let to_registers = self.is_in_registers(&Type::vector(width, lanes));
        match self.value(a)? {
            Held::Registers(registers) if to_registers => Ok(Held::Registers(self.builder.resize_lanes(from, width, lanes, &registers)?)),
            Held::Registers(registers) if width == 1 && lanes > 1 => {
                let one = self.builder.splat(from, 1)?;
                let low: Lowering<Vec<ValueId>> =
                    registers.iter().map(|register| self.builder.lane_row(LaneOp::And, 8, &[*register, one])).collect();
                let ones = vec![one; registers.len()];
                Ok(Held::Mask { lane_bits: from, registers: self.builder.compare_lanes(BinaryOp::Equal, from, &low?, &ones)? })
            }
            Held::Mask { lane_bits, registers } if to_registers => {
                let masks = self.builder.resize_mask(lane_bits, width, lanes, &registers)?;
                let one = self.builder.splat(width, 1)?;
                let ones: Lowering<Vec<ValueId>> = masks.iter().map(|mask| self.builder.lane_row(LaneOp::And, 8, &[*mask, one])).collect();
                Ok(Held::Registers(ones?))
            }
            Held::Mask { lane_bits, registers } if width == 1 => Ok(Held::Mask { lane_bits, registers }),
            _ => {
                let scalars = self.scalars(a)?;
                let results: Lowering<Vec<Scalar>> =
                    scalars.iter().map(|scalar| self.builder.resize_scalar(self.files, scalar, width)).collect();
                self.formed(&Type::vector(width, lanes), results?)
            }
        }
    }

    /// Scalars as the form that the type is held in.
    fn formed(&mut self, ty: &Type, scalars: Vec<Scalar>) -> Lowering<Held> {
        if self.is_in_registers(ty) { Ok(Held::Registers(self.scalars_to_registers(ty, &scalars)?)) } else { Ok(Held::Lanes(scalars)) }
    }

    fn resize_signed(&mut self, a: NodeHandle, width: u32, lanes: u32) -> Lowering<Held> {
        let (from, _) = bits_shape(self.builder, &self.body.nodes[a].ty.clone())?;
        let to_registers = self.is_in_registers(&Type::vector(width, lanes));
        match self.value(a)? {
            Held::Registers(registers) if to_registers => {
                Ok(Held::Registers(self.builder.sign_extend_lanes(from, width, lanes, &registers)?))
            }
            Held::Mask { lane_bits, registers } if to_registers => {
                Ok(Held::Registers(self.builder.resize_mask(lane_bits, width, lanes, &registers)?))
            }
            _ => {
                let scalars = self.scalars(a)?;
                let results: Lowering<Vec<Scalar>> =
                    scalars.iter().map(|scalar| self.builder.sign_extend_scalar(self.files, scalar, width)).collect();
                self.formed(&Type::vector(width, lanes), results?)
            }
        }
    }

    fn reinterpret(&mut self, a: NodeHandle, node: &Node, order: ByteOrder) -> Lowering<Held> {
        let (from, from_lanes) = bits_shape(self.builder, &self.body.nodes[a].ty.clone())?;
        let (to, _) = bits_shape(self.builder, &node.ty)?;
        let bytes = from / 8 * from_lanes;
        let (from_registers, to_registers) = (self.is_in_registers(&self.body.nodes[a].ty.clone()), self.is_in_registers(&node.ty));
        if from_registers {
            let registers = self.registers(a)?;
            let registers = self.builder.reinterpret_lanes(from, to, bytes, order, &registers)?;
            return if to_registers {
                Ok(Held::Registers(registers))
            } else {
                Ok(Held::Lanes(self.registers_to_scalars(&node.ty, &registers)?))
            };
        }
        // Byte by byte in address order, then grouped again.
        let scalars = self.scalars(a)?;
        let scalars = self.regroup(&scalars, from, to, order)?;
        self.formed(&node.ty, scalars)
    }

    fn regroup(&mut self, scalars: &[Scalar], from: u32, to: u32, order: ByteOrder) -> Lowering<Vec<Scalar>> {
        if from == to {
            return Ok(scalars.to_vec());
        }
        let place = |width: u32, byte: u32| 8 * if order == ByteOrder::Big { width / 8 - 1 - byte } else { byte };
        let mut bytes = Vec::new();
        for scalar in scalars {
            for byte in 0..from / 8 {
                let shifted = self.builder.shift_scalar(self.files, scalar, BinaryOp::ShiftRight, place(from, byte))?;
                bytes.push(self.builder.resize_scalar(self.files, &shifted, 8)?);
            }
        }
        let step = (to / 8) as usize;
        bytes
            .chunks(step)
            .map(|group| {
                if step == 1 {
                    return Ok(group[0].clone());
                }
                let parts: Lowering<Vec<Scalar>> = group
                    .iter()
                    .enumerate()
                    .map(|(byte, part)| {
                        let wide = self.builder.resize_scalar(self.files, part, to)?;
                        self.builder.shift_scalar(self.files, &wide, BinaryOp::ShiftLeft, place(to, byte as u32))
                    })
                    .collect();
                self.builder.scalar_nary(NaryOp::Or, &parts?)
            })
            .collect()
    }

    fn lane(&mut self, vector: NodeHandle, index: NodeHandle, width: u32) -> Lowering<Held> {
        let (of, lanes) = bits_shape(self.builder, &self.body.nodes[vector].ty.clone())?;
        let Some(lane) = constant_of(self.body, index).and_then(Bits::to_u64) else {
            let scalars = self.scalars(vector)?;
            let index = self.scalar(index)?;
            return self.scan(&scalars.into_iter().map(|scalar| Held::Lanes(vec![scalar])).collect::<Vec<_>>(), &index);
        };
        let lane = lane as u32;
        if lanes == 1 && width == 1 && of > 1 {
            // A bit of a number.
            let number = self.scalar(vector)?;
            let shifted = self.builder.shift_scalar(self.files, &number, BinaryOp::ShiftRight, lane)?;
            return Ok(Held::Lanes(vec![self.builder.resize_scalar(self.files, &shifted, 1)?]));
        }
        let scalars = self.scalars(vector)?;
        let picked = scalars.get(lane as usize).cloned().ok_or_else(|| self.builder.missing("a lane past the last"))?;
        self.formed(&Type::bits(width), vec![picked])
    }

    fn lanes(&mut self, node: &Node, list: &[NodeHandle]) -> Lowering<Held> {
        let (width, lanes) = bits_shape(self.builder, &node.ty)?;
        if let Some(picked) = self.picked_lanes(node) {
            let mut sources: Vec<(NodeHandle, Vec<ValueId>)> = Vec::new();
            for (vector, _) in &picked {
                if !sources.iter().any(|(known, _)| known == vector) {
                    let registers = self.registers(*vector)?;
                    sources.push((*vector, registers));
                }
            }
            let mut starts = BTreeMap::new();
            let mut all = Vec::new();
            for (vector, registers) in sources {
                starts.insert(vector, all.len() as u32 * self.builder.lane_register_bytes());
                all.extend(registers);
            }
            let wanted: Vec<Option<u32>> = picked
                .iter()
                .flat_map(|(vector, lane)| {
                    let start = starts[vector] + lane * (width / 8);
                    (0..width / 8).map(move |byte| Some(start + byte))
                })
                .collect();
            return Ok(Held::Registers(self.builder.gather(&all, &wanted)?));
        }
        let scalars: Lowering<Vec<Scalar>> = list.iter().map(|item| self.scalar(*item)).collect();
        let scalars = scalars?;
        if lanes == 1 && list.len() > 1 {
            // Bits of a number, bit 0 first.
            let parts: Lowering<Vec<Scalar>> = scalars
                .iter()
                .enumerate()
                .map(|(bit, scalar)| {
                    let wide = self.builder.resize_scalar(self.files, scalar, width)?;
                    self.builder.shift_scalar(self.files, &wide, BinaryOp::ShiftLeft, bit as u32)
                })
                .collect();
            return Ok(Held::Lanes(vec![self.builder.scalar_nary(NaryOp::Or, &parts?)?]));
        }
        self.formed(&node.ty, scalars)
    }

    fn concatenate(&mut self, node: &Node, list: &[NodeHandle]) -> Lowering<Held> {
        if self.is_in_registers(&node.ty) {
            let size = self.builder.lane_register_bytes();
            let mut all = Vec::new();
            let mut wanted = Vec::new();
            for item in list {
                let (width, lanes) = bits_shape(self.builder, &self.body.nodes[*item].ty.clone())?;
                let start = all.len() as u32 * size;
                wanted.extend((0..width / 8 * lanes).map(|byte| Some(start + byte)));
                all.extend(self.registers(*item)?);
            }
            return Ok(Held::Registers(self.builder.gather(&all, &wanted)?));
        }
        let mut scalars = Vec::new();
        for item in list {
            scalars.extend(self.scalars(*item)?);
        }
        Ok(Held::Lanes(scalars))
    }

    fn slice(&mut self, node: &Node, vector: NodeHandle, start: u32) -> Lowering<Held> {
        let (width, lanes) = bits_shape(self.builder, &node.ty)?;
        if self.is_in_registers(&node.ty) {
            let registers = self.registers(vector)?;
            let size = self.builder.lane_register_bytes();
            let wanted: Vec<Byte> =
                (start * width / 8..(start + lanes) * width / 8).map(|byte| Byte::Of { source: byte / size, byte: byte % size }).collect();
            return Ok(Held::Registers(self.builder.gather_bytes(&registers, &wanted)?));
        }
        let scalars = self.scalars(vector)?;
        Ok(Held::Lanes(scalars[start as usize..(start + lanes) as usize].to_vec()))
    }
}
