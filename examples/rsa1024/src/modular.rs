//! Arithmetic modulo an odd number in plain Rust: for the public modulus, where it blinds and checks and so shares nothing with the kernels that it guards, and for
//! constants of the primes.

use crate::calls::Calls;

/// An odd modulus of `WORDS` words of 32 bits, least significant first.
#[derive(Clone)]
pub struct Modulus<const WORDS: usize> {
    words: [u32; WORDS],
    /// −1/n modulo 2^32.
    negative_inverse: u32,
    /// R² modulo n, R = 2^(32·WORDS).
    radix_squared: [u32; WORDS],
}

/// Words of big-endian bytes.
pub fn words_of_bytes<const WORDS: usize>(bytes: &[u8]) -> [u32; WORDS] {
    let mut words = [0; WORDS];
    for (index, byte) in bytes.iter().rev().enumerate().take(4 * WORDS) {
        words[index / 4] |= u32::from(*byte) << (8 * (index % 4));
    }
    words
}

/// Big-endian bytes of words.
pub fn bytes_of_words<const BYTES: usize>(words: &[u32]) -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    for (index, byte) in bytes.iter_mut().rev().enumerate() {
        *byte = words.get(index / 4).map_or(0, |word| word.to_le_bytes()[index % 4]);
    }
    bytes
}

/// `chosen` where the mask is ones, `otherwise` where it is zero. The barrier keeps the compiler from making a branch of a mask that a secret decides.
fn select(mask: u32, chosen: u32, otherwise: u32) -> u32 {
    let mask = std::hint::black_box(mask);
    (chosen & mask) | (otherwise & !mask)
}

impl<const WORDS: usize> Modulus<WORDS> {
    /// An odd modulus from big-endian bytes.
    pub fn new(bytes: &[u8]) -> Self {
        let words = words_of_bytes(bytes);
        // Newton's iteration doubles the bits that are right; an odd number is its own inverse modulo 8.
        let lowest: u32 = words[0];
        let inverse = (0..4).fold(lowest, |inverse: u32, _| inverse.wrapping_mul(2u32.wrapping_sub(lowest.wrapping_mul(inverse))));
        let mut modulus = Self { words, negative_inverse: inverse.wrapping_neg(), radix_squared: [0; WORDS] };
        modulus.radix_squared = modulus.power_of_two(2 * 32 * WORDS as u32);
        modulus
    }

    /// 2^exponent modulo n, by doubling: the same steps for every modulus.
    pub fn power_of_two(&self, exponent: u32) -> [u32; WORDS] {
        let mut power = [0; WORDS];
        power[0] = 1;
        self.reduce_once(&mut power, 0);
        for _ in 0..exponent {
            let mut above = 0;
            for word in &mut power {
                let next = *word >> 31;
                *word = *word << 1 | above;
                above = next;
            }
            self.reduce_once(&mut power, above);
        }
        power
    }

    /// Subtracts n from words with the given word above them, if the result is not negative.
    fn reduce_once(&self, words: &mut [u32; WORDS], above: u32) {
        let mut difference = [0; WORDS];
        let mut borrow = false;
        for index in 0..WORDS {
            let (less, first) = words[index].overflowing_sub(self.words[index]);
            let (less, second) = less.overflowing_sub(u32::from(borrow));
            difference[index] = less;
            borrow = first | second;
        }
        let keep = (u32::from(borrow) & !above & 1).wrapping_neg();
        for (word, less) in words.iter_mut().zip(difference) {
            *word = select(keep, *word, less);
        }
    }

    /// a·b/R, word by word (Koç, Acar, Kaliski 1996, "coarsely integrated operand scanning").
    fn montgomery(&self, a: &[u32; WORDS], b: &[u32; WORDS]) -> [u32; WORDS] {
        let mut sum = [0u32; WORDS];
        // The two words above the sum.
        let (mut above, mut top) = (0u32, 0u32);
        for factor in b {
            let mut carry = 0u64;
            for (place, word) in sum.iter_mut().zip(a) {
                let step = u64::from(*word) * u64::from(*factor) + u64::from(*place) + carry;
                *place = step as u32;
                carry = step >> 32;
            }
            let step = u64::from(above) + carry;
            above = step as u32;
            top = top.wrapping_add((step >> 32) as u32);

            let multiple = sum[0].wrapping_mul(self.negative_inverse);
            let mut carry = (u64::from(multiple) * u64::from(self.words[0]) + u64::from(sum[0])) >> 32;
            for index in 1..WORDS {
                let step = u64::from(multiple) * u64::from(self.words[index]) + u64::from(sum[index]) + carry;
                sum[index - 1] = step as u32;
                carry = step >> 32;
            }
            let step = u64::from(above) + carry;
            sum[WORDS - 1] = step as u32;
            above = top + (step >> 32) as u32;
            top = 0;
        }
        self.reduce_once(&mut sum, above);
        sum
    }

    /// a·b modulo n, of numbers below n; the time does not depend on them.
    pub fn multiply(&self, a: &[u32; WORDS], b: &[u32; WORDS], calls: &mut Calls) -> [u32; WORDS] {
        calls.record("product modulo n", None);
        self.montgomery(&self.montgomery(a, &self.radix_squared), b)
    }

    /// base^exponent modulo n; the time depends on the exponent, which is public.
    pub fn power(&self, base: &[u32; WORDS], exponent: u32, calls: &mut Calls) -> [u32; WORDS] {
        calls.record("power by e modulo n", None);
        let mut one = [0; WORDS];
        one[0] = 1;
        let mut square = self.montgomery(base, &self.radix_squared);
        let mut power = self.montgomery(&one, &self.radix_squared);
        let mut rest = exponent;
        while rest != 0 {
            if rest & 1 == 1 {
                power = self.montgomery(&power, &square);
            }
            rest >>= 1;
            if rest != 0 {
                square = self.montgomery(&square, &square);
            }
        }
        self.montgomery(&power, &one)
    }
}

#[cfg(test)]
mod tests {
    use super::{Modulus, bytes_of_words, words_of_bytes};
    use crate::calls::Calls;
    use num_bigint::BigUint;

    fn number(words: &[u32; 4]) -> BigUint {
        BigUint::new(words.to_vec())
    }

    #[test]
    fn it_calculates_as_big_integers_do() {
        let mut state = 1u32;
        let mut random = || {
            [0; 4].map(|_: u32| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                state ^ state >> 16
            })
        };
        let mut moduli = vec![[u32::MAX; 4], [1, 0, 0, 0], [3, 0, 0, 0], [1, 0, 0, 1 << 31]];
        moduli.extend((0..20).map(|_| random()).map(|[low, rest @ ..]| [low | 1, rest[0], rest[1], rest[2]]));
        for n in moduli {
            let big = number(&n);
            let modulus = Modulus::<4>::new(&bytes_of_words::<16>(&n));
            let below = |words: [u32; 4]| words_of_bytes::<4>(&(number(&words) % &big).to_bytes_be());
            let largest = words_of_bytes::<4>(&(&big - 1u32).to_bytes_be());
            for (a, b) in [(below(random()), below(random())), (largest, largest), ([0; 4], largest)] {
                let mut calls = Calls::default();
                assert_eq!(number(&modulus.multiply(&a, &b, &mut calls)), number(&a) * number(&b) % &big);
                let power = number(&modulus.power(&a, 65537, &mut calls));
                assert_eq!(power, number(&a).modpow(&BigUint::from(65537u32), &big));
                assert_eq!(calls.take().values().sum::<u64>(), 2);
            }
            assert_eq!(number(&modulus.power_of_two(300)), (BigUint::from(1u32) << 300u32) % &big);
        }
    }

    #[test]
    fn bytes_and_words_are_the_same_number() {
        let bytes: [u8; 8] = [1, 2, 3, 4, 5, 6, 7, 8];
        assert_eq!(words_of_bytes::<2>(&bytes), [0x0506_0708, 0x0102_0304]);
        assert_eq!(bytes_of_words::<8>(&[0x0506_0708, 0x0102_0304]), bytes);
        assert_eq!(bytes_of_words::<12>(&[0x0506_0708, 0x0102_0304])[..4], [0; 4]);
    }
}
