//! Assembly text and [`Code`](crate::code::Code), by the templates of the machine's rows: what is printed can be read back, and so can most of what
//! other programs and people write for the machine (GNU syntax: labels, numeric labels, directives, constant expressions).
mod directives;
mod expression;
mod parse;
mod print;
mod template;

pub use parse::{AssemblyReader, parse};
pub use print::{print, print_instruction};
