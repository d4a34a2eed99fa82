//! A small machine with the pipeline of a superscalar vector core, and programs for it, made by hand so that these tests depend on no target file.
#![allow(missing_docs)]

use kgen_ir::arena::Arena;
use kgen_ir::body::{Body, Effect, NaryOp, Node, NodeHandle, Op, Port};
use kgen_ir::kernel::Direction;
use kgen_ir::source::Span;
use kgen_ir::types::{ByteOrder, Type};
use kgen_schedulers::allocation::Allocation;
use kgen_schedulers::assemble::assemble;
use kgen_schedulers::check::{Products, SecretAddresses, Violation, check};
use kgen_schedulers::code::CodeInstruction;
use kgen_schedulers::driver::{Built, DriverOptions, build};
use kgen_schedulers::machine::*;
use kgen_schedulers::program::*;
use kgen_schedulers::schedule::Schedule;

pub const V: FileId = FileId(0);
pub const R: FileId = FileId(1);

fn file(name: &str, width_bits: u32, count: u32) -> RegisterFile {
    RegisterFile {
        name: name.to_owned(),
        width_bits,
        count: Some(count),
        scalar: false,
        sticky: false,
        text: format!("{name}{{n}}"),
        inline_name: None,
        inline_class: None,
        inline_base_class: None,
        spellings: Vec::new(),
        reserved: Vec::new(),
        saved: Vec::new(),
        zero_in_base: None,
        inline_reserved: Vec::new(),
        tuples: Vec::new(),
        renames: None,
        branch_delay_cycles: 0,
        side: None,
        cite: String::new(),
    }
}

fn queue(name: &str, entries: u32, dispatch: u32, issue: u32, window: u32) -> Queue {
    Queue { name: name.to_owned(), entries, dispatch, issue, window, out_of_order: true, cite: String::new() }
}

fn unit(name: &str, queue: Option<&str>, copies: u32, finish_cycles: u32) -> Unit {
    Unit {
        name: name.to_owned(),
        copies,
        queue: queue.map(str::to_owned),
        stations: 1,
        finish_cycles,
        dispatch: None,
        in_flight: None,
        retires_oldest: false,
        side: None,
        cite: String::new(),
    }
}

/// Operands as text: `d=v` written, `a:v` read, `b:r|0` register or zero, `i:imm`, `l:label`; `*` implicit, `~n` tied, `!` early clobber.
fn operands(machine: &Machine, text: &str) -> Vec<RowOperand> {
    text.split_whitespace()
        .map(|word| {
            let split = word.find(['=', ':']).expect("an operand has a kind");
            let (name, rest) = word.split_at(split);
            let written = rest.starts_with('=');
            let kind: String = rest[1..].chars().take_while(|letter| letter.is_alphanumeric()).collect();
            let kind = match kind.as_str() {
                "imm" => OperandKind::Immediate { low: -32768, high: 32768, step: 1 },
                "label" => OperandKind::Label,
                name if rest.contains("|0") => OperandKind::RegisterOrZero(machine.file_named(name).expect("a file")),
                name => OperandKind::Register(machine.file_named(name).expect("a file")),
            };
            let tied = rest
                .find('~')
                .map(|at| rest[at + 1..].chars().take_while(char::is_ascii_digit).collect::<String>().parse().expect("a number"));
            RowOperand {
                name: name.to_owned(),
                kind,
                read: !written,
                written,
                tied,
                early_clobber: rest.contains('!'),
                implicit: rest.contains('*'),
                fixed_register: None,
                tuple: 1,
            }
        })
        .collect()
}

pub enum Meaning {
    /// All that is read is mixed.
    Mix,
    Store,
    Load(u32),
}

fn meaning(machine: &Machine, operands: &[RowOperand], meaning: &Meaning) -> Body {
    let mut body = Body { inputs: Vec::new(), nodes: Arena::default(), effects: Vec::new(), outputs: Vec::new() };
    let span = Span::default();
    let ty = |operand: &RowOperand| match operand.kind {
        OperandKind::Register(file) | OperandKind::RegisterOrZero(file) => machine[file].value_type(1),
        _ => Type::bits(32),
    };
    let push = |body: &mut Body, op: Op, ty: Type| body.nodes.push(Node { op, ty, span, name: String::new() });
    let mut inputs: Vec<NodeHandle> = Vec::new();
    for operand in operands.iter().filter(|operand| operand.read) {
        body.inputs.push(Port { name: operand.name.clone(), ty: ty(operand), span });
        let input = push(&mut body, Op::Input(inputs.len() as u32), ty(operand));
        inputs.push(input);
    }
    match meaning {
        Meaning::Mix => {
            for operand in operands.iter().filter(|operand| operand.written) {
                let node = match inputs.as_slice() {
                    [] => push(&mut body, Op::Undefined, ty(operand)),
                    [one] => *one,
                    [first, ..] if Some(&body.nodes[*first].ty) == Some(&ty(operand)) => {
                        push(&mut body, Op::Nary(NaryOp::Add, inputs.clone()), ty(operand))
                    }
                    [first, ..] => push(&mut body, Op::Resize(*first), ty(operand)),
                };
                body.outputs.push((Port { name: operand.name.clone(), ty: ty(operand), span }, node));
            }
        }
        Meaning::Store => {
            let address = push(&mut body, Op::Nary(NaryOp::Add, inputs[1..].to_vec()), Type::bits(32));
            let bytes = body.nodes[inputs[0]].ty.total_bits().unwrap_or(8) / 8;
            let value = push(&mut body, Op::Reinterpret(inputs[0], ByteOrder::Big), Type::vector(8, bytes));
            body.effects.push(Effect::Store { address, value, condition: None });
        }
        Meaning::Load(bytes) => {
            let address = push(&mut body, Op::Nary(NaryOp::Add, inputs.clone()), Type::bits(32));
            let loaded = push(&mut body, Op::Load { address }, Type::vector(8, *bytes));
            let written = operands.iter().find(|operand| operand.written).expect("a load writes");
            let value = push(&mut body, Op::Reinterpret(loaded, ByteOrder::Big), ty(written));
            body.outputs.push((Port { name: written.name.clone(), ty: ty(written), span }, value));
        }
    }
    body
}

struct Timing {
    units: &'static [&'static str],
    latency: u32,
}

fn add_row(machine: &mut Machine, name: &str, text: &str, timing: Timing, says: Meaning, control: Option<ControlKind>) {
    let operands = operands(machine, text);
    let units = timing.units.iter().map(|name| UnitId(machine.units.iter().position(|unit| unit.name == *name).expect("a unit") as u16));
    let timing = RowTiming {
        units: units.collect(),
        latency_cycles: timing.latency,
        latency_of: Vec::new(),
        throughput_cycles: 1,
        short: None,
        serialized: false,
        retires_oldest: false,
        class: TimingClass::Constant,
        cite: String::new(),
        guess: false,
    };
    let row = Row {
        name: name.to_owned(),
        meaning: meaning(machine, &operands, &says),
        operands,
        meaning_text: String::new(),
        timing,
        assembly: Some(name.to_owned()),
        aliases: Vec::new(),
        rust: None,
        control,
        code_bytes: 4,
        span: Span::default(),
    };
    machine.rows.push(row);
}

/// A superscalar machine with this many vector registers.
pub fn superscalar(vectors: u32) -> Machine {
    let mut machine = empty();
    machine.register_files = vec![file("v", 128, vectors), file("r", 32, 32), file("CA", 1, 1), file("CTR", 32, 1)];
    machine.register_files[0].saved = (20..vectors).collect();
    machine.register_files[0].renames = Some(16);
    machine.register_files[1].reserved = vec![1, 2, 13];
    machine.register_files[1].saved = (14..32).collect();
    machine.register_files[1].zero_in_base = Some(0);
    machine.register_files[1].renames = Some(16);
    machine.queues = vec![queue("GIQ", 6, 3, 3, 3), queue("VIQ", 4, 2, 2, 2)];
    machine.units = vec![
        unit("IU1", Some("GIQ"), 3, 0),
        unit("LSU", Some("GIQ"), 1, 0),
        unit("VIU1", Some("VIQ"), 1, 1),
        unit("VIU2", Some("VIQ"), 1, 1),
        unit("VPU", Some("VIQ"), 1, 1),
        unit("BPU", None, 1, 0),
    ];
    machine.units[1].dispatch = Some(1);
    machine.units[1].stations = 2;
    let figures = "fetch_width 4 fetch_line 32 iq 12 bpu_window 8 fold_from 3 btic_bubble 1 fetch_bubble 2 btic_entries 128 bht_entries 2048 \
        unresolved 3 mispredict_refill 3 dispatch 3 cq 16 retire 3 retire_renames 3 free_delay 1 serial_gap 1 serial_done 1 store_oldest 1 \
        store_data_rs 0 mul_early_out 1 misalign 1 fsq 3 csq 5 csq_enter 3 csq_hold 4 turnaround 1 store_yields 0 forward csq";
    let words: Vec<&str> = figures.split_whitespace().collect();
    let parameter =
        |pair: &[&str]| Parameter { name: pair[0].to_owned(), value: pair[1].to_owned(), meaning: String::new(), cite: String::new() };
    machine.parameters = words.chunks(2).map(parameter).collect();
    machine.misalign_boundary_bytes = Some(8);
    let (iu, lsu, simple, complex, permute) = (&["IU1"], &["LSU"], &["VIU1"], &["VIU2"], &["VPU"]);
    let rows: [(&str, &str, &'static [&'static str], u32, Meaning); 14] = [
        ("vsum", "d=v a:v b:v c:v", complex, 4, Meaning::Mix),
        ("vadd", "d=v a:v b:v", simple, 1, Meaning::Mix),
        ("vperm", "d=v a:v b:v c:v", permute, 2, Meaning::Mix),
        ("vone", "d=v", permute, 2, Meaning::Mix),
        ("vinto", "d=v a:v~0 b:v", simple, 1, Meaning::Mix),
        ("vearly", "d=v! a:v b:v", simple, 1, Meaning::Mix),
        ("vmr", "d=v a:v", simple, 1, Meaning::Mix),
        ("lvx", "d=v a:r|0 b:r", lsu, 3, Meaning::Load(16)),
        ("stvx", "s:v a:r|0 b:r", lsu, 3, Meaning::Store),
        ("li", "d=r i:imm", iu, 1, Meaning::Mix),
        ("mr", "d=r a:r", iu, 1, Meaning::Mix),
        ("add", "d=r a:r b:r", iu, 1, Meaning::Mix),
        ("addc", "d=r c=CA* a:r b:r", iu, 1, Meaning::Mix),
        ("adde", "d=r c=CA* a:r b:r e:CA*", iu, 1, Meaning::Mix),
    ];
    for (name, text, units, latency, says) in rows {
        add_row(&mut machine, name, text, Timing { units, latency }, says, None);
    }
    add_row(&mut machine, "lwz", "d=r i:imm a:r|0", Timing { units: lsu, latency: 3 }, Meaning::Load(4), None);
    add_row(&mut machine, "stw", "s:r i:imm a:r|0", Timing { units: lsu, latency: 3 }, Meaning::Store, None);
    add_row(&mut machine, "mtctr", "d=CTR* a:r", Timing { units: iu, latency: 2 }, Meaning::Mix, None);
    add_row(
        &mut machine,
        "bdnz",
        "d=CTR* a:CTR* l:label",
        Timing { units: &["BPU"], latency: 1 },
        Meaning::Mix,
        Some(ControlKind::CountedJump),
    );
    machine.abi = Some(Abi {
        integer_file: R,
        arguments: (3..11).collect(),
        stack_pointer: 1,
        stack_align_bytes: 16,
        frame_header_bytes: 8,
        prologue: vec![
            FrameStep::Once("push {frame}".to_owned()),
            FrameStep::EachSaved { file: R, lines: vec!["save r{register} {offset}".to_owned()] },
            FrameStep::EachSaved { file: V, lines: vec!["save v{register} {offset}".to_owned()] },
        ],
        epilogue: vec![FrameStep::Always("return".to_owned())],
        directives: Vec::new(),
        cite: String::new(),
    });
    machine
}

/// A machine with two units, bundles of two, and latencies that the schedule must keep.
pub fn exposed() -> Machine {
    let mut machine = empty();
    machine.register_files = vec![file("v", 128, 8), file("r", 32, 8)];
    machine.units = vec![unit("A", None, 1, 0), unit("B", None, 1, 0)];
    let must = |kind, limit| Hazard { kind, enforcement: Enforcement::Must, limit, cite: String::new() };
    machine.hazards = vec![
        must(HazardKind::UnitPerCycle, None),
        must(HazardKind::Latency, None),
        must(HazardKind::BundleShape, Some(2)),
        must(HazardKind::ResultPort, Some(1)),
        must(HazardKind::MemoryPort, Some(1)),
    ];
    add_row(&mut machine, "one", "d=v", Timing { units: &["A", "B"], latency: 1 }, Meaning::Mix, None);
    add_row(&mut machine, "mul", "d=v a:v b:v", Timing { units: &["A"], latency: 3 }, Meaning::Mix, None);
    add_row(&mut machine, "xor", "d=v a:v b:v", Timing { units: &["A", "B"], latency: 1 }, Meaning::Mix, None);
    machine
}

fn empty() -> Machine {
    Machine {
        name: "testbed".to_owned(),
        summary: String::new(),
        byte_order: ByteOrder::Big,
        memory: MemoryKind::Flat,
        instruction_cache_bytes: None,
        word_bits: 32,
        instruction_bytes: 4,
        comment: "#".to_owned(),
        parallel: None,
        misalign_boundary_bytes: None,
        register_files: Vec::new(),
        queues: Vec::new(),
        units: Vec::new(),
        hazards: Vec::new(),
        rows: Vec::new(),
        parameters: Vec::new(),
        abi: None,
        intrinsics: None,
        forms: Vec::new(),
        guesses: Vec::new(),
    }
}

/// Builds programs instruction by instruction; results are made as they are named.
pub struct ProgramBuilder<'a> {
    pub machine: &'a Machine,
    pub program: Program,
}

impl<'a> ProgramBuilder<'a> {
    pub fn new(machine: &'a Machine) -> Self {
        let program = Program {
            name: "sample".to_owned(),
            parameters: Vec::new(),
            regions: Vec::new(),
            layouts: Vec::new(),
            values: Vec::new(),
            stack_pointer: None,
            blocks: vec![Block::default()],
            loops: Vec::new(),
            montgomery: None,
            notes: Vec::new(),
        };
        Self { machine, program }
    }

    pub fn value(&mut self, file: FileId) -> ValueId {
        let name = format!("x{}", self.program.values.len());
        self.program.values.push(Value { file, tuple: 1, name, secret: false, rematerializable: false });
        ValueId(self.program.values.len() as u32 - 1)
    }

    /// A pointer parameter to a region of this many bytes.
    pub fn pointer(&mut self, bytes: u64) -> (RegionId, ValueId) {
        let value = self.value(R);
        let region = RegionId(self.program.regions.len() as u32);
        let index = self.program.parameters.len() as u32;
        self.program.regions.push(Region {
            name: format!("area{}", region.0),
            kind: RegionKind::Parameter { index },
            bytes: Some(bytes),
            align_bytes: 16,
            written: true,
            secret: false,
            may_alias: Vec::new(),
            contents: None,
        });
        self.program.layouts.push(Layout::Bytes);
        self.program.parameters.push(ProgramParameter {
            name: format!("p{index}"),
            kind: ProgramParameterKind::Pointer { region, value },
            direction: Direction::InOut,
            secret: false,
        });
        (region, value)
    }

    pub fn block(&mut self) -> BlockId {
        self.program.blocks.push(Block::default());
        BlockId(self.program.blocks.len() as u32 - 1)
    }

    /// Appends to the last block. `given` are the operands that are read and immediates, in order; results get new values, which are returned.
    pub fn emit(&mut self, row: &str, given: &[Operand]) -> Vec<ValueId> {
        self.emit_with(row, given, None)
    }

    pub fn emit_with(&mut self, row: &str, given: &[Operand], memory: Option<MemoryAccess>) -> Vec<ValueId> {
        let row = self.machine.row_named(row).expect("a row");
        let mut given = given.iter().cloned();
        let mut results = Vec::new();
        let declared = self.machine[row].operands.clone();
        let operands = declared
            .iter()
            .map(|declared| match declared.kind {
                OperandKind::Register(file) if declared.written => {
                    results.push(self.value(file));
                    Operand::Value(results[results.len() - 1])
                }
                _ => given.next().expect("an operand for everything read"),
            })
            .collect();
        assert!(given.next().is_none(), "an operand too many");
        let block = self.program.blocks.last_mut().expect("a block");
        block.instructions.push(Instruction { row, operands, memory, span: None });
        results
    }

    pub fn one(&mut self, row: &str, read: &[ValueId]) -> ValueId {
        let operands: Vec<Operand> = read.iter().map(|value| Operand::Value(*value)).collect();
        self.emit(row, &operands)[0]
    }

    /// Loads 16 bytes of a region.
    pub fn load(&mut self, (region, pointer): (RegionId, ValueId), offset: u64) -> ValueId {
        let index = self.emit("li", &[Operand::Immediate(offset as i64)])[0];
        let access = MemoryAccess { region, low: offset, high: offset + 16, read: true, write: false };
        self.emit_with("lvx", &[Operand::Value(pointer), Operand::Value(index)], Some(access))[0]
    }

    pub fn store(&mut self, (region, pointer): (RegionId, ValueId), offset: u64, value: ValueId) {
        let index = self.emit("li", &[Operand::Immediate(offset as i64)])[0];
        let access = MemoryAccess { region, low: offset, high: offset + 16, read: false, write: true };
        self.emit_with("stvx", &[Operand::Value(value), Operand::Value(pointer), Operand::Value(index)], Some(access));
    }
}

/// Builds, assembles and has the independent checker look at it.
pub fn build_checked(machine: &Machine, program: Program) -> Built {
    build_checked_with(machine, program, DriverOptions::default())
}

pub fn build_checked_with(machine: &Machine, program: Program, options: DriverOptions) -> Built {
    let built = build(program, machine, options).expect("it fits after the driver's changes");
    let violations = violations(machine, &built.program, &built.schedule, &built.allocation);
    assert!(violations.is_empty(), "{}", violations.iter().map(|violation| format!("{violation}\n")).collect::<String>());
    built
}

pub fn violations(machine: &Machine, program: &Program, schedule: &Schedule, allocation: &Allocation) -> Vec<Violation> {
    let nothing = |_: &Machine, _: &str| -> Result<Vec<CodeInstruction>, String> { Ok(Vec::new()) };
    let code = assemble(program, machine, schedule, allocation, &nothing).expect("products fit together");
    let products = Products { machine, program, schedule, allocation, code: &code, secret_addresses: SecretAddresses::Refused };
    check(products).err().unwrap_or_default()
}
