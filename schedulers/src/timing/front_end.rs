//! Fetch and the branch unit.

use std::collections::VecDeque;

use super::model::CoreParameters;
use super::pipeline::{BranchState, Pipeline};
use super::predictor::{BranchHistoryTable, BranchTargetCache, Predictor};

/// The instruction queue and what decides what is fetched into it.
pub(super) struct FrontEnd {
    /// Sequence numbers of the instructions waiting for dispatch, the oldest first.
    pub(super) queue: VecDeque<u64>,
    /// The event of the trace to be fetched next.
    pub(super) next_event: usize,
    /// First cycle in which fetch may go on.
    fetch_from: u64,
    /// A branch that fetch cannot pass: taken and not looked at yet, or mispredicted and not resolved.
    waits_for: Option<u64>,
    /// Branches predicted and not resolved; whether the prediction was wrong.
    predicted: VecDeque<(u64, bool)>,
    pub(super) predictor: Predictor,
    pub(super) mispredicted: u64,
}

impl FrontEnd {
    pub(super) fn new(core: &CoreParameters) -> Self {
        FrontEnd {
            queue: VecDeque::new(),
            next_event: 0,
            fetch_from: 0,
            waits_for: None,
            predicted: VecDeque::new(),
            predictor: Predictor { history: BranchHistoryTable::new(core.bht_entries), targets: BranchTargetCache::new(core.btic_entries) },
            mispredicted: 0,
        }
    }
}

impl Pipeline<'_> {
    /// The branch unit: resolves what it can, then executes the oldest branch of its window.
    pub(super) fn search_branches(&mut self) {
        self.resolve_branches();
        let window = self.model.core.bpu_window as usize;
        let found = self.front.queue.iter().take(window).enumerate().find_map(|(position, &sequence)| {
            let entry = self.entry(sequence);
            let waiting = self.timing_of(sequence).branch.is_some() && entry.branch_state == BranchState::Waiting;
            (waiting && entry.times.fetch < self.cycle).then_some((position, sequence))
        });
        if let Some((position, sequence)) = found {
            self.execute_branch(position, sequence);
        }
    }

    fn resolve_branches(&mut self) {
        // In order: a younger prediction means nothing while an older one may be wrong.
        while let Some(&(sequence, wrong)) = self.front.predicted.front() {
            if !self.branch_operands_ready(sequence) {
                break;
            }
            self.front.predicted.pop_front();
            self.entry_mut(sequence).branch_state = BranchState::Resolved;
            self.publish_branch_results(sequence);
            if wrong {
                self.front.waits_for = None;
                // Fetched in one cycle, dispatched in the next.
                let refill = u64::from(self.model.core.mispredict_refill).max(1);
                self.front.fetch_from = self.cycle + refill - 1;
            }
        }
    }

    fn execute_branch(&mut self, position: usize, sequence: u64) {
        let core = &self.model.core;
        let instruction = self.timing_of(sequence);
        let Some(branch) = instruction.branch else { return };
        let event = self.entry(sequence).event;
        let known = self.branch_operands_ready(sequence);
        let predicts = !known && branch.conditional && !branch.to_register;
        if !known && !predicts {
            // The target is not known, and nothing predicts it.
            return;
        }
        if predicts && self.front.predicted.len() >= core.unresolved as usize {
            return;
        }
        let mut wrong = false;
        if predicts {
            wrong = self.front.predictor.history.predicts_taken(event.code_address) != event.taken;
            self.front.predicted.push_back((sequence, wrong));
            self.entry_mut(sequence).branch_state = BranchState::Predicted;
        } else {
            self.entry_mut(sequence).branch_state = BranchState::Resolved;
            self.publish_branch_results(sequence);
        }
        if branch.conditional {
            self.front.predictor.history.learn(event.code_address, event.taken);
        }
        if event.taken {
            let hit = !branch.to_register && self.front.predictor.targets.look_up(event.code_address);
            let bubble = if hit { core.btic_bubble } else { core.fetch_bubble };
            self.front.waits_for = None;
            self.front.fetch_from = self.cycle + u64::from(bubble);
        }
        if wrong {
            self.front.mispredicted += 1;
            self.refetch_after(sequence);
            self.front.waits_for = Some(sequence);
        }
        let folds = !branch.updates_state && if event.taken { !branch.to_register } else { position >= core.fold_from as usize };
        if folds {
            self.front.queue.retain(|&queued| queued != sequence);
            self.entry_mut(sequence).folded = true;
        }
    }

    /// What was fetched after a branch that turns out to be predicted to go elsewhere is fetched again.
    fn refetch_after(&mut self, sequence: u64) {
        let younger = self.front.queue.iter().filter(|&&queued| queued > sequence).count();
        self.front.queue.retain(|&queued| queued <= sequence);
        self.front.next_event -= younger;
        self.flush_after(sequence);
    }

    /// Fetches one group: consecutive code of one line, up to a taken branch or the end of the queue.
    pub(super) fn fetch(&mut self) {
        let core = &self.model.core;
        if self.front.waits_for.is_some() || self.front.fetch_from > self.cycle {
            return;
        }
        let line_bytes = u64::from(core.fetch_line);
        let mut line = None;
        for _ in 0..core.fetch_width {
            let Some(&event) = self.trace.get(self.front.next_event) else { break };
            let event_line = event.code_address / line_bytes;
            if self.front.queue.len() >= core.iq as usize || *line.get_or_insert(event_line) != event_line {
                break;
            }
            let sequence = self.enter(event);
            self.front.queue.push_back(sequence);
            self.front.next_event += 1;
            if event.taken {
                self.front.waits_for = Some(sequence);
                break;
            }
        }
    }
}
