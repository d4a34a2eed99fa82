//! Scheduling: from a Program to a Schedule, block by block.
pub mod list;
pub mod problem;
pub mod resources;

use crate::schedule::BlockSchedule;
use list::{ListOptions, ListSchedule, list_schedule};
use problem::BlockProblem;

/// Blocks up to this size are scheduled in every way of the portfolio; larger ones in as many as keeps the cost linear.
const FULL_PORTFOLIO_INSTRUCTIONS: usize = 4_000;
/// Portfolio members are one in this many for blocks beyond [`FULL_PORTFOLIO_INSTRUCTIONS`].
const THINNING: usize = 9;
/// Windows, from the freedom to fill every cycle to the base order itself.
const WINDOWS: [usize; 10] = [300, 200, 130, 80, 60, 40, 24, 12, 4, 1];
/// See [`ListOptions::height_weight`].
const HEIGHT_WEIGHTS: [u32; 4] = [2, 0, 4, 8];
/// See [`ListOptions::reserve`].
const RESERVES: [u32; 2] = [0, 2];

/// The ways in which a block of this many instructions is scheduled.
fn portfolio(instructions: usize) -> Vec<ListOptions> {
    let mut all = Vec::new();
    for window in WINDOWS {
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
    /// List scheduling, the best of a portfolio.
    #[default]
    List,
}

/// Schedules a block in several ways, and returns the best: one that fits the registers before one that does not, then by cycles.
///
/// `base` is an order that keeps the dependences.
pub fn schedule_block(problem: &BlockProblem, base: &[u32], _effort: Effort) -> BlockSchedule {
    let heights = problem.heights();
    let schedules = portfolio(base.len()).into_iter().map(|options| list_schedule(problem, base, &heights, options));
    // The first of equal ones: a wider window needs no luck.
    let best = schedules.reduce(|best, other| if rank(&other) < rank(&best) { other } else { best });
    best.map_or(BlockSchedule { slots: Vec::new(), cycles: 0 }, |best| best.block)
}

fn rank(schedule: &ListSchedule) -> (u32, u32) {
    (schedule.overflow, schedule.block.cycles)
}
