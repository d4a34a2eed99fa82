//! From assembly text to cycles: loops of limb products are read, executed, compared with big integers and timed against published figures.

use kgen_ir::bits::Bits;
use kgen_ir::domains::memory::RegionMemory;
use kgen_ir::source::Source;
use kgen_schedulers::assembly::parse;
use kgen_schedulers::execute::{Executor, Placement, Registers};
use kgen_schedulers::machine::Machine;
use kgen_schedulers::target_file;
use kgen_schedulers::timing::{TimingModel, simulate};
use kgen_schedulers::timing_of_machine::{instruction_timings, trace_event};
use num_bigint::BigUint;

/// Result (r3), source (r4), limbs (r5), multiplier (r6); least significant limb first. Two limbs a pass, the load two limbs ahead.
const MULTIPLY: &str = "\
f:  srwi 5,5,1
    mtctr 5
    li 11,0
    addic 0,11,0
    addi 3,3,-4
    lwz 20,0(4)
    lwzu 21,4(4)
1:  mullw 8,20,6
    mulhwu 10,20,6
    lwzu 20,4(4)
    adde 8,8,11
    stwu 8,4(3)
    mullw 9,21,6
    mulhwu 11,21,6
    lwzu 21,4(4)
    adde 9,9,10
    stwu 9,4(3)
    bdnz 1b
    addze 3,11
    blr
";

/// The same, added to the result; four limbs a pass, one chain of carries for the products and one for the old limbs.
const MULTIPLY_ADD: &str = "\
f:  srwi 5,5,2
    mtctr 5
    li 0,0
    addic 7,0,0
    addi 3,3,-4
    addi 4,4,-4
1:  lwz 20,4(4)
    lwz 21,8(4)
    lwz 22,12(4)
    lwzu 23,16(4)
    mullw 8,20,6
    mullw 9,21,6
    mullw 10,22,6
    mullw 11,23,6
    adde 8,8,0
    mulhwu 0,20,6
    lwz 20,4(3)
    adde 9,9,0
    mulhwu 0,21,6
    lwz 21,8(3)
    adde 10,10,0
    mulhwu 0,22,6
    lwz 22,12(3)
    adde 11,11,0
    mulhwu 0,23,6
    lwz 23,16(3)
    addze 0,0
    addc 8,8,20
    stw 8,4(3)
    adde 9,9,21
    stw 9,8(3)
    adde 10,10,22
    stw 10,12(3)
    adde 11,11,23
    stwu 11,16(3)
    bdnz 1b
    addze 3,0
    blr
";

const RESULT: u32 = 0x2_0000;
const SOURCE: u32 = 0x1_0000;
const MULTIPLIER: u32 = 0xdead_beef;

/// Limbs from a fixed sequence, none of them short.
fn limbs(count: usize, seed: u32) -> Vec<u32> {
    let mut state = seed;
    let next = |_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state | 0x8000_0000
    };
    (0..count).map(next).collect()
}

fn integer(limbs: &[u32]) -> BigUint {
    BigUint::from_slice(limbs)
}

fn bytes(limbs: &[u32]) -> Vec<u8> {
    limbs.iter().flat_map(|limb| limb.to_be_bytes()).collect()
}

/// Runs and times one call; checks the result against big integers.
fn cycles(machine: &Machine, text: &str, count: usize, adds: bool) -> u64 {
    let code = parse(machine, &Source { name: "loop.s".to_owned(), text: text.to_owned() }).unwrap_or_else(|errors| panic!("{errors:#?}"));
    let (source, old) = (limbs(count, 1), limbs(count, 2));
    let mut memory = RegionMemory::default();
    // The pipelined loads run two limbs past the end.
    let padded: Vec<u32> = source.iter().copied().chain([0, 0]).collect();
    assert!(memory.map(u64::from(SOURCE), bytes(&padded), false) && memory.map(u64::from(RESULT), bytes(&old), true));
    let mut registers = Registers::new(machine);
    let file = machine.file_named("r").expect("a file r");
    for (number, value) in [(3, RESULT), (4, SOURCE), (5, count as u32), (6, MULTIPLIER)] {
        registers.set(file, number, Bits::from_u64(32, u64::from(value)));
    }
    let executor = Executor::new(machine, &code, Placement::default()).expect("the code fits its rows");
    let mut trace = Vec::new();
    executor.run("f", &mut registers, &mut memory, |step| trace.push(trace_event(&step))).unwrap_or_else(|fault| panic!("{fault}"));
    let region = memory.region(u64::from(RESULT)).expect("it was mapped");
    let mut found: Vec<u32> = region.bytes.chunks(4).map(|limb| u32::from_be_bytes(limb.try_into().expect("four bytes"))).collect();
    found.push(registers.get(file, 3).defined().and_then(Bits::to_u64).expect("the carry limb is defined") as u32);
    let product = integer(&source) * MULTIPLIER;
    assert_eq!(integer(&found), if adds { product + integer(&old) } else { product });
    let model = TimingModel::from_machine(machine).expect("a superscalar machine");
    let timings = instruction_timings(machine, &model, &code).expect("the code fits its rows");
    simulate(&model, &timings, &trace, &mut ()).unwrap_or_else(|errors| panic!("{errors:#?}")).cycles
}

#[test]
fn limb_loops_take_the_published_cycles() {
    for name in ["mpc7447", "mpc7448"] {
        let machine = target_file::embedded_machine(name).expect("an embedded target");
        for (what, text, adds, published) in [("mul_1", MULTIPLY, false, 6.0), ("addmul_1", MULTIPLY_ADD, true, 9.5)] {
            let difference = cycles(&machine, text, 256, adds) - cycles(&machine, text, 128, adds);
            let found = difference as f64 / 128.0;
            println!("{name} {what}: {found:.2} cycles per limb, published {published}");
            assert!((found / published - 1.0).abs() <= 0.03, "{name} {what}: {found:.3} instead of {published}");
        }
    }
}
