//! Naturals as words, for machines that multiply two words into a register twice as wide: products row by row, the running sum in registers.
//!
//! Digits are exact: below 2^radix, nothing is left to carry. With digits and a running digit t below 2^r, t + a·b + carry ≤ (2^r − 1) + (2^r − 1)² + (2^r − 1) =
//! 2^2r − 1, so that a sum stays inside the wide register and its upper part is a digit again.

use super::digits::{Digits, MONTGOMERY_SLACK_BITS};
use super::scalar::{Numbers, Scalar};
use crate::lowering::builder::{Input, Lowering, ProgramBuilder};
use crate::lowering::selection::RowMatch;
use crate::lowering::shapes::{self, LaneOp};
use crate::machine::FileId;
use crate::program::{Layout, RegionId, ValueId};
use kgen_ir::kernel::Direction;

/// Bits of a word that digits leave free: a sum of two digits and the sign of a difference fit.
const SPARE_BITS: u32 = 2;

/// Naturals as words in the file of integers.
#[derive(Clone, Debug)]
pub(crate) struct WordForm {
    /// Digits in memory.
    pub digits: Digits,
    /// The row wide(a)·wide(b).
    pub product: RowMatch,
    /// The file of products and sums.
    pub wide: FileId,
}

impl WordForm {
    /// The form, where the machine has a product of two integer registers in one register of another file, which also adds, shifts and takes and gives words.
    pub fn choose(builder: &ProgramBuilder<'_>, bits: u32) -> Option<Self> {
        let machine = builder.machine();
        let word = builder.integer_file();
        let word_bits = machine[word].width_bits;
        let radix_bits = word_bits.checked_sub(SPARE_BITS)?;
        let limbs = (bits + MONTGOMERY_SLACK_BITS).div_ceil(radix_bits);
        let limb_bytes = word_bits / 8;
        let files = machine.register_files.iter().enumerate().filter(|(_, file)| file.width_bits == 2 * word_bits && !file.is_singleton());
        files.map(|(index, _)| FileId(index as u16)).find_map(|wide| {
            let product = builder.selector().row_for(&shapes::wide_product_shape(machine, word, wide))?;
            let moves = [(word, wide), (wide, word)]
                .iter()
                .all(|(from, to)| builder.selector().row_for(&shapes::move_shape(machine, *from, *to)).is_some());
            if !moves || !builder.has_lane_row(wide, LaneOp::Add, 2 * word_bits) {
                return None;
            }
            let digits =
                Digits { bits, radix_bits, limbs, places: limbs, limb_bytes, align_bytes: limb_bytes, digit_limit: (1 << radix_bits) - 1 };
            Some(Self { digits, product, wide })
        })
    }

    fn numbers(&self, region: RegionId, offset: u64) -> Numbers {
        Numbers { region, offset, number_bytes: self.digits.limb_bytes, count: self.digits.limbs }
    }
}

/// The setup block of a modulus: R² mod n first, so that a pointer to the block is a pointer to it; then n; then −n⁻¹ modulo the radix.
#[derive(Clone, Copy, Debug)]
pub(super) struct WordSetup {
    /// n.
    pub modulus: u64,
    /// −n⁻¹ modulo the radix, one word.
    pub negative_inverse: u64,
    /// Size.
    pub bytes: u64,
}

impl WordSetup {
    /// The block's shape.
    pub fn new(form: &WordForm) -> Self {
        let natural = u64::from(form.digits.bytes());
        Self { modulus: natural, negative_inverse: 2 * natural, bytes: 2 * natural + u64::from(form.digits.limb_bytes) }
    }
}

/// Arithmetic on words and their products.
struct Words<'b, 'm, 'f> {
    scalar: Scalar<'b, 'm>,
    form: &'f WordForm,
}

impl Words<'_, '_, '_> {
    fn mask(&self) -> i64 {
        i64::try_from(self.form.digits.digit_mask()).unwrap_or(i64::MAX)
    }

    fn moved(&mut self, value: ValueId, to: FileId) -> Lowering<ValueId> {
        let builder = &mut self.scalar.builder;
        let shape = shapes::move_shape(builder.machine(), builder.file_of(value), to);
        builder.emit_single(&shape, &[Input::Value(value)])
    }

    /// The sum a·b + t + carry as its lowest digit and the rest.
    fn multiply_add(&mut self, a: ValueId, b: ValueId, t: Option<ValueId>, carry: Option<ValueId>) -> Lowering<(ValueId, ValueId)> {
        self.scalar.builder.set_name("product");
        let product = self.scalar.builder.emit(&self.form.product, &[Input::Value(a), Input::Value(b)])?;
        let mut sum = product.first().copied().ok_or_else(|| self.scalar.builder.missing("a product with a result"))?;
        for addend in [t, carry].into_iter().flatten() {
            self.scalar.builder.set_name("wide");
            let wide = self.moved(addend, self.form.wide)?;
            self.scalar.builder.set_name("sum");
            let width = self.scalar.builder.machine()[self.form.wide].width_bits;
            sum = self.scalar.builder.lane_row(LaneOp::Add, width, &[sum, wide])?;
        }
        let mask = self.mask();
        self.scalar.builder.set_name("digit");
        let low = self.moved(sum, self.scalar.builder.integer_file())?;
        let digit = self.scalar.with(LaneOp::And, low, mask)?;
        self.scalar.builder.set_name("carry");
        let rest = self.scalar.builder.with_constant(LaneOp::ShiftRight, sum, i64::from(self.form.digits.radix_bits))?;
        let carry = self.moved(rest, self.scalar.builder.integer_file())?;
        Ok((digit, carry))
    }

    /// t + factor·numbers: its digits, and one more.
    fn row(&mut self, factor: ValueId, numbers: Numbers, t: &[ValueId]) -> Lowering<Vec<ValueId>> {
        let mut sums = Vec::with_capacity(t.len() + 1);
        let mut carry = None;
        for (index, t) in t.iter().enumerate() {
            self.scalar.builder.set_name("limb");
            let limb = self.scalar.load_at(numbers, index as u32)?;
            let (digit, next) = self.multiply_add(factor, limb, Some(*t), carry)?;
            sums.push(digit);
            carry = Some(next);
        }
        sums.extend(carry);
        Ok(sums)
    }

    fn store_all(&mut self, digits: &[ValueId], to: Numbers) -> Lowering<()> {
        for (index, digit) in digits.iter().enumerate() {
            self.scalar.store_at(*digit, to, index as u32)?;
        }
        Ok(())
    }
}

/// Runs `row` for every digit of `a` with the running sum, from zero; the sum at the end.
fn rows(
    builder: &mut ProgramBuilder<'_>,
    form: &WordForm,
    a: RegionId,
    row: impl FnOnce(&mut Words<'_, '_, '_>, ValueId, ValueId, &[ValueId]) -> Lowering<Vec<ValueId>>,
) -> Lowering<Vec<ValueId>> {
    let mut scalar = Scalar { builder };
    scalar.builder.set_name("running");
    let zero = scalar.constant(0)?;
    let initial = vec![zero; form.digits.limbs as usize];
    let factors = form.numbers(a, 0);
    scalar.for_each(form.digits.limbs, form.digits.limb_bytes, &initial, |scalar, index, t| {
        scalar.builder.set_name("factor");
        let factor = scalar.load(factors, index)?;
        let mut words = Words { scalar: Scalar { builder: &mut *scalar.builder }, form };
        row(&mut words, index, factor, t)
    })
}

/// result = a·b. The result has the same radix; it may not overlap the factors, since its digits are written while they are read.
pub(super) fn product(
    builder: &mut ProgramBuilder<'_>,
    form: &WordForm,
    result_digits: &Digits,
    a: RegionId,
    b: RegionId,
    result: RegionId,
) -> Lowering<()> {
    let limbs = form.digits.limbs;
    let to = Numbers { region: result, offset: 0, number_bytes: form.digits.limb_bytes, count: result_digits.limbs };
    let table = form.numbers(b, 0);
    let top = rows(builder, form, a, |words, index, factor, t| {
        let sums = words.row(factor, table, t)?;
        words.scalar.store(sums[0], Numbers { count: limbs, ..to }, index)?;
        Ok(sums[1..].to_vec())
    })?;
    // Past the result's places the product's digits are zero, since a·b is below 2^(bits of the result).
    let mut scalar = Scalar { builder };
    let zero = scalar.constant(0)?;
    for place in limbs..result_digits.limbs {
        let digit = top.get((place - limbs) as usize).copied().unwrap_or(zero);
        scalar.store_at(digit, to, place)?;
    }
    Ok(())
}

/// result = a·b/R modulo the block's modulus, below 2n for factors below 2n. The running sum stays below t/2^r + 3n < 4n < R/2, so its digits never leave their
/// places; the last sum is (a·b + q·n)/R < 4n²/R + n < 2n. The result is written when everything has been read.
pub(super) fn montgomery(
    builder: &mut ProgramBuilder<'_>,
    form: &WordForm,
    block: RegionId,
    a: RegionId,
    b: RegionId,
    result: RegionId,
) -> Lowering<()> {
    let setup = WordSetup::new(form);
    let modulus = form.numbers(block, setup.modulus);
    let inverse = Numbers { count: 1, ..form.numbers(block, setup.negative_inverse) };
    let table = form.numbers(b, 0);
    let sums = rows(builder, form, a, |words, _, factor, t| {
        let sums = words.row(factor, table, t)?;
        let (mask, word_bits) = (words.mask(), 8 * form.digits.limb_bytes);
        words.scalar.builder.set_name("quotient");
        let inverse = words.scalar.load_at(inverse, 0)?;
        let quotient = words.scalar.builder.lane_row(LaneOp::Multiply, word_bits, &[sums[0], inverse])?;
        let quotient = words.scalar.with(LaneOp::And, quotient, mask)?;
        let reduced = words.row(quotient, modulus, &sums[..t.len()])?;
        // The lowest digit is zero: the sum moves down by one.
        let mut next = reduced[1..t.len()].to_vec();
        words.scalar.builder.set_name("running");
        next.push(words.scalar.add(reduced[t.len()], sums[t.len()])?);
        Ok(next)
    })?;
    Words { scalar: Scalar { builder }, form }.store_all(&sums, form.numbers(result, 0))
}

/// Builds the program `NAME_setup(block, modulus)`.
pub(super) fn setup(builder: &mut ProgramBuilder<'_>, form: &WordForm) -> Lowering<()> {
    let shape = WordSetup::new(form);
    let digits = &form.digits;
    let bytes = u32::try_from(shape.bytes).map_err(|_| builder.missing("a setup block below 4 GiB"))?;
    let block =
        builder.region_parameter("setup", Direction::Out, true, Some(shape.bytes), digits.align_bytes, Layout::SetupBlock { bytes });
    let modulus =
        builder.region_parameter("modulus", Direction::In, true, Some(u64::from(digits.bytes())), digits.align_bytes, digits.layout());
    let [doubled, reduced] =
        ["doubled", "reduced"].map(|name| form.numbers(builder.frame_region(name, u64::from(digits.bytes()), digits.align_bytes, true), 0));
    let n = form.numbers(modulus, 0);
    let mut scalar = Scalar { builder };
    super::setup::copy(&mut scalar, n, form.numbers(block, shape.modulus))?;
    super::setup::radix_squared(&mut scalar, digits, n, doubled, reduced, form.numbers(block, 0))?;
    // Newton: where n·x ≡ 1 modulo 2^k, n·x·(2 − n·x) ≡ 1 modulo 2^2k. x = n is right to three bits, since n is odd.
    let word_bits = 8 * digits.limb_bytes;
    scalar.builder.set_name("modulus_limb");
    let lowest = scalar.load_at(n, 0)?;
    let two = scalar.constant(2)?;
    let mut inverse = lowest;
    let mut right_bits = 3;
    while right_bits < digits.radix_bits {
        scalar.builder.set_name("inverse");
        let product = scalar.builder.lane_row(LaneOp::Multiply, word_bits, &[lowest, inverse])?;
        let correction = scalar.subtract(two, product)?;
        inverse = scalar.builder.lane_row(LaneOp::Multiply, word_bits, &[inverse, correction])?;
        right_bits *= 2;
    }
    let zero = scalar.constant(0)?;
    let negative = scalar.subtract(zero, inverse)?;
    let mask = i64::try_from(digits.digit_mask()).unwrap_or(i64::MAX);
    let digit = scalar.with(LaneOp::And, negative, mask)?;
    scalar.store_at(digit, Numbers { count: 1, ..form.numbers(block, shape.negative_inverse) }, 0)
}

/// `result = table[index]` by reading every entry and keeping the wanted one; an index past the table gives entry 0.
pub(super) fn scan(
    builder: &mut ProgramBuilder<'_>,
    form: &WordForm,
    table: RegionId,
    entries: u32,
    index: ValueId,
    result: RegionId,
) -> Lowering<()> {
    let machine = builder.machine();
    let word = builder.integer_file();
    let flag = (0..machine.register_files.len() as u16).map(FileId).find(|file| {
        let file = *file;
        builder.selector().row_for(&shapes::equal_flag_shape(machine, word, file)).is_some()
            && builder.selector().row_for(&shapes::flag_mask_shape(machine, file, word)).is_some()
    });
    let flag = flag.ok_or_else(|| builder.missing("a comparison whose result becomes a mask of a word"))?;
    let mut scalar = Scalar { builder };
    let mut kept = Vec::new();
    for entry in 0..entries {
        let numbers = form.numbers(table, u64::from(entry * form.digits.bytes()));
        let load = |scalar: &mut Scalar<'_, '_>, limb: u32| {
            scalar.builder.set_name("entry");
            scalar.load_at(numbers, limb)
        };
        if entry == 0 {
            kept = (0..form.digits.limbs).map(|limb| load(&mut scalar, limb)).collect::<Lowering<_>>()?;
            continue;
        }
        let number = scalar.constant(i64::from(entry))?;
        scalar.builder.set_name("wanted");
        let equal = shapes::equal_flag_shape(machine, word, flag);
        let wanted = scalar.builder.emit_single(&equal, &[Input::Value(index), Input::Value(number)])?;
        scalar.builder.set_name("mask");
        let mask = scalar.builder.emit_single(&shapes::flag_mask_shape(machine, flag, word), &[Input::Value(wanted)])?;
        for (limb, kept) in kept.iter_mut().enumerate() {
            let loaded = load(&mut scalar, limb as u32)?;
            scalar.builder.set_name("kept");
            let differ = scalar.xor(*kept, loaded)?;
            let change = scalar.and(differ, mask)?;
            *kept = scalar.xor(*kept, change)?;
        }
    }
    Words { scalar, form }.store_all(&kept, form.numbers(result, 0))
}

/// Copies a natural.
pub(super) fn copy(builder: &mut ProgramBuilder<'_>, form: &WordForm, from: RegionId, to: RegionId) -> Lowering<()> {
    let mut scalar = Scalar { builder };
    for limb in 0..form.digits.limbs {
        scalar.builder.set_name("copied");
        let value = scalar.load_at(form.numbers(from, 0), limb)?;
        scalar.store_at(value, form.numbers(to, 0), limb)?;
    }
    Ok(())
}

/// The part of 8·`limb_bytes` bits, or of 8, that starts `distance` bits above (or below, where negative) a word's lowest.
fn placed(scalar: &mut Scalar<'_, '_>, value: ValueId, distance: i64) -> Lowering<ValueId> {
    match distance {
        0 => Ok(value),
        1.. => scalar.with(LaneOp::ShiftLeft, value, distance),
        _ => scalar.with(LaneOp::ShiftRight, value, -distance),
    }
}

/// Builds `NAME_import(natural, bytes)`: every digit from the bytes that it overlaps.
pub(super) fn import(builder: &mut ProgramBuilder<'_>, form: &WordForm) -> Lowering<()> {
    let digits = &form.digits;
    let count = digits.bits.div_ceil(8);
    let natural =
        builder.region_parameter("natural", Direction::Out, true, Some(u64::from(digits.bytes())), digits.align_bytes, digits.layout());
    let bytes = builder.region_parameter("bytes", Direction::In, true, Some(u64::from(count)), 1, Layout::Bytes);
    let from = Numbers { region: bytes, offset: 0, number_bytes: 1, count };
    let mask = i64::try_from(digits.digit_mask()).unwrap_or(i64::MAX);
    let mut scalar = Scalar { builder };
    for limb in 0..digits.limbs {
        let (first, end) = (limb * digits.radix_bits, (limb + 1) * digits.radix_bits);
        let mut sum = scalar.constant(0)?;
        for byte in first / 8..end.div_ceil(8).min(count) {
            scalar.builder.set_name("byte");
            let loaded = scalar.load_at(from, count - 1 - byte)?;
            let there = placed(&mut scalar, loaded, i64::from(8 * byte) - i64::from(first))?;
            scalar.builder.set_name("limb");
            sum = scalar.or(sum, there)?;
        }
        let digit = scalar.with(LaneOp::And, sum, mask)?;
        scalar.store_at(digit, form.numbers(natural, 0), limb)?;
    }
    Ok(())
}

/// Builds `NAME_export(bytes, natural)` for naturals below 2^bits: every byte from the digits that it overlaps.
pub(super) fn export(builder: &mut ProgramBuilder<'_>, form: &WordForm) -> Lowering<()> {
    let digits = &form.digits;
    let count = digits.bits.div_ceil(8);
    let bytes = builder.region_parameter("bytes", Direction::Out, true, Some(u64::from(count)), 1, Layout::Bytes);
    let natural =
        builder.region_parameter("natural", Direction::In, true, Some(u64::from(digits.bytes())), digits.align_bytes, digits.layout());
    let to = Numbers { region: bytes, offset: 0, number_bytes: 1, count };
    let mut scalar = Scalar { builder };
    let loaded = (0..digits.limbs)
        .map(|limb| {
            scalar.builder.set_name("limb");
            scalar.load_at(form.numbers(natural, 0), limb)
        })
        .collect::<Lowering<Vec<ValueId>>>()?;
    for byte in 0..count {
        scalar.builder.set_name("byte");
        let limb = 8 * byte / digits.radix_bits;
        let mut sum = placed(&mut scalar, loaded[limb as usize], i64::from(limb * digits.radix_bits) - i64::from(8 * byte))?;
        let above = (limb + 1) * digits.radix_bits;
        if let (true, Some(next)) = (above < 8 * byte + 8, loaded.get(limb as usize + 1)) {
            let there = placed(&mut scalar, *next, i64::from(above - 8 * byte))?;
            sum = scalar.or(sum, there)?;
        }
        scalar.store_at(sum, to, count - 1 - byte)?;
    }
    Ok(())
}
