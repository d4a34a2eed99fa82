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

    fn mask_top(&mut self) {
        let used = self.width % 64;
        if used != 0
            && let Some(top) = self.words.last_mut()
        {
            *top &= (1 << used) - 1;
        }
    }
}
