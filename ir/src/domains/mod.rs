//! The domains over which bodies are evaluated ([`crate::evaluate`]).
pub mod concrete;
mod lane;
pub mod memory;
