//! Tests of the timing simulation.

mod from_target;
mod parameters;
mod published;
mod rules;
mod straight_line;
mod support;
