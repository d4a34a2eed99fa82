//! Values of the language in memory: how many bytes, loads and stores of whole values, aligned or not.
//!
//! A register of many lanes whose address may be unaligned is loaded, where the machine drops low address bits, from the two aligned places that hold its
//! first and last byte (so nothing past the region's last aligned block is touched) and a permute by a control made from the address. It is stored as one
//! element after the other for the first and the last register, whole registers between: bytes outside of the value are never written.

use super::builder::{Input, Lowering, Place, ProgramBuilder};
use super::held::{Files, Held, Scalar, Stored, bits_shape};
use super::shapes::{self, ShapeBuilder};
use crate::machine::FileId;
use crate::program::ValueId;
use kgen_ir::body::{NaryOp, Op};
use kgen_ir::types::{ByteOrder, Type};
use std::rc::Rc;

/// Bytes of a value in memory; `None` for types that have no such form.
pub fn bytes_of(ty: &Type) -> Option<u64> {
    match ty {
        Type::Bits { width, lanes } => Some(u64::from(width.div_ceil(8)) * u64::from(*lanes)),
        Type::Array { element, length } => Some(bytes_of(element)? * u64::from(*length)),
        Type::Natural { .. } | Type::Modulus { .. } | Type::Residue { .. } | Type::Slice { .. } => None,
    }
}

impl Stored {
    /// The place `bytes` further on.
    pub fn at(&self, bytes: u64) -> Self {
        let offset = self.offset + bytes;
        let step = if bytes == 0 { self.align_bytes } else { 1 << bytes.trailing_zeros().min(16) };
        Self { offset, align_bytes: self.align_bytes.min(step), ..self.clone() }
    }

    fn place(&self, bytes: u64) -> Place {
        Place { region: self.region, base: self.base, index: None, offset: self.offset + bytes, window: self.window }
    }
}

impl ProgramBuilder<'_> {
    /// A value of this type from memory.
    ///
    /// # Errors
    /// The machine cannot load it.
    pub fn load_held(&mut self, files: &Files, ty: &Type, stored: &Stored) -> Lowering<Held> {
        if let Type::Array { element, length } = ty {
            let step = bytes_of(element).ok_or_else(|| self.missing(&format!("a value of type {ty} in memory")))?;
            let elements: Lowering<Vec<Held>> =
                (0..u64::from(*length)).map(|index| self.load_held(files, element, &stored.at(index * step))).collect();
            return Ok(Held::Array(Rc::new(elements?)));
        }
        let (width, lanes) = bits_shape(self, ty)?;
        if files.in_registers(self.machine(), width, lanes) {
            let registers = self.load_registers(stored, u64::from(width / 8 * lanes))?;
            return Ok(Held::Registers(registers));
        }
        Ok(Held::Lanes(self.load_lanes_as_scalars(files, width, lanes, stored)?))
    }

    /// Lanes from memory in scalars, whatever form the type has otherwise.
    ///
    /// # Errors
    /// The machine cannot load them.
    pub fn load_lanes_as_scalars(&mut self, files: &Files, width: u32, lanes: u32, stored: &Stored) -> Lowering<Vec<Scalar>> {
        let step = u64::from(width.div_ceil(8));
        (0..u64::from(lanes)).map(|lane| self.load_scalar(files, width, &stored.at(lane * step))).collect()
    }

    /// Bytes of each word of a scalar in memory and its distance, least significant word first.
    fn scalar_pieces(&self, file: FileId, width: u32) -> Lowering<Vec<(u32, u64)>> {
        let word = self.machine()[file].width_bits.div_ceil(8);
        let total = width.div_ceil(8);
        let mut pieces = Vec::new();
        let mut done = 0;
        while done < total {
            let bytes = word.min(total - done);
            if !bytes.is_power_of_two() {
                return Err(self.missing(&format!("a {width}-bit number in memory")));
            }
            let distance = match self.machine().byte_order {
                ByteOrder::Little => done,
                ByteOrder::Big => total - done - bytes,
            };
            pieces.push((bytes, u64::from(distance)));
            done += bytes;
        }
        Ok(pieces)
    }

    fn load_scalar(&mut self, files: &Files, width: u32, stored: &Stored) -> Lowering<Scalar> {
        let file = self.scalar_file(files, width)?;
        let file = if self.machine()[file].width_bits < 8 { self.scalar_file(files, 8)? } else { file };
        let pieces = self.scalar_pieces(file, width)?;
        let words: Lowering<Vec<ValueId>> =
            pieces.into_iter().map(|(bytes, distance)| self.load(file, bytes, stored.place(distance))).collect();
        let loaded = Scalar { width: width.next_multiple_of(8), words: words? };
        if width.is_multiple_of(8) { Ok(loaded) } else { self.resize_scalar(files, &loaded, width) }
    }

    /// The file for scalars of this width.
    pub(crate) fn scalar_file(&self, files: &Files, width: u32) -> Lowering<FileId> {
        files.scalar(self.machine(), width).ok_or_else(|| self.missing(&format!("scalars of {width} bits")))
    }

    /// Whether whole registers at this place can be reached by accesses that drop low address bits.
    fn is_aligned(&self, stored: &Stored) -> bool {
        let file = self.lane_file();
        let bytes = self.lane_register_bytes();
        let dropped = file.and_then(|file| self.memory_rows.best(file, bytes, false, false)).map_or(0, |row| row.dropped);
        u64::from(stored.align_bytes) > dropped && stored.offset & dropped == 0
    }

    /// `bytes` bytes from memory in registers of the lane file.
    fn load_registers(&mut self, stored: &Stored, bytes: u64) -> Lowering<Vec<ValueId>> {
        let file = self.lane_file().ok_or_else(|| self.missing("registers of many lanes"))?;
        let size = u64::from(self.lane_register_bytes());
        let count = bytes.div_ceil(size);
        if self.is_aligned(stored) {
            return (0..count).map(|index| self.load(file, size as u32, self.clipped(stored, index * size, bytes))).collect();
        }
        let (pointer, control) = self.unaligned_control(stored, true)?;
        let window = stored.window.unwrap_or((stored.offset, stored.offset + bytes));
        let mut blocks = Vec::new();
        for index in 0..=count {
            // The last byte, not the one after it: an aligned value must not reach into the next block.
            let offset = (index * size).min(bytes - 1);
            blocks.push(self.load(file, size as u32, Place::from_pointer(stored.region, pointer, offset, window))?);
        }
        blocks.windows(2).map(|pair| self.permute_by(pair, control)).collect()
    }

    fn clipped(&self, stored: &Stored, offset: u64, bytes: u64) -> Place {
        let mut place = stored.place(offset);
        if place.window.is_none() {
            place.window =
                Some((stored.offset + offset, (stored.offset + offset + u64::from(self.lane_register_bytes())).min(stored.offset + bytes)));
        }
        place
    }

    /// A pointer to the place and the control that aligns (`left`: bytes from the place on come first) or the inverse.
    fn unaligned_control(&mut self, stored: &Stored, left: bool) -> Lowering<(ValueId, ValueId)> {
        let root = match stored.base {
            Some(base) => base,
            None => super::addresses::region_address(self, stored.region)?,
        };
        let pointer = if stored.offset == 0 { root } else { self.advance(root, stored.offset)? };
        let shape = address_control_shape(self, left)?;
        let control = self.emit_single(&shape, &[Input::Value(pointer)])?;
        Ok((pointer, control))
    }

    /// The value with every part that is still in memory loaded.
    ///
    /// # Errors
    /// The machine cannot load it.
    pub fn without_memory(&mut self, files: &Files, ty: &Type, held: Held) -> Lowering<Held> {
        match (ty, held) {
            (_, Held::Memory(stored)) => self.load_held(files, ty, &stored),
            (Type::Array { element, .. }, Held::Array(elements)) => {
                let loaded: Lowering<Vec<Held>> = elements.iter().map(|item| self.without_memory(files, element, item.clone())).collect();
                Ok(Held::Array(Rc::new(loaded?)))
            }
            (_, held) => Ok(held),
        }
    }

    /// Writes a value of this type to memory.
    ///
    /// # Errors
    /// The machine cannot store it.
    pub fn store_held(&mut self, files: &Files, ty: &Type, held: &Held, stored: &Stored) -> Lowering<()> {
        match (ty, held) {
            (Type::Array { element, .. }, Held::Array(elements)) => {
                let step = bytes_of(element).ok_or_else(|| self.missing(&format!("a value of type {ty} in memory")))?;
                for (index, item) in elements.iter().enumerate() {
                    self.store_held(files, element, item, &stored.at(index as u64 * step))?;
                }
                Ok(())
            }
            (_, Held::Memory(from)) => {
                let loaded = self.load_held(files, ty, &from.clone())?;
                self.store_held(files, ty, &loaded, stored)
            }
            (Type::Bits { width, lanes }, Held::Registers(registers)) => {
                self.store_registers(registers, stored, u64::from(width / 8 * lanes))
            }
            (Type::Bits { width, .. }, Held::Lanes(scalars)) => {
                let step = u64::from(width.div_ceil(8));
                for (lane, scalar) in scalars.iter().enumerate() {
                    self.store_scalar(files, scalar, &stored.at(lane as u64 * step))?;
                }
                Ok(())
            }
            _ => Err(self.missing(&format!("a value of type {ty} in memory"))),
        }
    }

    fn store_scalar(&mut self, files: &Files, scalar: &Scalar, stored: &Stored) -> Lowering<()> {
        let narrow = self.machine()[self.file_of(scalar.words[0])].width_bits < 8;
        let scalar = if narrow { self.resize_scalar(files, scalar, 8)? } else { scalar.clone() };
        let pieces = self.scalar_pieces(self.file_of(scalar.words[0]), scalar.width)?;
        for (word, (bytes, distance)) in scalar.words.iter().zip(pieces) {
            self.store(*word, bytes, stored.place(distance))?;
        }
        Ok(())
    }

    fn store_registers(&mut self, registers: &[ValueId], stored: &Stored, bytes: u64) -> Lowering<()> {
        let size = u64::from(self.lane_register_bytes());
        if self.is_aligned(stored) {
            for (index, register) in registers.iter().enumerate() {
                let offset = index as u64 * size;
                if bytes - offset >= size {
                    self.store(*register, size as u32, stored.place(offset))?;
                } else {
                    self.store_elements(*register, stored, offset, bytes - offset)?;
                }
            }
            return Ok(());
        }
        // Rotated so that every byte lies where its address modulo the register's size says.
        let (pointer, control) = self.unaligned_control(stored, false)?;
        let window = stored.window.unwrap_or((stored.offset, stored.offset + bytes));
        let from_pointer = Stored { base: Some(pointer), offset: 0, window: Some(window), ..stored.clone() };
        let rotated: Lowering<Vec<ValueId>> = registers.iter().map(|register| self.permute_by(&[*register, *register], control)).collect();
        let rotated = rotated?;
        let whole = bytes / size;
        let edges: Vec<u64> =
            if whole > 1 && bytes.is_multiple_of(size) { vec![0, whole - 1] } else { (0..registers.len() as u64).collect() };
        if edges.len() == 2 && whole > 1 {
            for index in 0..whole - 1 {
                let pair = [registers[index as usize], registers[index as usize + 1]];
                let middle = self.permute_by(&pair, control)?;
                self.store(middle, size as u32, Place::from_pointer(stored.region, pointer, (index + 1) * size, window))?;
            }
        }
        for index in edges {
            let offset = index * size;
            self.store_elements(rotated[index as usize], &from_pointer, offset, (bytes - offset).min(size))?;
        }
        Ok(())
    }

    /// The first `bytes` bytes of the value at `offset` as elements of the greatest size that the alignment allows; the register holds each byte at its
    /// address modulo the register's size.
    fn store_elements(&mut self, register: ValueId, stored: &Stored, offset: u64, bytes: u64) -> Lowering<()> {
        let file = self.file_of(register);
        let align = u64::from(stored.at(offset).align_bytes);
        let mut done = 0;
        while done < bytes {
            let size = [8u64, 4, 2, 1]
                .into_iter()
                .find(|size| {
                    *size <= align
                        && done.is_multiple_of(*size)
                        && *size <= bytes - done
                        && self.memory_rows.element_store(file, *size as u32).is_some()
                })
                .ok_or_else(|| self.missing("store of one byte of a register of many lanes"))?;
            self.store_element(register, size as u32, stored.place(offset + done))?;
            done += size;
        }
        Ok(())
    }
}

/// Byte i of the result is (address modulo the register's size) + i, or (size − that) + i. Input: the address.
fn address_control_shape(builder: &ProgramBuilder<'_>, left: bool) -> Lowering<shapes::Shape> {
    let machine = builder.machine();
    let file = builder.lane_file().ok_or_else(|| builder.missing("registers of many lanes"))?;
    let size = builder.lane_register_bytes();
    let title = if left { "permute control that aligns an address" } else { "permute control that shifts to an address" };
    let mut shape = ShapeBuilder::new(title);
    let address = shape.register(machine, builder.pointer_file());
    let width = machine[builder.pointer_file()].width_bits;
    let mask = shape.splat(width, 1, u64::from(size) - 1);
    let low = shape.nary(NaryOp::And, vec![address, mask]);
    let low = shape.node(Op::Resize(low), Type::bits(8));
    let start = if left {
        low
    } else {
        let whole = shape.splat(8, 1, u64::from(size));
        shape.binary(kgen_ir::body::BinaryOp::Subtract, whole, low)
    };
    let bytes = (0..size)
        .map(|index| {
            let step = shape.splat(8, 1, u64::from(index));
            shape.nary(NaryOp::Add, vec![start, step])
        })
        .collect();
    let control = shape.node(Op::Lanes(bytes), Type::vector(8, size));
    Ok(shape.finish(machine, vec![(control, file)]))
}
