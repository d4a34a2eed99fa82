//! Tests of the timing simulation.

mod parameters;
mod published;
mod rules;
mod straight_line;
mod support;
