//! Answers known for the key, made by OpenSSL.

use crate::MODULUS_BYTES;
use crate::fields::{FieldError, Fields};

/// What is known of the key's private-key operation; numbers are big-endian and of full width.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answers {
    /// The padded digest of the message (EMSA-PKCS1-v1_5 with SHA-256; RFC 8017, 9.2).
    pub encoded: [u8; MODULUS_BYTES],
    /// The message's signature: the operation on `encoded`.
    pub signature: [u8; MODULUS_BYTES],
    /// The operation on other numbers, edges first.
    pub operations: Vec<RawOperation>,
}

/// One private-key operation: `power` = `base`^d mod n.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawOperation {
    /// The number it was done on.
    pub base: [u8; MODULUS_BYTES],
    /// Its result.
    pub power: [u8; MODULUS_BYTES],
}

impl Answers {
    /// Reads the text of `answers.txt`: the fields encoded and signature, then pairs of base and power.
    ///
    /// # Errors
    /// A field is missing, misplaced, not hexadecimal, or of another width.
    pub fn parse(text: &str) -> Result<Answers, FieldError> {
        let mut fields = Fields::of(text);
        let encoded = fields.take("encoded")?;
        let signature = fields.take("signature")?;
        let mut operations = Vec::new();
        while let Some(base) = fields.take_if_any("base")? {
            operations.push(RawOperation { base, power: fields.take("power")? });
        }
        Ok(Answers { encoded, signature, operations })
    }
}
