//! The store queues and the data cache's port, cycle by cycle.

use std::collections::VecDeque;

use super::model::{CoreParameters, Forwarding};

/// A store between its start and its access to the cache.
#[derive(Debug, Clone)]
struct PendingStore {
    sequence: u64,
    address: u64,
    bytes: u32,
    queue_cycles: u32,
    retired: bool,
    /// Cycle in which it left the finished store queue.
    left: Option<u64>,
    /// Cycle in which it entered the committed store queue.
    entered: Option<u64>,
}

/// Finished store queue, write-back stages, committed store queue and cache port.
///
/// Within a cycle the pipeline calls, in this order: [`StoreQueues::retire`] for the stores that retire,
/// [`StoreQueues::advance`], the questions, [`StoreQueues::start`], [`StoreQueues::drain`].
#[derive(Debug, Clone)]
pub(super) struct StoreQueues {
    stores: VecDeque<PendingStore>,
    last_left: Option<u64>,
    last_access: Option<u64>,
}

impl StoreQueues {
    pub(super) fn new() -> Self {
        StoreQueues { stores: VecDeque::new(), last_left: None, last_access: None }
    }

    /// Stores that hold a finished store queue entry.
    pub(super) fn finished_entries(&self) -> u32 {
        self.stores.iter().filter(|store| store.left.is_none()).count() as u32
    }

    /// Stores that hold a committed store queue entry.
    pub(super) fn committed_entries(&self) -> u32 {
        self.stores.iter().filter(|store| store.entered.is_some()).count() as u32
    }

    pub(super) fn retire(&mut self, sequence: u64) {
        for store in &mut self.stores {
            if store.sequence == sequence {
                store.retired = true;
            }
        }
    }

    fn oldest_wants_access(&self, core: &CoreParameters, cycle: u64) -> bool {
        self.stores
            .front()
            .and_then(|store| store.entered)
            .is_some_and(|entered| entered + u64::from(core.csq_hold) <= cycle + 1 && entered < cycle)
    }

    fn access(&mut self, cycle: u64) {
        self.stores.pop_front();
        self.last_access = Some(cycle);
    }

    /// The oldest committed store accesses the cache, unless it may have to yield to a load; stores move on.
    pub(super) fn advance(&mut self, core: &CoreParameters, cycle: u64) {
        // The store that accesses the cache leaves its place at the end of the cycle.
        let mut committed = self.committed_entries();
        let moving = self.stores.iter().filter(|store| store.left.is_some()).count() as u32;
        let must_go = !core.store_yields || committed >= core.csq;
        if must_go && self.oldest_wants_access(core, cycle) {
            self.access(cycle);
        }
        // At most one store a cycle enters, in order.
        if let Some(store) = self.stores.iter_mut().find(|store| store.entered.is_none())
            && committed < core.csq
            && store.left.is_some_and(|left| left + u64::from(core.csq_enter) <= cycle)
        {
            store.entered = Some(cycle);
            committed += 1;
        }
        debug_assert!(committed <= core.csq);
        // The write-back stages hold a store each, except that the last one is the entry to the queue.
        let room = core.csq + core.csq_enter.max(1) - 1;
        let last_left = self.last_left;
        if let Some(store) = self.stores.iter_mut().find(|store| store.left.is_none())
            && store.retired
            && moving < room
            && last_left.is_none_or(|left| left + u64::from(store.queue_cycles) <= cycle)
        {
            store.left = Some(cycle);
            self.last_left = Some(cycle);
        }
    }

    pub(super) fn has_finished_entry(&self, core: &CoreParameters) -> bool {
        self.finished_entries() < core.fsq
    }

    /// Whether a load may have the cache in this cycle.
    pub(super) fn port_is_free(&self, core: &CoreParameters, cycle: u64) -> bool {
        self.last_access.is_none_or(|access| cycle > access + u64::from(core.turnaround))
    }

    /// Whether no older store keeps the bytes from a load in this cycle.
    pub(super) fn may_forward(&self, core: &CoreParameters, address: u64, bytes: u32) -> bool {
        core.forward == Forwarding::Free
            || !self.stores.iter().any(|store| {
                let overlaps = address < store.address + u64::from(store.bytes) && store.address < address + u64::from(bytes);
                overlaps && !(core.forward == Forwarding::Csq && store.entered.is_some())
            })
    }

    pub(super) fn start(&mut self, sequence: u64, address: u64, bytes: u32, queue_cycles: u32) {
        self.stores.push_back(PendingStore { sequence, address, bytes, queue_cycles, retired: false, left: None, entered: None });
    }

    /// After the starts of the cycle: a store that yields takes the port if no load did.
    pub(super) fn drain(&mut self, core: &CoreParameters, cycle: u64, load_started: bool) {
        let accessed = self.last_access == Some(cycle);
        if core.store_yields && !load_started && !accessed && self.oldest_wants_access(core, cycle) {
            self.access(cycle);
        }
    }
}
