//! What kgen emits today: checked in, compiled and tested like any other crate.
//!
//! The files below a target's module are written by kgen and never by hand; `KGEN_BLESS=1 cargo test --test generated` in the workspace writes them anew,
//! and `MANIFEST` with the version and the hash of each. They belong to their user; nothing here depends on kgen.
#![cfg_attr(all(target_arch = "powerpc", feature = "intrinsics"), feature(powerpc_target_feature, stdarch_powerpc))]

/// Kernels for the e600 core: inline assembly that only its processors can run.
#[cfg(target_arch = "powerpc")]
#[allow(unsafe_code)]
pub mod e600;

/// The same kernels over the compiler's intrinsics, which needs unstable Rust.
#[cfg(all(target_arch = "powerpc", feature = "intrinsics"))]
#[allow(unsafe_code)]
pub mod e600_intrinsics;
