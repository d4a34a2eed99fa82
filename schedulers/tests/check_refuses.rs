//! Every rule of the checker has products that it refuses, and the same products before they were spoilt that it accepts.

use kgen_ir::source::Source;
use kgen_schedulers::allocation::Allocation;
use kgen_schedulers::assemble::assemble;
use kgen_schedulers::assembly;
use kgen_schedulers::check::{Products, SecretAddresses, check};
use kgen_schedulers::code::{Code, CodeInstruction, CodeOperand};
use kgen_schedulers::driver::{self, DriverOptions};
use kgen_schedulers::lowering::{self, Options};
use kgen_schedulers::machine::{Enforcement, HazardKind, Machine, OperandKind};
use kgen_schedulers::program::{Block, Instruction, MemoryAccess, Operand, Program, Region, RegionId, RegionKind, Value, ValueId};
use kgen_schedulers::schedule::{BlockSchedule, Schedule, Slot};
use kgen_schedulers::target_file;
use std::collections::BTreeMap;
use std::sync::Arc;

struct Built {
    machine: Machine,
    program: Program,
    schedule: Schedule,
    allocation: Allocation,
    code: Code,
}

impl Built {
    fn rules(&self) -> Vec<&'static str> {
        let products = Products {
            machine: &self.machine,
            program: &self.program,
            schedule: &self.schedule,
            allocation: &self.allocation,
            code: &self.code,
            secret_addresses: SecretAddresses::Refused,
        };
        check(products).err().unwrap_or_default().into_iter().map(|violation| violation.rule).collect()
    }

    fn body(&self) -> usize {
        let label = format!(".Lbody_{}", self.program.name);
        self.code.labels.iter().find(|(name, _)| *name == label).expect("the body's label").1
    }

    /// Exchanges two neighbours of a block, in schedule and code alike.
    fn exchange(&mut self, block: usize, place: usize) {
        let before: usize = self.program.blocks[..block].iter().map(|block| block.instructions.len()).sum();
        let start = self.body() + before;
        let slots = &mut self.schedule.blocks[block].slots;
        let (a, b) = (slots[place].instruction, slots[place + 1].instruction);
        slots[place].instruction = b;
        slots[place + 1].instruction = a;
        self.code.instructions.swap(start + place, start + place + 1);
    }
}

/// A kernel of a text on e600, as the driver makes it.
fn built(text: &str) -> Built {
    let machine = target_file::embedded_machine("e600").expect("the target");
    let source = Arc::new(Source { name: "test.ir".to_owned(), text: text.to_owned() });
    let kernel = kgen_ir::parse_unit(source, &[]).expect("a valid unit").0.kernels.remove(0);
    let program = lowering::lower(&kernel, &machine, &Options::default()).expect("lowered").functions.remove(0).1;
    let built = driver::build(program, &machine, DriverOptions::default()).expect("fits");
    let read = |machine: &Machine, line: &str| {
        assembly::parse(machine, &Source { name: String::new(), text: line.to_owned() })
            .map(|code| code.instructions)
            .map_err(|errors| errors[0].message.clone())
    };
    let code = assemble(&built.program, &machine, &built.schedule, &built.allocation, &read).expect("assembled");
    let result = Built { machine, program: built.program, schedule: built.schedule, allocation: built.allocation, code };
    assert_eq!(result.rules(), Vec::<&str>::new(), "the driver's own products");
    result
}

const PRODUCT: &str = "kernel product(a: nat<128>, b: nat<128>) -> nat<256> { a * b }";

#[test]
fn a_reader_before_its_writer_is_refused() {
    let mut refused = 0;
    let good = built(PRODUCT);
    let slots = &good.schedule.blocks[0].slots;
    for place in 0..slots.len() - 1 {
        let instructions = &good.program.blocks[0].instructions;
        let (first, second) = (&instructions[slots[place].instruction as usize], &instructions[slots[place + 1].instruction as usize]);
        let depends = second.reads(&good.machine).any(|(_, read)| first.writes(&good.machine).any(|(_, written)| written == read));
        if depends {
            let mut spoilt = built(PRODUCT);
            spoilt.exchange(0, place);
            assert!(spoilt.rules().contains(&"holds"), "place {place}: {:?}", spoilt.rules());
            refused += 1;
            if refused == 3 {
                return;
            }
        }
    }
    assert!(refused > 0, "no neighbours depend on each other");
}

#[test]
fn another_register_is_refused() {
    let mut spoilt = built(PRODUCT);
    let start = spoilt.body();
    let file = spoilt.machine.file_named("v").expect("a file");
    let place = (start..spoilt.code.instructions.len())
        .filter(|index| {
            spoilt.code.instructions[*index]
                .operands
                .iter()
                .filter(|operand| matches!(operand, CodeOperand::Register(of, _) if *of == file))
                .count()
                > 2
        })
        .nth(20)
        .expect("an instruction of three vectors");
    let operand = spoilt.code.instructions[place].operands.last_mut().expect("an operand");
    if let CodeOperand::Register(_, number) = operand {
        *number = (*number + 1) % 32;
    }
    assert!(!spoilt.rules().is_empty());
}

#[test]
fn another_constant_a_missing_instruction_and_one_done_twice_are_refused() {
    let mut spoilt = built(PRODUCT);
    let constant = spoilt.code.instructions.iter_mut().skip(spoilt.program.blocks.len()).find_map(|instruction| {
        instruction.operands.iter_mut().find_map(|operand| match operand {
            CodeOperand::Immediate(value) if *value == 13 => Some(value),
            _ => None,
        })
    });
    *constant.expect("a constant") += 1;
    assert_eq!(spoilt.rules(), ["complete"]);

    let mut spoilt = built(PRODUCT);
    let start = spoilt.body();
    spoilt.code.instructions.remove(start + 5);
    for (_, place) in &mut spoilt.code.labels {
        *place -= usize::from(*place > start + 5);
    }
    assert_eq!(spoilt.rules(), ["complete"]);

    let mut spoilt = built(PRODUCT);
    spoilt.schedule.blocks[0].slots[3].instruction = spoilt.schedule.blocks[0].slots[4].instruction;
    assert!(spoilt.rules().contains(&"complete"));
}

#[test]
fn a_load_before_the_store_of_the_same_bytes_is_refused() {
    // The index goes through memory to the lanes.
    let text = "kernel choose(m: setup modulus<64>, t: [residue<m>; 3] secret, i: u32 secret) -> residue<m> secret { t[i] }";
    let good = built(text);
    let instructions = &good.program.blocks[0].instructions;
    let frame = |instruction: &Instruction, write: bool| {
        instruction
            .memory
            .as_ref()
            .is_some_and(|access| access.write == write && good.program.regions[access.region.0 as usize].kind == RegionKind::Frame)
    };
    let place = |write: bool| {
        let slots = &good.schedule.blocks[0].slots;
        slots.iter().position(|slot| frame(&instructions[slot.instruction as usize], write)).expect("a frame access")
    };
    let (store, load) = (place(true), place(false));
    assert!(store < load);
    let mut spoilt = built(text);
    for place in (store..load).rev() {
        spoilt.exchange(0, place);
    }
    assert!(spoilt.rules().contains(&"memory"), "{:?}", spoilt.rules());
}

#[test]
fn secrets_in_addresses_branches_and_variable_time_are_refused() {
    let cases = [
        ("kernel k(t: [u32; 16], i: u32) -> u32 { t[i] }", "i", "secret-address"),
        ("kernel k(a: u32, b: u32) -> u32 { a * b }", "a", "secret-time"),
        (
            "kernel k(m: setup modulus<64>, a: residue<m>, n: u32) -> residue<m> { s = a\n loop i in 0..n { s = mont(s, s) }\n s }",
            "n",
            "secret-branch",
        ),
    ];
    for (text, name, rule) in cases {
        let mut spoilt = built(text);
        spoilt.program.parameters.iter_mut().find(|parameter| parameter.name == name).expect("the parameter").secret = true;
        assert!(spoilt.rules().contains(&rule), "{text}: {:?}", spoilt.rules());
    }
}

// ---- a machine that interlocks nothing, by hand

/// An operand of a hand-made instruction: a value in a register, or a constant.
#[derive(Clone, Copy)]
enum Given {
    /// Value's name and register.
    V(&'static str, u32),
    /// Constant.
    I(i64),
    /// The block itself.
    Start,
}

use Given::{I, Start, V};

fn distance(given: &[Given]) -> u64 {
    given.iter().rev().find_map(|given| if let I(value) = given { Some(*value as u64) } else { None }).unwrap_or(0)
}

/// Products of one block on the toy machine: (cycle, unit, row, operands in the row's order, implicit ones too).
fn toy(lines: &[(u32, &str, &str, &[Given])], cycles: u32) -> Built {
    toy_with(&[], lines, cycles)
}

fn toy_text() -> String {
    std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/targets/toy.target")).expect("the toy")
}

/// The same on a toy whose file says something else in places.
fn toy_with(changes: &[(&str, &str)], lines: &[(u32, &str, &str, &[Given])], cycles: u32) -> Built {
    let text = changes.iter().fold(toy_text(), |text, (from, to)| {
        assert!(text.contains(from), "{from}");
        text.replace(from, to)
    });
    by_hand(&Source { name: "toy.target".to_owned(), text }, lines, cycles)
}

/// Products of one block, as they are said.
fn by_hand(target: &Source, lines: &[(u32, &str, &str, &[Given])], cycles: u32) -> Built {
    let machine = target_file::read(target, None).expect("a valid target");
    let mut names: BTreeMap<&str, ValueId> = BTreeMap::new();
    let (mut values, mut registers, mut instructions, mut code, mut slots) = (Vec::new(), Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (index, (cycle, unit, name, given)) in lines.iter().enumerate() {
        let row_id = machine.row_named(name).unwrap_or_else(|| panic!("row {name}"));
        let row = &machine[row_id];
        let unit = machine.units.iter().position(|known| known.name == *unit).map(|place| kgen_schedulers::machine::UnitId(place as u16));
        let mut operands = Vec::new();
        let mut written = Vec::new();
        for (declared, given) in row.operands.iter().zip(*given) {
            operands.push(match given {
                Start => {
                    written.push(CodeOperand::Label(".Lbody_sample".to_owned()));
                    Operand::Block(kgen_schedulers::program::BlockId(0))
                }
                I(value) => {
                    written.push(CodeOperand::Immediate(*value));
                    Operand::Immediate(*value)
                }
                V(name, register) => {
                    let OperandKind::Register(file) = declared.kind else { panic!("{name} is no register") };
                    if !declared.implicit {
                        written.push(CodeOperand::Register(file, *register));
                    }
                    let value = *names.entry(name).or_insert_with(|| {
                        values.push(Value {
                            file,
                            tuple: declared.tuple,
                            name: (*name).to_owned(),
                            secret: false,
                            rematerializable: false,
                        });
                        registers.push(Some(*register));
                        ValueId(values.len() as u32 - 1)
                    });
                    Operand::Value(value)
                }
            });
        }
        let memory = row.memory().map(|memory| MemoryAccess {
            region: RegionId(0),
            // The last constant of an access is its distance from the region's start.
            low: distance(given),
            high: distance(given) + 4,
            read: !memory.is_store(),
            write: memory.is_store(),
        });
        instructions.push(Instruction { row: row_id, operands, memory, span: None });
        let parallel = index > 0 && lines[index - 1].0 == *cycle;
        code.push(CodeInstruction { row: row_id, operands: written, parallel, unit, comment: String::new(), span: None });
        slots.push(Slot { instruction: index as u32, cycle: *cycle, unit });
    }
    let region = Region {
        name: "buffer".to_owned(),
        kind: RegionKind::Frame,
        bytes: Some(64),
        align_bytes: 4,
        written: true,
        secret: false,
        may_alias: Vec::new(),
        contents: None,
    };
    let end = code.len();
    Built {
        program: Program {
            name: "sample".to_owned(),
            parameters: Vec::new(),
            regions: vec![region],
            layouts: vec![kgen_schedulers::program::Layout::Bytes],
            values,
            stack_pointer: None,
            blocks: vec![Block { instructions }],
            loops: Vec::new(),
            montgomery: None,
            notes: Vec::new(),
        },
        schedule: Schedule { blocks: vec![BlockSchedule { slots, cycles }], bounds: Vec::new() },
        allocation: Allocation {
            registers,
            saves: Vec::new(),
            frame_offsets: vec![(RegionId(0), 0)],
            frame_bytes: 64,
            most_live: vec![0; machine.register_files.len()],
        },
        code: Code {
            instructions: code,
            labels: vec![(".Lbody_sample".to_owned(), 0), (".Lend_sample".to_owned(), end)],
            data: Vec::new(),
        },
        machine,
    }
}

#[test]
fn every_must_hazard_of_the_toy_has_a_program_that_is_refused_and_one_that_is_not() {
    type Line<'a> = (u32, &'a str, &'a str, &'a [Given]);
    // (rule, accepted, refused)
    let cases: [(&str, Vec<Line<'_>>, Vec<Line<'_>>); 10] = [
        (
            "unit-per-cycle",
            vec![(0, "L1", "mvk_A", &[V("x", 0), I(1)]), (0, "L2", "mvk_B", &[V("y", 1), I(2)])],
            vec![(0, "L1", "mvk_A", &[V("x", 0), I(1)]), (0, "L1", "mvk_A", &[V("y", 1), I(2)])],
        ),
        (
            // A load lands after four cycles; before, the register holds what it held.
            "holds",
            vec![
                (0, "L1", "mvk_A", &[V("p", 0), I(0)]),
                (1, "D1", "ldw_A", &[V("x", 1), V("p", 0), I(0)]),
                (5, "L1", "mv_A", &[V("y", 2), V("x", 1)]),
            ],
            vec![
                (0, "L1", "mvk_A", &[V("p", 0), I(0)]),
                (1, "D1", "ldw_A", &[V("x", 1), V("p", 0), I(0)]),
                (4, "L1", "mv_A", &[V("y", 2), V("x", 1)]),
            ],
        ),
        (
            // A product and a move that land in one file in one cycle.
            "result-port",
            vec![
                (0, "L1", "mvk_A", &[V("x", 0), I(1)]),
                (1, "M1", "mpy_A", &[V("p", 2), V("x", 0), V("x", 0)]),
                (3, "L1", "mv_A", &[V("y", 4), V("x", 0)]),
            ],
            vec![
                (0, "L1", "mvk_A", &[V("x", 0), I(1)]),
                (1, "M1", "mpy_A", &[V("p", 2), V("x", 0), V("x", 0)]),
                (2, "L1", "mv_A", &[V("y", 4), V("x", 0)]),
            ],
        ),
        (
            "cross-path",
            vec![
                (0, "L1", "mvk_A", &[V("x", 0), I(1)]),
                (1, "L2", "mv_Bx", &[V("y", 0), V("x", 0)]),
                (2, "D2", "mv_Bx", &[V("z", 1), V("x", 0)]),
            ],
            vec![
                (0, "L1", "mvk_A", &[V("x", 0), I(1)]),
                (1, "L2", "mv_Bx", &[V("y", 0), V("x", 0)]),
                (1, "D2", "mv_Bx", &[V("z", 1), V("x", 0)]),
            ],
        ),
        (
            "bundle-shape",
            vec![(0, "L1", "nop", &[]), (0, "L2", "nop", &[]), (0, "M1", "nop", &[]), (0, "M2", "nop", &[])],
            vec![
                (0, "L1", "nop", &[]),
                (0, "L2", "nop", &[]),
                (0, "M1", "nop", &[]),
                (0, "M2", "nop", &[]),
                (0, "D1", "mvk_A", &[V("x", 0), I(1)]),
            ],
        ),
        (
            "memory-port",
            vec![
                (0, "L1", "mvk_A", &[V("p", 0), I(0)]),
                (0, "L2", "mvk_B", &[V("q", 0), I(0)]),
                (1, "D1", "ldw_A", &[V("x", 1), V("p", 0), I(0)]),
                (2, "D2", "ldw_B", &[V("y", 1), V("q", 0), I(0)]),
            ],
            vec![
                (0, "L1", "mvk_A", &[V("p", 0), I(0)]),
                (0, "L2", "mvk_B", &[V("q", 0), I(0)]),
                (1, "D1", "ldw_A", &[V("x", 1), V("p", 0), I(0)]),
                (1, "D2", "ldw_B", &[V("y", 1), V("q", 0), I(0)]),
            ],
        ),
        (
            // An operand that the text does not hold has its result's register: the old value must be there.
            "holds",
            vec![
                (0, "L1", "mvk_A", &[V("old", 0), I(1)]),
                (1, "L1", "mvk_A", &[V("p", 1), I(1)]),
                (2, "L1", "mv_if_A", &[V("d", 0), V("old", 0), V("p", 1), V("p", 1)]),
            ],
            vec![
                (0, "L1", "mvk_A", &[V("old", 2), I(1)]),
                (1, "L1", "mvk_A", &[V("p", 1), I(1)]),
                (2, "L1", "mv_if_A", &[V("d", 0), V("old", 2), V("p", 1), V("p", 1)]),
            ],
        ),
        (
            "clobber",
            vec![
                (0, "L1", "mvk_A", &[V("x", 0), I(1)]),
                (1, "M1", "mpy_A", &[V("p", 2), V("x", 0), V("x", 0)]),
                (3, "L1", "addd_A", &[V("s", 4), V("p", 2), V("p", 2)]),
            ],
            vec![
                (0, "L1", "mvk_A", &[V("x", 0), I(1)]),
                (1, "M1", "mpy_A", &[V("p", 2), V("x", 0), V("x", 0)]),
                (3, "L1", "addd_A", &[V("s", 2), V("p", 2), V("p", 2)]),
            ],
        ),
        (
            "tuple",
            vec![(0, "L1", "mvk_A", &[V("x", 0), I(1)]), (1, "M1", "mpy_A", &[V("p", 2), V("x", 0), V("x", 0)])],
            vec![(0, "L1", "mvk_A", &[V("x", 0), I(1)]), (1, "M1", "mpy_A", &[V("p", 3), V("x", 0), V("x", 0)])],
        ),
        ("unit", vec![(0, "L1", "mvk_A", &[V("x", 0), I(1)])], vec![(0, "M1", "mvk_A", &[V("x", 0), I(1)])]),
    ];
    for (rule, accepted, refused) in cases {
        assert_eq!(toy(&accepted, 12).rules(), Vec::<&str>::new(), "{rule}: accepted");
        assert!(toy(&refused, 12).rules().contains(&rule), "{rule}: {:?}", toy(&refused, 12).rules());
    }
}

#[test]
fn a_result_that_lands_after_the_block_is_refused() {
    let lines: [(u32, &str, &str, &[Given]); 2] =
        [(0, "L1", "mvk_A", &[V("p", 0), I(0)]), (1, "D1", "ldw_A", &[V("x", 1), V("p", 0), I(0)])];
    assert!(toy(&lines, 3).rules().contains(&"latency"));
    assert_eq!(toy(&lines, 5).rules(), Vec::<&str>::new());
}

#[test]
fn branches_without_their_delay_slots_are_refused() {
    let jump: (u32, &str, &str, &[Given]) = (0, "J", "b", &[Start]);
    assert_eq!(toy(&[jump], 3).rules(), Vec::<&str>::new());
    assert!(toy(&[jump], 2).rules().contains(&"branch-delay"), "no room for the delay slots");
    let filled: (u32, &str, &str, &[Given]) = (2, "L1", "mvk_A", &[V("x", 0), I(1)]);
    assert_eq!(toy(&[jump, filled], 3).rules(), Vec::<&str>::new());
    let late: (u32, &str, &str, &[Given]) = (3, "L1", "mvk_A", &[V("x", 0), I(1)]);
    assert!(toy(&[jump, late], 4).rules().contains(&"branch-delay"), "after the delay slots");
    let second: (u32, &str, &str, &[Given]) = (1, "J", "b", &[Start]);
    assert!(toy(&[jump, second], 4).rules().contains(&"branch-delay"), "a branch in a delay slot");
}

#[test]
fn registers_that_an_interrupt_would_change_are_refused() {
    // The load's result is under way to a register that is read for what it holds until then.
    let lines: [(u32, &str, &str, &[Given]); 3] = [
        (0, "L1", "mvk_A", &[V("p", 0), I(0)]),
        (1, "D1", "ldw_A", &[V("x", 0), V("p", 0), I(0)]),
        (2, "L1", "mv_A", &[V("y", 1), V("p", 0)]),
    ];
    let interrupts = [("hazard branch_delay", "hazard interrupts must cite \"this file\"\nhazard branch_delay")];
    assert_eq!(toy(&lines, 12).rules(), Vec::<&str>::new(), "without interrupts");
    assert!(toy_with(&interrupts, &lines, 12).rules().contains(&"interrupts"));
    let apart: [(u32, &str, &str, &[Given]); 3] =
        [lines[0], (1, "D1", "ldw_A", &[V("x", 2), V("p", 0), I(0)]), (2, "L1", "mv_A", &[V("y", 1), V("p", 0)])];
    assert_eq!(toy_with(&interrupts, &apart, 12).rules(), Vec::<&str>::new());
}

#[test]
fn accesses_to_one_bank_are_refused() {
    let banked = [("hazard bank cost", "hazard bank must"), ("hazard memory_port must limit 1", "hazard memory_port must limit 2")];
    let lines = |offset: &'static [Given]| -> [(u32, &str, &str, &[Given]); 4] {
        [
            (0, "L1", "mvk_A", &[V("p", 0), I(0)]),
            (0, "L2", "mvk_B", &[V("q", 0), I(0)]),
            (1, "D1", "ldw_A", &[V("x", 1), V("p", 0), I(0)]),
            (1, "D2", "ldw_B", offset),
        ]
    };
    assert_eq!(toy_with(&banked, &lines(&[V("y", 1), V("q", 0), I(4)]), 12).rules(), Vec::<&str>::new(), "the next bank");
    assert!(toy_with(&banked, &lines(&[V("y", 1), V("q", 0), I(16)]), 12).rules().contains(&"bank"), "the same bank of four");
}

#[test]
fn a_modified_register_that_does_not_hold_the_old_value_is_refused() {
    let target = target_file::embedded_source("e600").expect("the target");
    let with_old_in = |register: u32| {
        let (a, b, c) = ([V("old", register), I(1)], [V("a", 4), I(2)], [V("d", 3), V("old", register), V("a", 4), I(0), I(0), I(7)]);
        let lines: [(u32, &str, &str, &[Given]); 3] = [(0, "IU1", "li", &a), (1, "IU1", "li", &b), (2, "IU1", "rlwimi", &c)];
        by_hand(&target, &lines, 4).rules()
    };
    assert_eq!(with_old_in(3), Vec::<&str>::new());
    assert!(with_old_in(5).contains(&"holds"));
}

/// Where each hazard that a machine marks `must` has a program that is refused for it: the test, by the machine.
const REFUSED: [(&str, HazardKind, &str); 11] = [
    ("e600", HazardKind::Tied, "a_modified_register_that_does_not_hold_the_old_value_is_refused"),
    ("toy", HazardKind::UnitPerCycle, "unit-per-cycle"),
    ("toy", HazardKind::Latency, "holds"),
    ("toy", HazardKind::ResultPort, "result-port"),
    ("toy", HazardKind::CrossPath, "cross-path"),
    ("toy", HazardKind::BundleShape, "bundle-shape"),
    ("toy", HazardKind::MemoryPort, "memory-port"),
    ("toy", HazardKind::Tied, "holds"),
    ("toy", HazardKind::EarlyClobber, "clobber"),
    ("toy", HazardKind::Tuple, "tuple"),
    ("toy", HazardKind::BranchDelay, "branches_without_their_delay_slots_are_refused"),
];

#[test]
fn no_must_hazard_of_any_target_is_without_a_refused_program() {
    let own = include_str!("check_refuses.rs");
    let texts = target_file::embedded().chain([Source { name: "toy.target".to_owned(), text: toy_text() }]);
    let mut seen = 0;
    for source in texts {
        let machine = target_file::read(&source, None).expect("a valid target");
        for hazard in machine.hazards.iter().filter(|hazard| hazard.enforcement == Enforcement::Must) {
            let registered = REFUSED.iter().find(|(target, kind, _)| *target == machine.name && *kind == hazard.kind);
            let (.., place) = registered.unwrap_or_else(|| panic!("{:?} of {} has no refused program", hazard.kind, machine.name));
            assert!(own.matches(place).count() > 1, "{place} is nowhere but in the list");
            seen += 1;
        }
    }
    assert_eq!(seen, REFUSED.len(), "the list holds hazards that no target marks `must`");
}
