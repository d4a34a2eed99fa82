//! The parameters of a superscalar core as plain data, and their construction from named values.
//!
//! Two things make a [`TimingModel`]: a [`TimingLayout`], which names the machine's queues, units and register files
//! and says which parameter (or fixed number) each of their properties takes, and a list of parameter names with
//! values. The layout is the target file's business; the parameters of the core itself ([`CORE_PARAMETERS`]) have
//! fixed names, because this module implements their meaning.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

/// The parameters that every layout needs, by the name under which they are given. What each one means is said at
/// the field of [`CoreParameters`] with the same name.
pub const CORE_PARAMETERS: [&str; 29] = [
    "fetch_width",
    "fetch_line",
    "iq",
    "bpu_window",
    "fold_from",
    "btic_bubble",
    "fetch_bubble",
    "btic_entries",
    "bht_entries",
    "unresolved",
    "mispredict_refill",
    "dispatch",
    "cq",
    "retire",
    "retire_renames",
    "free_delay",
    "serial_gap",
    "serial_done",
    "store_oldest",
    "store_data_rs",
    "mul_early_out",
    "misalign",
    "fsq",
    "csq",
    "csq_enter",
    "csq_hold",
    "turnaround",
    "store_yields",
    "forward",
];

/// A value given to a parameter: a number, or a word such as the name of a unit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ParameterValue {
    /// Cycles, entries, instructions per cycle, or 0 and 1 for a rule that is off or on.
    Number(u32),
    /// A choice by name.
    Word(String),
}

/// Where a property of a queue, a unit or a register file comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Setting {
    /// Fixed by the layout.
    Number(u32),
    /// The value of the parameter with this name.
    Parameter(String),
}

impl Setting {
    /// The parameter called `name`.
    pub fn parameter(name: &str) -> Self {
        Setting::Parameter(name.to_owned())
    }
}

/// An issue queue of a layout.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueLayout {
    /// Name in reports.
    pub name: String,
    /// Entries.
    pub entries: Setting,
    /// Instructions accepted per cycle.
    pub dispatch: Setting,
    /// Instructions issued per cycle.
    pub issue: Setting,
    /// Oldest entries that may issue.
    pub window: Setting,
    /// 1: in any order inside the window; 0: an entry that cannot issue holds those behind it.
    pub out_of_order: Setting,
}

/// An execution unit of a layout.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnitLayout {
    /// Name in reports and in rows.
    pub name: String,
    /// Name of the queue that issues to it.
    pub queue: String,
    /// Identical copies.
    pub copies: Setting,
    /// Reservation stations of each copy.
    pub reservation_stations: Setting,
    /// Cycles between the end of execution and completion.
    pub finish: Setting,
    /// Most instructions for this unit dispatched per cycle, where the machine limits them.
    pub dispatch: Option<Setting>,
    /// Most instructions between the first execution stage and retirement, where the machine limits them.
    pub in_flight: Option<Setting>,
    /// 1: its instructions retire only as the oldest of their group.
    pub retires_oldest: Setting,
}

/// A register file of a layout. Condition, carry, link and count registers are files of their own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegisterFileLayout {
    /// Name in reports and in rows.
    pub name: String,
    /// Rename registers, where they are limited.
    pub renames: Option<Setting>,
    /// Cycles from a result in this file to the branch unit using it.
    pub branch_delay: Setting,
}

/// What a target file says about a machine's structure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimingLayout {
    /// Issue queues.
    pub queues: Vec<QueueLayout>,
    /// Execution units.
    pub units: Vec<UnitLayout>,
    /// Register files.
    pub register_files: Vec<RegisterFileLayout>,
    /// A scalar access that crosses a multiple of this many bytes is misaligned.
    pub misalign_boundary_bytes: u32,
    /// Parameters that rows use (latencies, throughputs, units by name); kept in [`TimingModel::row_parameters`].
    pub row_parameters: Vec<String>,
}

/// When a load may take the bytes of an older store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Forwarding {
    /// Once the store is in the committed store queue.
    Csq,
    /// Once the store has accessed the cache.
    None,
    /// At once.
    Free,
}

/// The parameters of the core itself; `true` stands for a rule given as 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoreParameters {
    /// Instructions fetched per cycle.
    pub fetch_width: u32,
    /// Bytes of the line that a fetch group may not cross.
    pub fetch_line: u32,
    /// Instruction queue entries.
    pub iq: u32,
    /// Oldest instruction queue entries that the branch unit searches.
    pub bpu_window: u32,
    /// Lowest instruction queue entry (from 0) whose not-taken branch is folded.
    pub fold_from: u32,
    /// Fetch bubble, in cycles, of a taken branch that hits the branch target instruction cache.
    pub btic_bubble: u32,
    /// Fetch bubble, in cycles, of a miss there and of a branch to a register.
    pub fetch_bubble: u32,
    /// Entries of the branch target instruction cache, replaced least recently used first.
    pub btic_entries: u32,
    /// Two-bit counters of the branch history table.
    pub bht_entries: u32,
    /// Predicted branches that may be unresolved at once.
    pub unresolved: u32,
    /// Cycles from resolving a mispredicted branch to its target's dispatch slot.
    pub mispredict_refill: u32,
    /// Instructions dispatched per cycle.
    pub dispatch: u32,
    /// Completion queue entries.
    pub cq: u32,
    /// Instructions retired per cycle.
    pub retire: u32,
    /// Rename registers of one file retired per cycle.
    pub retire_renames: u32,
    /// Cycles from retirement until the completion queue entry and the renames may be reused.
    pub free_delay: u32,
    /// Cycles from the elder's retirement to the start of a serialized instruction.
    pub serial_gap: u32,
    /// Extra finish cycles of a serialized instruction.
    pub serial_done: u32,
    /// A store retires only as the oldest of its group.
    pub store_oldest: bool,
    /// A store waits in its reservation station for its data too.
    pub store_data_rs: bool,
    /// An instruction whose deciding operand is short takes its short time.
    pub mul_early_out: bool,
    /// Extra cycles, of latency and of the unit, of a misaligned access.
    pub misalign: u32,
    /// Finished store queue entries.
    pub fsq: u32,
    /// Committed store queue entries.
    pub csq: u32,
    /// Cycles from a store's retirement to the committed store queue.
    pub csq_enter: u32,
    /// Least cycles a store stays in the committed store queue.
    pub csq_hold: u32,
    /// Data-cache cycles lost between a store's access and a later load's.
    pub turnaround: u32,
    /// A committed store lets a load that is ready go first, unless the committed store queue is full.
    pub store_yields: bool,
    /// When a load may take the bytes of an older store.
    pub forward: Forwarding,
}

/// An issue queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queue {
    /// Name in reports.
    pub name: String,
    /// Entries.
    pub entries: u32,
    /// Instructions accepted per cycle.
    pub dispatch: u32,
    /// Instructions issued per cycle.
    pub issue: u32,
    /// Oldest entries that may issue.
    pub window: u32,
    /// Whether the entries of the window issue in any order.
    pub out_of_order: bool,
}

/// An execution unit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unit {
    /// Name in reports and in rows.
    pub name: String,
    /// Index of its queue in [`TimingModel::queues`].
    pub queue: usize,
    /// Identical copies.
    pub copies: u32,
    /// Reservation stations of each copy.
    pub reservation_stations: u32,
    /// Cycles between the end of execution and completion.
    pub finish: u32,
    /// Most instructions for this unit dispatched per cycle.
    pub dispatch: Option<u32>,
    /// Most instructions between the first execution stage and retirement.
    pub in_flight: Option<u32>,
    /// Whether its instructions retire only as the oldest of their group.
    pub retires_oldest: bool,
}

/// A register file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegisterFile {
    /// Name in reports and in rows.
    pub name: String,
    /// Rename registers, where they are limited.
    pub renames: Option<u32>,
    /// Cycles from a result in this file to the branch unit using it.
    pub branch_delay: u32,
}

/// A superscalar core, ready to be simulated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimingModel {
    /// The core itself.
    pub core: CoreParameters,
    /// Issue queues.
    pub queues: Vec<Queue>,
    /// Execution units.
    pub units: Vec<Unit>,
    /// Register files.
    pub register_files: Vec<RegisterFile>,
    /// A scalar access that crosses a multiple of this many bytes is misaligned.
    pub misalign_boundary_bytes: u32,
    /// The values that rows refer to by name.
    pub row_parameters: BTreeMap<String, ParameterValue>,
}

impl TimingModel {
    /// Builds the model that `layout` describes from parameter names and values, each value a number or a word.
    ///
    /// A name given twice takes its last value, so that a variant's overrides follow the common list.
    ///
    /// # Errors
    ///
    /// Every unknown and every missing name, every value of the wrong kind, and every number that no machine can
    /// have (a queue without entries, a width of 0), all at once.
    pub fn from_parameters<'a>(
        layout: &TimingLayout,
        parameters: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, Vec<String>> {
        let mut reader = ParameterReader::new(parameters);
        let core = reader.core();
        let queues: Vec<Queue> = layout.queues.iter().map(|queue| reader.queue(queue)).collect();
        let units = layout.units.iter().map(|unit| reader.unit(unit, &queues)).collect();
        let register_files = layout.register_files.iter().map(|file| reader.register_file(file)).collect();
        let mut row_parameters = BTreeMap::new();
        for name in &layout.row_parameters {
            if let Some(value) = reader.take(name) {
                row_parameters.insert(name.clone(), value);
            }
        }
        reader.report_unknown();
        let model =
            TimingModel { core, queues, units, register_files, misalign_boundary_bytes: layout.misalign_boundary_bytes, row_parameters };
        let mut errors = reader.errors;
        if errors.is_empty() {
            errors = model.validate();
        }
        if errors.is_empty() { Ok(model) } else { Err(errors) }
    }

    /// The number that rows call `name`.
    pub fn row_number(&self, name: &str) -> Option<u32> {
        match self.row_parameters.get(name) {
            Some(ParameterValue::Number(number)) => Some(*number),
            _ => None,
        }
    }

    /// The word that rows call `name`.
    pub fn row_word(&self, name: &str) -> Option<&str> {
        match self.row_parameters.get(name) {
            Some(ParameterValue::Word(word)) => Some(word),
            _ => None,
        }
    }

    /// The index of the unit called `name`.
    pub fn unit(&self, name: &str) -> Option<usize> {
        self.units.iter().position(|unit| unit.name == name)
    }

    /// The index of the register file called `name`.
    pub fn register_file(&self, name: &str) -> Option<usize> {
        self.register_files.iter().position(|file| file.name == name)
    }

    /// What makes this model impossible to simulate: an instruction could never move on. Empty when nothing does.
    pub fn validate(&self) -> Vec<String> {
        let mut errors = Vec::new();
        let mut positive = |what: String, value: u32| {
            if value == 0 {
                errors.push(format!("{what} must be at least 1"));
            }
        };
        let core = &self.core;
        for (name, value) in [
            ("fetch_width", core.fetch_width),
            ("fetch_line", core.fetch_line),
            ("iq", core.iq),
            ("bpu_window", core.bpu_window),
            ("btic_entries", core.btic_entries),
            ("bht_entries", core.bht_entries),
            ("unresolved", core.unresolved),
            ("dispatch", core.dispatch),
            ("cq", core.cq),
            ("retire", core.retire),
            ("retire_renames", core.retire_renames),
            ("fsq", core.fsq),
            ("csq", core.csq),
            ("misalign_boundary_bytes", self.misalign_boundary_bytes),
        ] {
            positive(name.to_owned(), value);
        }
        for queue in &self.queues {
            positive(format!("entries of queue {}", queue.name), queue.entries);
            positive(format!("dispatch of queue {}", queue.name), queue.dispatch);
            positive(format!("issue of queue {}", queue.name), queue.issue);
            positive(format!("window of queue {}", queue.name), queue.window);
        }
        for unit in &self.units {
            positive(format!("copies of unit {}", unit.name), unit.copies);
            positive(format!("reservation stations of unit {}", unit.name), unit.reservation_stations);
            positive(format!("dispatch of unit {}", unit.name), unit.dispatch.unwrap_or(1));
            positive(format!("in-flight limit of unit {}", unit.name), unit.in_flight.unwrap_or(1));
        }
        for file in &self.register_files {
            positive(format!("renames of register file {}", file.name), file.renames.unwrap_or(1));
        }
        for unit in &self.units {
            if unit.queue >= self.queues.len() {
                errors.push(format!("unit {} has no queue", unit.name));
            }
            // One order of starts is what makes "the four oldest in flight" a question with one answer.
            if unit.in_flight.is_some() && unit.copies != 1 {
                errors.push(format!("unit {} has an in-flight limit, so it must have one copy", unit.name));
            }
        }
        errors
    }
}

/// Takes values by name and collects what is wrong with them.
struct ParameterReader {
    values: BTreeMap<String, String>,
    used: BTreeSet<String>,
    errors: Vec<String>,
}

impl ParameterReader {
    fn new<'a>(parameters: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let values = parameters.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        ParameterReader { values, used: BTreeSet::new(), errors: Vec::new() }
    }

    fn take(&mut self, name: &str) -> Option<ParameterValue> {
        let first_use = self.used.insert(name.to_owned());
        match self.values.get(name) {
            Some(text) => Some(match text.parse() {
                Ok(number) => ParameterValue::Number(number),
                Err(_) => ParameterValue::Word(text.clone()),
            }),
            None => {
                if first_use {
                    self.errors.push(format!("missing timing parameter `{name}`"));
                }
                None
            }
        }
    }

    // After an error the value does not matter: `from_parameters` returns the errors, never the model.
    fn number(&mut self, name: &str) -> u32 {
        match self.take(name) {
            Some(ParameterValue::Number(number)) => number,
            Some(ParameterValue::Word(word)) => {
                self.errors.push(format!("timing parameter `{name}` must be a number, not `{word}`"));
                0
            }
            None => 0,
        }
    }

    fn flag(&mut self, name: &str) -> bool {
        let number = self.number(name);
        if number > 1 {
            self.errors.push(format!("timing parameter `{name}` must be 0 or 1, not {number}"));
        }
        number == 1
    }

    fn forward(&mut self) -> Forwarding {
        match self.take("forward") {
            Some(ParameterValue::Word(word)) if word == "csq" => Forwarding::Csq,
            Some(ParameterValue::Word(word)) if word == "none" => Forwarding::None,
            Some(ParameterValue::Word(word)) if word == "free" => Forwarding::Free,
            Some(other) => {
                let given = match other {
                    ParameterValue::Number(number) => number.to_string(),
                    ParameterValue::Word(word) => word,
                };
                self.errors.push(format!("timing parameter `forward` must be csq, none or free, not `{given}`"));
                Forwarding::Csq
            }
            None => Forwarding::Csq,
        }
    }

    fn setting(&mut self, setting: &Setting) -> u32 {
        match setting {
            Setting::Number(number) => *number,
            Setting::Parameter(name) => self.number(name),
        }
    }

    fn flag_setting(&mut self, setting: &Setting) -> bool {
        match setting {
            Setting::Number(number) => *number != 0,
            Setting::Parameter(name) => self.flag(name),
        }
    }

    fn core(&mut self) -> CoreParameters {
        CoreParameters {
            fetch_width: self.number("fetch_width"),
            fetch_line: self.number("fetch_line"),
            iq: self.number("iq"),
            bpu_window: self.number("bpu_window"),
            fold_from: self.number("fold_from"),
            btic_bubble: self.number("btic_bubble"),
            fetch_bubble: self.number("fetch_bubble"),
            btic_entries: self.number("btic_entries"),
            bht_entries: self.number("bht_entries"),
            unresolved: self.number("unresolved"),
            mispredict_refill: self.number("mispredict_refill"),
            dispatch: self.number("dispatch"),
            cq: self.number("cq"),
            retire: self.number("retire"),
            retire_renames: self.number("retire_renames"),
            free_delay: self.number("free_delay"),
            serial_gap: self.number("serial_gap"),
            serial_done: self.number("serial_done"),
            store_oldest: self.flag("store_oldest"),
            store_data_rs: self.flag("store_data_rs"),
            mul_early_out: self.flag("mul_early_out"),
            misalign: self.number("misalign"),
            fsq: self.number("fsq"),
            csq: self.number("csq"),
            csq_enter: self.number("csq_enter"),
            csq_hold: self.number("csq_hold"),
            turnaround: self.number("turnaround"),
            store_yields: self.flag("store_yields"),
            forward: self.forward(),
        }
    }

    fn queue(&mut self, layout: &QueueLayout) -> Queue {
        Queue {
            name: layout.name.clone(),
            entries: self.setting(&layout.entries),
            dispatch: self.setting(&layout.dispatch),
            issue: self.setting(&layout.issue),
            window: self.setting(&layout.window),
            out_of_order: self.flag_setting(&layout.out_of_order),
        }
    }

    fn unit(&mut self, layout: &UnitLayout, queues: &[Queue]) -> Unit {
        let queue = queues.iter().position(|queue| queue.name == layout.queue);
        if queue.is_none() {
            self.errors.push(format!("unit {} names the unknown queue `{}`", layout.name, layout.queue));
        }
        Unit {
            name: layout.name.clone(),
            queue: queue.unwrap_or(usize::MAX),
            copies: self.setting(&layout.copies),
            reservation_stations: self.setting(&layout.reservation_stations),
            finish: self.setting(&layout.finish),
            dispatch: layout.dispatch.as_ref().map(|setting| self.setting(setting)),
            in_flight: layout.in_flight.as_ref().map(|setting| self.setting(setting)),
            retires_oldest: self.flag_setting(&layout.retires_oldest),
        }
    }

    fn register_file(&mut self, layout: &RegisterFileLayout) -> RegisterFile {
        RegisterFile {
            name: layout.name.clone(),
            renames: layout.renames.as_ref().map(|setting| self.setting(setting)),
            branch_delay: self.setting(&layout.branch_delay),
        }
    }

    fn report_unknown(&mut self) {
        for name in self.values.keys() {
            if !self.used.contains(name) {
                self.errors.push(format!("unknown timing parameter `{name}`"));
            }
        }
    }
}
