//! The command `kgen`.

fn main() {}
