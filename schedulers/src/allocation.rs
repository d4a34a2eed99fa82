//! An Allocation: the register of every value and the layout of the frame. It never inserts an instruction.

use crate::program::{RegionId, ValueId};

/// Where values live.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allocation {
    /// First register number of each value, parallel to the program's values; `None` for values that nothing defines.
    pub registers: Vec<Option<u32>>,
    /// Offset in bytes of each frame region from the stack pointer, after the prologue.
    pub frame_offsets: Vec<(RegionId, u64)>,
    /// Whole frame in bytes, a multiple of the stack alignment.
    pub frame_bytes: u64,
    /// Most values live at once, parallel to the machine's register files.
    pub most_live: Vec<u32>,
}

/// Why there is no allocation: what the driver should do before it schedules again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AllocationFailure {
    /// Too many values live: spill or recompute these (farthest next use first).
    Spill {
        /// The values.
        values: Vec<ValueId>,
        /// How many were live.
        live: u32,
        /// How many registers there are.
        available: u32,
    },
    /// These carried or tied values overlap: copy them.
    Copy {
        /// The values.
        values: Vec<ValueId>,
    },
}
