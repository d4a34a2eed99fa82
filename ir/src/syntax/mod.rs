//! Text to syntax tree and back. Nothing here knows types.

pub mod ast;
mod parser;
mod printer;
pub mod token;

pub use parser::{Parsed, parse_statements, parse_unit, split_bits_type};
pub use printer::{format, print, print_with_parameters};

/// Words that start a statement: they are no keywords elsewhere, but nothing may be bound to them.
pub const STATEMENT_WORDS: [&str; 5] = ["loop", "map", "store", "branch", "forbidden"];
