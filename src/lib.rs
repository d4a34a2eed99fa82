//! kgen: cryptographic kernels at the limit of a machine.
//!
//! The command `kgen` and other programs use this library: [`compile`] takes a spec's text to artifacts in one output form. Everything it returns has passed the
//! checker and the replay in the same run. [`Build`] is for build scripts, [`cost`] sums what
//! whole operations cost.
mod build_script;
pub mod call_text;
pub mod compile;
pub mod cost;
pub mod depfile;
pub mod excerpt;
pub mod names;
pub mod output;
pub mod refusal;
pub mod rules;

pub use build_script::{Build, BuildError};
