//! The simulation itself, cycle by cycle: the stages of [`super`] from the last to the first in every cycle, so that
//! what a stage frees can be used by the stage before it in the same cycle.

use std::collections::VecDeque;

use smallvec::SmallVec;

use super::front_end::FrontEnd;
use super::instruction::{InstructionTiming, Register, TraceEvent, validate_instructions};
use super::model::TimingModel;
use super::report::{EventTimes, Occupancy, StallCounts, TimingObserver, TimingReport, UnitUse};
use super::store_queues::StoreQueues;

/// The result of an older instruction of the trace that a register held when it was read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Producer {
    sequence: u64,
    write: u8,
}

/// What the branch unit has done with a branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BranchState {
    /// Not a branch, or not looked at yet.
    Waiting,
    /// Predicted, its operands unknown.
    Predicted,
    /// Done.
    Resolved,
}

/// An instruction between fetch and the cycle in which nobody can wait for it any more.
#[derive(Debug, Clone)]
pub(super) struct InFlight {
    pub(super) event: TraceEvent,
    /// For each read of the instruction, the instruction that it waits for.
    pub(super) producers: SmallVec<[Option<Producer>; 4]>,
    pub(super) times: EventTimes,
    /// Cycle of each result, once it is known.
    pub(super) results: SmallVec<[Option<u64>; 2]>,
    /// Unit copy whose reservation station it took, over all units.
    pub(super) copy: usize,
    pub(super) branch_state: BranchState,
    pub(super) folded: bool,
}

/// A copy of a unit.
#[derive(Debug, Clone)]
pub(super) struct UnitCopy {
    pub(super) unit: usize,
    pub(super) stations: VecDeque<u64>,
    pub(super) free_at: u64,
    /// An instruction in its first cycle, or held there, where the unit limits what is past it.
    pub(super) first_stage: Option<u64>,
}

/// Entries that become free in a later cycle.
#[derive(Debug, Clone)]
pub(super) struct Freed {
    pub(super) cycle: u64,
    pub(super) renames: SmallVec<[u32; 4]>,
}

/// The state of the machine.
pub(super) struct Pipeline<'a> {
    pub(super) model: &'a TimingModel,
    pub(super) instructions: &'a [InstructionTiming],
    pub(super) trace: &'a [TraceEvent],
    pub(super) cycle: u64,
    pub(super) in_flight: VecDeque<InFlight>,
    /// Sequence number of the first of `in_flight`.
    pub(super) base: u64,
    /// First number of each register file in `last_writer`.
    pub(super) file_offsets: Vec<usize>,
    pub(super) last_writer: Vec<Option<Producer>>,
    pub(super) front: FrontEnd,
    pub(super) queues: Vec<VecDeque<u64>>,
    pub(super) copies: Vec<UnitCopy>,
    /// Index of the first copy of each unit.
    pub(super) first_copy: Vec<usize>,
    pub(super) completion: VecDeque<u64>,
    pub(super) completion_used: u32,
    pub(super) renames_used: Vec<u32>,
    pub(super) freed: VecDeque<Freed>,
    pub(super) stores: StoreQueues,
    pub(super) last_retired: Option<u64>,
    pub(super) started_of_unit: Vec<VecDeque<u64>>,
    pub(super) first_dispatch: Option<u64>,
    pub(super) observed: u64,
    pub(super) stalls: StallCounts,
    pub(super) units: Vec<UnitUse>,
    pub(super) occupancy: Vec<Occupancy>,
    pub(super) rename_occupancy: Vec<Option<Occupancy>>,
    pub(super) retired: u64,
    pub(super) folded: u64,
}

impl<'a> Pipeline<'a> {
    pub(super) fn new(model: &'a TimingModel, instructions: &'a [InstructionTiming], trace: &'a [TraceEvent]) -> Pipeline<'a> {
        let mut file_offsets = Vec::new();
        let mut registers = 0;
        for file in 0..model.register_files.len() {
            file_offsets.push(registers);
            registers += register_count(instructions, file);
        }
        let mut copies = Vec::new();
        let mut first_copy = Vec::new();
        for (unit, described) in model.units.iter().enumerate() {
            first_copy.push(copies.len());
            for _ in 0..described.copies {
                copies.push(UnitCopy { unit, stations: VecDeque::new(), free_at: 0, first_stage: None });
            }
        }
        let core = &model.core;
        let mut occupancy = vec![Occupancy::new("instruction queue", core.iq)];
        occupancy.extend(model.queues.iter().map(|queue| Occupancy::new(&queue.name, queue.entries)));
        occupancy.push(Occupancy::new("completion queue", core.cq));
        occupancy.push(Occupancy::new("finished store queue", core.fsq));
        occupancy.push(Occupancy::new("committed store queue", core.csq));
        Pipeline {
            model,
            instructions,
            trace,
            cycle: 0,
            in_flight: VecDeque::new(),
            base: 0,
            file_offsets,
            last_writer: vec![None; registers],
            front: FrontEnd::new(core),
            queues: vec![VecDeque::new(); model.queues.len()],
            copies,
            first_copy,
            completion: VecDeque::new(),
            completion_used: 0,
            renames_used: vec![0; model.register_files.len()],
            freed: VecDeque::new(),
            stores: StoreQueues::new(),
            last_retired: None,
            started_of_unit: vec![VecDeque::new(); model.units.len()],
            first_dispatch: None,
            observed: 0,
            stalls: StallCounts::default(),
            units: model
                .units
                .iter()
                .map(|unit| UnitUse { name: unit.name.clone(), copies: unit.copies, instructions: 0, busy_cycles: 0 })
                .collect(),
            occupancy,
            rename_occupancy: model
                .register_files
                .iter()
                .map(|file| file.renames.map(|renames| Occupancy::new(&file.name, renames)))
                .collect(),
            retired: 0,
            folded: 0,
        }
    }

    /// Runs the whole trace.
    pub(super) fn run(mut self, observer: &mut impl TimingObserver) -> TimingReport {
        while (self.observed as usize) < self.trace.len() {
            self.free_entries();
            self.retire();
            self.stores.advance(&self.model.core, self.cycle);
            self.start();
            self.issue();
            self.search_branches();
            self.dispatch();
            self.fetch();
            self.sample();
            self.forget(observer);
            self.cycle += 1;
        }
        let cycles = match (self.first_dispatch, self.last_retired) {
            (Some(first), Some(last)) => last - first + 1,
            _ => 0,
        };
        TimingReport {
            cycles,
            retired: self.retired,
            folded: self.folded,
            mispredicted: self.front.mispredicted,
            units: self.units,
            stalls: self.stalls,
            queues: self.occupancy,
            renames: self.rename_occupancy.into_iter().flatten().collect(),
        }
    }

    fn index(&self, sequence: u64) -> usize {
        (sequence - self.base) as usize
    }

    pub(super) fn entry(&self, sequence: u64) -> &InFlight {
        &self.in_flight[self.index(sequence)]
    }

    pub(super) fn entry_mut(&mut self, sequence: u64) -> &mut InFlight {
        let index = self.index(sequence);
        &mut self.in_flight[index]
    }

    pub(super) fn timing_of(&self, sequence: u64) -> &'a InstructionTiming {
        &self.instructions[self.entry(sequence).event.instruction as usize]
    }

    fn register_slot(&self, register: Register) -> usize {
        self.file_offsets[usize::from(register.file)] + register.number as usize
    }

    /// The first cycle in which the producer's result can be used; `None` while unknown. What is no longer in
    /// flight has been usable for some time.
    fn result_cycle(&self, producer: Producer) -> Option<u64> {
        if producer.sequence < self.base {
            return Some(0);
        }
        self.entry(producer.sequence).results[usize::from(producer.write)]
    }

    pub(super) fn operands_ready(&self, sequence: u64) -> bool {
        let reads = &self.timing_of(sequence).reads;
        let waits_for_data = self.model.core.store_data_rs;
        reads.iter().zip(&self.entry(sequence).producers).all(|(read, producer)| {
            (read.store_data && !waits_for_data)
                || producer.is_none_or(|producer| self.result_cycle(producer).is_some_and(|ready| ready <= self.cycle))
        })
    }

    /// Whether the branch unit knows everything that a branch reads.
    pub(super) fn branch_operands_ready(&self, sequence: u64) -> bool {
        let reads = &self.timing_of(sequence).reads;
        reads.iter().zip(&self.entry(sequence).producers).all(|(read, producer)| {
            let delay = u64::from(self.model.register_files[usize::from(read.register.file)].branch_delay);
            producer.is_none_or(|producer| {
                producer.sequence < self.base || self.result_cycle(producer).is_some_and(|ready| ready + delay <= self.cycle)
            })
        })
    }

    /// Renames that an instruction takes of each file.
    pub(super) fn renames_of(&self, instruction: &InstructionTiming) -> SmallVec<[u32; 4]> {
        let mut renames = SmallVec::from_elem(0, self.model.register_files.len());
        for write in &instruction.writes {
            let file = usize::from(write.register.file);
            if self.model.register_files[file].renames.is_some() {
                renames[file] += 1;
            }
        }
        renames
    }

    /// Takes an event of the trace into the instruction queue.
    pub(super) fn enter(&mut self, event: TraceEvent) -> u64 {
        let sequence = self.base + self.in_flight.len() as u64;
        let instruction = &self.instructions[event.instruction as usize];
        let producers = instruction.reads.iter().map(|read| self.last_writer[self.register_slot(read.register)]).collect();
        for (write, described) in instruction.writes.iter().enumerate() {
            let slot = self.register_slot(described.register);
            self.last_writer[slot] = Some(Producer { sequence, write: write as u8 });
        }
        self.in_flight.push_back(InFlight {
            event,
            producers,
            times: EventTimes { fetch: self.cycle, dispatch: None, issue: None, start: None, finish: None, retire: None, unit: None },
            results: SmallVec::from_elem(None, instruction.writes.len()),
            copy: 0,
            branch_state: BranchState::Waiting,
            folded: false,
        });
        sequence
    }

    /// Takes back what was fetched after `sequence`; its registers' last writers are what they were before.
    pub(super) fn flush_after(&mut self, sequence: u64) {
        let kept = self.index(sequence) + 1;
        self.in_flight.truncate(kept);
        // Writers older than everything in flight have long been done, which is what `None` says.
        self.last_writer.fill(None);
        for (index, entry) in self.in_flight.iter().enumerate() {
            let instruction = &self.instructions[entry.event.instruction as usize];
            for (write, described) in instruction.writes.iter().enumerate() {
                let slot = self.file_offsets[usize::from(described.register.file)] + described.register.number as usize;
                self.last_writer[slot] = Some(Producer { sequence: self.base + index as u64, write: write as u8 });
            }
        }
    }

    /// Marks the results of a branch as usable from this cycle on.
    pub(super) fn publish_branch_results(&mut self, sequence: u64) {
        let cycle = self.cycle;
        for result in &mut self.entry_mut(sequence).results {
            *result = Some(cycle);
        }
    }

    fn sample(&mut self) {
        let running = !self.all_fetched() || !self.completion.is_empty() || self.last_retired == Some(self.cycle);
        if self.first_dispatch.is_none() || !running {
            return;
        }
        let front = self.front.queue.len() as u32;
        let issue = self.queues.iter().map(|queue| queue.len() as u32);
        let back = [self.completion_used, self.stores.finished_entries(), self.stores.committed_entries()];
        let entries = std::iter::once(front).chain(issue).chain(back);
        for (occupancy, entries) in self.occupancy.iter_mut().zip(entries) {
            occupancy.sample(entries);
        }
        for (occupancy, used) in self.rename_occupancy.iter_mut().zip(&self.renames_used) {
            if let Some(occupancy) = occupancy {
                occupancy.sample(*used);
            }
        }
    }

    /// Drops the oldest instructions once they have left the machine and every later use of their results is free.
    fn forget(&mut self, observer: &mut impl TimingObserver) {
        while let Some(entry) = self.in_flight.front() {
            let left = if entry.folded {
                entry.branch_state == BranchState::Resolved
            } else {
                entry.times.retire.is_some() && entry.branch_state != BranchState::Predicted
            };
            let instruction = &self.instructions[entry.event.instruction as usize];
            let settled = entry.results.iter().zip(&instruction.writes).all(|(result, write)| {
                let delay = u64::from(self.model.register_files[usize::from(write.register.file)].branch_delay);
                result.is_some_and(|result| result + delay <= self.cycle)
            });
            if !left || !(settled || entry.folded) {
                break;
            }
            self.folded += u64::from(entry.folded);
            observer.observe(self.observed as usize, &entry.times);
            self.observed += 1;
            self.in_flight.pop_front();
            self.base += 1;
            let base = self.base;
            for started in &mut self.started_of_unit {
                started.retain(|&sequence| sequence >= base);
            }
        }
    }

    /// Whether every event of the trace has left the instruction queue.
    pub(super) fn all_fetched(&self) -> bool {
        self.front.next_event == self.trace.len() && self.front.queue.is_empty()
    }

    pub(super) fn has_retired(&self, sequence: u64) -> bool {
        sequence < self.base || self.entry(sequence).times.retire.is_some()
    }
}

/// Registers of `file` that `instructions` name, counted from 0.
pub(super) fn register_count(instructions: &[InstructionTiming], file: usize) -> usize {
    let reads = instructions.iter().flat_map(|instruction| instruction.reads.iter().map(|read| read.register));
    let writes = instructions.iter().flat_map(|instruction| instruction.writes.iter().map(|write| write.register));
    reads
        .chain(writes)
        .filter(|register| usize::from(register.file) == file)
        .map(|register| register.number as usize + 1)
        .max()
        .unwrap_or(0)
}

/// Simulates `trace`, executions of `instructions` in program order, on `model`: pipeline empty and registers ready
/// at the start, caches warm, branch predictors warmed by one run of the same trace. Every instruction's cycles go
/// to `observer` (`&mut ()` where nobody wants them).
///
/// # Errors
///
/// Everything that makes the model, an instruction or the trace impossible to simulate.
pub fn simulate(
    model: &TimingModel,
    instructions: &[InstructionTiming],
    trace: &[TraceEvent],
    observer: &mut impl TimingObserver,
) -> Result<TimingReport, Vec<String>> {
    let mut errors = model.validate();
    if errors.is_empty() {
        errors = validate_instructions(model, instructions);
    }
    for (index, event) in trace.iter().enumerate() {
        match instructions.get(event.instruction as usize) {
            None => errors.push(format!("event {index}: there is no instruction {}", event.instruction)),
            Some(instruction) if event.taken && instruction.branch.is_none() => {
                errors.push(format!("event {index}: instruction {} is no branch that could be taken", event.instruction));
            }
            Some(_) => {}
        }
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    let mut pipeline = Pipeline::new(model, instructions, trace);
    pipeline.front.predictor.warm(instructions, trace);
    Ok(pipeline.run(observer))
}
