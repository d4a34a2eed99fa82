//! RSA-1024: the private-key operation from emitted kernels (`private_key`, on the emulated machine only), and what it works on: a private key and answers known for
//! it, read from text.
//!
//! Programs on the emulated machine read [`Key`] from `key.txt`, not from `key.pem`: the same
//! numbers without PEM and DER, so that neither the Rust nor the C side needs a reader for those.
//! `tests/fixture.rs` holds the text against the PEM file.

#![deny(unsafe_code)]

mod answers;
pub mod calls;
mod fields;
#[cfg(target_arch = "powerpc")]
#[allow(unsafe_code)]
pub mod kernels;
mod key;
pub mod modular;
#[cfg(target_arch = "powerpc")]
pub mod private_key;

pub use answers::{Answers, RawOperation};
pub use fields::FieldError;
pub use key::Key;

/// Bytes of the modulus and of everything below it.
pub const MODULUS_BYTES: usize = 128;

/// Bytes of each prime and of everything below it.
pub const PRIME_BYTES: usize = MODULUS_BYTES / 2;
