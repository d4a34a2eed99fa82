//! Tests of the evaluator and its domains.

mod common;
mod concrete;
mod interval;
mod provenance;
