//! A private key as its numbers.

use crate::fields::{FieldError, Fields};
use crate::{MODULUS_BYTES, PRIME_BYTES};

/// An RSA-1024 private key with what the Chinese remainder theorem needs (RFC 8017, 3.2); numbers
/// are big-endian and of full width.
#[derive(Clone)]
pub struct Key {
    /// The modulus, p·q.
    pub modulus: [u8; MODULUS_BYTES],
    /// The public exponent e.
    pub public_exponent: [u8; 3],
    /// The private exponent d.
    pub private_exponent: [u8; MODULUS_BYTES],
    /// The prime p.
    pub prime_p: [u8; PRIME_BYTES],
    /// The prime q.
    pub prime_q: [u8; PRIME_BYTES],
    /// d mod (p − 1).
    pub exponent_p: [u8; PRIME_BYTES],
    /// d mod (q − 1).
    pub exponent_q: [u8; PRIME_BYTES],
    /// The inverse of q modulo p.
    pub coefficient: [u8; PRIME_BYTES],
}

impl Key {
    /// Reads the text of `key.txt`: the fields n, e, d, p, q, dp, dq, qinv.
    ///
    /// # Errors
    /// A field is missing, misplaced, not hexadecimal, or of another width.
    pub fn parse(text: &str) -> Result<Key, FieldError> {
        let mut fields = Fields::of(text);
        Ok(Key {
            modulus: fields.take("n")?,
            public_exponent: fields.take("e")?,
            private_exponent: fields.take("d")?,
            prime_p: fields.take("p")?,
            prime_q: fields.take("q")?,
            exponent_p: fields.take("dp")?,
            exponent_q: fields.take("dq")?,
            coefficient: fields.take("qinv")?,
        })
    }
}
