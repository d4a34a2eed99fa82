//! Every parameter has an effect: for each one a program whose cycles change when it changes.

use std::collections::BTreeSet;

use crate::support::*;
use kgen_schedulers::timing::*;

fn gpr(number: u32) -> Register {
    register(GPR, number)
}

fn fpr(number: u32) -> Register {
    register(FPR, number)
}

fn vr(number: u32) -> Register {
    register(VR, number)
}

pub type Body = fn(&mut Program);

// Programs, by what they press on.

fn adds(program: &mut Program) {
    for number in 0..40 {
        program.iu1(&[gpr(number)], &[gpr(100)]);
    }
}

/// A multiplication holds retirement; adds behind it fill what there is.
fn adds_behind_a_divide(program: &mut Program) {
    let latency = program.latency("lat_div");
    let divide = program.row("IU2", latency, latency, &[gpr(99)], &[gpr(98)]);
    program.execute(divide, |_| {});
    adds(program);
}

/// Compares fill the completion queue without taking renames.
fn compares_behind_a_divide(program: &mut Program) {
    let latency = program.latency("lat_div");
    let divide = program.row("IU2", latency, latency, &[gpr(99)], &[gpr(98)]);
    program.execute(divide, |_| {});
    for _ in 0..40 {
        program.iu1(&[register(CR, 0)], &[gpr(100)]);
    }
}

fn vector_mix(program: &mut Program) {
    for number in 0..20 {
        program.vmsum(number, &[100]);
        program.vector("VIU1", "lat_viu1", 20 + number, &[101]);
        program.vector("VPU", "lat_vpu", 40 + number, &[102]);
    }
}

fn vector_chain(program: &mut Program, unit: &str, latency: &str) {
    for _ in 0..10 {
        program.vector(unit, latency, 1, &[1]);
    }
}

fn floats(program: &mut Program) {
    for number in 0..20 {
        program.plain("FPU", "lat_fpu", &[fpr(number)], &[fpr(100)]);
    }
}

fn float_chain(program: &mut Program) {
    for _ in 0..10 {
        program.plain("FPU", "lat_fpu", &[fpr(1)], &[fpr(1)]);
    }
}

fn float_loads(program: &mut Program) {
    for _ in 0..6 {
        program.load(fpr(1), gpr(1), false, 0x1000, 8);
        program.plain("FPU", "lat_fpu", &[fpr(2)], &[fpr(1), fpr(2)]);
    }
}

/// Float loads retire slowly behind a divide, and each takes a rename.
fn float_loads_behind_a_divide(program: &mut Program) {
    let latency = program.latency("lat_div");
    let divide = program.row("IU2", latency, latency, &[gpr(99)], &[gpr(98)]);
    program.execute(divide, |_| {});
    for number in 0..20 {
        program.load(fpr(number), gpr(1), false, 0x1000, 8);
    }
}

fn vector_loads_behind_a_divide(program: &mut Program) {
    let latency = program.latency("lat_div");
    let divide = program.row("IU2", latency, latency, &[gpr(99)], &[gpr(98)]);
    program.execute(divide, |_| {});
    for number in 0..20 {
        program.load(vr(number), gpr(1), false, 0x1000, 16);
    }
}

fn pointer_chase(program: &mut Program) {
    for _ in 0..10 {
        program.load(gpr(1), gpr(1), false, 0x1000, 4);
    }
}

fn misaligned_loads(program: &mut Program) {
    for _ in 0..10 {
        program.load(gpr(1), gpr(1), false, 0x1006, 4);
    }
}

/// Loads that wait for their address stand in the stations; multiplications are behind.
fn stalled_loads(program: &mut Program) {
    for number in 0..6 {
        program.multiply(gpr(1), &[gpr(1)], false);
        program.load(gpr(10 + number), gpr(1), false, 0x1000, 4);
        program.load(gpr(20 + number), gpr(1), false, 0x1000, 4);
        program.load(gpr(30 + number), gpr(1), false, 0x1000, 4);
        program.vector("VPU", "lat_vpu", number, &[100]);
        program.iu1(&[gpr(60)], &[gpr(60)]);
    }
}

fn multiplies(program: &mut Program) {
    for number in 0..12 {
        program.multiply(gpr(number), &[gpr(100)], false);
    }
}

fn multiply_chain(program: &mut Program) {
    for _ in 0..8 {
        program.multiply(gpr(1), &[gpr(1)], false);
    }
}

fn short_multiplies(program: &mut Program) {
    for number in 0..12 {
        program.multiply(gpr(number), &[gpr(100)], true);
    }
}

fn short_multiply_chain(program: &mut Program) {
    for _ in 0..8 {
        program.multiply(gpr(1), &[gpr(1)], true);
    }
}

fn carries(program: &mut Program) {
    for number in 0..8 {
        program.carry(gpr(number), &[gpr(100)]);
    }
}

fn special_moves(program: &mut Program) {
    for _ in 0..4 {
        program.move_to_count(gpr(1));
        program.move_from_special(gpr(1), register(LR, 0));
    }
}

fn stores(program: &mut Program) {
    for number in 0..20 {
        program.store(gpr(100), gpr(101), false, 0x1000 + 4 * number, 4);
    }
}

fn float_stores(program: &mut Program) {
    for number in 0..20 {
        program.store(fpr(100), gpr(101), false, 0x1000 + 8 * number, 8);
    }
}

/// A store of a late value with loads behind it.
fn late_store_data(program: &mut Program) {
    program.multiply(gpr(1), &[gpr(2)], false);
    program.multiply(gpr(1), &[gpr(1)], false);
    program.store(gpr(1), gpr(101), false, 0x1000, 4);
    for _ in 0..8 {
        program.load(gpr(3), gpr(3), false, 0x2000, 4);
    }
}

fn copies(program: &mut Program) {
    for number in 0..30 {
        program.load(vr(number), gpr(100), false, 0x1000 + 16 * u64::from(number), 16);
        program.store(vr(number), gpr(101), false, 0x2000 + 16 * u64::from(number), 16);
    }
}

fn vector_compares(program: &mut Program) {
    for number in 0..10 {
        program.vector_compare(1, &[1]);
        program.vmsum(10 + number, &[100]);
    }
}

fn float_compares(program: &mut Program) {
    vector_chain(program, "VFPU", "lat_vfcmp");
}

/// Loops of `passes` passes.
fn looped(program: &mut Program, start: u64, passes: u32, body: impl Fn(&mut Program)) {
    for pass in 0..passes {
        program.next = start;
        body(program);
        program.branch_count(pass + 1 < passes);
    }
}

fn small_loop(program: &mut Program) {
    looped(program, 0, 20, |program| {
        for number in 0..3 {
            program.iu1(&[gpr(number)], &[gpr(100)]);
        }
    });
}

/// Jumps over unused code; the next pass finds the targets cached if there is room.
fn jumps(program: &mut Program) {
    let jump = BranchTiming { conditional: false, to_register: false, updates_state: false };
    looped(program, 0, 10, |program| {
        for _ in 0..6 {
            program.iu1(&[gpr(1)], &[gpr(100)]);
            program.branch(jump, &[], &[], true);
            program.next += 8;
        }
    });
}

/// Branches to a register.
fn register_jumps(program: &mut Program) {
    let jump = BranchTiming { conditional: false, to_register: true, updates_state: false };
    for _ in 0..10 {
        program.iu1(&[gpr(1)], &[gpr(100)]);
        program.branch(jump, &[register(LR, 0)], &[], true);
        program.next += 8;
    }
}

/// A jump behind instructions that wait, so that it is deep in the instruction queue.
fn deep_jump(program: &mut Program) {
    let jump = BranchTiming { conditional: false, to_register: false, updates_state: false };
    let latency = program.latency("lat_div");
    for _ in 0..4 {
        for _ in 0..2 {
            let divide = program.row("IU2", latency, latency, &[gpr(1)], &[gpr(1)]);
            program.execute(divide, |_| {});
        }
        for number in 0..16 {
            program.iu1(&[gpr(10 + number)], &[gpr(100)]);
        }
        for number in 0..9 {
            program.iu1(&[gpr(40 + number)], &[gpr(100)]);
        }
        program.branch(jump, &[], &[], true);
        program.next += 32;
    }
}

/// Branches not taken, one in each group of four.
fn fall_through(program: &mut Program) {
    for number in 0..30 {
        program.iu1(&[gpr(number)], &[gpr(100)]);
        program.iu1(&[gpr(number)], &[gpr(100)]);
        program.iu1(&[gpr(number)], &[gpr(100)]);
        program.branch_if(0, false);
    }
}

/// A branch that alternates, so that it is predicted wrongly.
fn alternating(program: &mut Program) {
    for pass in 0..20 {
        program.next = 0;
        program.iu1(&[register(CR, 0)], &[gpr(1)]);
        program.branch_if(0, pass % 2 == 0);
        if pass % 2 == 1 {
            program.iu1(&[gpr(2)], &[gpr(100)]);
        } else {
            program.next += 4;
        }
        program.iu1(&[gpr(3)], &[gpr(100)]);
        program.branch_count(pass < 19);
    }
}

/// Two branches with opposite habits, which collide in a small table.
fn opposite_habits(program: &mut Program) {
    for pass in 0..30 {
        program.next = 0;
        program.iu1(&[register(CR, 0)], &[gpr(1)]);
        program.branch_if(0, true);
        program.next += 4;
        program.iu1(&[register(CR, 1)], &[gpr(1)]);
        program.branch_if(1, false);
        program.branch_count(pass < 29);
    }
}

/// A value that comes late, in general register 1.
fn late_value(program: &mut Program) {
    for _ in 0..4 {
        program.load(gpr(1), gpr(1), false, 0x1000, 4);
    }
}

/// Multiplications wait for each other in the queue; a vector chain is behind them.
fn multiply_chain_then_vector_chain(program: &mut Program) {
    multiply_chain(program);
    for _ in 0..8 {
        program.vector("VFPU", "lat_vfpu", 1, &[1]);
    }
}

/// A vector unit's station is taken by an instruction that waits; another unit's chain is behind the next one.
fn blocked_vectors(program: &mut Program) {
    late_value(program);
    program.load(vr(50), gpr(1), false, 0x1000, 16);
    program.vmsum(51, &[50]);
    program.vmsum(52, &[100]);
    vector_chain(program, "VPU", "lat_vpu");
}

/// Floats wait for each other in the queue; a vector chain is behind them.
fn float_chain_then_vector_chain(program: &mut Program) {
    for _ in 0..5 {
        program.plain("FPU", "lat_fpu", &[fpr(1)], &[fpr(1)]);
    }
    vector_chain(program, "VFPU", "lat_vfpu");
}

fn floats_then_vector_chain(program: &mut Program) {
    for number in 0..4 {
        program.plain("FPU", "lat_fpu", &[fpr(number)], &[fpr(100)]);
    }
    vector_chain(program, "VFPU", "lat_vfpu");
}

/// Three floats in a row among adds: the dispatch limit costs slots.
fn floats_among_adds(program: &mut Program) {
    for _ in 0..8 {
        for number in 0..3 {
            program.plain("FPU", "lat_fpu", &[fpr(number)], &[fpr(100)]);
        }
        for number in 0..9 {
            program.iu1(&[gpr(number)], &[gpr(100)]);
        }
    }
}

fn loads_among_adds(program: &mut Program) {
    for _ in 0..8 {
        for number in 0..3 {
            program.load(gpr(20 + number), gpr(100), false, 0x1000, 4);
        }
        for number in 0..9 {
            program.iu1(&[gpr(number)], &[gpr(100)]);
        }
    }
}

/// Waiting multiplications fill stations and window; a chain of adds is behind them.
fn waiting_multiplies(program: &mut Program) {
    late_value(program);
    for number in 0..4 {
        program.multiply(gpr(10 + number), &[gpr(1)], false);
    }
    for _ in 0..15 {
        program.iu1(&[gpr(2)], &[gpr(2)]);
    }
}

/// Waiting adds fill stations and window; a chain of multiplications is behind them.
fn waiting_adds(program: &mut Program) {
    late_value(program);
    for number in 0..6 {
        program.iu1(&[gpr(10 + number)], &[gpr(1)]);
    }
    for _ in 0..6 {
        program.multiply(gpr(2), &[gpr(2)], false);
    }
}

/// One multiplication in four instructions: it does not fall on the first of a group of three by itself.
fn multiplies_and_adds(program: &mut Program) {
    for number in 0..12 {
        program.multiply(gpr(number), &[gpr(100)], true);
        for add in 0..3 {
            program.iu1(&[gpr(10 + add)], &[gpr(100)]);
        }
    }
}

fn stores_and_adds(program: &mut Program) {
    for number in 0..12 {
        program.store(gpr(100), gpr(101), false, 0x1000 + 4 * number, 4);
        for add in 0..3 {
            program.iu1(&[gpr(10 + add)], &[gpr(100)]);
        }
    }
}

/// Loads in every cycle while stores, too few to fill the committed store queue, go to the cache.
fn stores_then_loads(program: &mut Program) {
    for number in 0..4 {
        program.store(gpr(100), gpr(101), false, 0x1000 + 4 * number, 4);
    }
    for number in 0..20 {
        program.load(gpr(number), gpr(100), false, 0x2000, 4);
    }
}

fn store_then_load(program: &mut Program) {
    program.store(vr(1), gpr(101), false, 0x1000, 16);
    program.load(vr(1), gpr(101), false, 0x1000, 16);
    vector_chain(program, "VPU", "lat_vpu");
}

/// Two branches wait for a late condition; a chain of adds is behind them.
fn open_predictions(program: &mut Program) {
    late_value(program);
    for field in 0..2 {
        program.iu1(&[register(CR, field)], &[gpr(1)]);
        program.branch_if(field, false);
    }
    for _ in 0..12 {
        program.iu1(&[gpr(2)], &[gpr(2)]);
    }
}

/// Parameters that only matter once another one is different too.
const TOGETHER_WITH: &[(&str, &[(&str, &str)])] = &[("fiq_issue", &[("fiq_dispatch", "2")])];

/// For each parameter, another value and a program that notices.
pub const EFFECTS: &[(&str, &str, Body)] = &[
    ("fetch_width", "2", adds),
    ("fetch_line", "8", adds),
    ("iq", "3", adds),
    ("bpu_window", "2", deep_jump),
    ("fold_from", "12", fall_through),
    ("btic_bubble", "3", small_loop),
    ("fetch_bubble", "5", register_jumps),
    ("btic_entries", "2", jumps),
    ("bht_entries", "1", opposite_habits),
    ("unresolved", "1", open_predictions),
    ("mispredict_refill", "9", alternating),
    ("cr_to_branch", "5", alternating),
    ("dispatch", "2", adds),
    ("giq", "2", multiply_chain_then_vector_chain),
    ("viq", "1", vector_mix),
    ("fiq", "1", float_chain_then_vector_chain),
    ("giq_dispatch", "1", adds),
    ("viq_dispatch", "1", vector_mix),
    ("fiq_dispatch", "2", floats_among_adds),
    ("lsu_dispatch", "2", loads_among_adds),
    ("giq_issue", "1", adds),
    ("giq_window", "1", adds),
    ("viq_issue", "1", vector_mix),
    ("viq_window", "1", vector_mix),
    ("viq_ooo", "1", blocked_vectors),
    ("fiq_issue", "2", floats_then_vector_chain),
    ("rs_lsu", "1", stalled_loads),
    ("rs_iu2", "1", waiting_multiplies),
    ("rs_fpu", "1", float_chain_then_vector_chain),
    ("rs_iu1", "2", waiting_adds),
    ("rs_vec", "2", blocked_vectors),
    ("iu1", "1", adds),
    ("cq", "8", compares_behind_a_divide),
    ("retire", "1", adds),
    ("retire_renames", "2", adds),
    ("gpr_renames", "8", adds_behind_a_divide),
    ("fpr_renames", "8", float_loads_behind_a_divide),
    ("vr_renames", "8", vector_loads_behind_a_divide),
    ("free_delay", "4", adds_behind_a_divide),
    ("serial_gap", "3", carries),
    ("serial_done", "0", carries),
    ("store_oldest", "0", stores_and_adds),
    ("iu2_oldest", "0", multiplies_and_adds),
    ("store_data_rs", "1", late_store_data),
    ("lat_iu1", "2", adds),
    ("lat_mul", "5", multiply_chain),
    ("thr_mul", "3", multiplies),
    ("lat_mul16", "2", short_multiply_chain),
    ("thr_mul16", "4", short_multiplies),
    ("mul_early_out", "0", short_multiplies),
    ("lat_div", "19", adds_behind_a_divide),
    ("lat_mfspr", "5", special_moves),
    ("lat_mtspr", "5", special_moves),
    ("lat_load", "4", pointer_chase),
    ("lat_fload", "5", float_loads),
    ("misalign", "2", misaligned_loads),
    ("lat_fpu", "4", float_chain),
    ("fpscr", "2", floats),
    ("fstore_thr", "5", float_stores),
    ("lat_viu1", "2", |program| vector_chain(program, "VIU1", "lat_viu1")),
    ("lat_vpu", "3", |program| vector_chain(program, "VPU", "lat_vpu")),
    ("lat_viu2", "5", |program| vector_chain(program, "VIU2", "lat_viu2")),
    ("lat_vfpu", "5", |program| vector_chain(program, "VFPU", "lat_vfpu")),
    ("lat_vfcmp", "3", float_compares),
    ("finish", "0", vector_mix),
    ("vcmp_unit", "VIU2", vector_compares),
    ("vcmp_lat", "2", vector_compares),
    ("fsq", "1", stores),
    ("csq", "1", stores_then_loads),
    ("csq_enter", "9", store_then_load),
    ("csq_hold", "9", copies),
    ("turnaround", "3", copies),
    ("store_yields", "1", stores_then_loads),
    ("forward", "none", store_then_load),
];

fn cycles(overrides: &[(&str, &str)], body: Body) -> u64 {
    let model = model_with(overrides);
    let mut program = Program::new(&model);
    body(&mut program);
    program.cycles()
}

#[test]
fn every_parameter_has_an_effect() {
    let silent: Vec<String> = EFFECTS
        .iter()
        .filter_map(|&(name, value, body)| {
            let common = TOGETHER_WITH.iter().find(|entry| entry.0 == name).map_or(&[][..], |entry| entry.1);
            let changed: Vec<(&str, &str)> = common.iter().copied().chain([(name, value)]).collect();
            let (before, after) = (cycles(common, body), cycles(&changed, body));
            println!("{name}: {before} cycles, {after} with {value}");
            (before == after).then(|| format!("{name} = {value}: {before} cycles both times"))
        })
        .collect();
    assert!(silent.is_empty(), "{silent:#?}");
}

#[test]
fn the_list_of_effects_names_every_parameter() {
    let tested: BTreeSet<&str> = EFFECTS.iter().map(|effect| effect.0).collect();
    let known: BTreeSet<&str> = e600_parameters().iter().map(|parameter| parameter.0).collect();
    assert_eq!(tested, known);
}

#[test]
fn unknown_missing_and_malformed_parameters_are_all_named() {
    let given = e600_parameters().into_iter().filter(|(name, _)| *name != "cq" && *name != "giq");
    let wrong = [("turnround", "1"), ("iq", "many"), ("forward", "sometimes"), ("store_oldest", "2")];
    let errors = TimingModel::from_parameters(&e600_layout(), given.chain(wrong)).expect_err("they are wrong");
    for part in ["missing timing parameter `cq`", "missing timing parameter `giq`", "`turnround`", "`iq`", "`sometimes`", "`store_oldest`"]
    {
        assert!(errors.iter().any(|error| error.contains(part)), "{part} in {errors:?}");
    }
    assert_eq!(errors.len(), 6, "{errors:?}");
}

#[test]
fn a_machine_that_cannot_move_is_refused() {
    let common = e600_parameters();
    let stuck = [("cq", "0"), ("viq_window", "0")];
    let errors = TimingModel::from_parameters(&e600_layout(), common.into_iter().chain(stuck)).expect_err("stuck");
    assert_eq!(errors.len(), 2, "{errors:?}");
}
