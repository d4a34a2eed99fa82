//! The fast timing of straight-line code against the cycle-by-cycle simulation.

use kgen_schedulers::timing::*;
use proptest::prelude::*;

use crate::parameters::EFFECTS;
use crate::support::*;

const CODE_ADDRESS: u64 = 0x1_0014;

/// One random instruction: what it is and two numbers that choose registers and addresses.
fn add_instruction(program: &mut Program, kind: u8, first: u32, second: u32) {
    let (r, f, v) = (|number| register(GPR, number % 8), |number| register(FPR, number % 6), |number| number % 10);
    let address = 0x1000 + u64::from(second % 8) * 4;
    match kind % 20 {
        0..=2 => program.iu1(&[r(first)], &[r(second), r(first + 1)]),
        3 => program.iu1(&[register(CR, first % 2)], &[r(second)]),
        4 => program.multiply(r(first), &[r(second)], first.is_multiple_of(3)),
        5 => program.carry(r(first), &[r(second)]),
        6 => program.load(r(first), r(second), first.is_multiple_of(4), address + u64::from(first % 3), 4),
        7 | 8 => program.load(register(VR, v(first)), r(second), false, address & !15, 16),
        9 => program.load(f(first), r(second), false, address, 8),
        10 => program.store(r(first), r(second), first.is_multiple_of(4), address, 4),
        11 => program.store(register(VR, v(first)), r(second), false, address & !15, 16),
        12 => program.store(f(first), r(second), false, address & !7, 8),
        13 | 14 => program.vmsum(v(first), &[v(second), v(first)]),
        15 => program.vector("VPU", "lat_vpu", v(first), &[v(second)]),
        16 => program.vector("VIU1", "lat_viu1", v(first), &[v(second), v(first + 1)]),
        17 => program.plain("FPU", "lat_fpu", &[f(first)], &[f(second)]),
        18 if first.is_multiple_of(4) => program.move_to_count(r(second)),
        18 => program.vector_compare(v(first), &[v(second)]),
        _ => program.nothing(),
    }
}

/// The trace of the program's instructions in another order.
fn reordered(program: &Program, order: &[u32]) -> Vec<TraceEvent> {
    order
        .iter()
        .enumerate()
        .map(|(position, &index)| TraceEvent { code_address: CODE_ADDRESS + 4 * position as u64, ..program.trace[index as usize] })
        .collect()
}

fn straight_line(program: &Program) -> StraightLine {
    let operands: Vec<StraightLineOperand> = program
        .trace
        .iter()
        .map(|event| StraightLineOperand { data_address: event.data_address, short_operand: event.short_operand })
        .collect();
    StraightLine::new(program.model, &program.instructions, &operands, CODE_ADDRESS, 4).expect("a straight line")
}

fn simulated(program: &Program, order: &[u32]) -> u32 {
    let trace = reordered(program, order);
    simulate(program.model, &program.instructions, &trace, &mut ()).expect("a valid program").cycles as u32
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn straight_line_equals_simulation(
        kinds in prop::collection::vec((any::<u8>(), 0u32..100, 0u32..100), 1..160),
        changed in prop::collection::vec(any::<prop::sample::Index>(), 0..5),
        out_of_order in any::<bool>(),
    ) {
        let mut overrides = vec![("viq_ooo", if out_of_order { "1" } else { "0" })];
        for index in changed {
            let (name, value, _) = *index.get(EFFECTS);
            if name != "store_yields" {
                overrides.push((name, value));
            }
        }
        let model = model_with(&overrides);
        let mut program = Program::new(&model);
        for (kind, first, second) in kinds {
            add_instruction(&mut program, kind, first, second);
        }
        let order: Vec<u32> = (0..program.instructions.len() as u32).collect();
        prop_assert_eq!(straight_line(&program).cycles(&order), simulated(&program, &order));
    }

    #[test]
    fn probes_equal_simulation_and_keep_the_committed_order(
        kinds in prop::collection::vec((any::<u8>(), 0u32..100, 0u32..100), 40..160),
        swaps in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 1..8),
    ) {
        let model = mpc7448();
        let mut program = Program::new(&model);
        for (kind, first, second) in kinds {
            add_instruction(&mut program, kind, first, second);
        }
        let mut order: Vec<u32> = (0..program.instructions.len() as u32).collect();
        let mut timing = straight_line(&program);
        let mut best = timing.cycles(&order);
        for (left, right) in swaps {
            let (left, right) = (left.index(order.len()), right.index(order.len()));
            let mut changed = order.clone();
            changed.swap(left, right);
            let expected = simulated(&program, &changed);
            prop_assert_eq!(timing.probe(&changed, left.min(right), u32::MAX), Some(expected));
            prop_assert_eq!(timing.probe(&changed, left.min(right), expected), Some(expected));
            prop_assert_eq!(timing.probe(&changed, left.min(right), expected - 1), None);
            if expected <= best {
                prop_assert_eq!(timing.commit(&changed, left.min(right)), expected);
                (order, best) = (changed, expected);
            }
        }
        prop_assert_eq!(timing.cycles(&order), best);
    }
}

#[test]
fn what_the_fast_timing_does_not_know_is_refused() {
    let model = model_with(&[("store_yields", "1"), ("cq", "99")]);
    let mut program = Program::new(&model);
    program.branch_if(0, false);
    let operands = [StraightLineOperand::default()];
    let errors = StraightLine::new(&model, &program.instructions, &operands, 0, 4).expect_err("refused");
    assert_eq!(errors.len(), 3, "{errors:?}");
}
