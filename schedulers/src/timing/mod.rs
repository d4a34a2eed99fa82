//! The time that a program takes on a superscalar core: a trace-driven simulation that interprets parameters.
//!
//! Input is a [`TimingModel`] (a core's parameters, its queues, units and register files), a static
//! [`InstructionTiming`] for each instruction of a program, and a trace of what was executed ([`TraceEvent`]).
//! Nothing here knows a machine or an instruction by name. [`simulate`] answers with a [`TimingReport`]: cycles, and
//! what they were spent on. [`StraightLine`] answers with the cycles alone, for searches that try many orders of the
//! same branch-free instructions; the two agree exactly.
//!
//! # Cycles of a body
//!
//! From the first dispatch to the last retirement, both included, so that one instruction alone takes as many cycles
//! as it has a completion queue entry. At the start the pipeline and all queues are empty and every register that
//! the body reads is ready. Every access hits the caches. The branch history and the branch targets are those that
//! one run of the same trace leaves behind. Stores that are still in the store queues after the last retirement do
//! not count.
//!
//! # The stages
//!
//! In a cycle the stages work from the last to the first. What a stage frees, the stage before it can use in the
//! same cycle, but an instruction goes through one stage per cycle: fetched in cycle `f`, dispatched from `f + 1`,
//! issued from one cycle after dispatch, started from one cycle after issue.
//!
//! - **Fetch** takes up to `fetch_width` consecutive instructions of one `fetch_line` a cycle, as far as the `iq`
//!   has room after this cycle's dispatch, up to and including a taken branch.
//! - **The branch unit** executes one branch a cycle, the oldest not yet executed among the bottom `bpu_window`
//!   entries, from the cycle after its fetch, before this cycle's dispatch. If all that it reads is known (a result
//!   is known to the branch unit the register file's branch delay after it is known to the units), the branch is
//!   resolved. Otherwise a conditional branch is predicted, unless `unresolved` predictions are open, and a branch
//!   to a register waits. After a taken branch executed in cycle `c`, fetch goes on in cycle `c + bubble`:
//!   `btic_bubble` on a hit, else `fetch_bubble`, which is also that of every branch to a register. A taken branch
//!   that neither updates a link or count register nor goes to a register vanishes; a branch not taken vanishes if
//!   it stood at entry `fold_from` or above and updates nothing; others take a dispatch slot and a completion queue
//!   entry. Dispatch does not pass a branch that has not been executed. A branch mispredicted and resolved in cycle
//!   `r` has its target dispatched from `r + mispredict_refill`; nothing of the wrong path is simulated.
//! - **Dispatch**, in order, up to `dispatch` a cycle: needs a completion queue entry, renames for all results,
//!   an entry of the issue queue, and room in the queue's and the unit's dispatch limits of this cycle.
//! - **Issue**, for each queue up to its width a cycle, from the `window` oldest entries as they stand at the start of
//!   the cycle, oldest first, to the first unit copy with a free reservation station. Operands do not matter. In an
//!   in-order queue an entry that cannot issue holds those behind it.
//! - **Execution**: reservation stations of one unit copy are first in, first out. An instruction starts when it is at
//!   the front, the copy is not busy and its operands are there; its station is free for an issue in the same
//!   cycle. A result is there `latency` cycles after the start. A serialized instruction starts `serial_gap` cycles
//!   after its elder's retirement or later. A unit with an in-flight limit lets an instruction into its second
//!   cycle only when fewer than that many are between their second cycle and retirement.
//! - **Finish**: an instruction may retire `latency` + the unit's `finish` cycles after its start, a serialized one
//!   `serial_done` later; one that no unit executes, in the cycle after dispatch.
//! - **Retirement**, in order, up to `retire` a cycle and up to `retire_renames` renames of one file. Stores (rule
//!   `store_oldest`) and the instructions of units with that rule are the first of their group; younger ones may
//!   retire with them. Completion queue entry and renames can be used again `free_delay` cycles later.
//! - **Stores**: a store holds a finished store queue entry from its start until it has retired and moved on to the
//!   write-back stages, in order, one store in its `queue_cycles` (an FPR store's are more). It enters the committed
//!   store queue `csq_enter` cycles later if there is room (the write-back stages hold `csq_enter - 1` stores, so
//!   that a full queue stops the stores behind), stays `csq_hold` cycles and takes the data cache in the last of
//!   them, one store a cycle, in order. In that cycle and the `turnaround` cycles after it no load starts. The
//!   store wins over a load that is ready in the same cycle, except with `store_yields` while the committed store
//!   queue is not full.
//! - **Loads** of bytes that an older store writes wait, in their reservation station, until the store is in the
//!   committed store queue (`forward` csq), has accessed the cache (none), or not at all (free).
//!
//! So an entry of the completion queue lives 2 + latency + finish + 1 cycles at least: dispatch, issue, execution,
//! finish, retirement (AN2203 tables 25 and 26).
//!
//! # Readings
//!
//! Where the sources leave a choice, this is what is taken, and why:
//!
//! 1. *Reservation stations are first in, first out* per unit copy. AN2203 lets only the issue queues go out of order.
//! 2. *Identical copies*: the lowest-numbered copy with a free station is taken.
//! 3. *An issue queue entry or station freed in a cycle can be filled in that cycle*; only completion queue entries
//!    and renames have a delay of their own (`free_delay`).
//! 4. *The window does not slide within a cycle*: what issues makes room for the next cycle's window.
//! 5. *The finished store queue's entry* is taken at the start, not at the end of address generation. With it freed at
//!    retirement, three entries give AN2203 table 26's one store per cycle.
//! 6. *Committed store queue*: a store that enters in cycle `e` accesses the cache in `e + csq_hold - 1` at the
//!    earliest, the last cycle of its stay, and its entry is free for another in the next one. An access after the
//!    stay would make GMP's unaligned `copyi` a quarter slower than it is on the silicon.
//! 7. *Forwarding* allows a load to start in the cycle in which the store enters the committed store queue.
//! 8. *In-flight limit* counts from the second cycle (AN2203 calls the first one E0) to retirement, which gives the
//!    published four `fmadd` in five cycles.
//! 9. *An updated base register* has a latency of its own ([`Write::latency`]); the row says which.
//! 10. *Misaligned* is an access off its natural alignment that crosses a doubleword; accesses that truncate their
//!     address are traced with the truncated address, so they never are.
//! 11. *The branch unit* executes one branch a cycle; counters start weakly not taken and learn when a branch is
//!     executed. A branch that counts is resolved as soon as the count register's last writer is done.
//! 12. *Wrong-path instructions* take no entries, and fetching goes on at once after a correct prediction.
//! 13. *Only conditions have a delay to the branch unit*, as the register file says; link and count values have none.

mod back_end;
mod from_machine;
mod front_end;
mod instruction;
mod model;
mod pipeline;
mod predictor;
mod report;
mod store_queues;
mod straight_line;

pub use instruction::{
    BranchTiming, ExecutionTime, InstructionTiming, MemoryKind, MemoryTiming, Read, Register, TraceEvent, Write, is_misaligned,
    validate_instructions,
};
pub use model::{
    CORE_PARAMETERS, CoreParameters, Forwarding, ParameterValue, Queue, QueueLayout, RegisterFile, RegisterFileLayout, Setting,
    TimingLayout, TimingModel, Unit, UnitLayout,
};
pub use pipeline::simulate;
pub use report::{EventTimes, Occupancy, StallCounts, StallReason, TimingObserver, TimingReport, UnitUse};
pub use straight_line::{StraightLine, StraightLineOperand};
