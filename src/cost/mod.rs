//! What a whole operation costs in a target's model: model cycles of each emitted function times its calls, from a list of the calls.
//!
//! [`description`] is the list as its author writes it, [`figures`] the sum, [`print`](mod@print) its tables.

pub mod description;
pub mod figures;
pub mod print;
