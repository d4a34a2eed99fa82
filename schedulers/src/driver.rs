//! The only place that iterates: schedule, allocate, and where that fails add rows and try again, a bounded number of times.

use crate::allocate::{AllocationOptions, allocate};
use crate::allocation::{Allocation, AllocationFailure};
use crate::bounds::{bounds, hottest_blocks};
use crate::interleave::{Arrangement, InterleaveError, interleave};
use crate::liveness::liveness;
use crate::machine::Machine;
use crate::program::{BlockId, Program};
use crate::rewrite::{NoSuchRow, Rewriter};
use crate::schedule::Schedule;
use crate::scheduling::problem::BlockProblem;
use crate::scheduling::{Effort, schedule_block};
use crate::timing::TimingModel;

/// What to spend and what to keep to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DriverOptions {
    /// How hard to look for a good order.
    pub effort: Effort,
    /// Keep to registers that inline assembly may name.
    pub inline_assembly: bool,
    /// Most rounds of scheduling and allocation.
    pub rounds: u32,
}

impl Default for DriverOptions {
    fn default() -> Self {
        Self { effort: Effort::List, inline_assembly: true, rounds: 48 }
    }
}

/// A scheduled and allocated function.
#[derive(Clone, Debug)]
pub struct Built {
    /// The program with the rows that were added.
    pub program: Program,
    /// Order, cycles, units, bounds.
    pub schedule: Schedule,
    /// Registers and frame.
    pub allocation: Allocation,
    /// Figures of the search.
    pub report: BuildReport,
}

/// Figures of scheduling and allocation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BuildReport {
    /// Values stored to the frame.
    pub spills: u32,
    /// Values computed again.
    pub rematerialized: u32,
    /// Copies added.
    pub copies: u32,
    /// Rounds of scheduling and allocation that it took.
    pub rounds: u32,
    /// Cycles of the blocks that the bounds are about, as the scheduler counts them.
    pub cycles: u64,
    /// Most registers held by file, and where: (file's name, registers held, registers there are, block, slot).
    pub pressure: Vec<Pressure>,
}

/// Where most registers of a file are held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pressure {
    /// The file's name.
    pub file: String,
    /// Registers held there.
    pub most_live: u32,
    /// Registers that values may take; `None` without limit.
    pub available: Option<u32>,
    /// Block.
    pub block: BlockId,
    /// Index in the block's schedule.
    pub slot: u32,
}

/// Why a program could not be brought into registers.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DriverError {
    /// Copies cannot be made.
    #[error(transparent)]
    Interleave(#[from] InterleaveError),
    /// More arguments than the calling convention passes in registers.
    #[error(
        "`{function}` takes {wanted} argument registers, and the calling convention of `{target}` has {available}; interleave fewer copies"
    )]
    Arguments {
        /// The function.
        function: String,
        /// The target.
        target: String,
        /// Wanted.
        wanted: u32,
        /// Available.
        available: u32,
    },
    /// The machine lacks a row that is needed.
    #[error("target `{target}` has no row to {purpose} for register file `{file}`, and `{function}` needs one")]
    NoSuchRow {
        /// The function.
        function: String,
        /// The target.
        target: String,
        /// The file's name.
        file: String,
        /// What was looked for.
        purpose: &'static str,
    },
    /// Some instruction needs more registers at once than there are, or the rounds ran out.
    #[error(
        "`{function}` does not fit register file `{file}` of `{target}`: {live} registers wanted at once, {available} there are, after {rounds} rounds"
    )]
    Registers {
        /// The function.
        function: String,
        /// The target.
        target: String,
        /// The file's name.
        file: String,
        /// Wanted.
        live: u32,
        /// There are.
        available: u32,
        /// Rounds.
        rounds: u32,
    },
}

/// Schedules and allocates several copies of a lowered program in one function, in the arrangement that comes out faster.
///
/// # Errors
/// Copies cannot share the program's loops, or do not fit the machine's registers.
pub fn build_copies(program: &Program, machine: &Machine, copies: u32, options: DriverOptions) -> Result<Built, DriverError> {
    if copies == 1 {
        return build(program.clone(), machine, options);
    }
    let quick = DriverOptions { effort: Effort::List, ..options };
    let mut best: Option<(u64, Program)> = None;
    let mut refused = None;
    for arrangement in [Arrangement::AfterEachOther, Arrangement::InTurns] {
        let merged = interleave(program, machine, copies, arrangement)?;
        match build(merged.clone(), machine, quick) {
            Ok(built) if best.as_ref().is_none_or(|(cycles, _)| built.report.cycles < *cycles) => {
                best = Some((built.report.cycles, merged))
            }
            Ok(_) => {}
            Err(error) => refused = Some(error),
        }
    }
    match (best, refused) {
        (Some((_, merged)), _) => build(merged, machine, options),
        (None, Some(error)) => Err(error),
        (None, None) => build(interleave(program, machine, copies, Arrangement::AfterEachOther)?, machine, options),
    }
}

/// Schedules and allocates a lowered program.
///
/// # Errors
/// It cannot be brought into the machine's registers.
pub fn build(program: Program, machine: &Machine, options: DriverOptions) -> Result<Built, DriverError> {
    let function = program.name.clone();
    let target = machine.name.clone();
    let no_such_row = |missing: NoSuchRow| DriverError::NoSuchRow {
        function: function.clone(),
        target: target.clone(),
        file: machine[missing.file].name.clone(),
        purpose: missing.purpose,
    };
    let mut rewriter = Rewriter::new(program, machine);
    let mut round = 0;
    loop {
        round += 1;
        let schedule = schedule_program(&rewriter.program, machine, options, options.effort.min(Effort::List));
        let unspillable = rewriter.unspillable(machine);
        let allocation_options = AllocationOptions { inline_assembly: options.inline_assembly, unspillable: &unspillable };
        let failure = match allocate(&rewriter.program, machine, &schedule, allocation_options) {
            Ok(allocation) => {
                let (schedule, allocation) = improve(&rewriter.program, machine, options, allocation_options, schedule, allocation);
                return Ok(finish(rewriter, machine, options, schedule, allocation, round));
            }
            Err(failure) => failure,
        };
        match failure {
            AllocationFailure::Copy { conflicts } if round < options.rounds => {
                rewriter.separate(machine, &conflicts).map_err(no_such_row)?
            }
            AllocationFailure::Spill { evictions, .. } if round < options.rounds && !evictions.is_empty() => {
                rewriter.reorder(&schedule);
                rewriter.evict(machine, &evictions).map_err(no_such_row)?;
            }
            AllocationFailure::Spill { file, live, available, .. } => {
                let file = machine[file].name.clone();
                return Err(DriverError::Registers { function, target, file, live, available, rounds: round });
            }
            AllocationFailure::Copy { .. } => {
                return Err(DriverError::Registers { function, target, file: String::new(), live: 0, available: 0, rounds: round });
            }
            AllocationFailure::Arguments { wanted, available } => {
                return Err(DriverError::Arguments { function, target, wanted, available });
            }
        }
    }
}

fn schedule_program(program: &Program, machine: &Machine, options: DriverOptions, effort: Effort) -> Schedule {
    let liveness = liveness(program, machine);
    // Without a model the list scheduler's count decides.
    let model = if machine.parameters.is_empty() { None } else { TimingModel::from_machine(machine).ok() };
    let blocks = 0..program.blocks.len() as u32;
    let schedule = |block| schedule_block(program, machine, model.as_ref(), &liveness, BlockId(block), options.inline_assembly, effort);
    let blocks = blocks.map(schedule).collect();
    let bounds = bounds(program, machine, hottest_blocks(program), options.inline_assembly);
    Schedule { blocks, bounds }
}

/// Spends the effort asked for on a program that fits; keeps what there is where the better order does not fit after all.
fn improve(
    program: &Program,
    machine: &Machine,
    options: DriverOptions,
    allocation_options: AllocationOptions<'_>,
    schedule: Schedule,
    allocation: Allocation,
) -> (Schedule, Allocation) {
    if !options.effort.is_search() {
        return (schedule, allocation);
    }
    let searched = schedule_program(program, machine, options, options.effort);
    match allocate(program, machine, &searched, allocation_options) {
        Ok(better) => (searched, better),
        Err(_) => (schedule, allocation),
    }
}

fn finish(rewriter: Rewriter, machine: &Machine, options: DriverOptions, schedule: Schedule, allocation: Allocation, rounds: u32) -> Built {
    let hottest = hottest_blocks(&rewriter.program);
    let report = BuildReport {
        spills: rewriter.spills,
        rematerialized: rewriter.rematerialized,
        copies: rewriter.copies,
        rounds,
        cycles: schedule.blocks[hottest].iter().map(|block| u64::from(block.cycles)).sum(),
        pressure: pressure(&rewriter.program, machine, options, &schedule),
    };
    Built { program: rewriter.program, schedule, allocation, report }
}

/// Where most registers are held, by file.
fn pressure(program: &Program, machine: &Machine, options: DriverOptions, schedule: &Schedule) -> Vec<Pressure> {
    let liveness = liveness(program, machine);
    let mut found: Vec<Pressure> = Vec::new();
    for (index, file) in machine.register_files.iter().enumerate().filter(|(_, file)| !file.is_singleton()) {
        let id = crate::machine::FileId(index as u16);
        let available =
            crate::scheduling::resources::allocatable(machine, id, options.inline_assembly).map(|registers| registers.len() as u32);
        found.push(Pressure { file: file.name.clone(), most_live: 0, available, block: BlockId(0), slot: 0 });
    }
    for (block, scheduled) in schedule.blocks.iter().enumerate() {
        let block = BlockId(block as u32);
        let problem = BlockProblem::new(program, machine, &liveness, block, options.inline_assembly);
        let mut registers = crate::scheduling::problem::LiveRegisters::new(&problem);
        for (slot, scheduled) in scheduled.slots.iter().enumerate() {
            registers.apply(&problem, scheduled.instruction as usize);
            let files = machine.register_files.iter().enumerate().filter(|(_, file)| !file.is_singleton());
            for (place, (file, _)) in found.iter_mut().zip(files) {
                if registers.most[file] > place.most_live {
                    *place = Pressure { most_live: registers.most[file], block, slot: slot as u32, ..place.clone() };
                }
            }
        }
    }
    found.retain(|place| place.most_live > 0);
    found
}
