//! One module for each kernel, with its setup and conversion functions; and one for kernels that are used together and so share their types.

/// 128 × 128 → 256 bits.
#[rustfmt::skip]
#[path = "e600/mul_128.e600.rs"]
pub mod mul_128;

/// a·b/R modulo a number of 512 bits.
#[rustfmt::skip]
#[path = "e600/mont_mul_512.e600.rs"]
pub mod mont_mul_512;

/// a²/R.
#[rustfmt::skip]
#[path = "e600/mont_sqr_512.e600.rs"]
pub mod mont_sqr_512;

/// So many squarings in one call.
#[rustfmt::skip]
#[path = "e600/mont_sqr_n_512.e600.rs"]
pub mod mont_sqr_n_512;

/// An entry of a table, chosen without a trace.
#[rustfmt::skip]
#[path = "e600/mont_select_512.e600.rs"]
pub mod mont_select_512;

/// What an RSA-1024 private-key operation by the Chinese remainder theorem is made of: Montgomery products, windows with tables of 16 entries, ways in and out.
#[rustfmt::skip]
pub mod rsa1024;
