//! Dispatch, issue, execution and retirement: the stages behind the instruction queue.

use smallvec::SmallVec;

use super::instruction::{MemoryKind, is_misaligned};
use super::pipeline::{BranchState, Freed, Pipeline};
use super::report::StallReason;

impl Pipeline<'_> {
    pub(super) fn free_entries(&mut self) {
        while self.freed.front().is_some_and(|freed| freed.cycle <= self.cycle) {
            let Some(freed) = self.freed.pop_front() else { break };
            self.completion_used -= 1;
            for (used, freed) in self.renames_used.iter_mut().zip(freed.renames) {
                *used -= freed;
            }
        }
    }

    pub(super) fn retire(&mut self) {
        let core = &self.model.core;
        let mut group_renames: SmallVec<[u32; 4]> = SmallVec::from_elem(0, self.model.register_files.len());
        for position in 0..core.retire {
            let Some(&sequence) = self.completion.front() else { break };
            let entry = self.entry(sequence);
            if entry.times.finish.is_none_or(|finish| finish > self.cycle)
                || (entry.branch_state == BranchState::Predicted && !self.branch_operands_ready(sequence))
            {
                break;
            }
            let instruction = self.timing_of(sequence);
            if position > 0 && instruction.must_retire_oldest(self.model, self.entry(sequence).times.unit) {
                self.stalls.add(StallReason::RetireOldest, 1);
                break;
            }
            let renames = self.renames_of(instruction);
            if group_renames.iter().zip(&renames).any(|(group, own)| group + own > core.retire_renames) {
                self.stalls.add(StallReason::RetireRenames, 1);
                break;
            }
            for (group, own) in group_renames.iter_mut().zip(&renames) {
                *group += own;
            }
            self.completion.pop_front();
            let cycle = self.cycle;
            self.entry_mut(sequence).times.retire = Some(cycle);
            self.freed.push_back(Freed { cycle: cycle + u64::from(core.free_delay), renames });
            if instruction.is_store() {
                self.stores.retire(sequence);
            }
            self.last_retired = Some(cycle);
            self.retired += 1;
        }
        if core.free_delay == 0 {
            self.free_entries();
        }
    }

    pub(super) fn start(&mut self) {
        let mut load_started = false;
        for copy in 0..self.copies.len() {
            self.leave_first_stage(copy);
        }
        for copy in 0..self.copies.len() {
            let Some(&sequence) = self.copies[copy].stations.front() else { continue };
            if self.entry(sequence).times.issue.is_none_or(|issue| issue >= self.cycle) {
                continue;
            }
            if let Some(reason) = self.start_blocked_by(sequence, copy) {
                self.stalls.add(reason, 1);
                continue;
            }
            load_started |= self.timing_of(sequence).is_load();
            self.copies[copy].stations.pop_front();
            if self.model.units[self.copies[copy].unit].in_flight.is_some() {
                self.copies[copy].first_stage = Some(sequence);
            } else {
                self.execute_from(self.cycle, sequence, copy);
            }
        }
        self.stores.drain(&self.model.core, self.cycle, load_started);
    }

    fn start_blocked_by(&self, sequence: u64, copy: usize) -> Option<StallReason> {
        let core = &self.model.core;
        let instruction = self.timing_of(sequence);
        if instruction.serialized {
            let gap = u64::from(core.serial_gap);
            let oldest = self.completion.front() == Some(&sequence);
            if !oldest || self.last_retired.is_some_and(|retired| retired + gap > self.cycle) {
                return Some(StallReason::Serialization);
            }
        }
        if self.copies[copy].free_at > self.cycle || self.copies[copy].first_stage.is_some() {
            return Some(StallReason::UnitBusy);
        }
        if !self.operands_ready(sequence) {
            return Some(StallReason::Operand);
        }
        let memory = instruction.memory?;
        let address = self.entry(sequence).event.data_address;
        match memory.kind {
            MemoryKind::Store { .. } => (!self.stores.has_finished_entry(core)).then_some(StallReason::FinishedStoreQueue),
            MemoryKind::Load if !self.stores.port_is_free(core, self.cycle) => Some(StallReason::CachePort),
            MemoryKind::Load if !self.stores.may_forward(core, address, memory.bytes) => Some(StallReason::Forwarding),
            MemoryKind::Load => None,
        }
    }

    /// In a unit that limits its instructions between the first stage and retirement, the one in the first stage
    /// goes on when there is room.
    fn leave_first_stage(&mut self, copy: usize) {
        let Some(sequence) = self.copies[copy].first_stage else { return };
        let unit = self.copies[copy].unit;
        let past = self.started_of_unit[unit].iter().filter(|&&older| !self.has_retired(older)).count();
        if self.model.units[unit].in_flight.is_some_and(|limit| past >= limit as usize) {
            self.stalls.add(StallReason::InFlight, 1);
            return;
        }
        self.copies[copy].first_stage = None;
        self.started_of_unit[unit].push_back(sequence);
        self.execute_from(self.cycle - 1, sequence, copy);
    }

    fn execute_from(&mut self, cycle: u64, sequence: u64, copy: usize) {
        let instruction = self.timing_of(sequence);
        let event = self.entry(sequence).event;
        let misaligned = instruction.memory.is_some_and(|memory| is_misaligned(self.model, event.data_address, memory.bytes));
        let time = instruction.execution_time(self.model, event.short_operand, misaligned);
        let unit = self.copies[copy].unit;
        let mut finish = cycle + u64::from(time.latency) + u64::from(self.model.units[unit].finish);
        if instruction.serialized {
            finish += u64::from(self.model.core.serial_done);
        }
        self.copies[copy].free_at = cycle + u64::from(time.busy);
        self.units[unit].instructions += 1;
        self.units[unit].busy_cycles += u64::from(time.busy);
        if let Some(memory) = instruction.memory
            && let MemoryKind::Store { queue_cycles } = memory.kind
        {
            self.stores.start(sequence, event.data_address, memory.bytes, queue_cycles);
        }
        let entry = self.entry_mut(sequence);
        entry.times.start = Some(cycle);
        entry.times.finish = Some(finish);
        for (result, write) in entry.results.iter_mut().zip(&instruction.writes) {
            *result = Some(cycle + u64::from(write.latency.unwrap_or(time.latency)));
        }
    }

    pub(super) fn issue(&mut self) {
        for queue in 0..self.queues.len() {
            let described = &self.model.queues[queue];
            let window: SmallVec<[u64; 8]> = self.queues[queue].iter().take(described.window as usize).copied().collect();
            let mut issued = 0;
            for sequence in window {
                if issued == described.issue {
                    break;
                }
                if self.entry(sequence).times.dispatch.is_none_or(|dispatch| dispatch >= self.cycle) {
                    break;
                }
                let Some(copy) = self.free_station(sequence) else {
                    self.stalls.add(StallReason::ReservationStation, 1);
                    if described.out_of_order {
                        continue;
                    }
                    break;
                };
                self.copies[copy].stations.push_back(sequence);
                self.queues[queue].retain(|&queued| queued != sequence);
                let (cycle, unit) = (self.cycle, self.copies[copy].unit);
                let entry = self.entry_mut(sequence);
                entry.times.issue = Some(cycle);
                entry.times.unit = Some(unit);
                entry.copy = copy;
                issued += 1;
            }
        }
    }

    fn free_station(&self, sequence: u64) -> Option<usize> {
        self.timing_of(sequence).units.iter().find_map(|&unit| {
            let unit = usize::from(unit);
            let described = &self.model.units[unit];
            let first = self.first_copy[unit];
            (first..first + described.copies as usize)
                .find(|&copy| self.copies[copy].stations.len() < described.reservation_stations as usize)
        })
    }

    pub(super) fn dispatch(&mut self) {
        let core = &self.model.core;
        let mut queue_dispatched: SmallVec<[u32; 4]> = SmallVec::from_elem(0, self.queues.len());
        let mut unit_dispatched: SmallVec<[u32; 8]> = SmallVec::from_elem(0, self.model.units.len());
        for position in 0..core.dispatch {
            let Some(&sequence) = self.front.queue.front() else {
                self.count_dispatch_stall(StallReason::Fetch, position);
                return;
            };
            if self.entry(sequence).times.fetch >= self.cycle {
                self.count_dispatch_stall(StallReason::Fetch, position);
                return;
            }
            if let Some(reason) = self.dispatch_blocked_by(sequence, &queue_dispatched, &unit_dispatched) {
                self.count_dispatch_stall(reason, position);
                return;
            }
            let instruction = self.timing_of(sequence);
            self.front.queue.pop_front();
            self.completion.push_back(sequence);
            self.completion_used += 1;
            let renames = self.renames_of(instruction);
            for (used, own) in self.renames_used.iter_mut().zip(renames) {
                *used += own;
            }
            let cycle = self.cycle;
            self.first_dispatch.get_or_insert(cycle);
            self.entry_mut(sequence).times.dispatch = Some(cycle);
            match instruction.units.first() {
                Some(&unit) => {
                    let unit = usize::from(unit);
                    let queue = self.model.units[unit].queue;
                    self.queues[queue].push_back(sequence);
                    queue_dispatched[queue] += 1;
                    unit_dispatched[unit] += 1;
                }
                None => self.complete_without_unit(sequence),
            }
        }
    }

    /// What no unit executes may retire in the cycle after dispatch.
    fn complete_without_unit(&mut self, sequence: u64) {
        let cycle = self.cycle;
        let instruction = self.timing_of(sequence);
        let entry = self.entry_mut(sequence);
        entry.times.finish = Some(cycle + 1);
        if instruction.branch.is_none() {
            for (result, write) in entry.results.iter_mut().zip(&instruction.writes) {
                *result = Some(cycle + u64::from(write.latency.unwrap_or(instruction.time.latency)));
            }
        }
    }

    fn dispatch_blocked_by(&self, sequence: u64, queue_dispatched: &[u32], unit_dispatched: &[u32]) -> Option<StallReason> {
        let model = self.model;
        let instruction = self.timing_of(sequence);
        if instruction.branch.is_some() && self.entry(sequence).branch_state == BranchState::Waiting {
            return Some(StallReason::BranchUnit);
        }
        if self.completion_used >= model.core.cq {
            return Some(StallReason::CompletionQueue);
        }
        let renames = self.renames_of(instruction);
        for ((file, used), own) in model.register_files.iter().zip(&self.renames_used).zip(renames) {
            if file.renames.is_some_and(|renames| own > 0 && used + own > renames) {
                return Some(StallReason::Rename);
            }
        }
        let unit = usize::from(*instruction.units.first()?);
        let queue = model.units[unit].queue;
        if self.queues[queue].len() >= model.queues[queue].entries as usize {
            return Some(StallReason::IssueQueue);
        }
        if queue_dispatched[queue] >= model.queues[queue].dispatch {
            return Some(StallReason::QueueDispatch);
        }
        if model.units[unit].dispatch.is_some_and(|limit| unit_dispatched[unit] >= limit) {
            return Some(StallReason::UnitDispatch);
        }
        None
    }

    fn count_dispatch_stall(&mut self, reason: StallReason, position: u32) {
        // Neither the way to the first instruction nor the wait for the last one is a loss of dispatch slots.
        if self.first_dispatch.is_some() && !self.all_fetched() {
            self.stalls.add(reason, u64::from(self.model.core.dispatch - position));
        }
    }
}
