//! Tests of the evaluator and its domains.

mod common;
mod compiled;
mod concrete;
mod interpret;
mod interval;
mod provenance;
