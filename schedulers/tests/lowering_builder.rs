//! The program builder over a real machine: what it finds by meaning, and that programs made with it compute what was asked.

#[path = "lowering_support/run.rs"]
mod run;

use kgen_ir::kernel::Direction;
use kgen_schedulers::lowering::builder::{PoolAddressing, ProgramBuilder};
use kgen_schedulers::lowering::loops::Rounds;
use kgen_schedulers::lowering::memory_rows::MemoryRows;
use kgen_schedulers::lowering::selection::Selector;
use kgen_schedulers::lowering::shapes::{self, LaneOp};
use kgen_schedulers::machine::Machine;
use kgen_schedulers::program::{Layout, Program};
use kgen_schedulers::target_file::embedded_machine;
use run::Given;

fn machine(name: &str) -> Machine {
    embedded_machine(name).unwrap_or_else(|(_, errors)| panic!("{errors:#?}"))
}

fn names(machine: &Machine, program: &Program) -> Vec<String> {
    let instructions = program.blocks.iter().flat_map(|block| &block.instructions);
    instructions.map(|instruction| machine[instruction.row].name.clone()).collect()
}

fn word(bytes: &[u8], index: usize) -> u32 {
    u32::from_be_bytes([bytes[4 * index], bytes[4 * index + 1], bytes[4 * index + 2], bytes[4 * index + 3]])
}

#[test]
fn rows_are_found_by_meaning() {
    let machine = machine("e600");
    let selector = Selector::new(&machine);
    let (v, r) = (machine.file_named("v").unwrap(), machine.file_named("r").unwrap());
    let name = |shape: &shapes::Shape| selector.row_for(shape).map(|found| machine[found.row].name.clone());
    let lane = |file, op, bits| name(&shapes::lane_shape(&machine, file, op, bits));
    assert_eq!(lane(v, LaneOp::Add, 32).as_deref(), Some("vadduwm"));
    assert_eq!(lane(v, LaneOp::CarryOut, 32).as_deref(), Some("vaddcuw"));
    assert_eq!(lane(v, LaneOp::NoBorrowOut, 32).as_deref(), Some("vsubcuw"));
    assert_eq!(lane(v, LaneOp::Not, 8).as_deref(), Some("vnor"));
    assert_eq!(lane(v, LaneOp::SelectBits, 8).as_deref(), Some("vsel"));
    assert_eq!(lane(v, LaneOp::ShiftRight, 16).as_deref(), Some("vsrh"));
    assert_eq!(lane(v, LaneOp::Less, 8).as_deref(), Some("vcmpgtub"));
    assert_eq!(lane(v, LaneOp::MultiplyEven, 16).as_deref(), Some("vmuleuh"));
    assert_eq!(lane(v, LaneOp::MultiplyOdd, 8).as_deref(), Some("vmuloub"));
    assert_eq!(lane(v, LaneOp::Add, 64), None);
    assert_eq!(lane(r, LaneOp::MultiplyHigh, 32).as_deref(), Some("mulhwu"));
    assert_eq!(lane(r, LaneOp::Subtract, 32).as_deref(), Some("subf"));
    assert_eq!(name(&shapes::byte_permute_shape(&machine, v, 2)).as_deref(), Some("vperm"));
    let carry = machine.file_named("CA").unwrap();
    assert_eq!(name(&shapes::add_with_carry_shape(&machine, r, carry, false)).as_deref(), Some("addc"));
    assert_eq!(name(&shapes::add_with_carry_shape(&machine, r, carry, true)).as_deref(), Some("adde"));
    assert_eq!(name(&shapes::subtract_with_borrow_shape(&machine, r, carry, true, true)).as_deref(), Some("subfe"));
}

#[test]
fn portable_rows_are_found_by_meaning() {
    let machine = machine("portable");
    let selector = Selector::new(&machine);
    let name = |shape: &shapes::Shape| selector.row_for(shape).map(|found| machine[found.row].name.clone());
    let (u64_file, flag) = (machine.file_named("u64").unwrap(), machine.file_named("flag").unwrap());
    assert_eq!(name(&shapes::lane_shape(&machine, u64_file, LaneOp::Add, 64)).as_deref(), Some("add_u64"));
    assert_eq!(name(&shapes::add_with_carry_shape(&machine, u64_file, flag, true)).as_deref(), Some("adde_u64"));
    assert_eq!(name(&shapes::subtract_with_borrow_shape(&machine, u64_file, flag, true, false)).as_deref(), Some("sube_u64"));
}

/// Ten registers masked, complemented, multiplied and summed; then a run-time number of additions of a constant.
#[test]
fn programs_compute_what_was_asked() {
    let machine = machine("e600");
    let selector = Selector::new(&machine);
    let memory_rows = MemoryRows::of(&selector);
    let v = machine.file_named("v").unwrap();
    let mut builder = ProgramBuilder::new("f", &selector, &memory_rows, PoolAddressing::Absolute).unwrap();
    let x = builder.region_parameter("x", Direction::In, true, Some(160), 16, Layout::Bytes);
    let y = builder.region_parameter("y", Direction::Out, true, Some(160), 16, Layout::Bytes);
    let n = builder.scalar_parameter("n", 32, false).unwrap();
    let rows = builder.multiply_accumulate_rows(v);
    let found: Vec<(&str, u32, u32)> =
        rows.iter().map(|(row, limb, products)| (machine[row.row].name.as_str(), *limb, *products)).collect();
    assert_eq!(found, [("vmsumubm", 8, 4), ("vmladduhm", 16, 1), ("vmsumuhm", 16, 2)]);
    let mask = builder.splat(32, 0x1fff).unwrap();
    let step: Vec<u8> = (0..16).collect();
    let step_register = builder.constant(&step).unwrap();
    let mut sum = builder.splat(32, 0).unwrap();
    for k in 0..10 {
        builder.set_name("a");
        let a = builder.load_lanes(x, 16 * k).unwrap();
        let low = builder.lane_row(LaneOp::And, 8, &[a, mask]).unwrap();
        let complement = builder.lane_row(LaneOp::Not, 8, &[low]).unwrap();
        builder.set_name("sum");
        sum = builder.multiply_accumulate(&rows[2].0, sum, low, complement).unwrap();
        builder.store_lanes(complement, y, 16 * k).unwrap();
    }
    let body =
        |builder: &mut ProgramBuilder<'_>, carried: &[_]| Ok(vec![builder.lane_row(LaneOp::Add, 32, &[carried[0], step_register])?]);
    let result = builder.counted_loop(Rounds::Value(n), false, &[sum], body).unwrap();
    builder.store_lanes(result[0], y, 0).unwrap();
    let program = builder.finish().unwrap();
    let rows = names(&machine, &program);
    let count = |name: &str| rows.iter().filter(|row| *row == name).count();
    // 0x1fff is -13 (0xfffffff3) shifted right by its own low five bits, 19: two rows. Zero is one row; one entry is in the pool.
    assert_eq!(count("vspltisw") + count("vspltisb") + count("vspltish"), 2);
    assert_eq!((count("vsrw"), count("bdnz"), count("mtctr")), (1, 1, 1));
    assert_eq!(count("lvx"), 11);
    // Offsets 16, 32, ... are shared by both regions.
    assert!(count("li") + count("addi") <= 8, "{rows:?}");
    let input: Vec<u8> = (0..160u32).map(|i| (i * 37 + 11) as u8).collect();
    for n in [0u64, 1, 5] {
        let mut given = vec![Given::Region(input.clone()), Given::Region(vec![0; 160]), Given::Scalar(n)];
        run::run(&machine, &program, &mut given, 0);
        let Given::Region(output) = &given[1] else { panic!("a region") };
        let mut sums = [0u32; 4];
        for k in 0..40 {
            let low = word(&input, k) & 0x1fff;
            let complement = !low;
            let products = ((low >> 16) * (complement >> 16)).wrapping_add((low & 0xffff).wrapping_mul(complement & 0xffff));
            sums[k % 4] = sums[k % 4].wrapping_add(products);
            if k >= 4 {
                assert_eq!(word(output, k), complement);
            }
        }
        for (lane, sum) in sums.iter().enumerate() {
            assert_eq!(word(output, lane), sum.wrapping_add(word(&step, lane).wrapping_mul(n as u32)));
        }
    }
}

#[test]
fn secrets_reach_neither_addresses_nor_variable_time() {
    let machine = machine("e600");
    let selector = Selector::new(&machine);
    let memory_rows = MemoryRows::of(&selector);
    let mut builder = ProgramBuilder::new("f", &selector, &memory_rows, PoolAddressing::Absolute).unwrap();
    let table = builder.region_parameter("table", Direction::In, false, Some(1024), 4, Layout::Bytes);
    let index = builder.scalar_parameter("index", 32, true).unwrap();
    let r = machine.file_named("r").unwrap();
    let place = kgen_schedulers::lowering::builder::Place::indexed(table, index, 0, (0, 1024));
    let refused = builder.load(r, 4, place).unwrap_err();
    assert_eq!(refused.rule, "secret-address");
    assert!(refused.message.contains("`index`") && refused.message.contains("`table`"), "{}", refused.message);
    let refused = builder.lane_row(LaneOp::Multiply, 32, &[index, index]).unwrap_err();
    assert_eq!(refused.rule, "secret-dependent-time");
}
