//! Numbers in scalar registers: one word, or several words with carries. Bits of the top word past the number's width are kept zero.

use super::builder::{Input, Lowering, ProgramBuilder};
use super::held::{Files, Scalar};
use super::shapes::{self, LaneOp, ShapeBuilder};
use crate::machine::FileId;
use crate::program::ValueId;
use kgen_ir::bits::Bits;
use kgen_ir::body::{BinaryOp, NaryOp, Op};
use kgen_ir::types::Type;

impl ProgramBuilder<'_> {
    pub(super) fn word_bits(&self, scalar: &Scalar) -> u32 {
        self.machine()[self.file_of(scalar.words[0])].width_bits
    }

    /// A constant number.
    ///
    /// # Errors
    /// The machine cannot make it.
    pub fn scalar_constant(&mut self, files: &Files, bits: &Bits) -> Lowering<Scalar> {
        let file = self.scalar_file(files, bits.width())?;
        let word = self.machine()[file].width_bits;
        if word > 64 {
            // Two halves joined: a register of more than 64 bits has no constant of its own here.
            let half = self.scalar_constant(files, &bits.extract(0, 64))?;
            let mut whole = self.resize_scalar(files, &half, bits.width())?;
            let high = bits.extract(64, 64);
            if high.to_u64() != Some(0) {
                let high = self.scalar_constant(files, &high)?;
                let high = self.resize_scalar(files, &high, bits.width())?;
                let high = self.shift_scalar(files, &high, BinaryOp::ShiftLeft, 64)?;
                whole = self.scalar_nary(NaryOp::Or, &[whole, high])?;
            }
            return Ok(whole);
        }
        let words: Lowering<Vec<ValueId>> = (0..bits.width().div_ceil(word))
            .map(|index| {
                let value = bits.extract(index * word, word).to_u64().unwrap_or(0);
                self.integer_in(file, value as i64)
            })
            .collect();
        Ok(Scalar { width: bits.width(), words: words? })
    }

    /// The number cut or zero filled to `width` bits.
    ///
    /// # Errors
    /// The machine cannot move between the files.
    pub fn resize_scalar(&mut self, files: &Files, scalar: &Scalar, width: u32) -> Lowering<Scalar> {
        let from = self.file_of(scalar.words[0]);
        let to = self.scalar_file(files, width)?;
        if from != to {
            let word = if self.machine()[from].width_bits > 64 && self.machine()[to].width_bits < 8 {
                // A single bit of a wide number: by way of a narrower one.
                let narrow = self.resize_scalar(files, scalar, 64)?;
                return self.resize_scalar(files, &narrow, width);
            } else {
                self.emit_single(&shapes::move_shape(self.machine(), from, to), &[Input::Value(scalar.words[0])])?
            };
            let mut words = vec![word];
            let word_bits = self.machine()[to].width_bits;
            let mut rest = scalar.words[1..].to_vec();
            if !rest.is_empty() {
                // Several words of the source fill one of the target, or the other way round: only the first word matters when the target is narrow.
                if width > self.machine()[from].width_bits {
                    return Err(self.missing(&format!("a {}-bit number as {width} bits", scalar.width)));
                }
                rest.clear();
            }
            let zero = if width > word_bits { Some(self.integer_in(to, 0)?) } else { None };
            while (words.len() as u32) * word_bits < width {
                words.extend(zero);
            }
            return self.cut(Scalar { width, words }, scalar.width.min(self.machine()[from].width_bits));
        }
        let word_bits = self.machine()[from].width_bits;
        let count = width.div_ceil(word_bits) as usize;
        let mut words: Vec<ValueId> = scalar.words.iter().copied().take(count).collect();
        if words.len() < count {
            let zero = self.integer_in(from, 0)?;
            words.resize(count, zero);
        }
        self.cut(Scalar { width, words }, scalar.width)
    }

    /// Zeroes the bits past the width, where the number may be as wide as `was`.
    fn cut(&mut self, mut scalar: Scalar, was: u32) -> Lowering<Scalar> {
        let word_bits = self.word_bits(&scalar);
        let used = scalar.width % word_bits;
        if used == 0 || was <= scalar.width {
            return Ok(scalar);
        }
        let top = scalar.words.len() - 1;
        if word_bits > 64 {
            // No row holds so long a constant: the bits are shifted out.
            let up = self.shift_word(BinaryOp::ShiftLeft, scalar.words[top], word_bits - used)?;
            scalar.words[top] = self.shift_word(BinaryOp::ShiftRight, up, word_bits - used)?;
            return Ok(scalar);
        }
        scalar.words[top] = self.with_constant(LaneOp::And, scalar.words[top], ((1u64 << used) - 1) as i64)?;
        Ok(scalar)
    }

    /// The number after an operation that may have set bits past its width.
    pub(super) fn normal(&mut self, scalar: Scalar) -> Lowering<Scalar> {
        let all = self.word_bits(&scalar) * scalar.words.len() as u32;
        self.cut(scalar, all)
    }

    /// Sum, xor, and, or of numbers of one width.
    ///
    /// # Errors
    /// The machine has no such rows.
    pub fn scalar_nary(&mut self, op: NaryOp, operands: &[Scalar]) -> Lowering<Scalar> {
        let width = operands[0].width;
        let word_bits = self.word_bits(&operands[0]);
        if op == NaryOp::Add && operands[0].words.len() > 1 {
            let mut sum = operands[0].clone();
            for next in &operands[1..] {
                sum = self.add_words(&sum, next)?;
            }
            return self.normal(sum);
        }
        let lane_op = match op {
            NaryOp::Add => LaneOp::Add,
            NaryOp::Xor => LaneOp::Xor,
            NaryOp::And => LaneOp::And,
            NaryOp::Or => LaneOp::Or,
        };
        let words: Lowering<Vec<ValueId>> = (0..operands[0].words.len())
            .map(|index| {
                let column: Vec<ValueId> = operands.iter().map(|operand| operand.words[index]).collect();
                self.tree(lane_op, word_bits, &column)
            })
            .collect();
        let result = Scalar { width, words: words? };
        if op == NaryOp::Add && operands.len() > 1 { self.normal(result) } else { Ok(result) }
    }

    /// A singleton file or a file of flags with add-with-carry rows for `file`.
    fn carry_file(&self, file: FileId) -> Option<FileId> {
        let machine = self.machine();
        let bits = (0..machine.register_files.len()).map(|index| FileId(index as u16)).filter(|flag| machine[*flag].width_bits == 1);
        bits.into_iter().find(|flag| self.selector.row_for(&shapes::add_with_carry_shape(machine, file, *flag, true)).is_some())
    }

    fn add_words(&mut self, a: &Scalar, b: &Scalar) -> Lowering<Scalar> {
        let file = self.file_of(a.words[0]);
        let word_bits = self.machine()[file].width_bits;
        let mut words = Vec::with_capacity(a.words.len());
        if let Some(flag) = self.carry_file(file) {
            let mut carry = None;
            for (a, b) in a.words.iter().zip(&b.words) {
                let shape = shapes::add_with_carry_shape(self.machine(), file, flag, carry.is_some());
                let inputs: Vec<Input> = [Some(*a), Some(*b), carry].into_iter().flatten().map(Input::Value).collect();
                let results = self.emit_shape(&shape, &inputs)?;
                words.push(results[0]);
                carry = Some(results[1]);
            }
        } else {
            let mut carry: Option<ValueId> = None;
            for (a, b) in a.words.iter().zip(&b.words) {
                let sum = self.lane_row(LaneOp::Add, word_bits, &[*a, *b])?;
                let out = self.lane_row(LaneOp::CarryOut, word_bits, &[*a, *b])?;
                let (sum, out) = match carry {
                    Some(carry) => {
                        let with = self.lane_row(LaneOp::Add, word_bits, &[sum, carry])?;
                        let second = self.lane_row(LaneOp::CarryOut, word_bits, &[sum, carry])?;
                        (with, self.lane_row(LaneOp::Or, word_bits, &[out, second])?)
                    }
                    None => (sum, out),
                };
                words.push(sum);
                carry = Some(out);
            }
        }
        Ok(Scalar { width: a.width, words })
    }

    /// a − b and, as a number of one bit, whether it is negative.
    fn subtract_words(&mut self, files: &Files, a: &Scalar, b: &Scalar) -> Lowering<(Scalar, Scalar)> {
        let file = self.file_of(a.words[0]);
        let machine = self.machine();
        let bits: Vec<FileId> =
            (0..machine.register_files.len()).map(|index| FileId(index as u16)).filter(|flag| machine[*flag].width_bits == 1).collect();
        let found = bits.into_iter().flat_map(|flag| [(flag, true), (flag, false)]).find(|(flag, no_borrow)| {
            self.selector.row_for(&shapes::subtract_with_borrow_shape(machine, file, *flag, true, *no_borrow)).is_some()
        });
        let (flag, no_borrow) = found.ok_or_else(|| self.missing("subtract with borrow"))?;
        let mut words = Vec::with_capacity(a.words.len());
        let mut borrow = None;
        for (a, b) in a.words.iter().zip(&b.words) {
            let shape = shapes::subtract_with_borrow_shape(machine, file, flag, borrow.is_some(), no_borrow);
            let inputs: Vec<Input> = [Some(*a), Some(*b), borrow].into_iter().flatten().map(Input::Value).collect();
            let results = self.emit_shape(&shape, &inputs)?;
            words.push(results[0]);
            borrow = Some(results[1]);
        }
        let difference = Scalar { width: a.width, words };
        let borrow = borrow.ok_or_else(|| self.missing("subtract of numbers without words"))?;
        let negative = if files.flags == Some(flag) && !no_borrow {
            Scalar { width: 1, words: vec![borrow] }
        } else {
            // 0 − 0 − borrow is all ones where the difference is negative.
            let zero = self.integer_in(file, 0)?;
            let shape = shapes::subtract_with_borrow_shape(machine, file, flag, true, no_borrow);
            let mask = self.emit_shape(&shape, &[Input::Value(zero), Input::Value(zero), Input::Value(borrow)])?[0];
            let bit = Scalar { width: 1, words: vec![self.with_constant(LaneOp::And, mask, 1)?] };
            if self.scalar_file(files, 1)? == file { bit } else { self.resize_scalar(files, &bit, 1)? }
        };
        Ok((difference, negative))
    }

    /// a − b modulo 2^width.
    ///
    /// # Errors
    /// The machine has no such rows.
    pub fn subtract_scalars(&mut self, files: &Files, a: &Scalar, b: &Scalar) -> Lowering<Scalar> {
        let difference = if a.words.len() == 1 {
            let word_bits = self.word_bits(a);
            Scalar { width: a.width, words: vec![self.lane_row(LaneOp::Subtract, word_bits, &[a.words[0], b.words[0]])?] }
        } else {
            self.subtract_words(files, a, b)?.0
        };
        self.normal(difference)
    }

    /// The product modulo 2^width of single words, or the full product of words in twice the width.
    ///
    /// # Errors
    /// The machine has no such rows; a secret in rows of variable time.
    pub fn multiply_scalars(&mut self, a: &Scalar, b: &Scalar, narrow: Option<(&Scalar, &Scalar)>) -> Lowering<Scalar> {
        let word_bits = self.word_bits(a);
        if a.words.len() == 1 {
            let product = Scalar { width: a.width, words: vec![self.lane_row(LaneOp::Multiply, word_bits, &[a.words[0], b.words[0]])?] };
            return self.normal(product);
        }
        let Some((a_narrow, b_narrow)) =
            narrow.filter(|(a, b)| a.words.len() == 1 && b.words.len() == 1 && a.width == word_bits && b.width == word_bits)
        else {
            return Err(self.missing(&format!("a product of {} bits in {word_bits}-bit words", a.width)));
        };
        let operands = [a_narrow.words[0], b_narrow.words[0]];
        let low = self.lane_row(LaneOp::Multiply, word_bits, &operands)?;
        let high = self.lane_row(LaneOp::MultiplyHigh, word_bits, &operands)?;
        Ok(Scalar { width: a.width, words: vec![low, high] })
    }

    /// Complement.
    ///
    /// # Errors
    /// The machine has no such row.
    pub fn not_scalar(&mut self, a: &Scalar) -> Lowering<Scalar> {
        let word_bits = self.word_bits(a);
        let words: Lowering<Vec<ValueId>> = a.words.iter().map(|word| self.lane_row(LaneOp::Not, word_bits, &[*word])).collect();
        self.normal(Scalar { width: a.width, words: words? })
    }

    /// A number of one bit: a = b, a < b.
    ///
    /// # Errors
    /// The machine has no such rows.
    pub fn compare_scalars(&mut self, files: &Files, op: BinaryOp, a: &Scalar, b: &Scalar) -> Lowering<Scalar> {
        let file = self.file_of(a.words[0]);
        let machine = self.machine();
        if a.words.len() == 1
            && let Some(flags) = files.flags
        {
            let mut shape = ShapeBuilder::new(format!("comparison {op:?} of file {}", machine[file].name));
            let left = shape.register(machine, file);
            let right = shape.register(machine, file);
            let result = shape.node(Op::Binary(op, left, right), Type::bits(1));
            let shape = shape.finish(machine, vec![(result, flags)]);
            if self.selector.row_for(&shape).is_some() {
                return Ok(Scalar { width: 1, words: vec![self.emit_single(&shape, &[a.words[0].into(), b.words[0].into()])?] });
            }
        }
        match op {
            BinaryOp::Less => Ok(self.subtract_words(files, a, b)?.1),
            BinaryOp::Equal => {
                // The difference's bits, or-ed into one word d; d = 0 just where 0 − d does not borrow.
                let difference = self.scalar_nary(NaryOp::Xor, &[a.clone(), b.clone()])?;
                let word_bits = machine[file].width_bits;
                let all = self.tree(LaneOp::Or, word_bits, &difference.words)?;
                let zero = self.integer_in(file, 0)?;
                let word = |value| Scalar { width: word_bits, words: vec![value] };
                let differs = self.subtract_words(files, &word(zero), &word(all))?.1;
                let one = self.scalar_constant(files, &Bits::from_u64(1, 1))?;
                self.scalar_nary(NaryOp::Xor, &[differs, one])
            }
            BinaryOp::LessSigned => {
                // With both signs inverted, signed order is unsigned order.
                let mut sign = Bits::zero(a.width);
                sign.insert(a.width - 1, &Bits::from_u64(1, 1));
                let sign = self.scalar_constant(files, &sign)?;
                let a = self.scalar_nary(NaryOp::Xor, &[a.clone(), sign.clone()])?;
                let b = self.scalar_nary(NaryOp::Xor, &[b.clone(), sign])?;
                self.compare_scalars(files, BinaryOp::Less, &a, &b)
            }
            _ => Err(self.missing("this comparison of numbers")),
        }
    }

    /// `condition` (one bit) ? then : otherwise, without a branch.
    ///
    /// # Errors
    /// The machine has no such rows.
    pub fn select_scalars(&mut self, files: &Files, condition: &Scalar, then: &Scalar, otherwise: &Scalar) -> Lowering<Scalar> {
        let machine = self.machine();
        let file = self.file_of(then.words[0]);
        let word_bits = machine[file].width_bits;
        let flag = self.file_of(condition.words[0]);
        if word_bits >= 8 && machine[flag].width_bits == 1 {
            let mut shape = ShapeBuilder::new(format!("selection in file {}", machine[file].name));
            let bit = shape.register(machine, flag);
            let (a, b) = (shape.register(machine, file), shape.register(machine, file));
            let ty = shape.type_of(a);
            let chosen = shape.node(Op::Select { condition: bit, then: a, otherwise: b }, ty);
            let shape = shape.finish(machine, vec![(chosen, file)]);
            if self.selector.row_for(&shape).is_some() {
                let pairs: Vec<(ValueId, ValueId)> = then.words.iter().copied().zip(otherwise.words.iter().copied()).collect();
                let words: Lowering<Vec<ValueId>> = pairs
                    .into_iter()
                    .map(|(then, otherwise)| self.emit_single(&shape, &[condition.words[0].into(), then.into(), otherwise.into()]))
                    .collect();
                return Ok(Scalar { width: then.width, words: words? });
            }
        }
        // The bit as a mask: 0 − bit.
        let bit = if flag == file { condition.words[0] } else { self.resize_scalar(files, condition, then.width)?.words[0] };
        let mask = if word_bits == 1 {
            bit
        } else {
            let zero = self.integer_in(file, 0)?;
            self.lane_row(LaneOp::Subtract, word_bits, &[zero, bit])?
        };
        let pairs: Vec<(ValueId, ValueId)> = then.words.iter().copied().zip(otherwise.words.iter().copied()).collect();
        let words: Lowering<Vec<ValueId>> = pairs
            .into_iter()
            .map(|(then, otherwise)| {
                let differ = self.lane_row(LaneOp::Xor, word_bits, &[then, otherwise])?;
                let taken = self.lane_row(LaneOp::And, word_bits, &[differ, mask])?;
                self.lane_row(LaneOp::Xor, word_bits, &[taken, otherwise])
            })
            .collect();
        Ok(Scalar { width: then.width, words: words? })
    }

    /// Sign filled to `width` bits.
    ///
    /// # Errors
    /// The machine has no such rows.
    pub fn sign_extend_scalar(&mut self, files: &Files, a: &Scalar, width: u32) -> Lowering<Scalar> {
        // (x ^ s) − s with s the sign bit spreads the sign of a zero-filled x.
        let filled = self.resize_scalar(files, a, width)?;
        let mut sign = Bits::zero(width);
        sign.insert(a.width - 1, &Bits::from_u64(1, 1));
        let sign = self.scalar_constant(files, &sign)?;
        let flipped = self.scalar_nary(NaryOp::Xor, &[filled, sign.clone()])?;
        self.subtract_scalars(files, &flipped, &sign)
    }
}
