//! kgen-schedulers: machines, lowering, scheduling, allocation, checking, replay and timing.
//!
//! The road: [`kgen_ir::kernel::Kernel`] → `lower` → [`program::Program`] → `scheduling` → [`schedule::Schedule`] → `allocate` →
//! [`allocation::Allocation`] → `assemble` → [`code::Code`]; `check` and `replay` then accept or refuse.
pub mod allocate;
pub mod allocation;
pub mod assemble;
pub mod assembly;
pub mod bounds;
pub mod call;
pub mod check;
pub mod code;
pub mod dependence;
pub mod driver;
pub mod evict;
pub mod execute;
pub mod finish;
pub mod finished;
pub mod interleave;
pub mod layout;
pub mod lifetimes;
pub mod liveness;
pub mod lowering;
pub mod machine;
pub mod machine_moves;
pub mod program;
pub mod program_run;
pub mod random;
pub mod replay;
pub mod rewrite;
pub mod schedule;
pub mod scheduling;
pub mod target_file;
pub mod timing;
pub mod timing_of_machine;
mod twins;
