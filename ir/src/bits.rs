//! Concrete bits: the constants of bodies and the values of the concrete domain.

use num_bigint::BigUint;
use smallvec::SmallVec;

/// `width` bits. Lane i of a vector of `W`-bit lanes is the bits i·W … i·W+W−1, so lane 0 (lowest address) is least significant here
/// on every target; byte order only matters where bytes are grouped to wider lanes ([`crate::body::Op::Reinterpret`]).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bits {
    width: u32,
    /// Least significant word first, exactly ceil(width/64) words, bits past `width` are zero.
    words: SmallVec<[u64; 2]>,
}

impl Bits {
    /// All zero.
    pub fn zero(width: u32) -> Self {
        Self { width, words: SmallVec::from_elem(0, width.div_ceil(64) as usize) }
    }

    /// All one.
    pub fn ones(width: u32) -> Self {
        let mut bits = Self { width, words: SmallVec::from_elem(u64::MAX, width.div_ceil(64) as usize) };
        bits.mask_top();
        bits
    }

    /// The low `width` bits of a number.
    pub fn from_u64(width: u32, value: u64) -> Self {
        let mut bits = Self::zero(width);
        if let Some(word) = bits.words.first_mut() {
            *word = value;
        }
        bits.mask_top();
        bits
    }

    /// The low `width` bits of these words, least significant first.
    pub fn from_words(width: u32, words: impl IntoIterator<Item = u64>) -> Self {
        let mut bits = Self::zero(width);
        for (place, word) in bits.words.iter_mut().zip(words) {
            *place = word;
        }
        bits.mask_top();
        bits
    }

    /// The low `width` bits of an integer.
    pub fn from_integer(width: u32, value: &BigUint) -> Self {
        Self::from_words(width, value.iter_u64_digits())
    }

    /// Bytes in address order: byte i is bits 8i….
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let words = bytes.chunks(8).map(|chunk| chunk.iter().rev().fold(0, |word, byte| (word << 8) | u64::from(*byte)));
        Self::from_words(bytes.len() as u32 * 8, words)
    }

    /// How many bits.
    pub fn width(&self) -> u32 {
        self.width
    }

    /// The words, least significant first.
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// The value where it fits 64 bits.
    pub fn to_u64(&self) -> Option<u64> {
        let (first, rest) = self.words.split_first()?;
        rest.iter().all(|word| *word == 0).then_some(*first)
    }

    /// The value as an integer.
    pub fn to_integer(&self) -> BigUint {
        self.words.iter().rev().fold(BigUint::ZERO, |value, word| (value << 64u32) | BigUint::from(*word))
    }

    /// Bytes in address order; the width must be a multiple of eight.
    pub fn to_bytes(&self) -> Vec<u8> {
        debug_assert_eq!(self.width % 8, 0, "bytes of a value of {} bits", self.width);
        self.words.iter().flat_map(|word| word.to_le_bytes()).take(self.width as usize / 8).collect()
    }

    /// Bit `index`, which must lie inside.
    pub fn bit(&self, index: u32) -> bool {
        debug_assert!(index < self.width);
        self.words[index as usize / 64] >> (index % 64) & 1 == 1
    }

    /// Bits `start … start+width−1`; what lies outside reads as zero.
    pub fn extract(&self, start: u32, width: u32) -> Self {
        let mut result = Self::zero(width);
        let shift = start % 64;
        let first = start as usize / 64;
        for (index, place) in result.words.iter_mut().enumerate() {
            let low = self.words.get(first + index).copied().unwrap_or(0) >> shift;
            let high = if shift == 0 { 0 } else { self.words.get(first + index + 1).copied().unwrap_or(0) << (64 - shift) };
            *place = low | high;
        }
        result.mask_top();
        result
    }

    /// Writes `value` at bits `start …`; it must fit.
    pub fn insert(&mut self, start: u32, value: &Self) {
        debug_assert!(start + value.width <= self.width);
        let mut done = 0;
        while done < value.width {
            let place = start + done;
            let take = (64 - place % 64).min(64 - done % 64).min(value.width - done);
            let mask = if take == 64 { u64::MAX } else { (1 << take) - 1 };
            let piece = value.words[done as usize / 64] >> (done % 64) & mask;
            let word = &mut self.words[place as usize / 64];
            *word = *word & !(mask << (place % 64)) | piece << (place % 64);
            done += take;
        }
    }

    /// The low `width` bits of a number.
    pub fn from_u128(width: u32, value: u128) -> Self {
        Self::from_words(width, [value as u64, (value >> 64) as u64])
    }

    /// The low 128 bits, zero filled.
    pub fn low_u128(&self) -> u128 {
        let word = |index: usize| u128::from(self.words.get(index).copied().unwrap_or(0));
        word(0) | word(1) << 64
    }

    /// One bit.
    pub fn from_bool(value: bool) -> Self {
        Self::from_u64(1, u64::from(value))
    }

    /// Whether no bit is set.
    pub fn is_zero(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    /// Whether the top bit is set.
    pub fn sign(&self) -> bool {
        self.width != 0 && self.bit(self.width - 1)
    }

    /// The value, or `u32::MAX` where it is larger: for counts and indices, of which everything large is out of range.
    pub fn saturating_u32(&self) -> u32 {
        self.to_u64().and_then(|value| u32::try_from(value).ok()).unwrap_or(u32::MAX)
    }

    fn zip(&self, other: &Self, function: impl Fn(u64, u64) -> u64) -> Self {
        debug_assert_eq!(self.width, other.width);
        let mut result = self.clone();
        for (place, word) in result.words.iter_mut().zip(&other.words) {
            *place = function(*place, *word);
        }
        result.mask_top();
        result
    }

    /// Bitwise and; equal widths.
    pub fn and(&self, other: &Self) -> Self {
        self.zip(other, |a, b| a & b)
    }

    /// Bitwise or; equal widths.
    pub fn or(&self, other: &Self) -> Self {
        self.zip(other, |a, b| a | b)
    }

    /// Bitwise exclusive or; equal widths.
    pub fn xor(&self, other: &Self) -> Self {
        self.zip(other, |a, b| a ^ b)
    }

    /// `self & !other`; equal widths.
    pub fn and_not(&self, other: &Self) -> Self {
        self.zip(other, |a, b| a & !b)
    }

    /// Every bit inverted.
    pub fn complement(&self) -> Self {
        let mut result = self.clone();
        for word in &mut result.words {
            *word = !*word;
        }
        result.mask_top();
        result
    }

    /// Sum modulo 2^width; equal widths.
    pub fn wrapping_add(&self, other: &Self) -> Self {
        debug_assert_eq!(self.width, other.width);
        let mut result = self.clone();
        let mut carry = 0u128;
        for (place, word) in result.words.iter_mut().zip(&other.words) {
            let sum = u128::from(*place) + u128::from(*word) + carry;
            *place = sum as u64;
            carry = sum >> 64;
        }
        result.mask_top();
        result
    }

    /// Difference modulo 2^width; equal widths.
    pub fn wrapping_sub(&self, other: &Self) -> Self {
        debug_assert_eq!(self.width, other.width);
        let mut result = self.clone();
        let mut borrow = false;
        for (place, word) in result.words.iter_mut().zip(&other.words) {
            let (difference, first) = place.overflowing_sub(*word);
            let (difference, second) = difference.overflowing_sub(u64::from(borrow));
            *place = difference;
            borrow = first || second;
        }
        result.mask_top();
        result
    }

    /// Product modulo 2^width; equal widths.
    pub fn wrapping_mul(&self, other: &Self) -> Self {
        debug_assert_eq!(self.width, other.width);
        let mut result = Self::zero(self.width);
        let words = result.words.len();
        for (low, a) in self.words.iter().enumerate() {
            let mut carry = 0u128;
            for (high, b) in other.words.iter().enumerate().take(words - low) {
                let place = &mut result.words[low + high];
                let sum = u128::from(*a) * u128::from(*b) + u128::from(*place) + carry;
                *place = sum as u64;
                carry = sum >> 64;
            }
        }
        result.mask_top();
        result
    }

    /// Carry-less product modulo x^width; equal widths.
    pub fn carryless_mul(&self, other: &Self) -> Self {
        debug_assert_eq!(self.width, other.width);
        let mut result = Self::zero(self.width);
        for index in (0..other.width).filter(|index| other.bit(*index)) {
            result = result.xor(&self.shift_left(index));
        }
        result
    }

    /// Quotient and remainder; `None` for division by zero. Equal widths.
    pub fn div_rem(&self, other: &Self) -> Option<(Self, Self)> {
        debug_assert_eq!(self.width, other.width);
        if other.is_zero() {
            return None;
        }
        if self.width <= 128 {
            let (a, b) = (self.low_u128(), other.low_u128());
            return Some((Self::from_u128(self.width, a / b), Self::from_u128(self.width, a % b)));
        }
        let (quotient, remainder) = num_integer::Integer::div_rem(&self.to_integer(), &other.to_integer());
        Some((Self::from_integer(self.width, &quotient), Self::from_integer(self.width, &remainder)))
    }

    /// Shifted left by `count`, zero filled; zero when the count reaches the width.
    pub fn shift_left(&self, count: u32) -> Self {
        let mut result = Self::zero(self.width);
        if count < self.width {
            result.insert(count, &self.extract(0, self.width - count));
        }
        result
    }

    /// Shifted right by `count`, zero filled; zero when the count reaches the width.
    pub fn shift_right(&self, count: u32) -> Self {
        if count >= self.width { Self::zero(self.width) } else { self.extract(count, self.width) }
    }

    /// Shifted right by `count`, filled with the top bit.
    pub fn shift_right_signed(&self, count: u32) -> Self {
        let count = count.min(self.width);
        let shifted = self.shift_right(count);
        if self.sign() { shifted.or(&Self::ones(self.width).shift_left(self.width - count)) } else { shifted }
    }

    /// Rotated left by `count` modulo the width.
    pub fn rotate_left(&self, count: u32) -> Self {
        let count = if self.width == 0 { 0 } else { count % self.width };
        self.shift_left(count).or(&self.shift_right(self.width - count))
    }

    /// Numeric comparison; equal widths. (`Ord` is an arbitrary total order for use in maps.)
    pub fn compare(&self, other: &Self) -> std::cmp::Ordering {
        debug_assert_eq!(self.width, other.width);
        self.words.iter().rev().cmp(other.words.iter().rev())
    }

    /// Number of zeros above the highest one; the width where there is none.
    pub fn leading_zeros(&self) -> u32 {
        let zeros: u32 = match self.words.iter().rposition(|word| *word != 0) {
            Some(index) => self.words[index].leading_zeros() + 64 * (self.words.len() - 1 - index) as u32,
            None => 64 * self.words.len() as u32,
        };
        zeros - (64 * self.words.len() as u32 - self.width)
    }

    /// Number of zeros below the lowest one; the width where there is none.
    pub fn trailing_zeros(&self) -> u32 {
        match self.words.iter().position(|word| *word != 0) {
            Some(index) => self.words[index].trailing_zeros() + 64 * index as u32,
            None => self.width,
        }
    }

    /// Number of ones.
    pub fn count_ones(&self) -> u32 {
        self.words.iter().map(|word| word.count_ones()).sum()
    }

    /// Cut or zero filled to `width` bits.
    pub fn resize(&self, width: u32) -> Self {
        self.extract(0, width)
    }

    /// Cut, or filled with the top bit, to `width` bits.
    pub fn resize_signed(&self, width: u32) -> Self {
        let mut result = self.extract(0, width);
        if width > self.width && self.sign() {
            result.insert(self.width, &Self::ones(width - self.width));
        }
        result
    }

    /// The bytes of every lane of `lane_bits` (a multiple of eight) in reverse order.
    pub fn swap_lane_bytes(&self, lane_bits: u32) -> Self {
        debug_assert!(lane_bits.is_multiple_of(8) && self.width.is_multiple_of(lane_bits));
        if lane_bits == 8 {
            return self.clone();
        }
        if lane_bits == 64 || (lane_bits < 64 && lane_bits.is_power_of_two()) {
            let mut result = self.clone();
            for word in &mut result.words {
                *word = match lane_bits {
                    16 => (*word & 0x00ff_00ff_00ff_00ff) << 8 | *word >> 8 & 0x00ff_00ff_00ff_00ff,
                    32 => word.swap_bytes().rotate_left(32),
                    _ => word.swap_bytes(),
                };
            }
            return result;
        }
        let mut result = Self::zero(self.width);
        for lane in 0..self.width / lane_bits {
            for byte in 0..lane_bits / 8 {
                let from = lane * lane_bits + byte * 8;
                result.insert(lane * lane_bits + lane_bits - 8 - byte * 8, &self.extract(from, 8));
            }
        }
        result
    }

    /// Product in GF(2^width) modulo x^width + `polynomial`; equal widths.
    pub fn field_mul(&self, other: &Self, polynomial: &Self) -> Self {
        let mut result = Self::zero(self.width);
        for index in (0..self.width).rev() {
            let carry = result.sign();
            result = result.shift_left(1);
            if carry {
                result = result.xor(polynomial);
            }
            if other.bit(index) {
                result = result.xor(self);
            }
        }
        result
    }

    /// Bit i of the result is the parity of `rows[i] & self`; the result has as many bits as there are rows.
    pub fn matrix_mul(&self, rows: &[Self]) -> Self {
        let mut result = Self::zero(rows.len() as u32);
        for (index, row) in rows.iter().enumerate() {
            if row.and(self).count_ones() % 2 == 1 {
                result.words[index / 64] |= 1 << (index % 64);
            }
        }
        result
    }

    fn mask_top(&mut self) {
        let used = self.width % 64;
        if used != 0
            && let Some(top) = self.words.last_mut()
        {
            *top &= (1 << used) - 1;
        }
    }
}
