//! Shifts and rotations of numbers in scalar registers: by constants, and by counts that only the run knows.

use super::builder::{Input, Lowering, ProgramBuilder};
use super::held::{Files, Scalar};
use super::shapes::{self, LaneOp, Shape, ShapeBuilder};
use crate::machine::FileId;
use crate::program::ValueId;
use kgen_ir::bits::Bits;
use kgen_ir::body::{BinaryOp, NaryOp};

impl ProgramBuilder<'_> {
    /// One word shifted or rotated by a constant below its width.
    pub(super) fn shift_word(&mut self, op: BinaryOp, word: ValueId, count: u32) -> Lowering<ValueId> {
        let file = self.file_of(word);
        let machine = self.machine();
        let width = machine[file].width_bits;
        if count == 0 {
            return Ok(word);
        }
        let lane_op = match op {
            BinaryOp::ShiftLeft => LaneOp::ShiftLeft,
            BinaryOp::ShiftRight => LaneOp::ShiftRight,
            BinaryOp::ShiftRightSigned => LaneOp::ShiftRightSigned,
            _ => LaneOp::RotateLeft,
        };
        let shape = shapes::immediate_shape(machine, file, lane_op);
        if self.takes_constant(&shape, 1, i64::from(count)) {
            return self.emit_single(&shape, &[Input::Value(word), Input::Constant(i64::from(count))]);
        }
        let register = shapes::lane_shape(machine, file, lane_op, width);
        if self.selector.row_for(&register).is_some() {
            let count = self.integer_in(file, i64::from(count))?;
            return self.lane_row(lane_op, width, &[word, count]);
        }
        if lane_op == LaneOp::RotateLeft {
            let left = self.shift_word(BinaryOp::ShiftLeft, word, count)?;
            let right = self.shift_word(BinaryOp::ShiftRight, word, width - count)?;
            return self.lane_row(LaneOp::Or, width, &[left, right]);
        }
        Err(self.missing(&shape.title))
    }

    /// Shifts and rotations by a constant, with the language's rule for counts of the width or more.
    ///
    /// # Errors
    /// The machine has no such rows.
    pub fn shift_scalar(&mut self, files: &Files, a: &Scalar, op: BinaryOp, count: u32) -> Lowering<Scalar> {
        let (width, word_bits) = (a.width, self.word_bits(a));
        let file = self.file_of(a.words[0]);
        match op {
            BinaryOp::RotateLeft => {
                let count = count % width;
                if count == 0 {
                    return Ok(a.clone());
                }
                if width == word_bits {
                    return Ok(Scalar { width, words: vec![self.shift_word(op, a.words[0], count)?] });
                }
                let left = self.shift_scalar(files, a, BinaryOp::ShiftLeft, count)?;
                let right = self.shift_scalar(files, a, BinaryOp::ShiftRight, width - count)?;
                return self.scalar_nary(NaryOp::Or, &[left, right]);
            }
            BinaryOp::ShiftRightSigned => {
                let count = count.min(width - 1);
                let direct = shapes::immediate_shape(self.machine(), file, LaneOp::ShiftRightSigned);
                if a.words.len() > 1 || !self.takes_constant(&direct, 1, i64::from(word_bits - 1)) {
                    // With s the sign bit moved down as well, (x ^ s) − s spreads the sign of the zero-filled x.
                    let mut sign = Bits::zero(width);
                    sign.insert(width - 1 - count, &Bits::from_u64(1, 1));
                    let sign = self.scalar_constant(files, &sign)?;
                    let down = self.shift_scalar(files, a, BinaryOp::ShiftRight, count)?;
                    let flipped = self.scalar_nary(NaryOp::Xor, &[down, sign.clone()])?;
                    return self.subtract_scalars(files, &flipped, &sign);
                }
                // The sign is brought to the top of the word and back.
                let unused = word_bits - width;
                let up = self.shift_word(BinaryOp::ShiftLeft, a.words[0], unused)?;
                let down = self.shift_word(op, up, unused + count)?;
                return self.normal(Scalar { width, words: vec![down] });
            }
            _ => {}
        }
        if count >= width {
            return self.scalar_constant(files, &Bits::zero(width));
        }
        let (skip, rest) = ((count / word_bits) as usize, count % word_bits);
        let length = a.words.len();
        let mut words = Vec::with_capacity(length);
        for index in 0..length {
            let (main, other) = if op == BinaryOp::ShiftLeft {
                (index.checked_sub(skip), index.checked_sub(skip + 1))
            } else {
                (Some(index + skip).filter(|main| *main < length), Some(index + skip + 1).filter(|other| *other < length))
            };
            let opposite = if op == BinaryOp::ShiftLeft { BinaryOp::ShiftRight } else { BinaryOp::ShiftLeft };
            let mut parts = Vec::new();
            if let Some(main) = main {
                parts.push(self.shift_word(op, a.words[main], rest)?);
            }
            if let Some(other) = other.filter(|_| rest != 0) {
                parts.push(self.shift_word(opposite, a.words[other], word_bits - rest)?);
            }
            words.push(match parts[..] {
                [] => self.integer_in(file, 0)?,
                [part] => part,
                _ => self.lane_row(LaneOp::Or, word_bits, &parts)?,
            });
        }
        let shifted = Scalar { width, words };
        if op == BinaryOp::ShiftLeft { self.normal(shifted) } else { Ok(shifted) }
    }

    /// A row that shifts or rotates a register of `file` by a register, and that register's file: it does what the language says for counts below the width.
    fn shift_row(&self, files: &Files, file: FileId, op: BinaryOp) -> Option<(Shape, FileId)> {
        let machine = self.machine();
        let width = machine[file].width_bits;
        let counts = files.scalars.iter().filter(|(_, file)| machine[*file].width_bits <= 64);
        let candidates = counts.flat_map(|(_, count)| [(*count, width), (*count, 2 * width)]);
        candidates
            .filter(|(count, modulus)| machine[*count].width_bits >= 32 || modulus >> machine[*count].width_bits == 0)
            .map(|(count_file, modulus)| {
                let title = format!("{op:?} of file {} by file {} modulo {modulus}", machine[file].name, machine[count_file].name);
                let mut shape = ShapeBuilder::new(title);
                let a = shape.register(machine, file);
                let count = shape.register(machine, count_file);
                let mask = shape.splat(machine[count_file].width_bits, 1, u64::from(modulus) - 1);
                let count = shape.nary(NaryOp::And, vec![count, mask]);
                let shifted = shape.binary(op, a, count);
                (shape.finish(machine, vec![(shifted, file)]), count_file)
            })
            .find(|(shape, _)| self.selector.row_for(shape).is_some())
    }

    /// Shifts and rotations by a number, with the language's rule for counts of the width or more.
    ///
    /// # Errors
    /// The machine has no such rows.
    pub fn shift_scalar_by(&mut self, files: &Files, a: &Scalar, op: BinaryOp, count: &Scalar) -> Lowering<Scalar> {
        let width = a.width;
        if width == 1 {
            if matches!(op, BinaryOp::RotateLeft | BinaryOp::ShiftRightSigned) {
                return Ok(a.clone());
            }
            let none = self.index_is(files, count, 0)?;
            return self.scalar_nary(NaryOp::And, &[a.clone(), none]);
        }
        if a.words.len() == 1
            && let Some(shifted) = self.shift_one_word_by(files, a, op, count)?
        {
            return Ok(shifted);
        }
        // Bit by bit of the count, from distances that are constant.
        let mut shifted = a.clone();
        for bit in 0..count.width {
            let distance = match op {
                BinaryOp::RotateLeft => (0..bit).fold(1 % width, |distance, _| distance * 2 % width),
                _ if bit < 32 && 1u32 << bit < width => 1 << bit,
                _ => break,
            };
            if distance == 0 {
                break;
            }
            let digit = self.shift_scalar(files, count, BinaryOp::ShiftRight, bit)?;
            let digit = self.resize_scalar(files, &digit, 1)?;
            let moved = self.shift_scalar(files, &shifted, op, distance)?;
            shifted = self.select_scalars(files, &digit, &moved, &shifted)?;
        }
        match self.is_below(files, count, width)? {
            Some(inside) if op != BinaryOp::RotateLeft => {
                let beyond = if op == BinaryOp::ShiftRightSigned {
                    self.shift_scalar(files, a, op, width - 1)?
                } else {
                    self.scalar_constant(files, &Bits::zero(width))?
                };
                self.select_scalars(files, &inside, &shifted, &beyond)
            }
            _ => Ok(shifted),
        }
    }

    /// Whether a number is below a limit; `None` where every number of its width is.
    fn is_below(&mut self, files: &Files, number: &Scalar, limit: u32) -> Lowering<Option<Scalar>> {
        if number.width < 32 && 1 << number.width <= limit {
            return Ok(None);
        }
        let limit = self.scalar_constant(files, &Bits::from_u64(number.width, u64::from(limit)))?;
        self.compare_scalars(files, BinaryOp::Less, number, &limit).map(Some)
    }

    /// One word by rows that take their count from a register; `None` where the machine has none.
    fn shift_one_word_by(&mut self, files: &Files, a: &Scalar, op: BinaryOp, count: &Scalar) -> Lowering<Option<Scalar>> {
        let (width, word_bits, file) = (a.width, self.word_bits(a), self.file_of(a.words[0]));
        let (Some((left, _)), Some((right, count_file))) =
            (self.shift_row(files, file, BinaryOp::ShiftLeft), self.shift_row(files, file, BinaryOp::ShiftRight))
        else {
            return Ok(None);
        };
        let count_bits = self.machine()[count_file].width_bits;
        let amount = self.resize_scalar(files, count, count_bits)?;
        if self.file_of(amount.words[0]) != count_file
            || left.inputs != right.inputs
            || (op == BinaryOp::RotateLeft && !width.is_power_of_two())
        {
            return Ok(None);
        }
        let by = |builder: &mut Self, shape: &Shape, a: ValueId, amount: &Scalar| -> Lowering<Scalar> {
            let word = builder.emit_single(shape, &[Input::Value(a), Input::Value(amount.words[0])])?;
            builder.normal(Scalar { width, words: vec![word] })
        };
        match op {
            BinaryOp::RotateLeft => {
                let mask = self.scalar_constant(files, &Bits::from_u64(count_bits, u64::from(width) - 1))?;
                let amount = self.scalar_nary(NaryOp::And, &[amount, mask])?;
                if width == word_bits
                    && let Some((rotate, of)) = self.shift_row(files, file, op)
                    && of == count_file
                {
                    return by(self, &rotate, a.words[0], &amount).map(Some);
                }
                // Where the amount is zero the other part is the whole number again, or nothing: either is right.
                let whole = self.scalar_constant(files, &Bits::from_u64(count_bits, u64::from(width)))?;
                let rest = self.subtract_scalars(files, &whole, &amount)?;
                let (up, down) = (by(self, &left, a.words[0], &amount)?, by(self, &right, a.words[0], &rest)?);
                self.scalar_nary(NaryOp::Or, &[up, down]).map(Some)
            }
            BinaryOp::ShiftRightSigned => {
                let amount = match self.is_below(files, count, width)? {
                    Some(inside) => {
                        let most = self.scalar_constant(files, &Bits::from_u64(count_bits, u64::from(width) - 1))?;
                        self.select_scalars(files, &inside, &amount, &most)?
                    }
                    None => amount,
                };
                // With s the sign bit moved down as well, (x ^ s) − s spreads the sign of the zero-filled x.
                let mut sign = Bits::zero(width);
                sign.insert(width - 1, &Bits::from_u64(1, 1));
                let sign = self.scalar_constant(files, &sign)?;
                let (down, sign) = (by(self, &right, a.words[0], &amount)?, by(self, &right, sign.words[0], &amount)?);
                let flipped = self.scalar_nary(NaryOp::Xor, &[down, sign.clone()])?;
                self.subtract_scalars(files, &flipped, &sign).map(Some)
            }
            _ => {
                let row = if op == BinaryOp::ShiftLeft { &left } else { &right };
                let shifted = by(self, row, a.words[0], &amount)?;
                match self.is_below(files, count, width)? {
                    Some(inside) => {
                        let zero = self.scalar_constant(files, &Bits::zero(width))?;
                        self.select_scalars(files, &inside, &shifted, &zero).map(Some)
                    }
                    None => Ok(Some(shifted)),
                }
            }
        }
    }

    /// A count of shifts as a number of `width` bits that moves a number of that width as far: too great ones become the width.
    ///
    /// # Errors
    /// The machine has no such rows.
    pub fn shift_count(&mut self, files: &Files, op: BinaryOp, count: &Scalar, width: u32) -> Lowering<Scalar> {
        let cut = self.resize_scalar(files, count, width)?;
        if count.width <= width || op == BinaryOp::RotateLeft && width.is_power_of_two() {
            return Ok(cut);
        }
        match self.is_below(files, count, width)? {
            Some(inside) => {
                let whole = self.scalar_constant(files, &Bits::from_u64(width, u64::from(width)))?;
                self.select_scalars(files, &inside, &cut, &whole)
            }
            None => Ok(cut),
        }
    }
}
