//! Cycle-driven list scheduling, aware of registers and of what an instruction takes from dispatch to retirement.
//!
//! Candidates come from a window over a base order. A window of one gives the base order itself, with its registers; a wide one gives the
//! freedom to fill every cycle. Between them lies a portfolio from which [`crate::scheduling`] takes the best that fits.

use crate::machine::UnitId;
use crate::schedule::{BlockSchedule, Slot};
use crate::scheduling::problem::{BlockProblem, LiveRegisters};
use crate::scheduling::resources::DISPATCH_TO_START_CYCLES;
use std::collections::BTreeMap;

/// One way to schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListOptions {
    /// How far past the first instruction not yet scheduled candidates are looked for, in the base order.
    pub window: usize,
    /// Registers of each file kept free for as long as anything else can go.
    pub reserve: u32,
    /// Quarters of a place in the base order that a cycle on the way to the end of the block is worth.
    pub height_weight: u32,
}

/// Cycles that an instruction may be dispatched before it can start, on a machine with issue queues: more would block the queue for others.
const PATIENCE_CYCLES: u32 = 2;
/// Places in the base order, in quarters, that a cycle of waiting in a queue is worth.
const STALL_WEIGHT: i64 = 4 * 80;

/// A schedule of a block and the registers that it holds.
#[derive(Clone, Debug)]
pub struct ListSchedule {
    /// Order, cycles, units.
    pub block: BlockSchedule,
    /// Most registers held, by file.
    pub most_live: Vec<u32>,
    /// Registers beyond the limits at the worst point, summed over the files.
    pub overflow: u32,
}

/// Schedules a block; `base` is an order that keeps the dependences, `heights` are [`BlockProblem::heights`].
pub fn list_schedule(problem: &BlockProblem, base: &[u32], heights: &[u32], options: ListOptions) -> ListSchedule {
    let mut state = State::new(problem, base, heights, options);
    while state.slots.len() < base.len() {
        match state.choose() {
            Choice::Now(position, unit) => state.take(position, unit),
            Choice::Later => state.next_cycle(),
        }
    }
    let exposed = problem.resources.exposed;
    let ends = state.slots.iter().map(|slot| {
        let node = &problem.nodes[slot.instruction as usize];
        let landing = if exposed { node.latency.max(1) } else { 1 };
        slot.cycle + if node.control { landing.max(1 + problem.resources.branch_delay) } else { landing }
    });
    let cycles = ends.max().unwrap_or(0);
    let overflow = state.registers.overflow(problem);
    ListSchedule { block: BlockSchedule { slots: state.slots, cycles }, most_live: state.registers.most, overflow }
}

/// How an instruction's results fit into the registers.
enum Fit {
    /// They do.
    Within,
    /// They take one of the reserve.
    IntoReserve,
    /// There is none.
    Beyond,
}

enum Choice {
    /// A position in the list of candidates, and the unit.
    Now(usize, Option<UnitId>),
    Later,
}

struct State<'a> {
    problem: &'a BlockProblem,
    base: &'a [u32],
    heights: &'a [u32],
    options: ListOptions,
    /// Place of each instruction in the base order.
    place: Vec<u32>,
    /// First place in the base order whose instruction is not scheduled.
    head: usize,
    /// First place not yet in the window.
    window_end: usize,
    unscheduled_predecessors: Vec<u32>,
    /// Earliest start of execution that the operands allow.
    earliest: Vec<u32>,
    /// Cycles from dispatch to start where nothing waits; 0 without issue queues.
    front: u32,
    scheduled: Vec<bool>,
    candidates: Vec<u32>,
    registers: LiveRegisters,
    cycle: u32,
    taken: CycleUse,
    /// Cycle from which each copy of each unit is free.
    unit_free: Vec<Vec<u32>>,
    retirement: Vec<u32>,
    /// Retirement of the instructions that hold a rename register, by file, oldest first.
    renamed: Vec<Vec<u32>>,
    /// Results landing by file and cycle, where ports are limited.
    landings: Vec<BTreeMap<u32, u32>>,
    slots: Vec<Slot>,
}

/// What the current cycle has given away.
#[derive(Default)]
struct CycleUse {
    instructions: u32,
    of_queue: Vec<u32>,
    of_unit: Vec<u32>,
    memory: u32,
    /// Operands that have crossed to each side.
    crossing: BTreeMap<u8, u32>,
    /// Reads of each value, by its index.
    reads: BTreeMap<u32, u32>,
}

impl<'a> State<'a> {
    fn new(problem: &'a BlockProblem, base: &'a [u32], heights: &'a [u32], options: ListOptions) -> Self {
        let nodes = problem.nodes.len();
        let mut place = vec![0; nodes];
        for (index, &node) in base.iter().enumerate() {
            place[node as usize] = index as u32;
        }
        let unit_copies = |unit: usize| problem.resources.unit_copies[unit] as usize;
        let mut state = Self {
            problem,
            base,
            heights,
            options,
            place,
            head: 0,
            window_end: 0,
            unscheduled_predecessors: (0..nodes).map(|node| problem.graph.predecessors(node).len() as u32).collect(),
            earliest: vec![0; nodes],
            front: if problem.resources.is_decoupled() { DISPATCH_TO_START_CYCLES } else { 0 },
            scheduled: vec![false; nodes],
            candidates: Vec::new(),
            registers: LiveRegisters::new(problem),
            cycle: 0,
            taken: CycleUse::default(),
            unit_free: (0..problem.resources.unit_copies.len()).map(|unit| vec![0; unit_copies(unit)]).collect(),
            retirement: Vec::with_capacity(nodes),
            renamed: vec![Vec::new(); problem.limits.len()],
            landings: vec![Default::default(); problem.limits.len()],
            slots: Vec::with_capacity(nodes),
        };
        state.reset_cycle();
        state.widen();
        state
    }

    fn reset_cycle(&mut self) {
        let resources = &self.problem.resources;
        self.taken.instructions = 0;
        self.taken.memory = 0;
        self.taken.crossing.clear();
        self.taken.reads.clear();
        self.taken.of_queue.clear();
        self.taken.of_queue.resize(resources.queue_dispatch.len(), 0);
        self.taken.of_unit.clear();
        self.taken.of_unit.resize(resources.unit_dispatch.len(), 0);
    }

    fn next_cycle(&mut self) {
        self.cycle += 1;
        self.reset_cycle();
    }

    /// Moves the window to the first unscheduled instruction and takes in what has become a candidate.
    fn widen(&mut self) {
        while self.head < self.base.len() && self.scheduled[self.base[self.head] as usize] {
            self.head += 1;
        }
        let end = self.base.len().min(self.head.saturating_add(self.options.window.max(1)));
        while self.window_end < end {
            let node = self.base[self.window_end];
            if self.unscheduled_predecessors[node as usize] == 0 {
                self.candidates.push(node);
            }
            self.window_end += 1;
        }
    }

    fn choose(&self) -> Choice {
        let mut best: Option<(i64, usize, Option<UnitId>)> = None;
        // Whether waiting can help: something that keeps within the registers only lacks time or a unit.
        let mut waiting_helps = false;
        // First in the base order, among what fits if the reserve is used up, and among all.
        let mut into_reserve: Option<usize> = None;
        let mut first: Option<usize> = None;
        let earlier = |a: Option<usize>, b: usize| match a {
            Some(a) if self.place[self.candidates[a] as usize] <= self.place[self.candidates[b] as usize] => Some(a),
            _ => Some(b),
        };
        for (position, &node) in self.candidates.iter().enumerate() {
            let place = 4 * i64::from(self.place[node as usize]);
            let least_key = place - i64::from(self.heights[node as usize]) * i64::from(self.options.height_weight);
            // What could not win even without a stall needs no look at the units.
            if best.is_some_and(|(other, at, _)| (other, self.candidates[at]) <= (least_key, node)) {
                continue;
            }
            let now = self.unit_now(node as usize);
            let key = now.map(|(_, stall)| i64::from(stall) * STALL_WEIGHT + least_key);
            // Registers are counted last, since most candidates are out before.
            let beaten = match (key, best) {
                (Some(key), Some((other, at, _))) => (other, self.candidates[at]) <= (key, node),
                (None, _) => waiting_helps || best.is_some(),
                (Some(_), None) => false,
            };
            if beaten {
                continue;
            }
            match self.fit(node as usize) {
                Fit::Within => {}
                Fit::IntoReserve => {
                    into_reserve = earlier(into_reserve, position);
                    continue;
                }
                Fit::Beyond => {
                    first = earlier(first, position);
                    continue;
                }
            }
            match (now, key) {
                (Some((unit, _)), Some(key)) => best = Some((key, position, unit)),
                _ => waiting_helps = true,
            }
        }
        match best {
            Some((_, position, unit)) => Choice::Now(position, unit),
            None if waiting_helps => Choice::Later,
            // Everything takes a register that should be kept or is not there; the base order leads out at the least cost.
            None => {
                match into_reserve.or(first).and_then(|position| Some((position, self.unit_now(self.candidates[position] as usize)?))) {
                    Some((position, (unit, _))) => Choice::Now(position, unit),
                    None => Choice::Later,
                }
            }
        }
    }

    fn fit(&self, node: usize) -> Fit {
        let mut fit = Fit::Within;
        for change in self.registers.change(self.problem, node) {
            let Some(limit) = self.problem.limits[change.file.0 as usize] else { continue };
            let rise = change.peak.max(change.after);
            if rise <= 0 {
                continue;
            }
            let held = i64::from(self.registers.live[change.file.0 as usize]) + rise;
            if held > i64::from(limit) {
                return Fit::Beyond;
            }
            if held > i64::from(limit.saturating_sub(self.options.reserve)) {
                fit = Fit::IntoReserve;
            }
        }
        fit
    }

    /// The unit with which the instruction can go in this cycle (`None` where it needs none), and how long it would wait for its start.
    fn unit_now(&self, node: usize) -> Option<(Option<UnitId>, u32)> {
        let resources = &self.problem.resources;
        let described = &self.problem.nodes[node];
        let start = self.cycle + self.front;
        let patience = if self.front > 0 { PATIENCE_CYCLES } else { 0 };
        let wait = self.earliest[node].saturating_sub(start);
        if wait > patience
            || resources.width.is_some_and(|width| self.taken.instructions >= width)
            || described.memory && resources.memory_ports.is_some_and(|ports| self.taken.memory >= ports)
            || !self.has_completion_entry(described.writes.iter().map(|&write| self.problem.values[write as usize].file.0 as usize))
            || !self.lands(node)
            || resources
                .read_ports
                .is_some_and(|ports| described.reads.iter().any(|read| self.taken.reads.get(read).is_some_and(|taken| *taken >= ports)))
        {
            return None;
        }
        if described.units.is_empty() {
            return Some((None, wait));
        }
        let free = described.units.iter().filter_map(|unit| {
            let index = unit.0 as usize;
            let queue = resources.queue_of_unit[index];
            let may = self.crosses(node, index).is_none_or(|(side, operands)| {
                let taken = self.taken.crossing.get(&side).copied().unwrap_or(0);
                resources.cross_paths.is_none_or(|paths| taken + operands <= paths)
            }) && resources.unit_dispatch[index].is_none_or(|limit| self.taken.of_unit[index] < limit)
                && queue.is_none_or(|queue| self.taken.of_queue[queue] < resources.queue_dispatch[queue]);
            let free = self.unit_free[index].iter().min()?;
            let wait = wait.max(free.saturating_sub(start));
            (may && wait <= patience).then_some((*unit, wait))
        });
        // Of units that are free alike, the one that others want least.
        free.min_by_key(|(unit, wait)| (*wait, self.problem.unit_demand[unit.0 as usize])).map(|(unit, wait)| (Some(unit), wait))
    }

    /// The side of the unit, and how many operands come from another one.
    fn crosses(&self, node: usize, unit: usize) -> Option<(u8, u32)> {
        let side = self.problem.resources.unit_side[unit]?;
        let operands = self.problem.nodes[node].sides_read.iter().filter(|read| **read != side).count() as u32;
        (operands > 0).then_some((side, operands))
    }

    fn has_completion_entry(&self, written_files: impl Iterator<Item = usize>) -> bool {
        let resources = &self.problem.resources;
        let free = |retirement: &[u32], entries: u32| {
            let oldest = retirement.len().checked_sub(entries as usize);
            oldest.is_none_or(|oldest| retirement[oldest] + resources.free_delay <= self.cycle)
        };
        resources.completion_entries.is_none_or(|entries| free(&self.retirement, entries)) && { written_files }
            .all(|file| resources.renames[file].is_none_or(|count| free(&self.renamed[file], count)))
    }

    fn lands(&self, node: usize) -> bool {
        let Some(ports) = self.problem.resources.result_ports else { return true };
        let described = &self.problem.nodes[node];
        described.landings.iter().all(|(file, latency)| {
            let taken = self.landings[file.0 as usize].get(&(self.cycle + latency)).copied().unwrap_or(0);
            // Several results of one instruction may share a file.
            let own = described.landings.iter().filter(|other| *other == &(*file, *latency)).count() as u32;
            taken + own <= ports
        })
    }

    fn take(&mut self, position: usize, unit: Option<UnitId>) {
        let node = self.candidates.swap_remove(position) as usize;
        let described = &self.problem.nodes[node];
        let resources = &self.problem.resources;
        let mut start = self.earliest[node].max(self.cycle + self.front);
        self.registers.apply(self.problem, node);
        self.taken.instructions += 1;
        self.taken.memory += u32::from(described.memory);
        if let Some(unit) = unit {
            let unit = unit.0 as usize;
            if let Some((side, operands)) = self.crosses(node, unit) {
                *self.taken.crossing.entry(side).or_default() += operands;
            }
            self.taken.of_unit[unit] += 1;
            if let Some(queue) = resources.queue_of_unit[unit] {
                self.taken.of_queue[queue] += 1;
            }
            if let Some(copy) = self.unit_free[unit].iter_mut().min() {
                start = start.max(*copy);
                *copy = start + described.throughput;
            }
        }
        let after_elder = self.retirement.last().copied().unwrap_or(0);
        let by_width = resources
            .retire_width
            .and_then(|width| self.retirement.len().checked_sub(width as usize))
            .map_or(0, |index| self.retirement[index] + 1);
        let retirement = (start - self.front + described.residence).max(after_elder).max(by_width);
        self.retirement.push(retirement);
        for &write in &described.writes {
            let file = self.problem.values[write as usize].file.0 as usize;
            if resources.renames[file].is_some() {
                self.renamed[file].push(retirement);
            }
        }
        if resources.result_ports.is_some() {
            for (file, latency) in &described.landings {
                *self.landings[file.0 as usize].entry(self.cycle + latency).or_default() += 1;
            }
        }
        if resources.read_ports.is_some() {
            for &read in &described.reads {
                *self.taken.reads.entry(read).or_default() += 1;
            }
        }
        self.slots.push(Slot { instruction: node as u32, cycle: self.cycle, unit });
        self.scheduled[node] = true;
        self.widen();
        for edge in self.problem.graph.successors(node) {
            let to = edge.to as usize;
            self.earliest[to] = self.earliest[to].max(start + edge.latency);
            self.unscheduled_predecessors[to] -= 1;
            if self.unscheduled_predecessors[to] == 0 && (self.place[to] as usize) < self.window_end {
                self.candidates.push(edge.to);
            }
        }
    }
}
