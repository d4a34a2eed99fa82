//! Arithmetic on one lane: on defined bits, and on bits with an undefined shadow.
//!
//! A shadowed lane stands for every value that its undefined bits may take; a result bit is undefined unless it is the same for all of them.
//! The rules are exact where that is cheap and on the safe side (too much undefined) elsewhere.

use crate::bits::Bits;
use crate::body::{BinaryOp, NaryOp, UnaryOp};
use std::cmp::Ordering;

/// Bits and which of them are undefined. Undefined bits read as zero in `bits`, so equality is structural.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Shadowed {
    pub(super) bits: Bits,
    pub(super) undefined: Bits,
}

impl Shadowed {
    pub(super) fn new(bits: Bits, undefined: Bits) -> Self {
        Self { bits: bits.and_not(&undefined), undefined }
    }

    fn defined(bits: Bits) -> Self {
        let undefined = Bits::zero(bits.width());
        Self { bits, undefined }
    }

    pub(super) fn all_undefined(width: u32) -> Self {
        Self { bits: Bits::zero(width), undefined: Bits::ones(width) }
    }

    fn is_defined(&self) -> bool {
        self.undefined.is_zero()
    }

    fn width(&self) -> u32 {
        self.bits.width()
    }

    /// The largest value it may have.
    fn highest(&self) -> Bits {
        self.bits.or(&self.undefined)
    }

    fn known_zero(&self) -> Bits {
        self.highest().complement()
    }

    /// What is common to both.
    pub(super) fn merge(&self, other: &Self) -> Self {
        let undefined = self.undefined.or(&other.undefined).or(&self.bits.xor(&other.bits));
        Self::new(self.bits.clone(), undefined)
    }

    /// Signed order becomes unsigned order by inverting the sign.
    fn biased(&self) -> Self {
        let sign = Bits::from_u64(1, 1).resize(self.width()).shift_left(self.width() - 1);
        Self::new(self.bits.xor(&sign), self.undefined.clone())
    }

    /// Unsigned `self < other` where it is the same for all values.
    fn less(&self, other: &Self) -> Option<bool> {
        if self.highest().compare(&other.bits) == Ordering::Less {
            Some(true)
        } else if self.bits.compare(&other.highest()) != Ordering::Less {
            Some(false)
        } else {
            None
        }
    }
}

pub(super) fn unary(op: UnaryOp, a: &Bits) -> Bits {
    match op {
        UnaryOp::Not => a.complement(),
        UnaryOp::LeadingZeros => Bits::from_u64(a.width(), u64::from(a.leading_zeros())),
        UnaryOp::PopulationCount => Bits::from_u64(a.width(), u64::from(a.count_ones())),
    }
}

pub(super) fn unary_shadowed(op: UnaryOp, a: &Shadowed) -> Shadowed {
    let width = a.width();
    // A count is at most the width, so the bits above the width's own are known to be zero.
    let count_bits = Bits::ones(width).and(&Bits::from_u64(width, u64::MAX >> u64::from(width).leading_zeros()));
    match op {
        UnaryOp::Not => Shadowed::new(a.bits.complement(), a.undefined.clone()),
        UnaryOp::LeadingZeros if a.bits.leading_zeros() == a.highest().leading_zeros() => Shadowed::defined(unary(op, &a.bits)),
        UnaryOp::PopulationCount if a.is_defined() => Shadowed::defined(unary(op, &a.bits)),
        UnaryOp::LeadingZeros | UnaryOp::PopulationCount => Shadowed::new(Bits::zero(width), count_bits),
    }
}

fn less(a: &Bits, b: &Bits) -> bool {
    a.compare(b) == Ordering::Less
}

fn less_signed(a: &Bits, b: &Bits) -> bool {
    if a.sign() == b.sign() { less(a, b) } else { a.sign() }
}

/// `None` where every bit is undefined (division by zero). The count of a shift may have another width than the value.
pub(super) fn binary(op: BinaryOp, a: &Bits, b: &Bits) -> Option<Bits> {
    Some(match op {
        BinaryOp::Subtract => a.wrapping_sub(b),
        BinaryOp::Multiply => a.wrapping_mul(b),
        BinaryOp::Divide => a.div_rem(b)?.0,
        BinaryOp::Remainder => a.div_rem(b)?.1,
        BinaryOp::CarrylessMultiply => a.carryless_mul(b),
        BinaryOp::ShiftLeft => a.shift_left(b.saturating_u32()),
        BinaryOp::ShiftRight => a.shift_right(b.saturating_u32()),
        BinaryOp::ShiftRightSigned => a.shift_right_signed(b.saturating_u32()),
        BinaryOp::RotateLeft => a.rotate_left(remainder_of(b, a.width())),
        BinaryOp::Equal => Bits::from_bool(a == b),
        BinaryOp::Less => Bits::from_bool(less(a, b)),
        BinaryOp::LessSigned => Bits::from_bool(less_signed(a, b)),
        BinaryOp::Minimum => if less(b, a) { b } else { a }.clone(),
        BinaryOp::Maximum => if less(a, b) { b } else { a }.clone(),
        BinaryOp::MinimumSigned => if less_signed(b, a) { b } else { a }.clone(),
        BinaryOp::MaximumSigned => if less_signed(a, b) { b } else { a }.clone(),
    })
}

/// A rotation count of any width modulo the width rotated.
fn remainder_of(count: &Bits, modulus: u32) -> u32 {
    count.words().iter().rev().fold(0u128, |rest, word| ((rest << 64) | u128::from(*word)) % u128::from(modulus)) as u32
}

/// Width of a binary operation's result lane.
pub(super) fn binary_width(op: BinaryOp, width: u32) -> u32 {
    if op.is_comparison() { 1 } else { width }
}

pub(super) fn binary_shadowed(op: BinaryOp, a: &Shadowed, b: &Shadowed) -> Shadowed {
    let width = a.width();
    if a.is_defined() && b.is_defined() {
        return binary(op, &a.bits, &b.bits).map_or_else(|| Shadowed::all_undefined(width), Shadowed::defined);
    }
    let decided =
        |decision: Option<bool>| decision.map_or_else(|| Shadowed::all_undefined(1), |bit| Shadowed::defined(Bits::from_bool(bit)));
    let chosen = |first: Option<bool>| match first {
        Some(true) => a.clone(),
        Some(false) => b.clone(),
        None => a.merge(b),
    };
    match op {
        // Carries run upward only.
        BinaryOp::Subtract => from_lowest_undefined(a.bits.wrapping_sub(&b.bits), lowest_undefined(a).min(lowest_undefined(b))),
        // With a = A + 2^p·U the product is A·b + 2^p·U·b, and b's trailing zeros push the second term further up; likewise for b.
        BinaryOp::Multiply => from_lowest_undefined(a.bits.wrapping_mul(&b.bits), lowest_undefined_of_product(a, b)),
        BinaryOp::CarrylessMultiply => from_lowest_undefined(a.bits.carryless_mul(&b.bits), lowest_undefined_of_product(a, b)),
        BinaryOp::ShiftLeft | BinaryOp::ShiftRight | BinaryOp::RotateLeft if b.is_defined() => {
            let shift = |bits: &Bits| binary(op, bits, &b.bits).unwrap_or_else(|| Bits::zero(width));
            Shadowed::new(shift(&a.bits), shift(&a.undefined))
        }
        // The copies of an undefined sign are undefined, which is what an arithmetic shift of the shadow gives.
        BinaryOp::ShiftRightSigned if b.is_defined() => {
            let count = b.bits.saturating_u32();
            Shadowed::new(a.bits.shift_right_signed(count), a.undefined.shift_right_signed(count))
        }
        _ if op.is_shift() && a.is_defined() && a.bits.is_zero() => a.clone(),
        BinaryOp::Divide
        | BinaryOp::Remainder
        | BinaryOp::ShiftLeft
        | BinaryOp::ShiftRight
        | BinaryOp::ShiftRightSigned
        | BinaryOp::RotateLeft => Shadowed::all_undefined(width),
        BinaryOp::Equal => {
            let both_defined = a.undefined.or(&b.undefined).complement();
            let differ = !a.bits.xor(&b.bits).and(&both_defined).is_zero();
            decided(differ.then_some(false))
        }
        BinaryOp::Less => decided(a.less(b)),
        BinaryOp::LessSigned => decided(a.biased().less(&b.biased())),
        BinaryOp::Minimum => chosen(a.less(b)),
        BinaryOp::Maximum => chosen(b.less(a)),
        BinaryOp::MinimumSigned => chosen(a.biased().less(&b.biased())),
        BinaryOp::MaximumSigned => chosen(b.biased().less(&a.biased())),
    }
}

fn lowest_undefined(a: &Shadowed) -> u32 {
    a.undefined.trailing_zeros()
}

fn lowest_undefined_of_product(a: &Shadowed, b: &Shadowed) -> u32 {
    let trailing_zeros = |value: &Shadowed| value.highest().trailing_zeros();
    (lowest_undefined(a) + trailing_zeros(b)).min(lowest_undefined(b) + trailing_zeros(a))
}

/// The bits from `position` up become undefined.
fn from_lowest_undefined(bits: Bits, position: u32) -> Shadowed {
    let undefined = Bits::ones(bits.width()).shift_left(position);
    Shadowed::new(bits, undefined)
}

pub(super) fn nary(op: NaryOp, a: &Bits, b: &Bits) -> Bits {
    match op {
        NaryOp::Add => a.wrapping_add(b),
        NaryOp::Xor => a.xor(b),
        NaryOp::And => a.and(b),
        NaryOp::Or => a.or(b),
    }
}

pub(super) fn nary_shadowed(op: NaryOp, a: &Shadowed, b: &Shadowed) -> Shadowed {
    let either = a.undefined.or(&b.undefined);
    match op {
        NaryOp::Add => from_lowest_undefined(a.bits.wrapping_add(&b.bits), either.trailing_zeros()),
        NaryOp::Xor => Shadowed::new(a.bits.xor(&b.bits), either),
        NaryOp::And => Shadowed::new(a.bits.and(&b.bits), either.and_not(&a.known_zero()).and_not(&b.known_zero())),
        NaryOp::Or => {
            let undefined = either.and_not(&a.bits).and_not(&b.bits);
            Shadowed::new(a.bits.or(&b.bits), undefined)
        }
    }
}

pub(super) fn field_mul_shadowed(a: &Shadowed, b: &Shadowed, polynomial: &Bits) -> Shadowed {
    let zero = |value: &Shadowed| value.is_defined() && value.bits.is_zero();
    if a.is_defined() && b.is_defined() || zero(a) || zero(b) {
        Shadowed::defined(a.bits.field_mul(&b.bits, polynomial))
    } else {
        Shadowed::all_undefined(a.width())
    }
}

/// `matrix · value + constant`; a result bit is undefined where its row touches an undefined bit.
pub(super) fn affine_shadowed(matrix: &[Bits], constant: &Bits, value: &Shadowed) -> Shadowed {
    let mut undefined = Bits::zero(matrix.len() as u32);
    for (index, row) in matrix.iter().enumerate() {
        if !row.and(&value.undefined).is_zero() {
            undefined.insert(index as u32, &Bits::from_bool(true));
        }
    }
    Shadowed::new(value.bits.matrix_mul(matrix).xor(constant), undefined)
}
