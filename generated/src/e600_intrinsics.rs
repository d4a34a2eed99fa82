//! One module for each kernel, with its setup and conversion functions.

/// 128 × 128 → 256 bits.
#[rustfmt::skip]
#[path = "e600_intrinsics/mul_128.e600.rs"]
pub mod mul_128;

/// a·b/R modulo a number of 512 bits.
#[rustfmt::skip]
#[path = "e600_intrinsics/mont_mul_512.e600.rs"]
pub mod mont_mul_512;

/// a²/R.
#[rustfmt::skip]
#[path = "e600_intrinsics/mont_sqr_512.e600.rs"]
pub mod mont_sqr_512;

/// So many squarings in one call.
#[rustfmt::skip]
#[path = "e600_intrinsics/mont_sqr_n_512.e600.rs"]
pub mod mont_sqr_n_512;

/// An entry of a table, chosen without a trace.
#[rustfmt::skip]
#[path = "e600_intrinsics/mont_select_512.e600.rs"]
pub mod mont_select_512;
