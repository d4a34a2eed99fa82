//! The cycles of branch-free code, fast: for searches that ask for thousands of orders of the same instructions.
//!
//! In the rules of [`super`] everything that happens to an instruction depends on older instructions only: dispatch,
//! issue, start and retirement give way to the elder in every conflict, stations are first in, first out, and a
//! store is known to the cache before any younger load retires. So one pass in program order gives every
//! instruction's cycles from a few numbers of its elders, without going through the cycles one by one.
//! (`store_yields` is the exception: there a younger load makes an older store wait.)
//!
//! Arrays have fixed sizes, so that the state of the machine is one flat value: a checkpoint is a copy.

use super::instruction::{InstructionTiming, MemoryKind, is_misaligned, validate_instructions};
use super::model::{Forwarding, TimingModel};

/// Most completion queue entries, instruction queue entries, and renames of a file.
const RING: usize = 32;
/// Most register files with renames.
const FILES: usize = 4;
/// Most instructions dispatched or retired per cycle; with their renames they are counted in a byte.
const WIDTH: usize = 16;
/// Most issue queues.
const QUEUES: usize = 4;
/// Most entries of an issue queue.
const QUEUE_ENTRIES: usize = 8;
/// Most units.
const UNITS: usize = 16;
/// Most unit copies.
const COPIES: usize = 16;
/// Most reservation stations of a copy.
const STATIONS: usize = 4;
/// Most unit copies that one instruction can choose from.
const CHOICES: usize = 8;
/// Most stores between start and the first cycle in which a load no longer notices them.
const STORES: usize = 32;
/// Most instructions of a unit between start and retirement, where that is limited.
const IN_FLIGHT: usize = 8;
/// The cycle of the first fetch, and so the most that a parameter in cycles may be: what lies that long before the
/// program has no effect.
const FIRST_CYCLE: u32 = 4096;
/// Instructions between two checkpoints, and between two looks at the bound, of a short block.
const CHECKPOINT_INSTRUCTIONS: usize = 32;
/// Registers that all checkpoints together may hold: where a long block has more, its checkpoints lie further apart, so that memory does not grow with the square of the block.
const CHECKPOINT_REGISTERS: usize = 1 << 22;

/// An access to memory with its address, which the order does not change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StraightLineOperand {
    /// Address of the access; ignored for instructions without one.
    pub data_address: u64,
    /// Whether the operand that decides about the short time is short.
    pub short_operand: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Access {
    None,
    Load,
    Store { queue_cycles: u32 },
}

/// An instruction as the pass needs it.
#[derive(Debug, Clone)]
struct Row {
    /// Unit copies, in order of preference; none: no unit executes it.
    choices: [u8; CHOICES],
    choice_count: u8,
    queue: u8,
    /// The unit whose dispatch limit counts.
    unit: u8,
    serialized: bool,
    /// By its own flag or as a store.
    retires_oldest: bool,
    latency: u32,
    busy: u32,
    /// Cycles that the only copy that can execute it needs, from its start to whatever comes first, its result or
    /// the next start; 0 where there is a choice.
    sole_work: u32,
    renames: [u8; FILES],
    reads: (u32, u32),
    writes: (u32, u32),
    access: Access,
    address: u64,
    bytes: u32,
}

#[derive(Debug, Clone, Copy)]
struct QueueLimits {
    entries: usize,
    dispatch: u32,
    issue: u32,
    window: usize,
    out_of_order: bool,
}

#[derive(Debug, Clone, Copy)]
struct CopyLimits {
    unit: u8,
    stations: u8,
    finish: u32,
    retires_oldest: bool,
    /// 0: no limit.
    in_flight: u8,
}

/// Everything that the next instruction's cycles depend on, besides the registers.
#[derive(Debug, Clone, Copy)]
struct State {
    fetch_cycle: u32,
    fetch_count: u32,
    dispatch_cycle: u32,
    dispatch_count: u32,
    queue_dispatched: [u8; QUEUES],
    unit_dispatched: [u8; UNITS],
    retire_cycle: u32,
    retire_count: u32,
    retire_renames: [u8; FILES],
    /// Dispatch and retirement by position.
    dispatched: [u32; RING],
    retired: [u32; RING],
    /// Cycle from which a rename can be used again, by number of allocation.
    renames_free: [[u32; RING]; FILES],
    renames_taken: [u32; FILES],
    /// The latest cycles of issue of each queue, latest first.
    issues: [[u32; QUEUE_ENTRIES]; QUEUES],
    last_issue: [u32; QUEUES],
    /// The latest starts of each copy, latest first.
    starts: [[u32; STATIONS]; COPIES],
    copy_free: [u32; COPIES],
    /// The latest retirements of each limited copy, latest first.
    limited_retired: [[u32; IN_FLIGHT]; COPIES],
    store_count: u32,
    stores: [Store; STORES],
    /// Cycles of work left that only one copy of a unit can do.
    work_left: [u32; UNITS],
}

#[derive(Debug, Clone, Copy, Default)]
struct Store {
    address: u64,
    bytes: u32,
    left: u32,
    entered: u32,
    accessed: u32,
}

/// The timing of one set of branch-free instructions in any order. See [`StraightLine::cycles`].
#[derive(Debug, Clone)]
pub struct StraightLine {
    core: super::model::CoreParameters,
    queues: [QueueLimits; QUEUES],
    copies: Vec<CopyLimits>,
    unit_dispatch: [u32; UNITS],
    unit_copies: [u32; UNITS],
    renames: [u32; FILES],
    rows: Vec<Row>,
    reads: Vec<u32>,
    writes: Vec<(u32, u32)>,
    /// By position: whether it is the first instruction of a fetch line.
    line_starts: Vec<bool>,
    initial: State,
    registers_ready: Vec<u32>,
    /// Instructions between two checkpoints.
    checkpoint_spacing: usize,
    /// State before each position of the committed order that is a multiple of the spacing.
    checkpoints: Vec<State>,
    checkpoint_registers: Vec<u32>,
}

impl StraightLine {
    /// Prepares `instructions`, each with its operand, for code that starts at `code_address` and takes
    /// `instruction_bytes` for every instruction.
    ///
    /// # Errors
    ///
    /// All that is wrong with model or instructions, branches among them, `store_yields`, and a model larger than
    /// the fixed arrays of this module; [`super::simulate`] has no such limits.
    pub fn new(
        model: &TimingModel,
        instructions: &[InstructionTiming],
        operands: &[StraightLineOperand],
        code_address: u64,
        instruction_bytes: u32,
    ) -> Result<Self, Vec<String>> {
        let mut errors = model.validate();
        if errors.is_empty() {
            errors = validate_instructions(model, instructions);
        }
        if errors.is_empty() {
            errors = limits_exceeded(model, instructions);
        }
        if operands.len() != instructions.len() {
            errors.push(format!("{} instructions have {} operands", instructions.len(), operands.len()));
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        Ok(Compiler::new(model).compile(instructions, operands, code_address, instruction_bytes))
    }

    /// Cycles of the instructions in `order` (indices, each once or not at all), from the first dispatch to the last
    /// retirement: what [`super::simulate`] says of the same trace. Makes `order` the committed one.
    pub fn cycles(&mut self, order: &[u32]) -> u32 {
        self.commit(order, 0)
    }

    /// Like [`StraightLine::cycles`], where `order` is the committed order as far as position `first_changed`.
    pub fn commit(&mut self, order: &[u32], first_changed: usize) -> u32 {
        self.run::<true>(order, first_changed, u32::MAX).unwrap_or(u32::MAX)
    }

    /// The cycles of an order that is the committed one as far as position `first_changed`, if they are at most
    /// `bound_cycles`; the committed order stays what it is.
    pub fn probe(&mut self, order: &[u32], first_changed: usize, bound_cycles: u32) -> Option<u32> {
        self.run::<false>(order, first_changed, bound_cycles)
    }

    fn run<const COMMIT: bool>(&mut self, order: &[u32], first_changed: usize, bound_cycles: u32) -> Option<u32> {
        if order.is_empty() {
            return Some(0);
        }
        let registers = self.registers_ready.len();
        let checkpoint = (first_changed.min(order.len() - 1) / self.checkpoint_spacing).min(self.checkpoints.len().saturating_sub(1));
        // The state before a checkpoint's position is there if that checkpoint was committed; else begin anew.
        let (mut state, mut position) = match self.checkpoints.get(checkpoint) {
            Some(state) if checkpoint > 0 => {
                let saved = &self.checkpoint_registers[checkpoint * registers..(checkpoint + 1) * registers];
                self.registers_ready.copy_from_slice(saved);
                (*state, checkpoint * self.checkpoint_spacing)
            }
            _ => {
                self.registers_ready.fill(0);
                (self.initial, 0)
            }
        };
        if position == 0 {
            for &index in order {
                let row = &self.rows[index as usize];
                state.work_left[usize::from(row.unit)] += row.sole_work;
            }
        }
        if COMMIT {
            self.checkpoints.truncate(position / self.checkpoint_spacing);
            self.checkpoint_registers.truncate(position / self.checkpoint_spacing * registers);
        }
        // The first instruction is fetched in the first cycle and dispatched in the next.
        let last_cycle = bound_cycles.saturating_add(FIRST_CYCLE);
        while position < order.len() {
            if COMMIT {
                self.checkpoints.push(state);
                self.checkpoint_registers.extend_from_slice(&self.registers_ready);
            } else if self.least_last_cycle(&state, order.len() - position) > last_cycle {
                return None;
            }
            let end = (position + self.checkpoint_spacing).min(order.len());
            for &index in &order[position..end] {
                self.step(&mut state, position, index as usize);
                position += 1;
            }
        }
        (state.retire_cycle <= last_cycle).then(|| state.retire_cycle - FIRST_CYCLE)
    }

    /// A cycle before which the last of `remaining` instructions cannot retire.
    fn least_last_cycle(&self, state: &State, remaining: usize) -> u32 {
        let room = self.core.retire.saturating_sub(state.retire_count);
        let mut least = state.retire_cycle + (remaining as u32).saturating_sub(room).div_ceil(self.core.retire);
        for (copy, limits) in self.copies.iter().enumerate() {
            let unit = usize::from(limits.unit);
            if self.unit_copies[unit] == 1 && state.work_left[unit] > 0 {
                least = least.max(state.copy_free[copy] + state.work_left[unit]);
            }
        }
        least
    }

    #[inline]
    fn step(&mut self, state: &mut State, position: usize, index: usize) {
        let row = &self.rows[index];
        let core = &self.core;
        self.fetch(state, position);
        let dispatch = self.dispatch(state, position, row);
        let mut retires_oldest = row.retires_oldest;
        let (start, finish, copy) = if row.choice_count == 0 {
            (dispatch, dispatch + 1, usize::MAX)
        } else {
            let (issue, copy) = self.issue(state, row, dispatch + 1);
            let limits = self.copies[copy];
            retires_oldest |= limits.retires_oldest;
            let start = self.start(state, row, position, issue, copy, limits);
            let mut finish = start + row.latency + limits.finish;
            if row.serialized {
                finish += core.serial_done;
            }
            state.work_left[usize::from(row.unit)] -= row.sole_work;
            (start, finish, copy)
        };
        for &(register, latency) in &self.writes[row.writes.0 as usize..row.writes.1 as usize] {
            self.registers_ready[register as usize] = start + latency;
        }
        let retire = self.retire(state, row, finish, retires_oldest);
        state.retired[position % RING] = retire;
        for file in 0..FILES {
            for _ in 0..row.renames[file] {
                let slot = state.renames_taken[file] as usize % RING;
                state.renames_free[file][slot] = retire + core.free_delay;
                state.renames_taken[file] += 1;
            }
        }
        if copy != usize::MAX && self.copies[copy].in_flight > 0 {
            push_latest(&mut state.limited_retired[copy], retire);
        }
        if let Access::Store { queue_cycles } = row.access {
            self.commit_store(state, row, retire, queue_cycles);
        }
    }

    #[inline]
    fn fetch(&self, state: &mut State, position: usize) {
        let core = &self.core;
        let room = state.dispatched[(position + RING - core.iq as usize) % RING];
        let cycle = state.fetch_cycle.max(room);
        if cycle > state.fetch_cycle {
            state.fetch_cycle = cycle;
            state.fetch_count = 1;
        } else if state.fetch_count == core.fetch_width || self.line_starts[position] {
            state.fetch_cycle += 1;
            state.fetch_count = 1;
        } else {
            state.fetch_count += 1;
        }
    }

    #[inline]
    fn dispatch(&self, state: &mut State, position: usize, row: &Row) -> u32 {
        let core = &self.core;
        let mut cycle = state.dispatch_cycle.max(state.fetch_cycle + 1);
        cycle = cycle.max(state.retired[(position + RING - core.cq as usize) % RING] + core.free_delay);
        for file in 0..FILES {
            let taken = u32::from(row.renames[file]);
            if taken > 0 {
                let last = state.renames_taken[file] + taken - 1;
                let slot = (last + RING as u32 - self.renames[file]) as usize % RING;
                cycle = cycle.max(state.renames_free[file][slot]);
            }
        }
        let (queue, unit) = (usize::from(row.queue), usize::from(row.unit));
        let has_unit = row.choice_count > 0;
        if has_unit {
            cycle = cycle.max(state.issues[queue][self.queues[queue].entries - 1]);
        }
        let full = cycle == state.dispatch_cycle
            && (state.dispatch_count == core.dispatch
                || (has_unit
                    && (u32::from(state.queue_dispatched[queue]) == self.queues[queue].dispatch
                        || u32::from(state.unit_dispatched[unit]) == self.unit_dispatch[unit])));
        if full {
            cycle += 1;
        }
        if cycle != state.dispatch_cycle {
            state.dispatch_cycle = cycle;
            state.dispatch_count = 0;
            state.queue_dispatched = [0; QUEUES];
            state.unit_dispatched = [0; UNITS];
        }
        state.dispatch_count += 1;
        if has_unit {
            state.queue_dispatched[queue] += 1;
            state.unit_dispatched[unit] += 1;
        }
        state.dispatched[position % RING] = cycle;
        cycle
    }

    /// Cycle of issue and unit copy.
    #[inline]
    fn issue(&self, state: &mut State, row: &Row, earliest: u32) -> (u32, usize) {
        let queue = usize::from(row.queue);
        let limits = self.queues[queue];
        let mut cycle = earliest;
        // In the window when fewer than its size are older and not issued before this cycle.
        if limits.window <= limits.entries {
            cycle = cycle.max(state.issues[queue][limits.window - 1] + 1);
        }
        if !limits.out_of_order {
            cycle = cycle.max(state.last_issue[queue]);
        }
        let choices = &row.choices[..usize::from(row.choice_count)];
        let station_free = |copy: u8| {
            let copy = usize::from(copy) % COPIES;
            state.starts[copy][usize::from(self.copies[copy].stations) - 1]
        };
        loop {
            let mut best = (u32::MAX, 0);
            for &copy in choices {
                let at = cycle.max(station_free(copy));
                if at < best.0 {
                    best = (at, usize::from(copy));
                }
            }
            cycle = best.0;
            // A window no wider than the issue width cannot be held up by it.
            if limits.window <= limits.issue as usize
                || state.issues[queue].iter().filter(|&&issue| issue == cycle).count() < limits.issue as usize
            {
                let issues = &mut state.issues[queue];
                let mut entry = cycle;
                for slot in issues.iter_mut() {
                    if *slot < entry {
                        std::mem::swap(slot, &mut entry);
                    }
                }
                state.last_issue[queue] = cycle;
                return best;
            }
            cycle += 1;
        }
    }

    #[inline]
    fn start(&self, state: &mut State, row: &Row, position: usize, issue: u32, copy: usize, limits: CopyLimits) -> u32 {
        let core = &self.core;
        let mut cycle = (issue + 1).max(state.copy_free[copy]);
        for &register in &self.reads[row.reads.0 as usize..row.reads.1 as usize] {
            cycle = cycle.max(self.registers_ready[register as usize]);
        }
        if row.serialized {
            cycle = cycle.max(state.retired[(position + RING - 1) % RING] + core.serial_gap);
        }
        match row.access {
            Access::None => {}
            Access::Store { .. } => {
                let before = (state.store_count as usize + STORES - core.fsq as usize) % STORES;
                cycle = cycle.max(state.stores[before].left);
            }
            Access::Load => cycle = self.load_start(state, row, cycle),
        }
        push_latest(&mut state.starts[copy], cycle);
        if limits.in_flight > 0 {
            let elder = state.limited_retired[copy][usize::from(limits.in_flight) - 1];
            cycle = cycle.max(elder - 1);
        }
        state.copy_free[copy] = cycle + row.busy;
        cycle
    }

    #[inline]
    fn load_start(&self, state: &State, row: &Row, earliest: u32) -> u32 {
        let core = &self.core;
        let last = state.stores[(state.store_count as usize + STORES - 1) % STORES];
        // The youngest store is the last to become harmless.
        if last.accessed + core.turnaround < earliest {
            return earliest;
        }
        let mut cycle = earliest;
        if core.forward != Forwarding::Free {
            for store in &state.stores {
                let overlaps = row.address < store.address + u64::from(store.bytes) && store.address < row.address + u64::from(row.bytes);
                if overlaps {
                    cycle = cycle.max(if core.forward == Forwarding::Csq { store.entered } else { store.accessed });
                }
            }
        }
        for age in (1..=STORES).rev() {
            let accessed = state.stores[(state.store_count as usize + STORES - age) % STORES].accessed;
            if accessed <= cycle && cycle <= accessed + core.turnaround {
                cycle = accessed + core.turnaround + 1;
            }
        }
        cycle
    }

    #[inline]
    fn retire(&self, state: &mut State, row: &Row, finish: u32, retires_oldest: bool) -> u32 {
        let core = &self.core;
        let mut cycle = finish.max(state.retire_cycle);
        if cycle == state.retire_cycle {
            let renames = (0..FILES)
                .any(|file| row.renames[file] > 0 && u32::from(state.retire_renames[file] + row.renames[file]) > core.retire_renames);
            if state.retire_count == core.retire || retires_oldest || renames {
                cycle += 1;
            }
        }
        if cycle != state.retire_cycle {
            state.retire_cycle = cycle;
            state.retire_count = 0;
            state.retire_renames = [0; FILES];
        }
        state.retire_count += 1;
        for file in 0..FILES {
            state.retire_renames[file] += row.renames[file];
        }
        cycle
    }

    fn commit_store(&self, state: &mut State, row: &Row, retire: u32, queue_cycles: u32) {
        let core = &self.core;
        let number = state.store_count as usize + STORES;
        let elder = |back: u32| state.stores[(number - back as usize) % STORES];
        let enter = core.csq_enter.max(1);
        let left = retire.max(elder(1).left + queue_cycles).max(elder(core.csq + enter - 1).accessed + 1);
        let entered = (left + enter).max(elder(1).entered + 1).max(elder(core.csq).accessed + 1);
        let accessed = (entered + core.csq_hold.max(2) - 1).max(elder(1).accessed + 1);
        state.stores[number % STORES] = Store { address: row.address, bytes: row.bytes, left, entered, accessed };
        state.store_count += 1;
    }
}

/// Shifts `value` into an array whose first element is the latest.
#[inline]
fn push_latest<const N: usize>(latest: &mut [u32; N], value: u32) {
    latest.copy_within(0..N - 1, 1);
    latest[0] = value;
}

fn limits_exceeded(model: &TimingModel, instructions: &[InstructionTiming]) -> Vec<String> {
    let core = &model.core;
    let mut errors = Vec::new();
    let mut at_most = |what: &str, value: usize, most: usize| {
        if value > most {
            errors.push(format!("straight-line timing allows {most} {what}, not {value}"));
        }
    };
    at_most("completion queue entries", core.cq as usize, RING);
    at_most("instruction queue entries", core.iq as usize, RING);
    at_most("instructions dispatched per cycle", core.dispatch as usize, WIDTH);
    at_most("instructions retired per cycle", core.retire as usize, WIDTH);
    at_most("issue queues", model.queues.len(), QUEUES);
    at_most("units", model.units.len(), UNITS);
    at_most("unit copies", model.units.iter().map(|unit| unit.copies as usize).sum(), COPIES);
    at_most("register files with renames", model.register_files.iter().filter(|file| file.renames.is_some()).count(), FILES);
    for queue in &model.queues {
        at_most("entries of an issue queue", queue.entries as usize, QUEUE_ENTRIES);
    }
    for unit in &model.units {
        at_most("reservation stations of a unit", unit.reservation_stations as usize, STATIONS);
        at_most("instructions of a unit in flight", unit.in_flight.unwrap_or(0) as usize, IN_FLIGHT);
    }
    for file in &model.register_files {
        at_most("renames of a file", file.renames.unwrap_or(0) as usize, RING);
    }
    let stores = [core.fsq, core.csq, core.csq_enter.max(1), core.turnaround];
    at_most("store queue entries and cycles", stores.iter().map(|&part| part as usize).sum(), STORES);
    for cycles in [core.free_delay, core.serial_gap, core.serial_done, core.csq_hold, core.misalign] {
        at_most("cycles in a parameter", cycles as usize, FIRST_CYCLE as usize / 2);
    }
    for instruction in instructions {
        let choices = instruction.units.iter().map(|&unit| model.units[usize::from(unit)].copies as usize).sum();
        at_most("unit copies to choose from", choices, CHOICES);
        at_most("results of an instruction", instruction.writes.len(), WIDTH / 2);
    }
    if core.store_yields {
        errors.push("straight-line timing does not know stores that yield to loads".to_owned());
    }
    if instructions.iter().any(|instruction| instruction.branch.is_some()) {
        errors.push("straight-line timing does not know branches".to_owned());
    }
    errors
}

/// Turns instructions into rows.
struct Compiler<'a> {
    model: &'a TimingModel,
    file_offsets: Vec<usize>,
    reads: Vec<u32>,
    writes: Vec<(u32, u32)>,
}

impl<'a> Compiler<'a> {
    fn new(model: &'a TimingModel) -> Self {
        Compiler { model, file_offsets: Vec::new(), reads: Vec::new(), writes: Vec::new() }
    }

    fn compile(
        mut self,
        instructions: &[InstructionTiming],
        operands: &[StraightLineOperand],
        code_address: u64,
        instruction_bytes: u32,
    ) -> StraightLine {
        let model = self.model;
        let mut registers = 0;
        for file in 0..model.register_files.len() {
            self.file_offsets.push(registers);
            registers += super::pipeline::register_count(instructions, file);
        }
        let rows = instructions.iter().zip(operands).map(|(instruction, operand)| self.row(instruction, operand)).collect();
        let line = |position: usize| (code_address + position as u64 * u64::from(instruction_bytes)) / u64::from(model.core.fetch_line);
        let unit_copies = model.units.iter().enumerate().flat_map(|(index, unit)| {
            (0..unit.copies).map(move |_| CopyLimits {
                unit: index as u8,
                stations: unit.reservation_stations as u8,
                finish: unit.finish,
                retires_oldest: unit.retires_oldest,
                in_flight: unit.in_flight.unwrap_or(0) as u8,
            })
        });
        let mut checkpoint_spacing = CHECKPOINT_INSTRUCTIONS;
        while (instructions.len() / checkpoint_spacing + 1) * registers > CHECKPOINT_REGISTERS && checkpoint_spacing < instructions.len() {
            checkpoint_spacing *= 2;
        }
        let mut straight_line = StraightLine {
            core: model.core.clone(),
            queues: [QueueLimits { entries: 1, dispatch: 1, issue: 1, window: 1, out_of_order: false }; QUEUES],
            copies: unit_copies.collect(),
            unit_dispatch: [u32::MAX; UNITS],
            unit_copies: [0; UNITS],
            renames: [0; FILES],
            rows,
            reads: self.reads,
            writes: self.writes,
            line_starts: (0..instructions.len()).map(|position| position > 0 && line(position) != line(position - 1)).collect(),
            initial: initial_state(),
            registers_ready: vec![0; registers],
            checkpoint_spacing,
            checkpoints: Vec::new(),
            checkpoint_registers: Vec::new(),
        };
        for (limits, queue) in straight_line.queues.iter_mut().zip(&model.queues) {
            *limits = QueueLimits {
                entries: queue.entries as usize,
                dispatch: queue.dispatch,
                issue: queue.issue,
                window: queue.window as usize,
                out_of_order: queue.out_of_order,
            };
        }
        for (index, unit) in model.units.iter().enumerate() {
            straight_line.unit_dispatch[index] = unit.dispatch.unwrap_or(u32::MAX);
            straight_line.unit_copies[index] = unit.copies;
        }
        let renames = model.register_files.iter().filter_map(|file| file.renames);
        for (limit, renames) in straight_line.renames.iter_mut().zip(renames) {
            *limit = renames;
        }
        straight_line
    }

    fn register(&self, register: super::Register) -> u32 {
        (self.file_offsets[usize::from(register.file)] + register.number as usize) as u32
    }

    fn row(&mut self, instruction: &InstructionTiming, operand: &StraightLineOperand) -> Row {
        let model = self.model;
        let misaligned = instruction.memory.is_some_and(|memory| is_misaligned(model, operand.data_address, memory.bytes));
        let time = instruction.execution_time(model, operand.short_operand, misaligned);
        let mut choices = [0; CHOICES];
        let copies_of = |unit: usize| {
            let first: u32 = model.units[..unit].iter().map(|unit| unit.copies).sum();
            first..first + model.units[unit].copies
        };
        let copies = instruction.units.iter().flat_map(|&unit| copies_of(usize::from(unit)));
        let mut choice_count = 0;
        for (choice, copy) in choices.iter_mut().zip(copies) {
            *choice = copy as u8;
            choice_count += 1;
        }
        let unit = instruction.units.first().copied().unwrap_or(0);
        let reads = self.reads.len() as u32;
        for read in &instruction.reads {
            if !read.store_data || model.core.store_data_rs {
                let register = self.register(read.register);
                self.reads.push(register);
            }
        }
        let writes = self.writes.len() as u32;
        let mut renames = [0; FILES];
        for write in &instruction.writes {
            let register = self.register(write.register);
            self.writes.push((register, write.latency.unwrap_or(time.latency)));
            let file = usize::from(write.register.file);
            if model.register_files[file].renames.is_some() {
                let renamed = model.register_files[..file].iter().filter(|file| file.renames.is_some()).count();
                renames[renamed] += 1;
            }
        }
        Row {
            choices,
            choice_count,
            queue: instruction.units.first().map_or(0, |&unit| model.units[usize::from(unit)].queue as u8),
            unit,
            serialized: instruction.serialized,
            retires_oldest: instruction.must_retire_oldest(model, None),
            latency: time.latency,
            busy: time.busy,
            sole_work: if choice_count == 1 { time.busy.min(time.latency) } else { 0 },
            renames,
            reads: (reads, self.reads.len() as u32),
            writes: (writes, self.writes.len() as u32),
            access: match instruction.memory.map(|memory| memory.kind) {
                None => Access::None,
                Some(MemoryKind::Load) => Access::Load,
                Some(MemoryKind::Store { queue_cycles }) => Access::Store { queue_cycles },
            },
            address: operand.data_address,
            bytes: instruction.memory.map_or(0, |memory| memory.bytes),
        }
    }
}

fn initial_state() -> State {
    State {
        fetch_cycle: FIRST_CYCLE,
        fetch_count: 0,
        dispatch_cycle: 0,
        dispatch_count: 0,
        queue_dispatched: [0; QUEUES],
        unit_dispatched: [0; UNITS],
        retire_cycle: 0,
        retire_count: 0,
        retire_renames: [0; FILES],
        dispatched: [0; RING],
        retired: [0; RING],
        renames_free: [[0; RING]; FILES],
        renames_taken: [0; FILES],
        issues: [[0; QUEUE_ENTRIES]; QUEUES],
        last_issue: [0; QUEUES],
        starts: [[0; STATIONS]; COPIES],
        copy_free: [0; COPIES],
        limited_retired: [[1; IN_FLIGHT]; COPIES],
        store_count: 0,
        stores: [Store::default(); STORES],
        work_left: [0; UNITS],
    }
}
