//! Operations of the language on values in registers of many lanes: by a row of the lane width, else by rows of narrower lanes, permutes and carries.

use super::builder::{Lowering, ProgramBuilder};
use super::permutes::Byte;
use super::shapes::LaneOp;
use crate::program::ValueId;
use kgen_ir::bits::Bits;
use kgen_ir::body::{BinaryOp, NaryOp};
use kgen_ir::types::ByteOrder;

impl ProgramBuilder<'_> {
    /// `count` bytes of registers of the lane file, each chosen from the bytes of `sources` (byte b of the list is byte b mod size of source b div size).
    ///
    /// # Errors
    /// See [`Self::permute`].
    pub fn gather(&mut self, sources: &[ValueId], wanted: &[Option<u32>]) -> Lowering<Vec<ValueId>> {
        let wanted: Vec<Byte> = wanted.iter().map(|byte| byte.map_or(Byte::Zero, |byte| self.source_byte(byte))).collect();
        self.gather_bytes(sources, &wanted)
    }

    fn source_byte(&self, byte: u32) -> Byte {
        let size = self.lane_register_bytes();
        Byte::Of { source: byte / size, byte: byte % size }
    }

    /// Registers with these bytes in order; the last one is filled with anything.
    ///
    /// # Errors
    /// See [`Self::permute`].
    pub fn gather_bytes(&mut self, sources: &[ValueId], wanted: &[Byte]) -> Lowering<Vec<ValueId>> {
        let size = self.lane_register_bytes() as usize;
        wanted
            .chunks(size)
            .map(|chunk| {
                let mut bytes = chunk.to_vec();
                bytes.resize(size, Byte::Any);
                self.permute(sources, &bytes)
            })
            .collect()
    }

    /// Register by register, a lane operation of any number of operands.
    ///
    /// # Errors
    /// The machine cannot do it.
    pub fn nary_lanes(&mut self, op: NaryOp, width: u32, operands: &[Vec<ValueId>]) -> Lowering<Vec<ValueId>> {
        let lane_op = match op {
            NaryOp::Add => LaneOp::Add,
            NaryOp::Xor => LaneOp::Xor,
            NaryOp::And => LaneOp::And,
            NaryOp::Or => LaneOp::Or,
        };
        (0..operands[0].len())
            .map(|index| {
                let column: Vec<ValueId> = operands.iter().map(|operand| operand[index]).collect();
                if op == NaryOp::Add && !self.has_lane_row(self.file_of(column[0]), lane_op, width) {
                    return column[1..].iter().try_fold(column[0], |sum, next| self.add_by_parts(width, sum, *next));
                }
                self.tree(lane_op, width, &column)
            })
            .collect()
    }

    /// The widest narrower lanes with rows for all of `ops`.
    fn part_width(&self, width: u32, ops: &[LaneOp]) -> Lowering<u32> {
        let file = self.lane_file().ok_or_else(|| self.missing("registers of many lanes"))?;
        [64, 32, 16, 8]
            .into_iter()
            .find(|part| *part < width && ops.iter().all(|op| self.has_lane_row(file, *op, *part)))
            .ok_or_else(|| self.missing(&format!("{:?} of {width}-bit lanes, nor of narrower ones", ops[0])))
    }

    /// Every part of each lane moved one place up (towards the most significant), zero in the lowest.
    fn parts_up(&mut self, width: u32, part: u32, value: ValueId) -> Lowering<ValueId> {
        self.shift_bytes(width, value, BinaryOp::ShiftLeft, part / 8)
    }

    /// Lanes shifted or rotated by whole bytes: a permute.
    fn shift_bytes(&mut self, width: u32, value: ValueId, op: BinaryOp, bytes: u32) -> Lowering<ValueId> {
        let (size, lane, order) = (self.lane_register_bytes(), width / 8, self.machine().byte_order);
        let wanted: Vec<Byte> = (0..size)
            .map(|place| {
                let (start, within) = (place / lane * lane, place % lane);
                // Significance of this byte in its lane, and of the byte that comes there.
                let significance = if order == ByteOrder::Big { lane - 1 - within } else { within };
                let from = match op {
                    BinaryOp::ShiftLeft => significance.checked_sub(bytes),
                    BinaryOp::RotateLeft => Some((significance + lane - bytes % lane) % lane),
                    _ => Some(significance + bytes).filter(|from| *from < lane),
                };
                from.map_or(Byte::Zero, |from| Byte::Of {
                    source: 0,
                    byte: start + if order == ByteOrder::Big { lane - 1 - from } else { from },
                })
            })
            .collect();
        self.permute(&[value], &wanted)
    }

    /// a + b in lanes wider than any row adds: sums and carries of parts, the carries rippled up.
    fn add_by_parts(&mut self, width: u32, a: ValueId, b: ValueId) -> Lowering<ValueId> {
        let part = self.part_width(width, &[LaneOp::Add, LaneOp::CarryOut])?;
        let mut sum = self.lane_row(LaneOp::Add, part, &[a, b])?;
        let mut carry = self.lane_row(LaneOp::CarryOut, part, &[a, b])?;
        for round in 1..width / part {
            let up = self.parts_up(width, part, carry)?;
            if round + 1 < width / part {
                carry = self.lane_row(LaneOp::CarryOut, part, &[sum, up])?;
            }
            sum = self.lane_row(LaneOp::Add, part, &[sum, up])?;
        }
        Ok(sum)
    }

    /// Lane operations of two operands of one type; shift counts are lanes too.
    ///
    /// # Errors
    /// The machine cannot do it.
    pub fn binary_lanes(&mut self, op: BinaryOp, width: u32, a: &[ValueId], b: &[ValueId]) -> Lowering<Vec<ValueId>> {
        a.iter().zip(b).map(|(a, b)| self.binary_register(op, width, *a, *b)).collect()
    }

    fn binary_register(&mut self, op: BinaryOp, width: u32, a: ValueId, b: ValueId) -> Lowering<ValueId> {
        let file = self.file_of(a);
        let direct = match op {
            BinaryOp::Subtract => LaneOp::Subtract,
            BinaryOp::Multiply => LaneOp::Multiply,
            BinaryOp::Minimum => LaneOp::Minimum,
            BinaryOp::Maximum => LaneOp::Maximum,
            BinaryOp::MinimumSigned => LaneOp::MinimumSigned,
            BinaryOp::MaximumSigned => LaneOp::MaximumSigned,
            BinaryOp::RotateLeft => LaneOp::RotateLeft,
            BinaryOp::ShiftLeft | BinaryOp::ShiftRight | BinaryOp::ShiftRightSigned => return self.shift_register(op, width, a, b),
            _ => return Err(self.missing(&format!("{op:?} of {width}-bit lanes"))),
        };
        if self.has_lane_row(file, direct, width) {
            return self.lane_row(direct, width, &[a, b]);
        }
        match op {
            // a − b = ~(~a + b)
            BinaryOp::Subtract => {
                let complement = self.lane_row(LaneOp::Not, 8, &[a])?;
                let sum = if self.has_lane_row(file, LaneOp::Add, width) {
                    self.lane_row(LaneOp::Add, width, &[complement, b])?
                } else {
                    self.add_by_parts(width, complement, b)?
                };
                self.lane_row(LaneOp::Not, 8, &[sum])
            }
            BinaryOp::Multiply => self.multiply_by_parts(width, a, b),
            BinaryOp::Minimum | BinaryOp::Maximum | BinaryOp::MinimumSigned | BinaryOp::MaximumSigned => {
                let signed = matches!(op, BinaryOp::MinimumSigned | BinaryOp::MaximumSigned);
                let less = self.less(width, a, b, signed)?;
                let (low, high) = if matches!(op, BinaryOp::Minimum | BinaryOp::MinimumSigned) { (a, b) } else { (b, a) };
                self.select_bits(less, low, high)
            }
            BinaryOp::RotateLeft if !self.has_lane_row(file, LaneOp::ShiftLeft, width) => self.shift_by_digits(op, width, a, b),
            BinaryOp::RotateLeft => {
                let bits = self.splat(width, u64::from(width))?;
                let rest = self.lane_row(LaneOp::Subtract, width, &[bits, b])?;
                let left = self.lane_row(LaneOp::ShiftLeft, width, &[a, b])?;
                let right = self.lane_row(LaneOp::ShiftRight, width, &[a, rest])?;
                self.lane_row(LaneOp::Or, 8, &[left, right])
            }
            _ => Err(self.missing(&format!("{op:?} of {width}-bit lanes"))),
        }
    }

    /// Low halves of products: low·low + (high·low + low·high) shifted up by half a lane.
    fn multiply_by_parts(&mut self, width: u32, a: ValueId, b: ValueId) -> Lowering<ValueId> {
        let half = width / 2;
        let file = self.file_of(a);
        let zero_sum = self.multiply_accumulate_rows(file);
        if let Some((row, ..)) = zero_sum.iter().find(|(_, limb, products)| *limb == width && *products == 1) {
            let zero = self.splat(8, 0)?;
            return self.multiply_accumulate(row, zero, a, b);
        }
        if width <= 32 && self.has_lane_row(file, LaneOp::MultiplyEven, width) && self.has_lane_row(file, LaneOp::MultiplyOdd, width) {
            let lanes = self.lane_register_bytes() * 8 / width;
            let products = self.multiply_wide(width, lanes, &[a], &[b])?;
            return Ok(self.resize_lanes(2 * width, width, lanes, &products)?[0]);
        }
        let low_op = if self.machine().byte_order == ByteOrder::Big { LaneOp::MultiplyOdd } else { LaneOp::MultiplyEven };
        let low = self.lane_row(low_op, half, &[a, b])?;
        let swapped = self.shift_bytes(width, b, BinaryOp::RotateLeft, half / 8)?;
        let cross = match zero_sum.iter().find(|(_, limb, products)| *limb == half && *products == 2) {
            Some((row, ..)) => {
                let zero = self.splat(8, 0)?;
                self.multiply_accumulate(row, zero, a, swapped)?
            }
            None => {
                let even = self.lane_row(LaneOp::MultiplyEven, half, &[a, swapped])?;
                let odd = self.lane_row(LaneOp::MultiplyOdd, half, &[a, swapped])?;
                self.lane_row(LaneOp::Add, width, &[even, odd])?
            }
        };
        let up = self.shift_bytes(width, cross, BinaryOp::ShiftLeft, half / 8)?;
        self.lane_row(LaneOp::Add, width, &[low, up])
    }

    /// Full products of lanes of `width` bits in lanes twice as wide.
    ///
    /// # Errors
    /// The machine cannot do it.
    pub fn multiply_wide(&mut self, width: u32, lanes: u32, a: &[ValueId], b: &[ValueId]) -> Lowering<Vec<ValueId>> {
        let (size, wide) = (self.lane_register_bytes(), width / 4);
        let mut results = Vec::new();
        for (a, b) in a.iter().zip(b) {
            let even = self.lane_row(LaneOp::MultiplyEven, width, &[*a, *b])?;
            let odd = self.lane_row(LaneOp::MultiplyOdd, width, &[*a, *b])?;
            let done = results.len() as u32 * size / wide;
            let here = (lanes - done).min(size * 8 / width);
            let wanted: Vec<Byte> =
                (0..here).flat_map(|lane| (0..wide).map(move |byte| Byte::Of { source: lane % 2, byte: lane / 2 * wide + byte })).collect();
            results.extend(self.gather_bytes(&[even, odd], &wanted)?);
        }
        Ok(results)
    }

    /// Run-time counts in lanes: rows take them modulo the width, the language gives zero (or the sign) from the width on.
    fn shift_register(&mut self, op: BinaryOp, width: u32, a: ValueId, b: ValueId) -> Lowering<ValueId> {
        let row = match op {
            BinaryOp::ShiftLeft => LaneOp::ShiftLeft,
            BinaryOp::ShiftRight => LaneOp::ShiftRight,
            _ => LaneOp::ShiftRightSigned,
        };
        let has_row = self.has_lane_row(self.file_of(a), row, width);
        if op == BinaryOp::ShiftRightSigned {
            let most = self.splat(width, u64::from(width) - 1)?;
            let count = self.binary_register(BinaryOp::Minimum, width, b, most)?;
            return if has_row { self.lane_row(row, width, &[a, count]) } else { self.shift_by_digits(op, width, a, count) };
        }
        let shifted = if has_row { self.lane_row(row, width, &[a, b])? } else { self.shift_by_digits(op, width, a, b)? };
        let limit = self.splat(width, u64::from(width))?;
        let inside = self.less(width, b, limit, false)?;
        self.lane_row(LaneOp::And, 8, &[shifted, inside])
    }

    /// Lanes shifted by the low digits of counts in lanes, below the width: for each digit a shift by a constant, taken where the digit is 1.
    fn shift_by_digits(&mut self, op: BinaryOp, width: u32, a: ValueId, counts: ValueId) -> Lowering<ValueId> {
        let mut shifted = a;
        for digit in 0..width.ilog2() {
            let one = self.splat(width, 1 << digit)?;
            let chosen = self.lane_row(LaneOp::And, 8, &[counts, one])?;
            let taken = self.compare_lanes(BinaryOp::Equal, width, &[chosen], &[one])?[0];
            let moved = self.shift_by_constant(op, width, shifted, 1 << digit)?;
            shifted = self.select_bits(taken, moved, shifted)?;
        }
        Ok(shifted)
    }

    /// All ones where a < b: by a row, else part by part, the more significant ones deciding.
    fn less(&mut self, width: u32, a: ValueId, b: ValueId, signed: bool) -> Lowering<ValueId> {
        let row = if signed { LaneOp::LessSigned } else { LaneOp::Less };
        if width <= 64 && self.has_lane_row(self.file_of(a), row, width) {
            return self.lane_row(row, width, &[a, b]);
        }
        let (mut a, mut b) = (a, b);
        if signed {
            // With both signs inverted, signed order is unsigned order.
            let sign = self.sign_lanes(width, 0)?;
            a = self.lane_row(LaneOp::Xor, 8, &[a, sign])?;
            b = self.lane_row(LaneOp::Xor, 8, &[b, sign])?;
        }
        let part = self.part_width(width, &[LaneOp::Less, LaneOp::Equal])?;
        let mut less = self.lane_row(LaneOp::Less, part, &[a, b])?;
        let mut equal = self.lane_row(LaneOp::Equal, part, &[a, b])?;
        let mut distance = part / 8;
        while distance < width / 8 {
            let below = self.shift_bytes(width, less, BinaryOp::ShiftLeft, distance)?;
            let decided = self.lane_row(LaneOp::And, 8, &[equal, below])?;
            less = self.lane_row(LaneOp::Or, 8, &[less, decided])?;
            let rest = self.shift_bytes(width, equal, BinaryOp::ShiftLeft, distance)?;
            equal = self.lane_row(LaneOp::And, 8, &[equal, rest])?;
            distance *= 2;
        }
        // The most significant part has looked at all of them.
        let (size, lane, part, order) = (self.lane_register_bytes(), width / 8, part / 8, self.machine().byte_order);
        let top = if order == ByteOrder::Big { 0 } else { lane - part };
        let wanted: Vec<Byte> = (0..size).map(|place| Byte::Of { source: 0, byte: place / lane * lane + top + place % part }).collect();
        self.permute(&[less], &wanted)
    }

    /// Only the sign bit of every lane, moved down by so many places.
    fn sign_lanes(&mut self, width: u32, down: u32) -> Lowering<ValueId> {
        let mut lane = Bits::zero(width);
        lane.insert(width - 1 - down, &Bits::from_u64(1, 1));
        let mut bytes = lane.to_bytes();
        if self.machine().byte_order == ByteOrder::Big {
            bytes.reverse();
        }
        let all: Vec<u8> = bytes.into_iter().cycle().take(self.lane_register_bytes() as usize).collect();
        self.constant(&all)
    }

    /// Shifts and rotations of all lanes by one constant, with the language's rule for counts of the width or more.
    ///
    /// # Errors
    /// The machine cannot do it.
    pub fn shift_lanes(&mut self, op: BinaryOp, width: u32, a: &[ValueId], count: u32) -> Lowering<Vec<ValueId>> {
        a.iter().map(|a| self.shift_by_constant(op, width, *a, count)).collect()
    }

    fn shift_by_constant(&mut self, op: BinaryOp, width: u32, a: ValueId, count: u32) -> Lowering<ValueId> {
        let count = match op {
            BinaryOp::RotateLeft => count % width,
            BinaryOp::ShiftRightSigned => count.min(width - 1),
            _ if count >= width => return self.splat(8, 0),
            _ => count,
        };
        if count == 0 {
            return Ok(a);
        }
        let file = self.file_of(a);
        let row = match op {
            BinaryOp::ShiftLeft => LaneOp::ShiftLeft,
            BinaryOp::ShiftRight => LaneOp::ShiftRight,
            BinaryOp::ShiftRightSigned => LaneOp::ShiftRightSigned,
            _ => LaneOp::RotateLeft,
        };
        if width <= 64 && self.has_lane_row(file, row, width) {
            let count = self.splat_count(width, count)?;
            return self.lane_row(row, width, &[a, count]);
        }
        if op == BinaryOp::ShiftRightSigned {
            // With s the sign bit moved down as well, (x ^ s) − s spreads the sign of the zero-filled x.
            let sign = self.sign_lanes(width, count)?;
            let down = self.shift_by_constant(BinaryOp::ShiftRight, width, a, count)?;
            let flipped = self.lane_row(LaneOp::Xor, 8, &[down, sign])?;
            return self.binary_register(BinaryOp::Subtract, width, flipped, sign);
        }
        if count.is_multiple_of(8) {
            return self.shift_bytes(width, a, op, count / 8);
        }
        if op == BinaryOp::RotateLeft && width <= 64 {
            let left = self.shift_by_constant(BinaryOp::ShiftLeft, width, a, count)?;
            let right = self.shift_by_constant(BinaryOp::ShiftRight, width, a, width - count)?;
            return self.lane_row(LaneOp::Or, 8, &[left, right]);
        }
        // By parts: whole bytes by permutes, the rest within parts, and what leaves each part into its neighbour.
        let part = self.part_width(width, &[LaneOp::ShiftLeft, LaneOp::ShiftRight])?;
        let (bytes, bits) = (count / 8, count % 8);
        let opposite = if op == BinaryOp::ShiftRight { BinaryOp::ShiftLeft } else { BinaryOp::ShiftRight };
        let within = if op == BinaryOp::ShiftRight { BinaryOp::ShiftRight } else { BinaryOp::ShiftLeft };
        let moved = if bytes == 0 { a } else { self.shift_bytes(width, a, op, bytes)? };
        let main = self.shift_by_constant(within, part, moved, bits)?;
        let leaving = self.shift_by_constant(opposite, part, moved, part - bits)?;
        let entering = self.shift_bytes_any(width, leaving, op, part / 8)?;
        self.lane_row(LaneOp::Or, 8, &[main, entering])
    }

    /// As [`Self::shift_bytes`], with zero where the distance is the whole lane or more.
    fn shift_bytes_any(&mut self, width: u32, value: ValueId, op: BinaryOp, bytes: u32) -> Lowering<ValueId> {
        if op != BinaryOp::RotateLeft && bytes >= width / 8 {
            return self.splat(8, 0);
        }
        self.shift_bytes(width, value, op, bytes)
    }

    /// Comparisons: all ones in the lanes where they hold.
    ///
    /// # Errors
    /// The machine cannot do it.
    pub fn compare_lanes(&mut self, op: BinaryOp, width: u32, a: &[ValueId], b: &[ValueId]) -> Lowering<Vec<ValueId>> {
        let row = LaneOp::Equal;
        a.iter()
            .zip(b)
            .map(|(a, b)| {
                if op != BinaryOp::Equal {
                    return self.less(width, *a, *b, op == BinaryOp::LessSigned);
                }
                if self.has_lane_row(self.file_of(*a), row, width) {
                    return self.lane_row(row, width, &[*a, *b]);
                }
                // All parts must be equal: and-ed over all rotations of a lane's parts.
                let part = self.part_width(width, &[LaneOp::Equal])?;
                let mut equal = self.lane_row(row, part, &[*a, *b])?;
                let mut distance = part / 8;
                while distance < width / 8 {
                    let turned = self.shift_bytes(width, equal, BinaryOp::RotateLeft, distance)?;
                    equal = self.lane_row(LaneOp::And, 8, &[equal, turned])?;
                    distance *= 2;
                }
                Ok(equal)
            })
            .collect()
    }

    /// `then` where the mask's bits are ones, `otherwise` where they are zeros.
    ///
    /// # Errors
    /// The machine cannot do it.
    pub fn select_bits(&mut self, mask: ValueId, then: ValueId, otherwise: ValueId) -> Lowering<ValueId> {
        if self.has_lane_row(self.file_of(mask), LaneOp::SelectBits, 8) {
            return self.lane_row(LaneOp::SelectBits, 8, &[otherwise, then, mask]);
        }
        let differ = self.lane_row(LaneOp::Xor, 8, &[then, otherwise])?;
        let taken = self.lane_row(LaneOp::And, 8, &[differ, mask])?;
        self.lane_row(LaneOp::Xor, 8, &[taken, otherwise])
    }

    /// Which byte of a list of lanes of `from` bits is byte `byte` of lane `lane` cut or zero filled to `to` bits.
    fn resized_byte(&self, from: u32, to: u32, lane: u32, byte: u32) -> Option<u32> {
        let (from, to) = (from / 8, to / 8);
        let big = self.machine().byte_order == ByteOrder::Big;
        let significance = if big { to - 1 - byte } else { byte };
        (significance < from).then(|| lane * from + if big { from - 1 - significance } else { significance })
    }

    /// Lanes cut or zero filled.
    ///
    /// # Errors
    /// See [`Self::permute`].
    pub fn resize_lanes(&mut self, from: u32, to: u32, lanes: u32, a: &[ValueId]) -> Lowering<Vec<ValueId>> {
        let wanted: Vec<Option<u32>> = (0..lanes)
            .flat_map(|lane| (0..to / 8).map(move |byte| (lane, byte)))
            .map(|(lane, byte)| self.resized_byte(from, to, lane, byte))
            .collect();
        self.gather(a, &wanted)
    }

    /// Masks of lanes of another width.
    ///
    /// # Errors
    /// See [`Self::permute`].
    pub fn resize_mask(&mut self, from: u32, to: u32, lanes: u32, a: &[ValueId]) -> Lowering<Vec<ValueId>> {
        if from == to {
            return Ok(a.to_vec());
        }
        let wanted: Vec<Option<u32>> =
            (0..lanes).flat_map(|lane| (0..to / 8).map(move |byte| Some(lane * (from / 8) + byte % (from / 8)))).collect();
        self.gather(a, &wanted)
    }

    /// Lanes filled with their signs: placed at the top of the wider lane and shifted down.
    ///
    /// # Errors
    /// The machine cannot do it.
    pub fn sign_extend_lanes(&mut self, from: u32, to: u32, lanes: u32, a: &[ValueId]) -> Lowering<Vec<ValueId>> {
        let big = self.machine().byte_order == ByteOrder::Big;
        let (from_bytes, to_bytes) = (from / 8, to / 8);
        let wanted: Vec<Byte> = (0..lanes)
            .flat_map(|lane| {
                (0..to_bytes).map(move |byte| {
                    let within = if big { Some(byte).filter(|byte| *byte < from_bytes) } else { byte.checked_sub(to_bytes - from_bytes) };
                    within.map(|within| lane * from_bytes + within)
                })
            })
            .map(|byte| byte.map_or(Byte::Any, |byte| self.source_byte(byte)))
            .collect();
        let top = self.gather_bytes(a, &wanted)?;
        self.shift_lanes(BinaryOp::ShiftRightSigned, to, &top, to - from)
    }

    /// The same bytes as lanes of another width, grouped in `order`: free where that is the machine's order.
    ///
    /// # Errors
    /// See [`Self::permute`].
    pub fn reinterpret_lanes(&mut self, from: u32, to: u32, bytes: u32, order: ByteOrder, a: &[ValueId]) -> Lowering<Vec<ValueId>> {
        if order == self.machine().byte_order {
            return Ok(a.to_vec());
        }
        // Bytes are reversed inside of lanes on the way in and on the way out.
        let reversed = |place: u32, width: u32| {
            let lane = width / 8;
            place / lane * lane + (lane - 1 - place % lane)
        };
        let wanted: Vec<Option<u32>> = (0..bytes).map(|place| Some(reversed(reversed(place, to), from))).collect();
        self.gather(a, &wanted)
    }
}
