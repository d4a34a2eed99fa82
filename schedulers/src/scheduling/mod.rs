//! Scheduling: from a Program to a Schedule, block by block.
pub mod list;
pub mod order_timing;
pub mod problem;
pub mod resources;
pub mod search;

use crate::liveness::Liveness;
use crate::machine::Machine;
use crate::program::{BlockId, Program};
use crate::schedule::{BlockSchedule, Slot};
use crate::timing::TimingModel;
use list::{ListOptions, ListSchedule, list_schedule};
use order_timing::OrderTiming;
use problem::BlockProblem;
use rayon::prelude::*;
use search::{SearchOptions, search};

/// Blocks up to this size are scheduled in every way of the portfolio; larger ones in as many as keeps the cost linear.
const FULL_PORTFOLIO_INSTRUCTIONS: usize = 4_000;
/// Portfolio members are one in this many for blocks beyond [`FULL_PORTFOLIO_INSTRUCTIONS`].
const THINNING: usize = 7;
/// Windows, from the freedom to fill every cycle to the base order itself.
const WINDOWS: [usize; 8] = [300, 160, 80, 50, 30, 12, 4, 1];
/// Windows of [`Effort::Draft`].
const DRAFT_WINDOWS: [usize; 3] = [80, 12, 1];
/// See [`ListOptions::height_weight`].
const HEIGHT_WEIGHTS: [u32; 3] = [2, 0, 6];
/// See [`ListOptions::reserve`].
const RESERVES: [u32; 2] = [0, 2];

/// Blocks of fewer instructions are not worth a second thread.
const PARALLEL_INSTRUCTIONS: usize = 128;

/// The ways in which a block of this many instructions is scheduled.
fn portfolio(instructions: usize, effort: Effort) -> Vec<ListOptions> {
    if effort == Effort::Draft {
        let draft = |window| ListOptions { window, reserve: 0, height_weight: HEIGHT_WEIGHTS[0] };
        return DRAFT_WINDOWS.map(draft).to_vec();
    }
    let mut all = Vec::new();
    // Windows as wide as the block are all the same.
    let wide = WINDOWS.iter().filter(|window| **window >= instructions).count().saturating_sub(1);
    for window in WINDOWS.into_iter().skip(wide) {
        for height_weight in HEIGHT_WEIGHTS {
            for reserve in RESERVES {
                if window > 1 || (height_weight, reserve) == (HEIGHT_WEIGHTS[0], RESERVES[0]) {
                    all.push(ListOptions { window, reserve, height_weight });
                }
            }
        }
    }
    if instructions > FULL_PORTFOLIO_INSTRUCTIONS {
        // The base order stays in: it is the one that is known to fit.
        let last = all.len() - 1;
        all =
            all.into_iter().enumerate().filter(|(index, _)| index % THINNING == 0 || *index == last).map(|(_, options)| options).collect();
    }
    all
}

/// How hard to look for a good order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effort {
    /// List scheduling in few ways, for code whose time does not matter much.
    Draft,
    /// List scheduling, the best of a portfolio.
    #[default]
    List,
    /// A short search from there.
    ShortSearch,
    /// A long search from several starts.
    Search,
}

impl Effort {
    /// The effort of this number on the command line.
    pub fn from_level(level: u8) -> Self {
        match level {
            0 => Effort::List,
            1 => Effort::ShortSearch,
            _ => Effort::Search,
        }
    }

    /// Whether there is a search after the list schedules.
    pub fn is_search(self) -> bool {
        !self.searches().is_empty()
    }

    /// Seeds and moves of the searches.
    fn searches(self) -> &'static [(u64, u64)] {
        match self {
            Effort::Draft | Effort::List => &[],
            Effort::ShortSearch => &[(1, 40_000)],
            Effort::Search => &[(1, 500_000), (2, 500_000)],
        }
    }
}

/// Moves times instructions that a search may spend: larger blocks get fewer moves.
const SEARCH_WORK: u64 = 800_000_000;
/// See [`SearchOptions::first_coldness`].
const FIRST_COLDNESS: u32 = 46;
/// See [`SearchOptions::last_coldness`].
const LAST_COLDNESS: u32 = 460;
/// See [`SearchOptions::reach`].
const REACH: u32 = 40;

/// Schedules a block in several ways, and returns the best: one that fits the registers before one that does not, then by cycles.
///
/// Program order is where it starts from. Without a timing model the list scheduler's own count decides, and there is no search.
pub fn schedule_block(
    program: &Program,
    machine: &Machine,
    model: Option<&TimingModel>,
    liveness: &Liveness,
    block: BlockId,
    inline_assembly: bool,
    effort: Effort,
) -> BlockSchedule {
    let problem = BlockProblem::new(program, machine, liveness, block, inline_assembly);
    let base: Vec<u32> = (0..problem.nodes.len() as u32).collect();
    let heights = problem.heights();
    let timing = model.filter(|_| problem.resources.is_decoupled()).and_then(|model| OrderTiming::new(program, machine, model, block));
    let options = portfolio(base.len(), effort);
    let in_ways = |options: &ListOptions| list_schedule(&problem, &base, &heights, *options);
    let schedules: Vec<ListSchedule> =
        if base.len() < PARALLEL_INSTRUCTIONS { options.iter().map(in_ways).collect() } else { options.par_iter().map(in_ways).collect() };
    // What overflows more than another is out, whatever its time.
    let least = schedules.iter().map(|schedule| schedule.overflow).min().unwrap_or(0);
    let schedules: Vec<ListSchedule> = schedules.into_iter().filter(|schedule| schedule.overflow == least).collect();
    let timed = |timing: &mut Option<OrderTiming>, schedule: &ListSchedule| {
        timing.as_mut().map_or(schedule.block.cycles, |timing| timing.commit(&order_of(schedule), 0))
    };
    let cycles: Vec<u32> = if base.len() < PARALLEL_INSTRUCTIONS {
        let mut timing = timing.clone();
        schedules.iter().map(|schedule| timed(&mut timing, schedule)).collect()
    } else {
        schedules.par_iter().map_init(|| timing.clone(), timed).collect()
    };
    let mut found: Vec<((u32, u32), ListSchedule)> = cycles.into_iter().map(|cycles| (least, cycles)).zip(schedules).collect();
    // Stable: of equal ones the wider window stays first.
    found.sort_by_key(|(rank, _)| *rank);
    let Some(((overflow, cycles), best)) = found.first() else { return BlockSchedule { slots: Vec::new(), cycles: 0 } };
    let Some(timing) = timing else { return best.block.clone() };
    let steps_allowed = SEARCH_WORK / (base.len() as u64).max(1);
    // What does not fit is going to change; there is nothing to search yet.
    let searches = if *overflow == 0 { effort.searches() } else { &[] };
    let results = searches.par_iter().enumerate().map(|(index, &(seed, steps))| {
        // Different starts, as far as there are any that fit.
        let start = found.get(index).filter(|((overflow, _), _)| *overflow == 0).map_or(best, |(_, schedule)| schedule);
        let steps = steps.min(steps_allowed);
        let options = SearchOptions { steps, seed, first_coldness: FIRST_COLDNESS, last_coldness: LAST_COLDNESS, reach: REACH };
        search(&problem, &mut timing.clone(), &order_of(start), options)
    });
    let searched = results.collect::<Vec<_>>().into_iter().min_by_key(|result| result.cycles);
    let (order, cycles) = match searched {
        Some(result) if result.cycles < *cycles => (result.order, result.cycles),
        _ => (order_of(best), *cycles),
    };
    timed_schedule(&problem, &timing, &order, cycles).unwrap_or_else(|| best.block.clone())
}

fn order_of(schedule: &ListSchedule) -> Vec<u32> {
    schedule.block.slots.iter().map(|slot| slot.instruction).collect()
}

/// The order with the cycles and units that the simulation gives it.
fn timed_schedule(problem: &BlockProblem, timing: &OrderTiming, order: &[u32], cycles: u32) -> Option<BlockSchedule> {
    let events = timing.events(order)?;
    let slots = order.iter().zip(events).map(|(&instruction, event)| {
        // Branches are not in the simulated line; their unit has no queue and no choice.
        let unit = event.unit.or_else(|| problem.nodes[instruction as usize].units.first().copied());
        Slot { instruction, cycle: event.dispatch, unit }
    });
    Some(BlockSchedule { slots: slots.collect(), cycles })
}
