//! What a machine offers per cycle and how long its entries are taken, as the list scheduler and the bounds see it.

use crate::dependence::latency_is_exposed;
use crate::machine::{Enforcement, FileId, HazardKind, Machine, RowId};

/// Cycles from dispatch to the earliest start of execution on a machine with issue queues: dispatch, issue, start are three stages.
pub const DISPATCH_TO_START_CYCLES: u32 = 2;

/// Limits of a machine, `None` where it has none.
#[derive(Clone, Debug)]
pub struct Resources {
    /// Instructions dispatched per cycle, or operations of a bundle.
    pub width: Option<u32>,
    /// Whether instructions of one cycle stand in one bundle, whose reads come before its writes.
    pub bundled: bool,
    /// Whether the schedule must keep latencies.
    pub exposed: bool,
    /// Copies of each unit.
    pub unit_copies: Vec<u32>,
    /// Cluster of each unit, where it has one.
    pub unit_side: Vec<Option<u8>>,
    /// Queue of each unit, by index.
    pub queue_of_unit: Vec<Option<usize>>,
    /// Instructions that each queue accepts per cycle.
    pub queue_dispatch: Vec<u32>,
    /// Instructions for each unit dispatched per cycle.
    pub unit_dispatch: Vec<Option<u32>>,
    /// Completion queue entries.
    pub completion_entries: Option<u32>,
    /// Instructions retired per cycle.
    pub retire_width: Option<u32>,
    /// Rename registers by file.
    pub renames: Vec<Option<u32>>,
    /// Cycles from retirement until entries are free.
    pub free_delay: u32,
    /// Results that may land in one file in one cycle.
    pub result_ports: Option<u32>,
    /// Reads of one register per cycle.
    pub read_ports: Option<u32>,
    /// Operands that may cross to one cluster per cycle.
    pub cross_paths: Option<u32>,
    /// Accesses to memory per cycle.
    pub memory_ports: Option<u32>,
    /// Cycles that a block goes on after its branch.
    pub branch_delay: u32,
}

impl Resources {
    /// The limits of this machine.
    pub fn of(machine: &Machine) -> Self {
        let number = |name: &str| {
            machine.parameters.iter().find(|parameter| parameter.name == name).and_then(|parameter| parameter.value.parse::<u32>().ok())
        };
        let must = |kind: HazardKind| machine.hazard(kind).filter(|hazard| hazard.enforcement == Enforcement::Must);
        let ports = |kind: HazardKind| must(kind).map(|hazard| hazard.limit.unwrap_or(1).max(1));
        let bundle = must(HazardKind::BundleShape);
        let queue_named = |name: &String| machine.queues.iter().position(|queue| queue.name == *name);
        Self {
            width: bundle.and_then(|hazard| hazard.limit).or(number("dispatch")).filter(|width| *width > 0),
            bundled: bundle.is_some(),
            exposed: latency_is_exposed(machine),
            unit_copies: machine.units.iter().map(|unit| unit.copies.max(1)).collect(),
            unit_side: machine.units.iter().map(|unit| unit.side).collect(),
            queue_of_unit: machine.units.iter().map(|unit| unit.queue.as_ref().and_then(queue_named)).collect(),
            queue_dispatch: machine.queues.iter().map(|queue| queue.dispatch.max(1)).collect(),
            unit_dispatch: machine.units.iter().map(|unit| unit.dispatch.filter(|limit| *limit > 0)).collect(),
            completion_entries: number("cq").filter(|entries| *entries > 0),
            retire_width: number("retire").filter(|width| *width > 0),
            renames: machine.register_files.iter().map(|file| file.renames.filter(|count| *count > 0)).collect(),
            free_delay: number("free_delay").unwrap_or(0),
            result_ports: ports(HazardKind::ResultPort),
            read_ports: ports(HazardKind::ReadPort),
            cross_paths: ports(HazardKind::CrossPath),
            memory_ports: ports(HazardKind::MemoryPort),
            branch_delay: must(HazardKind::BranchDelay).and_then(|hazard| hazard.limit).unwrap_or(0),
        }
    }

    /// Whether instructions wait for operands and units in queues, after they have been taken in order.
    pub fn is_decoupled(&self) -> bool {
        !self.exposed && !self.bundled && !self.queue_dispatch.is_empty()
    }

    /// Cycles from dispatch to the earliest retirement of a row.
    pub fn residence_cycles(&self, machine: &Machine, row: RowId) -> u32 {
        let timing = &machine[row].timing;
        let finish = timing.units.first().map_or(0, |unit| machine[*unit].finish_cycles);
        match timing.units.is_empty() {
            // What no unit executes retires in the cycle after dispatch.
            true => 1,
            false => DISPATCH_TO_START_CYCLES + timing.latency_cycles + finish,
        }
    }
}

/// Registers of a file that values may take; `None` is unlimited.
pub fn allocatable(machine: &Machine, file: FileId, inline_assembly: bool) -> Option<Vec<u32>> {
    let file = &machine[file];
    let withheld = |register: &u32| file.reserved.contains(register) || inline_assembly && file.inline_reserved.contains(register);
    file.count.map(|count| (0..count).filter(|register| !withheld(register)).collect())
}
