//! Tests of the evaluator and its domains.

mod affine;
mod common;
mod compiled;
mod concrete;
mod dependence;
mod interpret;
mod interval;
mod provenance;
mod secrecy;
