//! The MPC7447 and MPC7448 as the timing simulation sees them, and rows to write programs with.

use std::collections::BTreeMap;

use kgen_schedulers::timing::*;

/// Names, values and sources of the e600 core's parameters. EC: a part's hardware specification; AN2203, AN3057:
/// Freescale application notes; GMP: its published cycles per limb on 744x/745x; GCC: its 7450 pipeline description.
pub const E600_PARAMETERS: &str = "
fetch_width 4 # MPC7447A EC
fetch_line 32 # AN2203 3.1.1
iq 12 # MPC7447A EC
bpu_window 8 # AN2203 2.3.3.8
fold_from 3 # AN2203 3.1.5
btic_bubble 1 # AN2203 2.3.3.8
fetch_bubble 2 # AN2203 4.2.3
btic_entries 128 # MPC7450 EC
bht_entries 2048 # MPC7450 EC
unresolved 3 # AN2203 3.1
mispredict_refill 3 # two fetch stages; the 6-cycle minimum of MPC7455 EC
cr_to_branch 1 # GCC: compare 2
dispatch 3 # MPC7448 EC
giq 6 # AN2203 2.3.3.3
viq 4 # AN2203 2.3.3.5
fiq 2 # AN2203 2.3.3.4
giq_dispatch 3 # MPC7448 EC
viq_dispatch 2 # MPC7448 EC
fiq_dispatch 1 # MPC7448 EC
lsu_dispatch 1 # AN2203 3.2
giq_issue 3 # AN2203 2.3.3.3
giq_window 3 # AN2203 2.3.3.3
viq_issue 2 # AN2203 2.3.3.5
viq_window 2 # AN2203 2.3.3.5 (MPC7448: assumed the same)
viq_ooo 0 # AN3057 abstract
fiq_issue 1 # AN2203 2.3.3.4
rs_lsu 2 # MPC7450UMAD 1.1
rs_iu2 2 # MPC7450UMAD 1.1
rs_fpu 2 # MPC7450UMAD 1.1
rs_iu1 1 # MPC7450UMAD 1.1
rs_vec 1 # MPC7450UMAD 1.1
iu1 3 # MPC7450 EC
cq 16 # AN2203 3.4.1
retire 3 # AN2203 3.4.2
retire_renames 3 # AN2203 3.4.2
gpr_renames 16 # MPC7448 EC
fpr_renames 16 # MPC7448 EC
vr_renames 16 # MPC7448 EC
free_delay 1 # guess
serial_gap 1 # AN2203 3.4.3
serial_done 1 # from GMP mod_34lsub1, add_n, addlsh1_n, modexact_1
store_oldest 1 # AN2203 3.7.2
iu2_oldest 1 # from GMP mul_1, addmul_1, sqr_diag_addlsh1, bdiv_dbm1c
store_data_rs 0 # AN2203 3.7.2
lat_iu1 1 # MPC7455 EC table 1
lat_mul 4 # MPC7455 EC table 1
thr_mul 2 # MPC7455 EC table 1
lat_mul16 3 # MPC7455 EC table 1
thr_mul16 1 # MPC7455 EC table 1
mul_early_out 1 # MPC7455 EC table 1
lat_div 23 # GCC
lat_mfspr 3 # GCC
lat_mtspr 2 # GCC
lat_load 3 # MPC7455 EC table 1
lat_fload 4 # MPC7455 EC table 1
misalign 1 # MPC7455 EC table 1
lat_fpu 5 # MPC7455 EC table 1
fpscr 4 # AN2203 3.5; GMP: 4 fmadd in 5 cycles
fstore_thr 3 # AN2203 3.7.2
lat_viu1 1 # MPC7455 EC table 1
lat_vpu 2 # MPC7455 EC table 1
lat_viu2 4 # MPC7455 EC table 1
lat_vfpu 4 # MPC7455 EC table 1
lat_vfcmp 2 # AN2203 3.6.1
finish 1 # AN2203 table 25 (Rev 2)
vcmp_unit VIU1 # MPC7400UM 1.2.2.4.2
vcmp_lat 1 # see vcmp_unit
fsq 3 # AN2203 3.7.2
csq 5 # AN2203 3.7.2
csq_enter 3 # AN2203 table 26
csq_hold 4 # AN2203 table 26
turnaround 1 # guess, at least this from GMP copyi
store_yields 0 # guess
forward csq # guess
";

/// What the MPC7448 (the e600 core) has otherwise.
pub const MPC7448_OVERRIDES: [(&str, &str); 1] = [("viq_ooo", "1")];

pub const GPR: u8 = 0;
pub const FPR: u8 = 1;
pub const VR: u8 = 2;
pub const CR: u8 = 3;
pub const CA: u8 = 4;
pub const LR: u8 = 5;
pub const CTR: u8 = 6;

fn queue(name: &str, window: Setting, out_of_order: Setting) -> QueueLayout {
    QueueLayout {
        name: name.to_uppercase(),
        entries: Setting::parameter(name),
        dispatch: Setting::parameter(&format!("{name}_dispatch")),
        issue: Setting::parameter(&format!("{name}_issue")),
        window,
        out_of_order,
    }
}

fn unit(name: &str, queue: &str, stations: &str) -> UnitLayout {
    UnitLayout {
        name: name.to_owned(),
        queue: queue.to_owned(),
        copies: Setting::Number(1),
        reservation_stations: Setting::parameter(stations),
        finish: Setting::Number(0),
        dispatch: None,
        in_flight: None,
        retires_oldest: Setting::Number(0),
    }
}

fn vector_unit(name: &str) -> UnitLayout {
    UnitLayout { finish: Setting::parameter("finish"), ..unit(name, "VIQ", "rs_vec") }
}

fn file(name: &str, renames: Option<&str>, branch_delay: Setting) -> RegisterFileLayout {
    RegisterFileLayout { name: name.to_owned(), renames: renames.map(Setting::parameter), branch_delay }
}

pub fn e600_layout() -> TimingLayout {
    let p = Setting::parameter;
    TimingLayout {
        queues: vec![
            queue("giq", p("giq_window"), Setting::Number(1)),
            queue("viq", p("viq_window"), p("viq_ooo")),
            queue("fiq", p("fiq_issue"), Setting::Number(0)),
        ],
        units: vec![
            UnitLayout { copies: p("iu1"), ..unit("IU1", "GIQ", "rs_iu1") },
            UnitLayout { retires_oldest: p("iu2_oldest"), ..unit("IU2", "GIQ", "rs_iu2") },
            UnitLayout { dispatch: Some(p("lsu_dispatch")), ..unit("LSU", "GIQ", "rs_lsu") },
            UnitLayout { finish: p("finish"), in_flight: Some(p("fpscr")), ..unit("FPU", "FIQ", "rs_fpu") },
            vector_unit("VIU1"),
            vector_unit("VIU2"),
            vector_unit("VPU"),
            vector_unit("VFPU"),
        ],
        register_files: vec![
            file("GPR", Some("gpr_renames"), Setting::Number(0)),
            file("FPR", Some("fpr_renames"), Setting::Number(0)),
            file("VR", Some("vr_renames"), Setting::Number(0)),
            file("CR", None, p("cr_to_branch")),
            file("CA", None, Setting::Number(0)),
            file("LR", None, Setting::Number(0)),
            file("CTR", None, Setting::Number(0)),
        ],
        misalign_boundary_bytes: 8,
        row_parameters: [
            "lat_iu1",
            "lat_mul",
            "thr_mul",
            "lat_mul16",
            "thr_mul16",
            "lat_div",
            "lat_mfspr",
            "lat_mtspr",
            "lat_load",
            "lat_fload",
            "lat_fpu",
            "fstore_thr",
            "lat_viu1",
            "lat_vpu",
            "lat_viu2",
            "lat_vfpu",
            "lat_vfcmp",
            "vcmp_unit",
            "vcmp_lat",
        ]
        .map(str::to_owned)
        .to_vec(),
    }
}

/// Names and values of [`E600_PARAMETERS`], in its order.
pub fn e600_parameters() -> Vec<(&'static str, &'static str)> {
    let lines = E600_PARAMETERS.lines().filter(|line| !line.is_empty());
    lines
        .map(|line| {
            let mut words = line.split_whitespace();
            (words.next().expect("a name"), words.next().expect("a value"))
        })
        .collect()
}

/// The common parameters with some of them overridden.
pub fn model_with(overrides: &[(&str, &str)]) -> TimingModel {
    let common = e600_parameters();
    TimingModel::from_parameters(&e600_layout(), common.into_iter().chain(overrides.iter().copied())).expect("the parameters make a model")
}

pub fn mpc7447() -> TimingModel {
    model_with(&[])
}

pub fn mpc7448() -> TimingModel {
    model_with(&MPC7448_OVERRIDES)
}

/// A register by file and number.
pub fn register(file: u8, number: u32) -> Register {
    Register { file, number }
}

/// A program under construction: instructions, and one execution of them after the other.
pub struct Program<'a> {
    pub model: &'a TimingModel,
    pub instructions: Vec<InstructionTiming>,
    pub trace: Vec<TraceEvent>,
    /// Code address of the instruction to be executed next.
    pub next: u64,
    known: BTreeMap<u64, u32>,
}

impl<'a> Program<'a> {
    pub fn new(model: &'a TimingModel) -> Self {
        Program { model, instructions: Vec::new(), trace: Vec::new(), next: 0, known: BTreeMap::new() }
    }

    pub fn latency(&self, name: &str) -> u32 {
        self.model.row_number(name).expect("a row parameter")
    }

    /// Executes an instruction at the next code address; a loop executes the instruction that it finds there again.
    pub fn execute(&mut self, instruction: InstructionTiming, change: impl FnOnce(&mut TraceEvent)) {
        let address = self.next;
        self.next += 4;
        let index = *self.known.entry(address).or_insert_with(|| {
            self.instructions.push(instruction);
            (self.instructions.len() - 1) as u32
        });
        let mut event = TraceEvent { instruction: index, code_address: address, data_address: 0, taken: false, short_operand: false };
        change(&mut event);
        self.trace.push(event);
    }

    pub fn run(&self) -> TimingReport {
        simulate(self.model, &self.instructions, &self.trace, &mut ()).expect("a valid program")
    }

    pub fn times(&self) -> Vec<EventTimes> {
        let mut times = Vec::new();
        simulate(self.model, &self.instructions, &self.trace, &mut times).expect("a valid program");
        times
    }

    pub fn cycles(&self) -> u64 {
        self.run().cycles
    }

    // Rows.

    pub fn row(&self, unit: &str, latency: u32, busy: u32, writes: &[Register], reads: &[Register]) -> InstructionTiming {
        InstructionTiming {
            units: vec![self.model.unit(unit).expect("a unit") as u8],
            time: ExecutionTime { latency, busy },
            short_time: None,
            reads: reads.iter().map(|&register| Read { register, store_data: false }).collect(),
            writes: writes.iter().map(|&register| Write { register, latency: None }).collect(),
            memory: None,
            serialized: false,
            retires_oldest: false,
            branch: None,
        }
    }

    pub fn plain(&mut self, unit: &str, latency: &str, writes: &[Register], reads: &[Register]) {
        let row = self.row(unit, self.latency(latency), 1, writes, reads);
        self.execute(row, |_| {});
    }

    pub fn iu1(&mut self, writes: &[Register], reads: &[Register]) {
        self.plain("IU1", "lat_iu1", writes, reads);
    }

    /// A carry consumer and producer: `adde`, `addze`.
    pub fn carry(&mut self, write: Register, reads: &[Register]) {
        let carry = register(CA, 0);
        let mut all = reads.to_vec();
        all.push(carry);
        let mut row = self.row("IU1", self.latency("lat_iu1"), 1, &[write, carry], &all);
        row.serialized = true;
        self.execute(row, |_| {});
    }

    /// `mullw`, `mulhwu`; the traced operand may be short.
    pub fn multiply(&mut self, write: Register, reads: &[Register], short: bool) {
        let mut row = self.row("IU2", self.latency("lat_mul"), self.latency("thr_mul"), &[write], reads);
        row.short_time = Some(ExecutionTime { latency: self.latency("lat_mul16"), busy: self.latency("thr_mul16") });
        self.execute(row, |event| event.short_operand = short);
    }

    /// A load; with `update`, the base register is written after one cycle.
    pub fn load(&mut self, write: Register, base: Register, update: bool, address: u64, bytes: u32) {
        let latency = if write.file == FPR { "lat_fload" } else { "lat_load" };
        let mut row = self.row("LSU", self.latency(latency), 1, &[write], &[base]);
        row.memory = Some(MemoryTiming { kind: MemoryKind::Load, bytes });
        if update {
            row.writes.push(Write { register: base, latency: Some(self.latency("lat_iu1")) });
        }
        self.execute(row, |event| event.data_address = address);
    }

    /// A store; with `update`, the base register is written after one cycle.
    pub fn store(&mut self, data: Register, base: Register, update: bool, address: u64, bytes: u32) {
        let queue_cycles = if data.file == FPR { self.latency("fstore_thr") } else { 1 };
        let mut row = self.row("LSU", self.latency("lat_load"), 1, &[], &[base]);
        row.reads.push(Read { register: data, store_data: true });
        row.memory = Some(MemoryTiming { kind: MemoryKind::Store { queue_cycles }, bytes });
        if update {
            row.writes.push(Write { register: base, latency: Some(self.latency("lat_iu1")) });
        }
        self.execute(row, |event| event.data_address = address);
    }

    /// `vmsum*`: VIU2.
    pub fn vmsum(&mut self, write: u32, reads: &[u32]) {
        self.vector("VIU2", "lat_viu2", write, reads);
    }

    pub fn vector(&mut self, unit: &str, latency: &str, write: u32, reads: &[u32]) {
        let reads: Vec<Register> = reads.iter().map(|&number| register(VR, number)).collect();
        self.plain(unit, latency, &[register(VR, write)], &reads);
    }

    /// An integer vector compare on the unit that the parameters name.
    pub fn vector_compare(&mut self, write: u32, reads: &[u32]) {
        let unit = self.model.row_word("vcmp_unit").expect("a unit's name").to_owned();
        self.vector(&unit, "vcmp_lat", write, reads);
    }

    /// `mtctr`.
    pub fn move_to_count(&mut self, from: Register) {
        let latency = self.latency("lat_mtspr");
        let mut row = self.row("IU2", latency, latency, &[register(CTR, 0)], &[from]);
        row.serialized = true;
        self.execute(row, |_| {});
    }

    /// `mfspr`.
    pub fn move_from_special(&mut self, to: Register, from: Register) {
        let mut row = self.row("IU2", self.latency("lat_mfspr"), 1, &[to], &[from]);
        row.serialized = true;
        self.execute(row, |_| {});
    }

    /// What takes a dispatch slot and a completion queue entry and executes nowhere.
    pub fn nothing(&mut self) {
        let row = InstructionTiming { units: Vec::new(), ..self.row("IU1", 1, 1, &[], &[]) };
        self.execute(row, |_| {});
    }

    pub fn branch(&mut self, branch: BranchTiming, reads: &[Register], writes: &[Register], taken: bool) {
        let row = InstructionTiming {
            units: Vec::new(),
            time: ExecutionTime { latency: 1, busy: 1 },
            short_time: None,
            reads: reads.iter().map(|&register| Read { register, store_data: false }).collect(),
            writes: writes.iter().map(|&register| Write { register, latency: None }).collect(),
            memory: None,
            serialized: false,
            retires_oldest: false,
            branch: Some(branch),
        };
        self.execute(row, |event| event.taken = taken);
    }

    /// `bc` on a condition register field.
    pub fn branch_if(&mut self, field: u32, taken: bool) {
        let branch = BranchTiming { conditional: true, to_register: false, updates_state: false };
        self.branch(branch, &[register(CR, field)], &[], taken);
    }

    /// `bdnz`.
    pub fn branch_count(&mut self, taken: bool) {
        let count = register(CTR, 0);
        let branch = BranchTiming { conditional: true, to_register: false, updates_state: true };
        self.branch(branch, &[count], &[count], taken);
    }
}
