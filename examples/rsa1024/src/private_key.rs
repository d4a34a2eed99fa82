//! The private-key operation from emitted kernels: by the Chinese remainder theorem, fixed windows, a table that is read whole, blinding, and a check of the result.

use crate::kernels::{Block, Half, Kernels, RADIX_BITS, Table, Whole};
use crate::modular::{Modulus, bytes_of_words, words_of_bytes};
use crate::{Key, MODULUS_BYTES, PRIME_BYTES};
use std::fmt;

/// Bits of the exponent that one product takes; the table has an entry for each of their values.
const WINDOW_BITS: u32 = 4;
const ENTRIES: usize = 1 << WINDOW_BITS;
const PRIME_BITS: u32 = 8 * PRIME_BYTES as u32;

const PUBLIC_WORDS: usize = MODULUS_BYTES / 4;

/// A number below the public modulus, in words.
type Public = [u32; PUBLIC_WORDS];

/// A prime and what is computed from it once.
struct Prime {
    block: Block,
    /// 1 as a residue.
    one: Half,
    /// R²: a product with it enters Montgomery form.
    enter: Half,
    /// R²·2^512, for the upper half of a number of 1024 bits.
    enter_high: Half,
    /// d modulo the prime less one.
    exponent: [u8; PRIME_BYTES],
    /// The prime less two: x^(prime − 2) is 1/x (Fermat).
    inversion: [u8; PRIME_BYTES],
}

/// A private key, ready for operations.
pub struct PrivateKey {
    p: Prime,
    q: Prime,
    q_number: Half,
    /// 1/q modulo p, as a number and as a residue.
    q_inverse: Half,
    q_inverse_residue: Half,
    n: Modulus<PUBLIC_WORDS>,
    e: u32,
}

/// A random number's e-th power and inverse modulo n: a message is multiplied by the one before the operation, and the result by the other after it, so that time and
/// power of the operation say nothing about the message (Kocher, CRYPTO 1996).
pub struct Blinding {
    factor: Public,
    inverse: Public,
}

/// A result did not pass the check by the public exponent, and nothing of it is left: one fault in one half would give the factors of n away (Boneh, DeMillo, Lipton,
/// EUROCRYPT 1997).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault;

impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "the result of a private-key operation is wrong")
    }
}

impl std::error::Error for Fault {}

/// Which of a prime's exponents.
#[derive(Clone, Copy)]
enum Exponent {
    Private,
    Inversion,
}

impl Prime {
    fn new(kernels: &mut Kernels, number: &[u8; PRIME_BYTES], exponent: [u8; PRIME_BYTES]) -> (Self, Half) {
        let half = kernels.import_half(number);
        let block = kernels.setup(&half);
        let modulus = Modulus::<{ PRIME_BYTES / 4 }>::new(number);
        let mut power_of_two = |exponent: u32| {
            kernels.calls.record("power of two modulo a prime", None);
            kernels.import_half(&bytes_of_words(&modulus.power_of_two(exponent)))
        };
        let one = power_of_two(RADIX_BITS);
        let enter = power_of_two(2 * RADIX_BITS);
        let enter_high = power_of_two(2 * RADIX_BITS + PRIME_BITS);
        let mut inversion = *number;
        let mut borrow = 2;
        for byte in inversion.iter_mut().rev() {
            let (less, below) = byte.overflowing_sub(borrow);
            (*byte, borrow) = (less, u8::from(below));
        }
        (Self { block, one, enter, enter_high, exponent, inversion }, half)
    }

    /// Bits of the exponent from `low` on. Which ones is public; what they are is not.
    fn window(exponent: &[u8; PRIME_BYTES], low: u32) -> u32 {
        let byte = exponent[PRIME_BYTES - 1 - (low / 8) as usize];
        u32::from(byte) >> (low % 8) & (ENTRIES as u32 - 1)
    }

    /// The number's power as a residue. The calls are the same for every number and every exponent.
    fn power(&self, kernels: &mut Kernels, number: &Whole, exponent: Exponent) -> Half {
        let exponent = match exponent {
            Exponent::Private => &self.exponent,
            Exponent::Inversion => &self.inversion,
        };
        let base = kernels.enter(&self.block, number, &self.enter, &self.enter_high);
        let mut powers = [self.one; ENTRIES];
        powers[1] = base;
        for index in 2..ENTRIES {
            powers[index] = if index % 2 == 0 {
                kernels.square(&self.block, &powers[index / 2])
            } else {
                kernels.multiply(&self.block, &powers[index - 1], &base)
            };
        }
        let mut table = Table([0; size_of::<Table>()]);
        for (place, power) in table.0.chunks_exact_mut(size_of::<Half>()).zip(&powers) {
            place.copy_from_slice(&power.0);
        }
        let mut low = PRIME_BITS - WINDOW_BITS;
        let top = kernels.select(&self.block, &table, Self::window(exponent, low));
        let mut power = kernels.square_often(&self.block, &top, WINDOW_BITS);
        while low > WINDOW_BITS {
            low -= WINDOW_BITS;
            power = kernels.window(&self.block, &table, Self::window(exponent, low), &power, WINDOW_BITS);
        }
        let last = kernels.select(&self.block, &table, Self::window(exponent, 0));
        kernels.multiply(&self.block, &power, &last)
    }
}

impl PrivateKey {
    /// What depends on the key only.
    pub fn new(kernels: &mut Kernels, key: &Key) -> Self {
        let (p, _) = Prime::new(kernels, &key.prime_p, key.exponent_p);
        let (q, q_number) = Prime::new(kernels, &key.prime_q, key.exponent_q);
        let q_inverse = kernels.import_half(&key.coefficient);
        let q_inverse_residue = kernels.multiply(&p.block, &q_inverse, &p.enter);
        let [high, middle, low] = key.public_exponent;
        let n = Modulus::new(&key.modulus);
        Self { p, q, q_number, q_inverse, q_inverse_residue, n, e: u32::from_be_bytes([0, high, middle, low]) }
    }

    /// The number below n whose remainders are the number's powers.
    fn power(&self, kernels: &mut Kernels, number: &[u8; MODULUS_BYTES], exponent: Exponent) -> [u8; MODULUS_BYTES] {
        let number = kernels.import_whole(number);
        let x = self.p.power(kernels, &number, exponent);
        let y = self.q.power(kernels, &number, exponent);
        let y = kernels.leave(&self.q.block, &y);
        let whole = kernels.recombine(&self.p.block, &x, &y, &self.q_number, &self.q_inverse, &self.q_inverse_residue);
        kernels.export_whole(&whole)
    }

    /// The raw private-key operation, message^d modulo n, of a message below n. Nothing guards it: see [`PrivateKey::operate`].
    pub fn operate_unguarded(&self, kernels: &mut Kernels, message: &[u8; MODULUS_BYTES]) -> [u8; MODULUS_BYTES] {
        self.power(kernels, message, Exponent::Private)
    }

    /// message^d modulo n, blinded and checked.
    ///
    /// # Errors
    /// The result is wrong.
    pub fn operate(
        &self,
        kernels: &mut Kernels,
        blinding: &mut Blinding,
        message: &[u8; MODULUS_BYTES],
    ) -> Result<[u8; MODULUS_BYTES], Fault> {
        let message = words_of_bytes(message);
        let blinded = self.n.multiply(&message, &blinding.factor, &mut kernels.calls);
        let power = self.operate_unguarded(kernels, &bytes_of_words(&blinded));
        // (message · r^e)^d = message^d · r.
        let result = self.n.multiply(&words_of_bytes(&power), &blinding.inverse, &mut kernels.calls);
        blinding.renew(self, kernels);
        let again = self.n.power(&result, self.e, &mut kernels.calls);
        let differences = again.iter().zip(&message).fold(0, |found, (again, message)| found | (again ^ message));
        if differences == 0 { Ok(bytes_of_words(&result)) } else { Err(Fault) }
    }

    /// The key with one wrong bit in one of its exponents, as a fault would leave it.
    #[doc(hidden)]
    pub fn with_fault(mut self) -> Self {
        self.p.exponent[PRIME_BYTES - 1] ^= 4;
        self
    }
}

impl Blinding {
    /// A pair from random bytes, which must be fresh and secret.
    pub fn new(kernels: &mut Kernels, key: &PrivateKey, mut random: [u8; MODULUS_BYTES]) -> Self {
        // Below n, since n has its topmost bit.
        random[0] &= 0x7f;
        let inverse = key.power(kernels, &random, Exponent::Inversion);
        let factor = key.n.power(&words_of_bytes(&random), key.e, &mut kernels.calls);
        Self { factor, inverse: words_of_bytes(&inverse) }
    }

    /// The squares of a pair are a pair: another one for each operation at the price of two products.
    fn renew(&mut self, key: &PrivateKey, kernels: &mut Kernels) {
        self.factor = key.n.multiply(&self.factor, &self.factor, &mut kernels.calls);
        self.inverse = key.n.multiply(&self.inverse, &self.inverse, &mut kernels.calls);
    }
}
