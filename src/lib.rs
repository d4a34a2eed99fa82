//! kgen: cryptographic kernels at the limit of a machine.
//!
//! The command `kgen` and other programs use this library: [`compile`] takes a spec's text to artifacts in one output form. Everything it returns has passed the
//! checker and the replay in the same run.
pub mod call_text;
pub mod compile;
pub mod names;
pub mod rules;
