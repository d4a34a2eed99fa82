//! A Schedule: order, and cycle and unit of each instruction.

use crate::machine::UnitId;
use crate::program::Program;
use serde::Serialize;

/// Where one instruction went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Index in the program block's `instructions`.
    pub instruction: u32,
    /// Cycle from the block's start: issue on machines without interlocks; on others dispatch in the model. Never decreases along the order.
    pub cycle: u32,
    /// The unit taken; `None` where the row names none (a branch that the front end executes).
    pub unit: Option<UnitId>,
}

/// One block in order of issue; slots of one cycle on a bundled machine form a bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockSchedule {
    /// Every instruction of the block exactly once.
    pub slots: Vec<Slot>,
    /// Length in cycles.
    pub cycles: u32,
}

/// A lower bound on the cycles of a kernel and what makes it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Bound {
    /// `unit VIU2`, `dispatch`, `completion queue`, `critical path`…
    pub name: String,
    /// Cycles.
    pub cycles: f64,
}

/// A scheduled program.
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule {
    /// Parallel to the program's blocks.
    pub blocks: Vec<BlockSchedule>,
    /// Bounds of the straight-line body (or of one round of the hottest loop), greatest first.
    pub bounds: Vec<Bound>,
}

impl Schedule {
    /// The program as it stands, where something else will schedule it: no cycles, no units, no bounds.
    pub fn in_program_order(program: &Program) -> Self {
        let block = |block: &crate::program::Block| BlockSchedule {
            slots: (0..block.instructions.len() as u32).map(|instruction| Slot { instruction, cycle: 0, unit: None }).collect(),
            cycles: 0,
        };
        Self { blocks: program.blocks.iter().map(block).collect(), bounds: Vec::new() }
    }
}
