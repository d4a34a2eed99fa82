//! Random programs through the driver: whatever it does, the independent checker accepts, every time the same way.

use crate::support::*;
use kgen_schedulers::driver::{DriverOptions, build, build_copies};
use kgen_schedulers::interleave::{Arrangement, interleave};
use kgen_schedulers::machine::Machine;
use kgen_schedulers::program::*;
use kgen_schedulers::scheduling::Effort;
use proptest::prelude::*;

/// A straight line of vector and carry instructions; each number decides what the next instruction is and what it reads.
fn random_program(machine: &Machine, choices: &[(u8, u16, u16, u16)]) -> Program {
    let mut builder = ProgramBuilder::new(machine);
    let (input, output) = (builder.pointer(256), builder.pointer(4096));
    let mut vectors: Vec<ValueId> = (0..4).map(|index| builder.load(input, 16 * index)).collect();
    let mut scalars = vec![input.1, output.1];
    let mut stores = 0;
    for &(kind, a, b, c) in choices {
        let pick = |list: &[ValueId], number: u16| list[list.len() - 1 - usize::from(number) % list.len().min(24)];
        let (x, y, z) = (pick(&vectors, a), pick(&vectors, b), pick(&vectors, c));
        match kind % 8 {
            0 => vectors.push(builder.one("vadd", &[x, y])),
            1 => vectors.push(builder.one("vsum", &[x, y, z])),
            2 => vectors.push(builder.one("vperm", &[x, y, z])),
            3 => vectors.push(builder.one("vinto", &[x, y])),
            4 => vectors.push(builder.one("vearly", &[x, y])),
            5 => vectors.push(builder.load(output, 16 * u64::from(a % 8))),
            6 => {
                builder.store(output, 16 * u64::from(b % 8), x);
                stores += 1;
            }
            _ => {
                let (s, t) = (pick(&scalars, a), pick(&scalars, b));
                let low = builder.emit("addc", &[Operand::Value(s), Operand::Value(t)]);
                let high = builder.emit("adde", &[Operand::Value(t), Operand::Value(low[0]), Operand::Value(low[1])]);
                scalars.extend([low[0], high[0]]);
            }
        }
    }
    let last = vectors[vectors.len() - 1];
    builder.store(output, 16 * (stores % 8), last);
    builder.program
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn the_checker_accepts_what_the_driver_makes(
        registers in 5_u32..33,
        choices in prop::collection::vec((any::<u8>(), any::<u16>(), any::<u16>(), any::<u16>()), 1..120),
    ) {
        let machine = superscalar(registers);
        let built = build_checked(&machine, random_program(&machine, &choices));
        let v = built.report.pressure.iter().find(|pressure| pressure.file == "v").expect("vectors are used");
        prop_assert!(v.most_live <= registers);
    }

    #[test]
    fn copies_are_accepted_too_and_come_out_the_same_twice(
        copies in 2_u32..5,
        turns in any::<bool>(),
        choices in prop::collection::vec((any::<u8>(), any::<u16>(), any::<u16>(), any::<u16>()), 1..40),
    ) {
        let machine = superscalar(16);
        let arrangement = if turns { Arrangement::InTurns } else { Arrangement::AfterEachOther };
        let one = random_program(&machine, &choices);
        let merged = interleave(&one, &machine, copies, arrangement).expect("no loops");
        prop_assert_eq!(&merged.name, &format!("sample_x{copies}"));
        prop_assert_eq!(merged.parameters.len(), one.parameters.len() * copies as usize);
        let built = build_checked(&machine, merged.clone());
        let again = build(merged, &machine, DriverOptions::default()).expect("as before");
        prop_assert_eq!(built.schedule, again.schedule);
        prop_assert_eq!(built.allocation, again.allocation);
    }
}

#[test]
fn two_copies_take_less_than_twice_one() {
    let machine = superscalar(32);
    // One long chain: alone it leaves most cycles empty.
    let choices: Vec<(u8, u16, u16, u16)> = (0..60_u16).map(|index| (1, 0, 0, index % 3)).collect();
    let program = random_program(&machine, &choices);
    let one = build_checked(&machine, program.clone()).report.cycles;
    let two = build_copies(&program, &machine, 2, DriverOptions::default()).expect("it fits");
    assert!(violations(&machine, &two.program, &two.schedule, &two.allocation).is_empty());
    assert!(two.report.cycles * 3 < one * 4, "{} for two, {one} for one", two.report.cycles);
}

#[test]
fn a_search_finds_an_order_that_is_no_slower_and_the_same_every_time() {
    let machine = superscalar(12);
    // A fixed program with long chains that a list scheduler does not place perfectly.
    let choices: Vec<(u8, u16, u16, u16)> =
        (0..160_u16).map(|index| ((index * 7 % 5) as u8, index * 13 % 9, index * 5 % 11, index % 7)).collect();
    let program = random_program(&machine, &choices);
    let list = build_checked(&machine, program.clone());
    let options = DriverOptions { effort: Effort::ShortSearch, ..DriverOptions::default() };
    let searched = build_checked_with(&machine, program.clone(), options);
    assert!(searched.report.cycles < list.report.cycles, "{} after the search, {} before", searched.report.cycles, list.report.cycles);
    let again = build_checked_with(&machine, program, options);
    assert_eq!(searched.schedule, again.schedule);
}

#[test]
fn a_shared_loop_runs_once_for_all_copies() {
    let machine = superscalar(32);
    let mut builder = ProgramBuilder::new(&machine);
    let area = builder.pointer(4096);
    let start = builder.load(area, 0);
    let rounds = builder.emit("li", &[Operand::Immediate(8)])[0];
    let count = builder.emit("mtctr", &[Operand::Value(rounds)])[0];
    let body = builder.block();
    let counters = kgen_schedulers::machine::FileId(3);
    let [sum, counter, sum_after, counter_after] = [V, counters, V, counters].map(|file| builder.value(file));
    let next = builder.one("vadd", &[sum, sum]);
    let counter_next = builder.emit("bdnz", &[Operand::Value(counter), Operand::Block(body)])[0];
    builder.block();
    builder.store(area, 0, sum_after);
    let carried = vec![
        Carried { initial: start, current: sum, next, last: sum_after },
        Carried { initial: count, current: counter, next: counter_next, last: counter_after },
    ];
    builder.program.loops.push(Loop { first: body, last: body, carried, rounds: Some(8) });
    let merged = interleave(&builder.program, &machine, 3, Arrangement::InTurns).expect("constant rounds");
    let of_row = |name: &str| {
        let row = machine.row_named(name).expect("a row");
        merged.blocks.iter().flat_map(|block| &block.instructions).filter(|instruction| instruction.row == row).count()
    };
    assert_eq!((of_row("bdnz"), of_row("mtctr"), of_row("vadd")), (1, 1, 3));
    assert_eq!(merged.loops[0].carried.len(), 4, "three sums and one counter");
    build_checked(&machine, merged);
    builder.program.loops[0].rounds = None;
    let refused = interleave(&builder.program, &machine, 2, Arrangement::InTurns).expect_err("rounds of copies could differ");
    assert!(refused.to_string().contains("run time"), "{refused}");
}
