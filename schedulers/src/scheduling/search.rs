//! Local search over the orders of a block, guided by the timing simulation.
//!
//! A step moves one instruction to another place between its last predecessor and its first successor; the move is given up when it would hold
//! more registers than there are. Annealing decides about the rest. Random numbers come from a generator with a fixed seed and all arithmetic
//! is on integers, so the same block gives the same order everywhere. The budget is a number of steps.

use crate::scheduling::order_timing::OrderTiming;
use crate::scheduling::problem::BlockProblem;
use smallvec::SmallVec;

/// How long to search and from how hot to how cold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SearchOptions {
    /// Moves tried.
    pub steps: u64,
    /// Seed of the random numbers.
    pub seed: u64,
    /// Sixteenths of a halving of the acceptance for each cycle lost, at the start.
    pub first_coldness: u32,
    /// The same at the end.
    pub last_coldness: u32,
    /// Farthest that an instruction is moved, in places.
    pub reach: u32,
}

/// The best order found and its cycles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchResult {
    /// Order.
    pub order: Vec<u32>,
    /// Its cycles in the timing simulation.
    pub cycles: u32,
    /// Orders that were timed.
    pub timed: u64,
}

/// Searches from an order that keeps the dependences and fits the registers.
pub fn search(problem: &BlockProblem, timing: &mut OrderTiming, order: &[u32], options: SearchOptions) -> SearchResult {
    let mut walk = Walk::new(problem, order);
    let mut cycles = timing.commit(&walk.order, 0);
    let mut best = SearchResult { order: order.to_vec(), cycles, timed: 1 };
    let mut random = SplitMix64 { state: options.seed };
    if walk.order.len() < 2 {
        return best;
    }
    for step in 0..options.steps {
        let warmth = u64::from(options.last_coldness.saturating_sub(options.first_coldness)) * step / options.steps.max(1);
        let coldness = options.first_coldness + warmth as u32;
        let from = random.below(walk.order.len() as u32) as usize;
        let Some(to) = walk.target(from, options.reach, &mut random) else { continue };
        walk.shift(from, to);
        let (low, high) = (from.min(to), from.max(to));
        let allowed = cycles + random.tolerated_cycles(coldness);
        let accepted = if walk.hold_registers(low, high) { timing.probe(&walk.order, low, allowed) } else { None };
        best.timed += 1;
        match accepted {
            Some(new) => {
                cycles = new;
                timing.commit(&walk.order, low);
                if cycles < best.cycles {
                    best.cycles = cycles;
                    best.order.copy_from_slice(&walk.order);
                }
            }
            None => {
                walk.shift(to, from);
                walk.hold_registers(low, high);
            }
        }
    }
    best
}

/// A generator of random numbers that is the same everywhere (Steele, Lea, Flood: "Fast splittable pseudorandom number generators").
struct SplitMix64 {
    state: u64,
}

impl SplitMix64 {
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// A number below `limit`, which is not 0.
    fn below(&mut self, limit: u32) -> u32 {
        (((self.next() >> 32) * u64::from(limit)) >> 32) as u32
    }

    /// The most cycles that may be lost: at least k with probability 2^(−k·coldness/16).
    fn tolerated_cycles(&mut self, coldness: u32) -> u32 {
        // The number of leading zeros of a random number is at least z with probability 2^−z; sixteenths by the next bits.
        let drawn = self.next();
        let zeros = drawn.leading_zeros().min(40);
        let fraction = (drawn << zeros << 1) >> 60;
        // Linear inside a halving: close enough to the exponential, and the same on every machine.
        (zeros * 16 + 15 - fraction as u32) / coldness.max(1)
    }
}

/// An order under change, with the registers that it holds.
struct Walk<'a> {
    problem: &'a BlockProblem,
    order: Vec<u32>,
    position: Vec<u32>,
    /// Instructions that read each value.
    readers: Vec<SmallVec<[u32; 4]>>,
    /// The last of them in the order.
    last_reader: Vec<u32>,
    /// Files whose registers are limited: (number, limit).
    files: Vec<(usize, i64)>,
    /// Which of `files` each value belongs to.
    file_of_value: Vec<Option<u8>>,
    /// Registers held after each position, by limited file: `position * files + file`.
    held: Vec<i64>,
    held_at_start: Vec<i64>,
}

const NO_READER: u32 = u32::MAX;

impl<'a> Walk<'a> {
    fn new(problem: &'a BlockProblem, order: &[u32]) -> Self {
        let mut position = vec![0; order.len()];
        for (index, &node) in order.iter().enumerate() {
            position[node as usize] = index as u32;
        }
        let mut readers: Vec<SmallVec<[u32; 4]>> = vec![SmallVec::new(); problem.values.len()];
        for (node, described) in problem.nodes.iter().enumerate() {
            for &read in &described.reads {
                readers[read as usize].push(node as u32);
            }
        }
        // A file that cannot fill up needs no counting: nothing in the block may hold more values than there are registers.
        let limited = problem.limits.iter().enumerate().filter_map(|(file, limit)| Some((file, i64::from((*limit)?))));
        let values_of = |file: usize| {
            problem.values.iter().filter(|value| value.file.0 as usize == file).map(|value| i64::from(value.registers)).sum::<i64>()
        };
        let files: Vec<(usize, i64)> =
            limited.filter(|&(file, limit)| i64::from(problem.live_at_start[file]) + values_of(file) > limit).collect();
        let file_index = |file: usize| files.iter().position(|(limited, _)| *limited == file).map(|index| index as u8);
        let mut walk = Self {
            problem,
            order: order.to_vec(),
            position,
            last_reader: vec![NO_READER; problem.values.len()],
            readers,
            file_of_value: problem.values.iter().map(|value| file_index(value.file.0 as usize)).collect(),
            held: vec![0; order.len() * files.len()],
            held_at_start: files.iter().map(|(file, _)| i64::from(problem.live_at_start[*file])).collect(),
            files,
        };
        for value in 0..problem.values.len() {
            walk.last_reader[value] = walk.find_last_reader(value);
        }
        if !order.is_empty() {
            walk.hold_registers(0, order.len() - 1);
        }
        walk
    }

    fn find_last_reader(&self, value: usize) -> u32 {
        self.readers[value].iter().copied().max_by_key(|reader| self.position[*reader as usize]).unwrap_or(NO_READER)
    }

    /// A place to which the instruction at `from` may go.
    fn target(&self, from: usize, reach: u32, random: &mut SplitMix64) -> Option<usize> {
        let node = self.order[from] as usize;
        let graph = &self.problem.graph;
        let later = random.next() & 1 == 1;
        // Short ways are tried more often: the square of an even number between 0 and 1.
        let (distance, stretch) = (u64::from(random.below(reach.max(1))), u64::from(random.below(256)));
        let span = 1 + ((distance * stretch * stretch) >> 16) as usize;
        let to = if later {
            let limit = graph.successors(node).iter().map(|edge| self.position[edge.to as usize] as usize - 1).min();
            (from + span).min(limit.unwrap_or(self.order.len() - 1))
        } else {
            let limit = graph.predecessors(node).map(|edge| self.position[edge.from as usize] as usize + 1).max();
            from.saturating_sub(span).max(limit.unwrap_or(0))
        };
        (to != from).then_some(to)
    }

    /// Moves the instruction at `from` to `to`, and what is between by one place.
    fn shift(&mut self, from: usize, to: usize) {
        let node = self.order[from];
        let direction = if from < to { 1 } else { -1_isize };
        let mut place = from;
        while place != to {
            let next = place.wrapping_add_signed(direction);
            self.order[place] = self.order[next];
            self.position[self.order[place] as usize] = place as u32;
            place = next;
        }
        self.order[to] = node;
        self.position[node as usize] = to as u32;
        // Only the moved instruction changes its place among the readers of a value.
        for &value in &self.problem.nodes[node as usize].reads {
            self.last_reader[value as usize] = self.find_last_reader(value as usize);
        }
    }

    /// Counts the registers held at the positions `low ..= high` again; whether they are enough.
    fn hold_registers(&mut self, low: usize, high: usize) -> bool {
        let files = self.files.len();
        if files == 0 {
            return true;
        }
        let mut held: SmallVec<[i64; 4]> = match low {
            0 => self.held_at_start.iter().copied().collect(),
            _ => self.held[(low - 1) * files..low * files].iter().copied().collect(),
        };
        let mut enough = true;
        for place in low..=high {
            let node = self.order[place];
            let described = &self.problem.nodes[node as usize];
            let mut freed: SmallVec<[i64; 4]> = SmallVec::from_elem(0, files);
            for &read in &described.reads {
                let value = &self.problem.values[read as usize];
                if let Some(file) = self.file_of_value[read as usize]
                    && self.last_reader[read as usize] == node
                    && !value.live_out
                {
                    freed[file as usize] += i64::from(value.registers);
                }
            }
            let mut passing: SmallVec<[i64; 4]> = SmallVec::from_elem(0, files);
            for &write in &described.writes {
                let value = &self.problem.values[write as usize];
                let Some(file) = self.file_of_value[write as usize] else { continue };
                held[file as usize] += i64::from(value.registers);
                if value.readers == 0 && !value.live_out {
                    passing[file as usize] += i64::from(value.registers);
                }
            }
            for file in 0..files {
                let peak = held[file] - if described.early_clobber { 0 } else { freed[file] };
                enough &= peak <= self.files[file].1;
                held[file] -= freed[file] + passing[file];
                self.held[place * files + file] = held[file];
            }
        }
        enough
    }
}
