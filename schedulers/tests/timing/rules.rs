//! Rule by rule.

use crate::support::*;
use kgen_schedulers::timing::*;

fn gpr(number: u32) -> Register {
    register(GPR, number)
}

/// The cycles that an instruction has a completion queue entry, dispatch and retirement included.
fn completion_queue_cycles(times: &EventTimes) -> u64 {
    times.retire.expect("retired") - times.dispatch.expect("dispatched") + 1
}

#[test]
fn completion_queue_entries_live_as_long_as_an2203_says() {
    let model = mpc7447();
    type Row = fn(&mut Program);
    let rows: [(&str, u64, Row); 6] = [
        ("vmsumuhm", 8, |program| program.vmsum(1, &[2, 3])),
        ("vperm", 6, |program| program.vector("VPU", "lat_vpu", 1, &[2, 3])),
        ("lvx", 6, |program| program.load(register(VR, 1), gpr(3), false, 0x1000, 16)),
        ("vadduwm", 5, |program| program.vector("VIU1", "lat_viu1", 1, &[2, 3])),
        ("add", 4, |program| program.iu1(&[gpr(1)], &[gpr(2)])),
        ("mullw", 7, |program| program.multiply(gpr(1), &[gpr(2)], false)),
    ];
    for (name, cycles, row) in rows {
        let mut program = Program::new(&model);
        row(&mut program);
        let times = program.times();
        assert_eq!(completion_queue_cycles(&times[0]), cycles, "{name}: {times:?}");
        assert_eq!(program.cycles(), cycles, "{name} alone");
    }
}

#[test]
fn carry_consumers_follow_each_other_every_three_cycles() {
    let model = mpc7447();
    let mut program = Program::new(&model);
    for limb in 0..4 {
        program.carry(gpr(1 + limb), &[gpr(10)]);
    }
    let starts: Vec<u64> = program.times().iter().map(|times| times.start.expect("started")).collect();
    assert!(starts.windows(2).all(|pair| pair[1] - pair[0] == 3), "{starts:?}");
}
