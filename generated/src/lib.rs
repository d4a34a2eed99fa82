//! What kgen emits today: checked in, compiled and tested like any other crate.
