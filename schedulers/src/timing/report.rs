//! What a simulation reports: the cycles, and what they were spent on.

use serde::Serialize;

/// Why an instruction did not move on in a cycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StallReason {
    /// Dispatch: no instruction had arrived (fetch lines, fetch bubbles, refill after a misprediction).
    Fetch,
    /// Dispatch: a branch waited for the branch unit.
    BranchUnit,
    /// Dispatch: no completion queue entry.
    CompletionQueue,
    /// Dispatch: no rename register.
    Rename,
    /// Dispatch: no issue queue entry.
    IssueQueue,
    /// Dispatch: the queue had accepted all that it accepts in a cycle.
    QueueDispatch,
    /// Dispatch: the unit's instructions of this cycle had been dispatched.
    UnitDispatch,
    /// Issue: no reservation station.
    ReservationStation,
    /// Start: an operand was not there.
    Operand,
    /// Start: the unit was busy.
    UnitBusy,
    /// Start: a serialized instruction was not the oldest.
    Serialization,
    /// Start: too many instructions of the unit between start and retirement.
    InFlight,
    /// Start: a store had or had just had the data cache.
    CachePort,
    /// Start: a load wanted bytes of a store that could not be forwarded yet.
    Forwarding,
    /// Start: no finished store queue entry.
    FinishedStoreQueue,
    /// Retirement: finished, but only the oldest of a group may retire.
    RetireOldest,
    /// Retirement: finished, but too many renames of one file in the group.
    RetireRenames,
}

impl StallReason {
    /// All reasons, in the order of the pipeline.
    pub const ALL: [StallReason; 17] = [
        StallReason::Fetch,
        StallReason::BranchUnit,
        StallReason::CompletionQueue,
        StallReason::Rename,
        StallReason::IssueQueue,
        StallReason::QueueDispatch,
        StallReason::UnitDispatch,
        StallReason::ReservationStation,
        StallReason::Operand,
        StallReason::UnitBusy,
        StallReason::Serialization,
        StallReason::InFlight,
        StallReason::CachePort,
        StallReason::Forwarding,
        StallReason::FinishedStoreQueue,
        StallReason::RetireOldest,
        StallReason::RetireRenames,
    ];
}

/// Stalls by reason. A reason of dispatch counts dispatch slots lost, the others instructions times cycles.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct StallCounts {
    counts: [u64; StallReason::ALL.len()],
}

impl StallCounts {
    /// The count of `reason`.
    pub fn count(&self, reason: StallReason) -> u64 {
        self.counts[reason as usize]
    }

    /// Reasons and counts, in the order of the pipeline, those that occurred.
    pub fn iter(&self) -> impl Iterator<Item = (StallReason, u64)> + '_ {
        StallReason::ALL.into_iter().map(|reason| (reason, self.count(reason))).filter(|(_, count)| *count > 0)
    }

    pub(super) fn add(&mut self, reason: StallReason, count: u64) {
        self.counts[reason as usize] += count;
    }
}

/// How full a queue was, over the cycles from first dispatch to last retirement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Occupancy {
    /// The queue's or register file's name.
    pub name: String,
    /// Its entries.
    pub capacity: u32,
    /// Entries in use, summed over the cycles.
    pub entry_cycles: u64,
    /// Most entries in use at once.
    pub peak: u32,
}

impl Occupancy {
    pub(super) fn new(name: &str, capacity: u32) -> Self {
        Occupancy { name: name.to_owned(), capacity, entry_cycles: 0, peak: 0 }
    }

    pub(super) fn sample(&mut self, entries: u32) {
        self.entry_cycles += u64::from(entries);
        self.peak = self.peak.max(entries);
    }

    /// Average entries in use over `cycles` cycles.
    pub fn average(&self, cycles: u64) -> f64 {
        if cycles == 0 { 0.0 } else { self.entry_cycles as f64 / cycles as f64 }
    }
}

/// Work of a unit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UnitUse {
    /// The unit's name.
    pub name: String,
    /// Its copies.
    pub copies: u32,
    /// Instructions started.
    pub instructions: u64,
    /// Busy cycles, summed over the copies.
    pub busy_cycles: u64,
}

/// The cycle numbers of one executed instruction; the first fetch is in cycle 0. A folded branch has no cycles past
/// its fetch; an instruction without a unit has neither issue nor start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct EventTimes {
    /// Cycle of fetch; it can be dispatched in the next one.
    pub fetch: u64,
    /// Cycle of dispatch.
    pub dispatch: Option<u64>,
    /// Cycle of issue to a reservation station.
    pub issue: Option<u64>,
    /// First cycle of execution.
    pub start: Option<u64>,
    /// First cycle in which it may retire.
    pub finish: Option<u64>,
    /// Cycle of retirement.
    pub retire: Option<u64>,
    /// Unit that executed it.
    pub unit: Option<usize>,
}

/// Sees every executed instruction once its times are known, in the order of the trace.
pub trait TimingObserver {
    /// Event number `event` of the trace went through the pipeline at `times`.
    fn observe(&mut self, event: usize, times: &EventTimes);
}

/// Sees nothing.
impl TimingObserver for () {
    fn observe(&mut self, _event: usize, _times: &EventTimes) {}
}

/// Keeps everything, by event number.
impl TimingObserver for Vec<EventTimes> {
    fn observe(&mut self, _event: usize, times: &EventTimes) {
        self.push(*times);
    }
}

/// What a simulation found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TimingReport {
    /// Cycles from the first dispatch to the last retirement, both included.
    pub cycles: u64,
    /// Instructions that retired.
    pub retired: u64,
    /// Branches that vanished before dispatch.
    pub folded: u64,
    /// Mispredicted branches.
    pub mispredicted: u64,
    /// Work per unit, in the model's order.
    pub units: Vec<UnitUse>,
    /// Stalls by reason.
    pub stalls: StallCounts,
    /// Instruction queue, issue queues, completion queue, store queues, in that order.
    pub queues: Vec<Occupancy>,
    /// Rename registers of the files that limit them.
    pub renames: Vec<Occupancy>,
}
