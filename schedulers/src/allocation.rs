//! An Allocation: the register of every value and the layout of the frame. It never inserts an instruction.

use crate::machine::FileId;
use crate::program::{BlockId, RegionId, ValueId};

/// Where values live.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allocation {
    /// First register number of each value, parallel to the program's values; `None` for values that nothing defines.
    pub registers: Vec<Option<u32>>,
    /// Offset in bytes of each frame region from the stack pointer, after the prologue.
    pub frame_offsets: Vec<(RegionId, u64)>,
    /// Saved registers that the function writes, in order of saving, with the offset of their save from the stack pointer, after the prologue.
    pub saves: Vec<(FileId, u32, u64)>,
    /// Whole frame in bytes, a multiple of the stack alignment; 0 when the function has none.
    pub frame_bytes: u64,
    /// Most values live at once, parallel to the machine's register files.
    pub most_live: Vec<u32>,
}

/// A value that should leave its register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Eviction {
    /// The value.
    pub value: ValueId,
    /// The block in whose schedule it is one too many.
    pub block: BlockId,
    /// Index in that block's schedule: reads from here on take the value from elsewhere.
    pub slot: u32,
}

/// Two values that the program wants in one register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SharedRegister {
    /// The operand that is read and the result tied to it.
    Tied {
        /// Block.
        block: BlockId,
        /// Index in the block's instructions.
        instruction: u32,
        /// Number of the operand that is read.
        operand: u32,
    },
    /// `initial` of a carried value and `current`.
    Initial {
        /// Index in the program's loops.
        lap: u32,
        /// Index in the loop's carried values.
        carried: u32,
    },
    /// `next` of a carried value and `current`.
    Next {
        /// Index in the program's loops.
        lap: u32,
        /// Index in the loop's carried values.
        carried: u32,
    },
}

/// Why there is no allocation: what the driver should do before it schedules again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AllocationFailure {
    /// Too many values live: spill or recompute these (farthest next use first), in the order of the schedule.
    Spill {
        /// What should leave, where.
        evictions: Vec<Eviction>,
        /// The file in which it is tightest.
        file: FileId,
        /// How many registers were wanted there.
        live: u32,
        /// How many registers there are.
        available: u32,
    },
    /// These pairs should share a register, and cannot while both are live or bound elsewhere: copy.
    Copy {
        /// Where.
        conflicts: Vec<SharedRegister>,
    },
    /// More arguments than the calling convention has registers for.
    Arguments {
        /// Registers wanted.
        wanted: u32,
        /// Registers there are.
        available: u32,
    },
}
