//! Branch prediction: a table of two-bit counters and a cache of branch targets' instructions.

use super::instruction::{InstructionTiming, TraceEvent};

/// Two-bit counters, by the code address in instructions.
#[derive(Debug, Clone)]
pub(super) struct BranchHistoryTable {
    counters: Vec<u8>,
}

impl BranchHistoryTable {
    pub(super) fn new(entries: u32) -> Self {
        // Weakly not taken: nothing is known yet.
        BranchHistoryTable { counters: vec![1; entries as usize] }
    }

    fn slot(&self, code_address: u64) -> usize {
        // Instructions are 4 bytes or fewer apart on no machine with such a table that we know; two addresses that
        // share a counter only share a prediction.
        ((code_address / 4) % self.counters.len() as u64) as usize
    }

    pub(super) fn predicts_taken(&self, code_address: u64) -> bool {
        self.counters[self.slot(code_address)] >= 2
    }

    pub(super) fn learn(&mut self, code_address: u64, taken: bool) {
        let slot = self.slot(code_address);
        let counter = &mut self.counters[slot];
        *counter = if taken { (*counter + 1).min(3) } else { counter.saturating_sub(1) };
    }
}

/// The branches whose targets' instructions are cached, most recently used last.
#[derive(Debug, Clone)]
pub(super) struct BranchTargetCache {
    branches: Vec<u64>,
    capacity: usize,
}

impl BranchTargetCache {
    pub(super) fn new(entries: u32) -> Self {
        BranchTargetCache { branches: Vec::with_capacity(entries as usize), capacity: entries as usize }
    }

    /// Whether the branch at `code_address` hits; afterwards it is the most recently used.
    pub(super) fn look_up(&mut self, code_address: u64) -> bool {
        let found = self.branches.iter().rposition(|&branch| branch == code_address);
        if let Some(position) = found {
            self.branches.remove(position);
        } else if self.branches.len() == self.capacity {
            self.branches.remove(0);
        }
        self.branches.push(code_address);
        found.is_some()
    }
}

/// Both tables.
#[derive(Debug, Clone)]
pub(super) struct Predictor {
    pub(super) history: BranchHistoryTable,
    pub(super) targets: BranchTargetCache,
}

impl Predictor {
    /// Lets one run of the trace pass through the tables: that is what "warm" means.
    pub(super) fn warm(&mut self, instructions: &[InstructionTiming], trace: &[TraceEvent]) {
        for event in trace {
            let Some(branch) = instructions[event.instruction as usize].branch else { continue };
            if branch.conditional {
                self.history.learn(event.code_address, event.taken);
            }
            if event.taken && !branch.to_register {
                self.targets.look_up(event.code_address);
            }
        }
    }
}
