//! n' = −n⁻¹ mod R and R² mod n, one digit a step: the lane multiplier makes the products of a digit with all limbs at once, scalar loops move the carries. Lane products take
//! the same time for all operands, and no address or count depends on the modulus, so a secret one does not show.
//!
//! Numbers lie *spread*: limb i alone in lane i, as a number as wide as a lane. Both computations have the same inner step, a sum of limb, product and carry whose digit moves
//! one place: down for n' (Hensel lifting, from the low end) and up for R² (long division, from the high end; see [`DigitSerial::radix_squared`]).

use super::form::NaturalForm;
use super::scalar::{Numbers, Scalar};
use super::setup::choose;
use crate::lowering::builder::{Lowering, ProgramBuilder};
use crate::lowering::shapes::LaneOp;
use crate::program::ValueId;

/// A spread natural with zeros around it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spread {
    /// The limbs.
    pub limbs: Numbers,
    /// The limbs with the zeros.
    pub whole: Numbers,
    /// Zeros below limb 0.
    pub below: u32,
}

impl Spread {
    /// Room for a natural with at least so many zeros around it, not cleared yet.
    pub fn new(builder: &mut ProgramBuilder<'_>, form: &NaturalForm, name: &str, below: u32, above: u32) -> Self {
        let number_bytes = form.lane_bits() / 8;
        let below = below.next_multiple_of(form.lanes);
        let count = below + form.limbs + above;
        let region = builder.frame_region(name, u64::from(count * number_bytes), form.register_bytes(), true);
        let whole = Numbers { region, offset: 0, number_bytes, count };
        Self { limbs: Numbers { offset: u64::from(below * number_bytes), count: form.limbs, ..whole }, whole, below }
    }
}

/// Distances, in powers of two, that add up to any distance of limbs.
fn levels(limbs: u32) -> u32 {
    u32::BITS - limbs.saturating_sub(1).leading_zeros()
}

/// The farthest limb that a shift by whole limbs reads.
pub(super) fn shift_reach(limbs: u32) -> u32 {
    1 << levels(limbs).saturating_sub(1)
}

/// How far the modulus is from filling its limbs.
#[derive(Clone, Copy, Debug)]
struct LeadingZeros {
    /// Whole limbs.
    limbs: ValueId,
    /// 2^b, b the zeros in the topmost limb that is not zero.
    up: ValueId,
    /// 2^(r − b).
    down: ValueId,
}

/// Which way limbs move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Up,
    Down,
}

/// Working space of the digit steps.
pub(super) struct DigitSerial<'f> {
    form: &'f NaturalForm,
    /// The products of a digit with every limb.
    products: Numbers,
    /// A digit in every lane.
    factor: Numbers,
}

impl<'f> DigitSerial<'f> {
    /// Working space for a form.
    ///
    /// # Errors
    /// Integer registers are narrower than a lane.
    pub fn new(builder: &mut ProgramBuilder<'_>, form: &'f NaturalForm) -> Lowering<Self> {
        if builder.machine()[builder.integer_file()].width_bits < form.lane_bits() {
            return Err(builder.missing(&format!("integer registers of {} bits, as wide as a product's lane", form.lane_bits())));
        }
        let number_bytes = form.lane_bits() / 8;
        let mut numbers = |name: &str, count: u32| {
            let region = builder.frame_region(name, u64::from(count * number_bytes), form.register_bytes(), true);
            Numbers { region, offset: 0, number_bytes, count }
        };
        Ok(Self { form, products: numbers("products", form.limbs), factor: numbers("factor", form.lanes) })
    }

    fn mask(&self) -> i64 {
        i64::try_from(self.form.digit_mask()).unwrap_or(i64::MAX)
    }

    fn radix_bits(&self) -> i64 {
        i64::from(self.form.radix_bits)
    }

    fn step_bytes(&self) -> u32 {
        self.products.number_bytes
    }

    /// The sign of a number as 0 or 1.
    fn sign(scalar: &mut Scalar<'_, '_>, value: ValueId) -> Lowering<ValueId> {
        let width = scalar.builder.machine()[scalar.builder.integer_file()].width_bits;
        scalar.with(LaneOp::ShiftRight, value, i64::from(width - 1))
    }

    /// A digit in every lane of a register.
    fn splat(&self, scalar: &mut Scalar<'_, '_>, digit: ValueId) -> Lowering<ValueId> {
        for lane in 0..self.form.lanes {
            scalar.store_at(digit, self.factor, lane)?;
        }
        scalar.builder.set_name("factor");
        scalar.builder.load_lanes(self.factor.region, self.factor.offset)
    }

    /// products = digit · limbs, lane by lane.
    fn multiply(&self, scalar: &mut Scalar<'_, '_>, digit: ValueId, limbs: Numbers) -> Lowering<()> {
        let factor = self.splat(scalar, digit)?;
        let zero = scalar.builder.splat(self.form.lane_bits(), 0)?;
        let bytes = self.form.register_bytes();
        scalar.for_each(self.form.column_vectors(), bytes, &[], |scalar, index, _| {
            scalar.builder.set_name("limbs");
            let limbs = scalar.load_register(self.form.file, bytes, limbs, index)?;
            scalar.builder.set_name("products");
            let products = scalar.builder.multiply_accumulate(&self.form.row, zero, limbs, factor)?;
            scalar.store_register(products, bytes, self.products, index)?;
            Ok(Vec::new())
        })?;
        Ok(())
    }

    /// The sum's digit goes to `to`; what is above it is the next carry.
    fn settle(&self, scalar: &mut Scalar<'_, '_>, sum: ValueId, to: Numbers, index: ValueId) -> Lowering<ValueId> {
        scalar.builder.set_name("digit");
        let digit = scalar.with(LaneOp::And, sum, self.mask())?;
        scalar.store(digit, to, index)?;
        scalar.builder.set_name("carry");
        scalar.with(LaneOp::ShiftRight, sum, self.radix_bits())
    }

    /// to = the digits of the products; returns what is above them.
    fn carry_products(&self, scalar: &mut Scalar<'_, '_>, to: Numbers) -> Lowering<ValueId> {
        let zero = scalar.constant(0)?;
        let carry = scalar.for_each(self.form.limbs, self.step_bytes(), &[zero], |scalar, index, carried| {
            scalar.builder.set_name("product");
            let product = scalar.load(self.products, index)?;
            let sum = scalar.add(product, carried[0])?;
            Ok(vec![self.settle(scalar, sum, to, index)?])
        })?;
        Ok(carry[0])
    }

    /// One place below limb 0.
    fn lowered(&self, limbs: Numbers) -> Numbers {
        Numbers { offset: limbs.offset - u64::from(self.step_bytes()), ..limbs }
    }

    /// t = (t + products) / 2^r, where the lowest digit of the sum is zero.
    fn add_and_move_down(&self, scalar: &mut Scalar<'_, '_>, t: Numbers) -> Lowering<()> {
        let zero = scalar.constant(0)?;
        let carry = scalar.for_each(self.form.limbs, self.step_bytes(), &[zero], |scalar, index, carried| {
            scalar.builder.set_name("limb");
            let limb = scalar.load(t, index)?;
            scalar.builder.set_name("product");
            let product = scalar.load(self.products, index)?;
            scalar.builder.set_name("sum");
            let sum = scalar.add(limb, product)?;
            let sum = scalar.add(sum, carried[0])?;
            Ok(vec![self.settle(scalar, sum, self.lowered(t), index)?])
        })?;
        scalar.store_at(carry[0], t, self.form.limbs - 1)
    }

    /// y = y · 2^r + `lowest` + products; returns the limb that left at the top, and the carry that belongs to the same place.
    fn move_up_and_add(&self, scalar: &mut Scalar<'_, '_>, y: Numbers, lowest: ValueId) -> Lowering<(ValueId, ValueId)> {
        let zero = scalar.constant(0)?;
        scalar.builder.set_name("below");
        let ends = scalar.for_each(self.form.limbs, self.step_bytes(), &[lowest, zero], |scalar, index, carried| {
            scalar.builder.set_name("limb");
            let limb = scalar.load(y, index)?;
            scalar.builder.set_name("product");
            let product = scalar.load(self.products, index)?;
            scalar.builder.set_name("sum");
            let sum = scalar.add(carried[0], product)?;
            let sum = scalar.add(sum, carried[1])?;
            let carry = self.settle(scalar, sum, y, index)?;
            Ok(vec![limb, carry])
        })?;
        Ok((ends[0], ends[1]))
    }

    /// −limb⁻¹ mod 2^r, bit by bit: with t = 1, each step takes the low bit b of t, makes t = (t + b·limb)/2, and b is the next bit.
    fn digit_inverse(&self, scalar: &mut Scalar<'_, '_>, limb: ValueId) -> Lowering<ValueId> {
        let (zero, one) = (scalar.constant(0)?, scalar.constant(1)?);
        let ends = scalar.for_each(self.form.radix_bits, 1, &[one, zero], |scalar, _, carried| {
            scalar.builder.set_name("bit");
            let bit = scalar.with(LaneOp::And, carried[0], 1)?;
            let adds = scalar.subtract(zero, bit)?;
            let added = scalar.and(limb, adds)?;
            let sum = scalar.add(carried[0], added)?;
            scalar.builder.set_name("half");
            let half = scalar.with(LaneOp::ShiftRight, sum, 1)?;
            scalar.builder.set_name("inverse");
            let earlier = scalar.with(LaneOp::ShiftRight, carried[1], 1)?;
            let placed = scalar.with(LaneOp::ShiftLeft, bit, self.radix_bits() - 1)?;
            Ok(vec![half, scalar.or(earlier, placed)?])
        })?;
        Ok(ends[1])
    }

    /// inverse = −n⁻¹ mod R: with t = 1, each step takes the digit m = t·n' mod 2^r, makes t = (t + m·n)/2^r, and m is the next digit: 1 + n·inverse ≡ 0. t stays below n + 1.
    pub fn negative_inverse(&self, scalar: &mut Scalar<'_, '_>, n: Numbers, inverse: Numbers, t: &Spread) -> Lowering<()> {
        scalar.builder.set_name("lowest");
        let lowest = scalar.load_at(n, 0)?;
        let digit_inverse = self.digit_inverse(scalar, lowest)?;
        let digit_inverse = self.splat(scalar, digit_inverse)?;
        let zero = scalar.builder.splat(self.form.lane_bits(), 0)?;
        let one = scalar.constant(1)?;
        scalar.clear(t.whole)?;
        let t = t.limbs;
        scalar.store_at(one, t, 0)?;
        scalar.for_each_outer(self.form.limbs, self.step_bytes(), &[], |scalar, place, _| {
            scalar.builder.set_name("lowest");
            let lowest = scalar.load_at(t, 0)?;
            scalar.store_at(lowest, self.factor, 0)?;
            let factor = scalar.builder.load_lanes(self.factor.region, self.factor.offset)?;
            let product = scalar.builder.multiply_accumulate(&self.form.row, zero, factor, digit_inverse)?;
            scalar.builder.store_lanes(product, self.products.region, self.products.offset)?;
            scalar.builder.set_name("digit");
            let product = scalar.load_at(self.products, 0)?;
            let digit = scalar.with(LaneOp::And, product, self.mask())?;
            scalar.store(digit, inverse, place)?;
            self.multiply(scalar, digit, n)?;
            self.add_and_move_down(scalar, t)?;
            Ok(Vec::new())
        })?;
        Ok(())
    }

    /// Counts from the top. A modulus of zero, which the contract excludes, gives numbers without meaning and nothing else.
    fn leading_zeros(&self, scalar: &mut Scalar<'_, '_>, n: Numbers) -> Lowering<LeadingZeros> {
        let zero = scalar.constant(0)?;
        let all_ones = scalar.constant(-1)?;
        let top = scalar.constant(i64::from((self.form.limbs - 1) * self.step_bytes()))?;
        let ends = scalar.for_each(self.form.limbs, self.step_bytes(), &[top, all_ones, zero, zero], |scalar, _, carried| {
            let [at, unseen, zeros, found] = [carried[0], carried[1], carried[2], carried[3]];
            scalar.builder.set_name("limb");
            let limb = scalar.load(n, at)?;
            let kept = scalar.and(limb, unseen)?;
            scalar.builder.set_name("found");
            let found = scalar.or(found, kept)?;
            let negative = scalar.subtract(zero, limb)?;
            let nonzero = Self::sign(scalar, negative)?;
            let is_zero = scalar.with(LaneOp::Add, nonzero, -1)?;
            scalar.builder.set_name("unseen");
            let unseen = scalar.and(unseen, is_zero)?;
            scalar.builder.set_name("zeros");
            let zeros = scalar.subtract(zeros, unseen)?;
            scalar.builder.set_name("at");
            let at = scalar.with(LaneOp::Add, at, -i64::from(self.step_bytes()))?;
            Ok(vec![at, unseen, zeros, found])
        })?;
        let (limbs, found) = (ends[2], ends[3]);
        let one = scalar.constant(1)?;
        let radix = scalar.constant(1 << self.form.radix_bits)?;
        let ends = scalar.for_each(self.form.radix_bits - 1, 1, &[found, one, radix], |scalar, _, carried| {
            scalar.builder.set_name("top");
            let top = scalar.with(LaneOp::ShiftRight, carried[0], self.radix_bits() - 1)?;
            let moves = scalar.with(LaneOp::Add, top, -1)?;
            let mut doubled = [carried[0], carried[1]];
            for (value, name) in doubled.iter_mut().zip(["found", "up"]) {
                let added = scalar.and(*value, moves)?;
                scalar.builder.set_name(name);
                *value = scalar.add(*value, added)?;
            }
            let half = scalar.with(LaneOp::ShiftRight, carried[2], 1)?;
            let half = scalar.and(half, moves)?;
            scalar.builder.set_name("down");
            Ok(vec![doubled[0], doubled[1], scalar.subtract(carried[2], half)?])
        })?;
        Ok(LeadingZeros { limbs, up: ends[1], down: ends[2] })
    }

    /// Moves the limbs by a secret number of places: by 1, 2, 4, …, each or not. Zeros come in.
    fn move_limbs(&self, scalar: &mut Scalar<'_, '_>, numbers: &Spread, places: ValueId, direction: Direction) -> Lowering<()> {
        let step = i64::from(self.step_bytes());
        let (first, step) = match direction {
            Direction::Up => (numbers.below + self.form.limbs - 1, -step),
            Direction::Down => (numbers.below, step),
        };
        let zero = scalar.constant(0)?;
        let first = scalar.constant(i64::from(first * self.step_bytes()))?;
        let distance = scalar.constant(step)?;
        scalar.for_each_outer(levels(self.form.limbs), 1, &[places, distance], |scalar, _, outer| {
            scalar.builder.set_name("moves");
            let bit = scalar.with(LaneOp::And, outer[0], 1)?;
            let moves = scalar.subtract(zero, bit)?;
            scalar.for_each(self.form.limbs, self.step_bytes(), &[first], |scalar, _, at| {
                scalar.builder.set_name("from");
                let from = scalar.add(at[0], outer[1])?;
                scalar.builder.set_name("limb");
                let there = scalar.load(numbers.whole, at[0])?;
                let other = scalar.load(numbers.whole, from)?;
                let differ = scalar.xor(there, other)?;
                let change = scalar.and(differ, moves)?;
                let limb = scalar.xor(there, change)?;
                scalar.store(limb, numbers.whole, at[0])?;
                scalar.builder.set_name("at");
                Ok(vec![scalar.with(LaneOp::Add, at[0], step)?])
            })?;
            scalar.builder.set_name("places");
            let rest = scalar.with(LaneOp::ShiftRight, outer[0], 1)?;
            scalar.builder.set_name("distance");
            Ok(vec![rest, scalar.add(outer[1], outer[1])?])
        })?;
        Ok(())
    }

    /// A digit of the quotient x·2^r / N, at most the true one and less than 2 below it: `remainder` is x's top (two limbs and what is above them), `divisor` is N's two
    /// topmost limbs plus 1. Restoring division, r + 1 bits.
    fn quotient_digit(&self, scalar: &mut Scalar<'_, '_>, remainder: ValueId, divisor: ValueId) -> Lowering<ValueId> {
        let zero = scalar.constant(0)?;
        let ends = scalar.for_each(self.form.radix_bits + 1, 1, &[remainder, zero], |scalar, _, carried| {
            scalar.builder.set_name("difference");
            let difference = scalar.subtract(carried[0], divisor)?;
            let negative = Self::sign(scalar, difference)?;
            let restores = scalar.subtract(zero, negative)?;
            let restored = scalar.and(divisor, restores)?;
            let rest = scalar.add(difference, restored)?;
            scalar.builder.set_name("remainder");
            let next = scalar.add(rest, rest)?;
            // Ones where the quotient has zeros.
            let earlier = scalar.add(carried[1], carried[1])?;
            scalar.builder.set_name("complement");
            Ok(vec![next, scalar.add(earlier, negative)?])
        })?;
        let ones = scalar.constant((2 << self.form.radix_bits) - 1)?;
        scalar.builder.set_name("quotient");
        scalar.subtract(ones, ends[1])
    }

    /// x = R² mod n, spread.
    ///
    /// N = n·2^s has its topmost bit set. x = 2^s is multiplied by 2^r modulo N as often as R² has digits; then x = 2^s · (R² mod n). Let D = N / 2^(r(L − 2)), X likewise and
    /// d = ⌊D⌋ + 1; the quotient digit is q = ⌊2^r·⌊X⌋ / d⌋ ≤ 2^r·X / D, and 2^r·X/D − q < 2^r·(X + D)/(D·d) + 1 < 1 + 6/2^r as X < 2D and d > 2^(2r − 1). So x < 2N stays
    /// true for r ≥ 3, and q < 2^(r + 1). What is held is y = −1 − x, digit by digit: then x·2^r − q·N becomes a sum.
    pub fn radix_squared(&self, scalar: &mut Scalar<'_, '_>, n: Numbers, normal: &Spread, x: &Spread) -> Lowering<()> {
        let limbs = self.form.limbs;
        let zero = scalar.constant(0)?;
        let mask = scalar.constant(self.mask())?;
        let leading = self.leading_zeros(scalar, n)?;
        scalar.clear(normal.whole)?;
        self.multiply(scalar, leading.up, n)?;
        self.carry_products(scalar, normal.limbs)?;
        self.move_limbs(scalar, normal, leading.limbs, Direction::Up)?;
        scalar.clear(x.whole)?;
        let y = x.limbs;
        scalar.for_each(limbs, self.step_bytes(), &[leading.limbs], |scalar, index, carried| {
            scalar.builder.set_name("elsewhere");
            let negative = scalar.subtract(zero, carried[0])?;
            let either = scalar.or(negative, carried[0])?;
            let elsewhere = Self::sign(scalar, either)?;
            let here = scalar.with(LaneOp::Add, elsewhere, -1)?;
            scalar.builder.set_name("limb");
            let limb = scalar.and(leading.up, here)?;
            let limb = scalar.subtract(mask, limb)?;
            scalar.store(limb, y, index)?;
            scalar.builder.set_name("places");
            Ok(vec![scalar.with(LaneOp::Add, carried[0], -1)?])
        })?;
        scalar.builder.set_name("divisor");
        let high = scalar.load_at(normal.limbs, limbs - 1)?;
        let low = scalar.load_at(normal.limbs, limbs - 2)?;
        let high = scalar.with(LaneOp::ShiftLeft, high, self.radix_bits())?;
        let divisor = scalar.add(high, low)?;
        let divisor = scalar.with(LaneOp::Add, divisor, 1)?;
        // Above the limbs x has 0 or 1.
        let above = scalar.for_each_outer(2 * limbs, 1, &[zero], |scalar, _, above| {
            let above = above[0];
            scalar.builder.set_name("top");
            let high = scalar.load_at(y, limbs - 1)?;
            let high = scalar.subtract(mask, high)?;
            let low = scalar.load_at(y, limbs - 2)?;
            let low = scalar.subtract(mask, low)?;
            let above = scalar.with(LaneOp::ShiftLeft, above, self.radix_bits())?;
            let high = scalar.add(above, high)?;
            let high = scalar.with(LaneOp::ShiftLeft, high, self.radix_bits())?;
            let top = scalar.add(high, low)?;
            let quotient = self.quotient_digit(scalar, top, divisor)?;
            self.multiply(scalar, quotient, normal.limbs)?;
            let (limb, borrow) = self.move_up_and_add(scalar, y, mask)?;
            scalar.builder.set_name("above");
            let limb = scalar.subtract(mask, limb)?;
            let sum = scalar.add(above, limb)?;
            Ok(vec![scalar.subtract(sum, borrow)?])
        })?;
        self.reduce_once(scalar, normal.limbs, y, above[0])?;
        self.move_limbs(scalar, x, leading.limbs, Direction::Down)?;
        self.multiply(scalar, leading.down, x.limbs)?;
        let top = self.carry_products(scalar, self.lowered(x.limbs))?;
        scalar.store_at(top, x.limbs, limbs - 1)
    }

    /// y holds −1 − x and gets x mod N, for x < 2N with `above` over its limbs.
    fn reduce_once(&self, scalar: &mut Scalar<'_, '_>, normal: Numbers, y: Numbers, above: ValueId) -> Lowering<()> {
        let zero = scalar.constant(0)?;
        let mask = scalar.constant(self.mask())?;
        let borrow = scalar.for_each(self.form.limbs, self.step_bytes(), &[zero], |scalar, index, carried| {
            scalar.builder.set_name("limb");
            let complement = scalar.load(y, index)?;
            let limb = scalar.subtract(mask, complement)?;
            scalar.store(limb, y, index)?;
            let other = scalar.load(normal, index)?;
            scalar.builder.set_name("difference");
            let less = scalar.subtract(limb, other)?;
            let less = scalar.subtract(less, carried[0])?;
            let rest = scalar.with(LaneOp::And, less, self.mask())?;
            scalar.store(rest, self.products, index)?;
            scalar.builder.set_name("borrow");
            Ok(vec![Self::sign(scalar, less)?])
        })?;
        scalar.builder.set_name("subtracts");
        let borrow = scalar.subtract(borrow[0], above)?;
        let subtracts = scalar.with(LaneOp::Add, borrow, -1)?;
        scalar.for_each(self.form.limbs, self.step_bytes(), &[], |scalar, index, _| {
            scalar.builder.set_name("limb");
            let limb = choose(scalar, y, self.products, index, subtracts)?;
            scalar.store(limb, y, index)?;
            Ok(Vec::new())
        })?;
        Ok(())
    }
}
