//! Lowering: from a kernel to the target's instructions over values. Rows are asked for by what they mean ([`selection`]), never by name.
//!
//! [`builder`] makes programs instruction by instruction; what it offers and where it is written:
//! [`shapes`] the questions that a lowering may ask of a machine, [`constants`] constants and the pool, [`addresses`] base and index registers of all
//! accesses together, [`loops`] loops and branches.

pub mod addresses;
pub mod builder;
pub mod constants;
pub mod loops;
pub mod memory_rows;
pub mod naturals;
pub mod permutes;
mod probes;
pub mod selection;
pub mod shapes;
