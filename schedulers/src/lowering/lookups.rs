//! Lookups at run-time indices: by address where the index is public, else by a scan, which selects over the whole table and takes the same time for every
//! index.

use super::builder::{Input, Lowering, Place, ProgramBuilder};
use super::held::{Files, Held, Scalar, Stored, bits_shape};
use super::shapes::LaneOp;
use crate::program::ValueId;
use kgen_ir::bits::Bits;
use kgen_ir::body::BinaryOp;
use kgen_ir::types::Type;
use std::rc::Rc;

impl ProgramBuilder<'_> {
    /// A public number in the integer file.
    ///
    /// # Errors
    /// It is wider than the file, or the machine cannot move it there.
    pub fn to_integer(&mut self, files: &Files, scalar: &Scalar) -> Lowering<ValueId> {
        let file = self.integer_file();
        let from = self.file_of(scalar.words[0]);
        if from == file {
            return Ok(scalar.words[0]);
        }
        let width = self.machine()[file].width_bits;
        if self.scalar_file(files, width)? == file {
            return Ok(self.resize_scalar(files, scalar, width)?.words[0]);
        }
        let shape = super::shapes::move_shape(self.machine(), from, file);
        self.emit_single(&shape, &[Input::Value(scalar.words[0])])
    }

    /// The element at a public run-time index of an array in memory; elements of `step` bytes, `bytes` in all.
    ///
    /// # Errors
    /// The machine cannot load at a run-time index; a secret index on cached memory.
    pub fn load_indexed(
        &mut self,
        files: &Files,
        element: &Type,
        stored: &Stored,
        index: &Scalar,
        step: u64,
        bytes: u64,
    ) -> Lowering<Held> {
        let position = self.to_integer(files, index)?;
        let integer = self.integer_file();
        let width = self.machine()[integer].width_bits;
        let position = Scalar { width, words: vec![position] };
        let distance = if step.is_power_of_two() {
            self.shift_scalar(files, &position, BinaryOp::ShiftLeft, step.trailing_zeros())?.words[0]
        } else {
            self.with_constant(LaneOp::Multiply, position.words[0], step as i64)?
        };
        let window = stored.window.unwrap_or((stored.offset, stored.offset + bytes));
        let (width, lanes) = bits_shape(self, element)?;
        if files.in_registers(self.machine(), width, lanes) {
            let file = self.lane_file().ok_or_else(|| self.missing("registers of many lanes"))?;
            let size = self.lane_register_bytes();
            if u64::from(stored.align_bytes) < u64::from(size) || !step.is_multiple_of(u64::from(size)) {
                return Err(self.missing("vectors at a run-time index that are not aligned"));
            }
            let registers: Lowering<Vec<ValueId>> = (0..step / u64::from(size))
                .map(|register| {
                    let place = Place {
                        region: stored.region,
                        base: stored.base,
                        index: Some(distance),
                        offset: stored.offset + register * u64::from(size),
                        window: Some(window),
                    };
                    self.load(file, size, place)
                })
                .collect();
            return Ok(Held::Registers(registers?));
        }
        if lanes > 1 {
            return Err(self.missing("vectors at a run-time index in scalars"));
        }
        let file = self.scalar_file(files, width)?;
        if width > self.machine()[file].width_bits || !width.div_ceil(8).is_power_of_two() || !width.is_multiple_of(8) {
            return Err(self.missing(&format!("{width}-bit numbers at a run-time index")));
        }
        let place = Place { region: stored.region, base: stored.base, index: Some(distance), offset: stored.offset, window: Some(window) };
        let word = self.load(file, width / 8, place)?;
        Ok(Held::Lanes(vec![Scalar { width, words: vec![word] }]))
    }

    /// One bit: the index is this number.
    ///
    /// # Errors
    /// The machine has no such rows.
    pub fn index_is(&mut self, files: &Files, index: &Scalar, number: u64) -> Lowering<Scalar> {
        if index.width < 64 && number >> index.width != 0 {
            return self.scalar_constant(files, &Bits::zero(1));
        }
        let number = self.scalar_constant(files, &Bits::from_u64(index.width, number))?;
        self.compare_scalars(files, BinaryOp::Equal, index, &number)
    }

    /// `condition` ? then : otherwise, of values of one form.
    ///
    /// # Errors
    /// The machine has no such rows.
    pub fn select_held(&mut self, files: &Files, condition: &Scalar, then: &Held, otherwise: &Held) -> Lowering<Held> {
        match (then, otherwise) {
            (Held::Lanes(then), Held::Lanes(otherwise)) => {
                let chosen: Lowering<Vec<Scalar>> =
                    then.iter().zip(otherwise).map(|(then, otherwise)| self.select_scalars(files, condition, then, otherwise)).collect();
                Ok(Held::Lanes(chosen?))
            }
            (Held::Array(then), Held::Array(otherwise)) => {
                let chosen: Lowering<Vec<Held>> = then
                    .iter()
                    .zip(otherwise.iter())
                    .map(|(then, otherwise)| self.select_held(files, condition, then, otherwise))
                    .collect();
                Ok(Held::Array(Rc::new(chosen?)))
            }
            (Held::Registers(then), Held::Registers(otherwise)) => {
                let mask = self.register_mask(files, condition)?;
                let chosen: Lowering<Vec<ValueId>> =
                    then.iter().zip(otherwise).map(|(then, otherwise)| self.select_bits(mask, *then, *otherwise)).collect();
                Ok(Held::Registers(chosen?))
            }
            _ => Err(self.missing("a selection between values of two forms")),
        }
    }

    /// A register of many lanes, all ones or zeros by a bit; by way of the frame.
    fn register_mask(&mut self, files: &Files, bit: &Scalar) -> Lowering<ValueId> {
        let size = self.lane_register_bytes();
        let zero = self.scalar_constant(files, &Bits::zero(32))?;
        let one = self.resize_scalar(files, bit, 32)?;
        let word = self.subtract_scalars(files, &zero, &one)?;
        let secret = word.words.iter().any(|word| self.is_secret(*word));
        let region = self.frame_region("mask", u64::from(size), size, secret);
        let stored = Stored { region, base: None, offset: 0, window: None, align_bytes: size };
        let ty = Type::vector(32, size / 4);
        self.store_held(files, &ty, &Held::Lanes(vec![word; (size / 4) as usize]), &stored)?;
        let file = self.lane_file().ok_or_else(|| self.missing("registers of many lanes"))?;
        self.load(file, size, Place::at(region, 0))
    }

    /// The element at a run-time index, by selection over all of them.
    ///
    /// # Errors
    /// The machine has no such rows.
    pub fn scan_elements(&mut self, files: &Files, elements: &[Held], index: &Scalar) -> Lowering<Held> {
        let mut chosen = elements.first().cloned().ok_or_else(|| self.missing("an element of an empty array"))?;
        for (number, element) in elements.iter().enumerate().skip(1) {
            let is_this = self.index_is(files, index, number as u64)?;
            chosen = self.select_held(files, &is_this, element, &chosen)?;
        }
        Ok(chosen)
    }

    /// Lane by lane the entry of a constant table, by selection over all entries.
    ///
    /// # Errors
    /// The machine has no such rows.
    pub fn scan_table(&mut self, width: u32, table: &[u64], positions: &[ValueId]) -> Lowering<Vec<ValueId>> {
        positions
            .iter()
            .map(|position| {
                let mut chosen = self.splat(width, table.first().copied().unwrap_or(0))?;
                for (number, entry) in table.iter().enumerate().skip(1) {
                    let here = self.splat(width, number as u64)?;
                    let is_this = self.compare_lanes(BinaryOp::Equal, width, &[*position], &[here])?[0];
                    let entry = self.splat(width, *entry)?;
                    chosen = self.select_bits(is_this, entry, chosen)?;
                }
                Ok(chosen)
            })
            .collect()
    }
}
