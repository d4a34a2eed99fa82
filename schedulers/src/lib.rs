//! kgen-schedulers: machines, lowering, scheduling, allocation, checking, replay and timing.
//!
//! The road: [`kgen_ir::kernel::Kernel`] → `lower` → [`program::Program`] → `scheduling` → [`schedule::Schedule`] → `allocate` →
//! [`allocation::Allocation`] → `assemble` → [`code::Code`]; `check` and `replay` then accept or refuse.
pub mod allocation;
pub mod check;
pub mod code;
pub mod finished;
pub mod layout;
pub mod lowering;
pub mod machine;
pub mod program;
pub mod schedule;
pub mod target_file;
pub mod timing;
