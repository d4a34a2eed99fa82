//! What the RSA-1024 example works on: a private key and answers known for it, read from text.
//!
//! Programs on the emulated machine read [`Key`] from `key.txt`, not from `key.pem`: the same
//! numbers without PEM and DER, so that neither the Rust nor the C side needs a reader for those.
//! `tests/fixture.rs` holds the text against the PEM file.

#![forbid(unsafe_code)]

mod answers;
mod fields;
mod key;

pub use answers::{Answers, RawOperation};
pub use fields::FieldError;
pub use key::Key;

/// Bytes of the modulus and of everything below it.
pub const MODULUS_BYTES: usize = 128;

/// Bytes of each prime and of everything below it.
pub const PRIME_BYTES: usize = MODULUS_BYTES / 2;
