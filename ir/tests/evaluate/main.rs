//! Tests of the evaluator and its domains.

mod common;
mod concrete;
mod interpret;
mod interval;
mod provenance;
