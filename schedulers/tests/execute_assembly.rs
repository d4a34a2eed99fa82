//! Assembly text in and out, and its execution.

use kgen_ir::bits::Bits;
use kgen_ir::domains::memory::RegionMemory;
use kgen_ir::source::Source;
use kgen_schedulers::assembly::{parse, print};
use kgen_schedulers::code::{Code, CodeInstruction, CodeOperand, DataObject};
use kgen_schedulers::execute::{Executor, FaultReason, Placement, Registers};
use kgen_schedulers::machine::{Machine, OperandKind, RowId};
use kgen_schedulers::target_file;
use kgen_schedulers::timing::TimingModel;
use kgen_schedulers::timing_of_machine::{instruction_timings, trace_event};
use proptest::prelude::*;
use std::sync::LazyLock;

static MACHINES: LazyLock<Vec<Machine>> = LazyLock::new(|| {
    let mut list: Vec<Machine> =
        target_file::embedded().map(|source| target_file::read(&source, None).expect("embedded targets are read")).collect();
    let toy = include_str!("targets/toy.target").to_owned();
    list.push(target_file::read(&Source { name: "toy.target".to_owned(), text: toy }, None).expect("the toy target is read"));
    list
});

fn e600() -> &'static Machine {
    MACHINES.iter().find(|machine| machine.name == "e600").expect("e600 is embedded")
}

fn source(text: &str) -> Source {
    Source { name: "test.s".to_owned(), text: text.to_owned() }
}

fn read(text: &str) -> Code {
    parse(e600(), &source(text)).unwrap_or_else(|errors| panic!("{errors:#?}"))
}

/// The code without what only messages and listings need.
fn bare(mut code: Code) -> Code {
    for instruction in &mut code.instructions {
        instruction.span = None;
        instruction.comment = String::new();
    }
    code
}

/// An instruction of a row whose operands follow from a seed.
fn instruction(machine: &Machine, row: RowId, mut seed: u64) -> CodeInstruction {
    let mut next = |bound: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % bound.max(1)
    };
    let operands = machine[row].explicit_operands().map(|(_, operand)| match &operand.kind {
        OperandKind::Register(file) | OperandKind::RegisterOrZero(file) => {
            let number = next(u64::from(machine[*file].count.unwrap_or(1000) - operand.tuple + 1)) as u32;
            let zero = matches!(operand.kind, OperandKind::RegisterOrZero(_)) && machine[*file].zero_in_base == Some(number);
            if zero { CodeOperand::Zero } else { CodeOperand::Register(*file, number) }
        }
        OperandKind::Immediate { low, high, step } => {
            let steps = u64::try_from((high - low) / step).unwrap_or(u64::MAX);
            CodeOperand::Immediate((low + i128::from(next(steps)) * step) as i64)
        }
        OperandKind::Label => CodeOperand::Label(if next(2) == 0 { "start".to_owned() } else { ".Lend_1".to_owned() }),
        OperandKind::Symbol => CodeOperand::Symbol("table".to_owned(), next(3) * 16),
    });
    let operands = operands.collect();
    CodeInstruction { row, operands, parallel: false, unit: None, comment: String::new(), span: None }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// What is printed reads back the same, for every row of every machine.
    #[test]
    fn printed_code_reads_back(seed in any::<u64>(), bytes in proptest::collection::vec(any::<u8>(), 1..40)) {
        for machine in MACHINES.iter() {
            let mut instructions: Vec<CodeInstruction> =
                (0..machine.rows.len()).map(|row| instruction(machine, RowId(row as u32), seed.wrapping_add(row as u64))).collect();
            for instruction in &mut instructions {
                let row = &machine[instruction.row];
                let names_unit = row.assembly.as_ref().is_some_and(|text| text.contains("{unit}"));
                if names_unit {
                    instruction.unit = row.timing.units.get(seed as usize % row.timing.units.len()).copied();
                }
                instruction.parallel = machine.parallel.is_some() && instruction.row.0 % 3 == 1;
            }
            let end = instructions.len();
            let labels = vec![("start".to_owned(), 0), ("middle".to_owned(), end / 2), (".Lend_1".to_owned(), end)];
            let data = vec![DataObject { symbol: "table".to_owned(), align_bytes: 16, bytes: bytes.clone() }];
            let code = Code { instructions, labels, data };
            let text = print(machine, &code).expect("the code fits its rows");
            let back = parse(machine, &source(&text)).map_err(|errors| TestCaseError::fail(format!("{}: {errors:#?}", machine.name)))?;
            for (expected, found) in code.instructions.iter().zip(&bare(back.clone()).instructions) {
                prop_assert_eq!(expected, found, "{} {}", &machine.name, &machine[expected.row].name);
            }
            prop_assert_eq!(&code, &bare(back));
        }
    }

    /// Whatever the text, there is an answer.
    #[test]
    fn any_text_is_answered(text in "[ -~\n]{0,200}", other in any::<String>()) {
        for machine in MACHINES.iter() {
            let _ = parse(machine, &source(&text));
            let _ = parse(machine, &source(&other));
        }
    }
}

#[test]
fn foreign_text_is_read() {
    let ours =
        read("start:\n    lwz 5,8(3)\n    cmpwi 0,5,-1\n    beq 0,start\n    stvx 2,0,4\n    addi 1,1,-16\n    vsldoi 1,2,3,12\n    blr\n");
    let foreign = "\
        .globl start   # a comment
        .type start, @function
        .set EIGHT, 2 * 4
        OFFSET = -(8+8)
start:  lwz  %r5, EIGHT(%r3) ; cmpwi r5, -0x1
        /* of two
           lines */
        beq-    start
        stvx    %v2, 0, r4
        la      r1,OFFSET(r1)
        vsldoi  v1,v2,v3,(1<<3)|4
        blr
        .size start, .-start
";
    assert_eq!(bare(read(foreign)), bare(ours));
}

#[test]
fn numeric_labels_mean_the_nearest() {
    let code = read("f:\n1:  addi 3,3,1\n    bdnz 1b\n    b 1f\n1:  blr\n");
    let places: Vec<usize> = code
        .instructions
        .iter()
        .flat_map(|instruction| &instruction.operands)
        .filter_map(|operand| if let CodeOperand::Label(name) = operand { code.label(name) } else { None })
        .collect();
    assert_eq!(places, [0, 3]);
}

#[test]
fn every_mistake_is_named_at_its_place() {
    let text = "start:\n    vpern 1,2,3,4\n    addi 3,4,40000\n    lwz 3,4\n    b nowhere\nstart:\n    .lng 5\n    vand 1,2,32\n";
    let errors = parse(e600(), &source(text)).expect_err("it is refused");
    let found: Vec<(&str, &str)> = errors.iter().map(|error| (error.rule, &text[error.span.range()])).collect();
    let expected = [
        ("unknown-instruction", "vpern"),
        ("instruction-operands", "4"),
        ("instruction-operands", ""),
        ("unknown-label", "b nowhere"),
        ("duplicate-label", "start"),
        ("directive", ".lng 5"),
        ("instruction-operands", "3"),
    ];
    assert_eq!(found, expected, "{errors:#?}");
    assert_eq!(errors[0].help.as_deref(), Some("did you mean `vperm`?"));
}

fn general(number: u32) -> (kgen_schedulers::machine::FileId, u32) {
    (e600().file_named("r").expect("a file r"), number)
}

fn run(
    text: &str,
    arguments: &[u32],
    memory: &mut RegionMemory,
) -> (Registers, Vec<kgen_schedulers::execute::Step>, Result<u64, FaultReason>) {
    let code = read(text);
    let placement = Placement { step_budget: 10_000, ..Placement::default() };
    let mut registers = Registers::new(e600());
    for (index, argument) in arguments.iter().enumerate() {
        let (file, number) = general(3 + index as u32);
        registers.set(file, number, Bits::from_u64(32, u64::from(*argument)));
    }
    let mut trace = Vec::new();
    let result = Executor::new(e600(), &code, placement)
        .and_then(|executor| executor.run("f", &mut registers, memory, |step| trace.push(step)))
        .map_err(|fault| fault.reason);
    (registers, trace, result)
}

/// Adds word by word with the carry going round, most significant word last in memory.
const ADD_WORDS: &str = "\
f:  mtctr 6
    li 0,0
    addic 0,0,0
    addi 3,3,-4
    addi 4,4,-4
    addi 5,5,-4
1:  lwzu 7,4(4)
    lwzu 8,4(5)
    adde 7,7,8
    stwu 7,4(3)
    bdnz 1b
    li 3,0
    addze 3,3
    blr
";

#[test]
fn a_loop_with_carries_adds() {
    let mut memory = RegionMemory::default();
    let (a, b) = ([0xffff_ffffu32, 0xffff_ffff, 7], [1u32, 0, 0xffff_fff8]);
    let bytes = |words: &[u32]| words.iter().flat_map(|word| word.to_be_bytes()).collect::<Vec<u8>>();
    assert!(memory.map(0x100, vec![0; 12], true) && memory.map(0x200, bytes(&a), false) && memory.map(0x300, bytes(&b), false));
    let (registers, trace, result) = run(ADD_WORDS, &[0x100, 0x200, 0x300, 3], &mut memory);
    assert_eq!(result, Ok(trace.len() as u64));
    let (file, number) = general(3);
    assert_eq!(registers.get(file, number).defined().and_then(Bits::to_u64), Some(1));
    assert_eq!(memory.region(0x100).map(|region| region.bytes.clone()), Some(bytes(&[0, 0, 0])));
    let taken = trace.iter().filter(|step| step.taken).count();
    assert_eq!(taken, 3, "two rounds back and the return");
    let stores: Vec<u64> = trace
        .iter()
        .filter(|step| step.access.is_some_and(|(address, _)| address < 0x200))
        .map(|step| step.access.unwrap_or_default().0)
        .collect();
    assert_eq!(stores, [0x100, 0x104, 0x108]);
}

#[test]
fn an_undefined_carry_does_not_reach_a_branch() {
    let (_, _, result) = run("f:  addze 3,4\n    blr\n", &[0, 5], &mut RegionMemory::default());
    assert_eq!(result, Ok(2));
    let (_, _, result) = run("f:  addze 3,4\n    cmpwi 3,5\n    beq f\n    blr\n", &[0, 5], &mut RegionMemory::default());
    assert!(matches!(result, Err(FaultReason::Meaning(_))), "{result:?}");
}

#[test]
fn faults_name_the_instruction() {
    let (.., result) = run("f:  b f\n", &[], &mut RegionMemory::default());
    assert_eq!(result, Err(FaultReason::Budget(10_000)));
    let (.., result) = run("f:  nop\n", &[], &mut RegionMemory::default());
    assert_eq!(result, Err(FaultReason::PastEnd));
    let (.., result) = run("f:  lwz 3,0(3)\n    blr\n", &[0x500], &mut RegionMemory::default());
    assert!(matches!(result, Err(FaultReason::Meaning(_))), "{result:?}");
    let (.., result) = run("f:  mtctr 3\n    bctr\n", &[0x500], &mut RegionMemory::default());
    assert_eq!(result, Err(FaultReason::NoCode(0x500)));
}

#[test]
fn constants_are_reached_absolutely_and_relative_to_the_code() {
    let text = "\
f:  mflr 12
    lis 5,table+4@ha
    lwz 3,table+4@l(5)
    bcl 20,31,here
here:
    mflr 6
    addis 6,6,table-here@ha
    addi 6,6,table-here@l
    lwz 4,8(6)
    mtlr 12
    blr
    .section .rodata
    .balign 16
table:
    .long 1,0x22222222,3
";
    let (registers, _, result) = run(text, &[], &mut RegionMemory::default());
    assert_eq!(result, Ok(10));
    let word = |number| registers.get(general(number).0, number).defined().and_then(Bits::to_u64);
    assert_eq!((word(3), word(4)), (Some(0x2222_2222), Some(3)));
}

#[test]
fn code_can_be_timed() {
    let model = TimingModel::from_machine(e600()).expect("e600 is a superscalar machine");
    let code = read(ADD_WORDS);
    let timings = instruction_timings(e600(), &model, &code).expect("the code fits its rows");
    assert_eq!(kgen_schedulers::timing::validate_instructions(&model, &timings), Vec::<String>::new());
    let store = timings.iter().find(|timing| timing.is_store()).expect("there is a store");
    let data: Vec<bool> = store.reads.iter().map(|read| read.store_data).collect();
    assert_eq!(data, [true, false], "the word is data, the base is not");
    assert!(timings.iter().any(|timing| timing.serialized));
    let mut memory = RegionMemory::default();
    assert!(memory.map(0x100, vec![0; 0x300], true));
    let (_, trace, _) = run(ADD_WORDS, &[0x100, 0x200, 0x300, 3], &mut memory);
    assert!(trace.iter().map(trace_event).any(|event| event.data_address == 0x104));
}

fn toy() -> &'static Machine {
    MACHINES.iter().find(|machine| machine.name == "toy").expect("the toy target is read")
}

/// Runs a function of the toy machine with two arguments in A4 and A5, and gives A0 … A3 where they are defined.
fn run_toy(text: &str) -> [Option<u64>; 4] {
    let code = parse(toy(), &source(text)).unwrap_or_else(|errors| panic!("{errors:#?}"));
    let mut registers = Registers::new(toy());
    let file = toy().file_named("A").expect("a file A");
    registers.set(file, 4, Bits::from_u64(32, 0x8000_0001));
    registers.set(file, 5, Bits::from_u64(32, 6));
    let mut memory = RegionMemory::default();
    assert!(memory.map(0, (0..64).collect(), true));
    let executor = Executor::new(toy(), &code, Placement::default()).expect("the code fits its rows");
    executor.run("f", &mut registers, &mut memory, |_| {}).unwrap_or_else(|fault| panic!("{fault}"));
    [0, 1, 2, 3].map(|number| registers.get(file, number).defined().and_then(Bits::to_u64))
}

#[test]
fn exposed_results_land_late_and_branches_take_effect_late() {
    // The product is two cycles away: one cycle later its registers still hold what they held.
    let text = "\
f:  mvk .L1 5,A0
    mpy .M1 A4,A5,A0
 || ret .J
    mv .L1 A0,A2
    mv .L1 A0,A3
";
    assert_eq!(run_toy(text), [Some(6), Some(3), Some(5), Some(6)]);
}

#[test]
fn bundles_read_before_they_write() {
    let text = "\
f:  mvk .L1 1,A0
 || mvk .D1 2,A1
    mv .L1 A0,A1
 || mv .D1 A1,A0
    ret .J
    nop
    nop
";
    let [a0, a1, ..] = run_toy(text);
    assert_eq!((a0, a1), (Some(2), Some(1)));
}

#[test]
fn pairs_predicates_and_the_path_between_clusters() {
    let text = "\
f:  mvk .L1 8,A6
 || mvk .L2 7,B4
    lddw .D1 *A6[16],A0
 || mv .L2X A4,B5
    mvk .L1 0,A7
    nop
    nop
    addd .L1 A0,A0,A2
 || ret .J
    mv_if .L1 A7,A6,A2
    xor .L1X A2,B5,A2
";
    let doubled = |word: u32| u64::from(word.wrapping_add(word));
    let low = 0x1b1a_1918u32;
    let expected = [Some(u64::from(low)), Some(0x1f1e_1d1c), Some(doubled(low) ^ 0x8000_0001), Some(doubled(0x1f1e_1d1c))];
    assert_eq!(run_toy(text), expected);
}

#[test]
fn a_variant_has_its_own_figures() {
    let text = include_str!("targets/toy.target").to_owned();
    let slow = target_file::read(&Source { name: "toy.target".to_owned(), text }, Some("toy_slow")).expect("it is read");
    let latency = |machine: &Machine| machine[machine.row_named("ldw_A").expect("a row ldw_A")].timing.latency_cycles;
    assert_eq!((latency(toy()), latency(&slow)), (4, 6));
}
