//! Programs through scheduling, allocation and the driver; the checker, which shares no code with them, has the last word.

use crate::support::*;
use kgen_schedulers::dependence::DependenceGraph;
use kgen_schedulers::program::*;

/// `live` loads, all still needed at the end, folded together in the order of loading.
fn all_live_at_once(machine: &kgen_schedulers::machine::Machine, live: usize) -> Program {
    let mut builder = ProgramBuilder::new(machine);
    let area = builder.pointer(16 * live as u64);
    let loaded: Vec<ValueId> = (0..live).map(|index| builder.load(area, 16 * index as u64)).collect();
    // Every value is read twice, far apart, so that order alone cannot lower the pressure below `live`.
    let mut first = loaded[0];
    for &value in &loaded[1..] {
        first = builder.one("vadd", &[first, value]);
    }
    let mut second = first;
    for &value in &loaded {
        second = builder.one("vsum", &[second, value, first]);
    }
    builder.store(area, 0, second);
    builder.program
}

#[test]
fn fourteen_live_values_fit_sixteen_registers_without_a_spill() {
    let machine = superscalar(16);
    let built = build_checked(&machine, all_live_at_once(&machine, 14));
    assert_eq!(built.report.spills, 0);
    assert_eq!(built.report.rounds, 1);
    assert!(built.allocation.frame_bytes == 0, "nothing was saved or spilled");
}

#[test]
fn seventeen_live_values_in_sixteen_registers_are_spilled() {
    let machine = superscalar(16);
    let built = build_checked(&machine, all_live_at_once(&machine, 17));
    assert!(built.report.spills > 0);
    assert!(built.report.spills <= 4, "{} spills for two values too many", built.report.spills);
    let v = built.report.pressure.iter().find(|pressure| pressure.file == "v").expect("the file is used");
    assert!(v.most_live <= 16);
    assert!(built.allocation.frame_bytes >= 16);
}

#[test]
fn values_that_can_be_computed_again_are_not_stored() {
    let machine = superscalar(8);
    let mut builder = ProgramBuilder::new(&machine);
    let area = builder.pointer(1024);
    let constants: Vec<ValueId> = (0..10).map(|_| builder.emit("vone", &[])[0]).collect();
    for &constant in &constants {
        builder.program.values[constant.0 as usize].rematerializable = true;
    }
    let mut sum = constants[0];
    for _ in 0..3 {
        for &constant in &constants {
            sum = builder.one("vadd", &[sum, constant]);
        }
    }
    builder.store(area, 0, sum);
    let built = build_checked(&machine, builder.program);
    assert_eq!(built.report.spills, 0);
    assert!(built.report.rematerialized > 0);
}

#[test]
fn a_tied_operand_that_is_read_again_is_copied() {
    let machine = superscalar(32);
    let mut builder = ProgramBuilder::new(&machine);
    let area = builder.pointer(64);
    let (a, b) = (builder.load(area, 0), builder.load(area, 16));
    let into = builder.one("vinto", &[a, b]);
    // `a` is read by what depends on the tied result: no order can put that first.
    let after = builder.one("vadd", &[into, a]);
    builder.store(area, 32, after);
    let built = build_checked(&machine, builder.program);
    assert_eq!(built.report.copies, 1);
}

#[test]
fn a_tied_operand_whose_other_reads_can_go_first_needs_no_copy() {
    let machine = superscalar(32);
    let mut builder = ProgramBuilder::new(&machine);
    let area = builder.pointer(64);
    let (a, b) = (builder.load(area, 0), builder.load(area, 16));
    let before = builder.one("vadd", &[a, b]);
    let into = builder.one("vinto", &[a, before]);
    builder.store(area, 32, into);
    let built = build_checked(&machine, builder.program);
    assert_eq!(built.report.copies, 0);
}

#[test]
fn an_early_clobbered_result_shares_no_register_with_an_operand() {
    let machine = superscalar(3);
    let mut builder = ProgramBuilder::new(&machine);
    let area = builder.pointer(64);
    let (a, b) = (builder.load(area, 0), builder.load(area, 16));
    let early = builder.one("vearly", &[a, b]);
    builder.store(area, 32, early);
    build_checked(&machine, builder.program);
}

/// Sums over an area, with pointer, sum and a swapped pair carried.
fn loop_program(machine: &kgen_schedulers::machine::Machine, swap: bool) -> Program {
    let mut builder = ProgramBuilder::new(machine);
    let area = builder.pointer(4096);
    let zero = builder.emit("vone", &[])[0];
    let other = builder.emit("vone", &[])[0];
    let rounds = builder.emit("li", &[Operand::Immediate(16)])[0];
    let step = builder.emit("li", &[Operand::Immediate(16)])[0];
    let count = builder.emit("mtctr", &[Operand::Value(rounds)])[0];
    let body = builder.block();
    let [sum, left, right, counter, position] = [V, V, V, kgen_schedulers::machine::FileId(3), R].map(|file| builder.value(file));
    let [sum_after, left_after, right_after, counter_after, position_after] =
        [V, V, V, kgen_schedulers::machine::FileId(3), R].map(|file| builder.value(file));
    let access = MemoryAccess { region: area.0, low: 0, high: 4096, read: true, write: false };
    let loaded = builder.emit_with("lvx", &[Operand::Value(area.1), Operand::Value(position)], Some(access))[0];
    let partial = builder.one("vsum", &[loaded, left, right]);
    let sum_next = builder.one("vadd", &[sum, partial]);
    let position_next = builder.one("add", &[position, step]);
    let next = if swap { (right, left) } else { (builder.one("vadd", &[left, loaded]), builder.one("vadd", &[right, loaded])) };
    let counter_next = builder.emit("bdnz", &[Operand::Value(counter), Operand::Block(body)])[0];
    builder.block();
    builder.store(area, 0, sum_after);
    builder.store(area, 16, left_after);
    builder.store(area, 32, right_after);
    let carried = |initial, current, next, last| Carried { initial, current, next, last };
    builder.program.loops.push(Loop {
        first: body,
        last: body,
        carried: vec![
            carried(zero, sum, sum_next, sum_after),
            carried(zero, left, next.0, left_after),
            carried(other, right, next.1, right_after),
            carried(count, counter, counter_next, counter_after),
            carried(step, position, position_next, position_after),
        ],
        rounds: Some(16),
    });
    builder.program
}

#[test]
fn carried_values_share_a_register_and_initials_that_are_shared_are_copied() {
    let machine = superscalar(32);
    let built = build_checked(&machine, loop_program(&machine, false));
    for carried in &built.program.loops[0].carried {
        let registers = [carried.initial, carried.current, carried.next].map(|value| built.allocation.registers[value.0 as usize]);
        assert!(registers.iter().all(|register| *register == registers[0]), "{registers:?}");
    }
    // `zero` starts two carried values and `step` is read in the loop: one copy each.
    assert_eq!(built.report.copies, 2);
}

#[test]
fn values_swapped_around_a_loop_get_copies() {
    let machine = superscalar(32);
    let built = build_checked(&machine, loop_program(&machine, true));
    assert!(built.report.copies >= 3);
}

#[test]
fn a_loop_that_does_not_fit_is_spilled() {
    let machine = superscalar(4);
    build_checked(&machine, loop_program(&machine, false));
}

#[test]
fn carry_chains_keep_their_order() {
    let machine = superscalar(32);
    let mut builder = ProgramBuilder::new(&machine);
    let (_, pointer) = builder.pointer(16);
    for _ in 0..3 {
        let low = builder.emit("addc", &[Operand::Value(pointer), Operand::Value(pointer)]);
        let high = builder.emit("adde", &[Operand::Value(low[0]), Operand::Value(pointer), Operand::Value(low[1])]);
        builder.emit("adde", &[Operand::Value(high[0]), Operand::Value(low[0]), Operand::Value(high[1])]);
    }
    let graph = DependenceGraph::of_block(&builder.program, &machine, BlockId(0));
    // The second chain starts after the first one's last carry has been read.
    assert!(graph.successors(2).iter().any(|edge| edge.to == 3));
    assert!(graph.successors(5).iter().any(|edge| edge.to == 6));
    build_checked(&machine, builder.program);
}

#[test]
fn memory_order_follows_overlap_and_alias() {
    let machine = superscalar(32);
    let mut builder = ProgramBuilder::new(&machine);
    let (a, b) = (builder.pointer(64), builder.pointer(64));
    let value = builder.load(a, 0);
    builder.store(a, 16, value);
    let again = builder.load(a, 16);
    let other = builder.load(b, 0);
    builder.store(a, 0, again);
    builder.store(b, 32, other);
    let edge = |program: &Program, from: u32, to: u32| {
        let graph = DependenceGraph::of_block(program, &machine, BlockId(0));
        graph.successors(from as usize).iter().any(|edge| edge.to == to && edge.latency + 1 > 0)
    };
    // Indices: li, lvx (1), li, stvx (3), li, lvx (5), li, lvx (7), li, stvx (9), li, stvx (11).
    assert!(edge(&builder.program, 3, 5), "a store before a load of the same bytes");
    assert!(edge(&builder.program, 1, 9), "a load before a store to the same bytes");
    assert!(!edge(&builder.program, 3, 7), "disjoint regions");
    builder.program.regions[0].may_alias.push(RegionId(1));
    assert!(edge(&builder.program, 3, 7), "regions that may overlap");
}

#[test]
fn arguments_arrive_where_the_convention_says() {
    let machine = superscalar(32);
    let mut builder = ProgramBuilder::new(&machine);
    let areas: Vec<_> = (0..3).map(|_| builder.pointer(64)).collect();
    for &area in &areas {
        let value = builder.load(area, 0);
        builder.store(area, 16, value);
    }
    let built = build_checked(&machine, builder.program);
    for (index, area) in areas.iter().enumerate() {
        assert_eq!(built.allocation.registers[area.1.0 as usize], Some(3 + index as u32));
    }
}

#[test]
fn too_many_arguments_are_an_error() {
    let machine = superscalar(32);
    let mut builder = ProgramBuilder::new(&machine);
    for _ in 0..9 {
        builder.pointer(64);
    }
    let error = kgen_schedulers::driver::build(builder.program, &machine, Default::default()).expect_err("eight registers");
    assert!(error.to_string().contains("9 argument registers"), "{error}");
}

#[test]
fn a_machine_with_bundles_and_exposed_latency_gets_what_it_must_have() {
    let machine = exposed();
    let mut builder = ProgramBuilder::new(&machine);
    let ones: Vec<ValueId> = (0..4).map(|_| builder.emit("one", &[])[0]).collect();
    let products: Vec<ValueId> = ones.windows(2).map(|pair| builder.one("mul", pair)).collect();
    let mut sum = products[0];
    for &product in &products[1..] {
        sum = builder.one("xor", &[sum, product]);
    }
    builder.one("mul", &[sum, sum]);
    let built = build_checked(&machine, builder.program);
    let slots = &built.schedule.blocks[0].slots;
    assert!(slots.windows(2).any(|pair| pair[0].cycle == pair[1].cycle), "two operations share a bundle");
    assert!(slots.iter().all(|slot| slot.unit.is_some()));
}
