//! Text to syntax tree and back. Nothing here knows types.

pub mod ast;
mod parser;
pub mod token;

pub use parser::{Parsed, parse_statements, parse_unit, split_bits_type};
