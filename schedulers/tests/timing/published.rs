//! The simulation against published figures of the silicon: GMP's cycles per limb on 744x/745x, and the completion
//! queue occupancies of AN2203's pipeline tables.

use crate::support::*;
use kgen_schedulers::timing::*;

fn gpr(number: u32) -> Register {
    register(GPR, number)
}

/// Cycles of one more pass of a loop, from the difference of many passes and twice as many.
fn cycles_per_pass(model: &TimingModel, body: impl Fn(&mut Program, u64)) -> f64 {
    let passes = 64;
    let cycles = |count: u64| {
        let mut program = Program::new(model);
        for pass in 0..count {
            program.next = 0;
            body(&mut program, pass);
            program.branch_count(pass + 1 < count);
        }
        program.cycles()
    };
    (cycles(2 * passes) - cycles(passes)) as f64 / passes as f64
}

const SOURCE: u64 = 0x1_0000;
const RESULT: u64 = 0x2_0000;

/// Result limb = limb * multiplier + carry limb, two limbs a pass, software-pipelined: the load of the limb after
/// the next stands beside the second multiplication of this one.
fn multiply_limbs(program: &mut Program, pass: u64) {
    let (source, result, multiplier) = (gpr(4), gpr(3), gpr(6));
    for limb in 0..2 {
        let (this, low) = (gpr(20 + limb), gpr(8 + limb));
        let (high, elder_high) = (gpr(10 + limb), gpr(10 + (limb + 1) % 2));
        let at = 8 * pass + 4 * u64::from(limb);
        program.multiply(low, &[this, multiplier], false);
        program.multiply(high, &[this, multiplier], false);
        program.load(this, source, true, SOURCE + at + 8, 4);
        program.carry(low, &[low, elder_high]);
        program.store(low, result, true, RESULT + at, 4);
    }
}

/// Result limb += limb * multiplier + carry limb, four limbs a pass: one chain of carries makes the products'
/// sums, a second one adds the old result limbs.
fn add_multiplied_limbs(program: &mut Program, pass: u64) {
    let (source, result, multiplier, high) = (gpr(4), gpr(3), gpr(6), gpr(0));
    let (source_at, result_at) = (SOURCE + 16 * pass, RESULT + 16 * pass);
    for limb in 0..4 {
        program.load(gpr(20 + limb), source, limb == 3, source_at + 4 * u64::from(limb), 4);
    }
    for limb in 0..4 {
        program.multiply(gpr(8 + limb), &[gpr(20 + limb), multiplier], false);
    }
    for limb in 0..4 {
        program.carry(gpr(8 + limb), &[gpr(8 + limb), high]);
        program.multiply(high, &[gpr(20 + limb), multiplier], false);
        program.load(gpr(20 + limb), result, false, result_at + 4 * u64::from(limb), 4);
    }
    program.carry(high, &[high]);
    for limb in 0..4 {
        let (sum, old) = (gpr(8 + limb), gpr(20 + limb));
        if limb == 0 {
            program.iu1(&[sum, register(CA, 0)], &[sum, old]);
        } else {
            program.carry(sum, &[sum, old]);
        }
        program.store(sum, result, limb == 3, result_at + 4 * u64::from(limb), 4);
    }
}

/// Result limb = limb + limb + carry, four limbs a pass; the loads for the next limb stand behind the carry and
/// behind the store, so that they retire with them.
fn add_limbs(program: &mut Program, pass: u64) {
    for limb in 0..4 {
        let at = 16 * pass + 4 * limb;
        program.carry(gpr(8), &[gpr(20), gpr(21)]);
        program.load(gpr(20), gpr(4), true, SOURCE + at + 4, 4);
        program.store(gpr(8), gpr(3), true, RESULT + at, 4);
        program.load(gpr(21), gpr(5), true, SOURCE + 0x8000 + at + 4, 4);
    }
}

fn assert_close(what: &str, cycles: f64, published: f64) {
    println!("{what}: {cycles:.2} cycles per limb, published {published}");
    assert!((cycles / published - 1.0).abs() <= 0.03, "{what}: {cycles:.3} instead of {published}");
}

#[test]
fn gmp_multiply_loops_take_the_published_cycles() {
    for model in [mpc7447(), mpc7448()] {
        assert_close("mul_1", cycles_per_pass(&model, multiply_limbs) / 2.0, 6.0);
        assert_close("addmul_1", cycles_per_pass(&model, add_multiplied_limbs) / 4.0, 9.5);
        assert_close("add_n", cycles_per_pass(&model, add_limbs) / 4.0, 4.0);
    }
}
