//! Kernels without naturals: what is lowered computes what the interpreter says, on random inputs, aligned and not; and known permutes take as few rows as they should.

#[path = "lowering_support/run.rs"]
mod run;

use kgen_ir::bits::Bits;
use kgen_ir::interpret::{Argument, Interpretation, interpret};
use kgen_ir::kernel::{Direction, Kernel, Parameter, Unit};
use kgen_ir::source::Source;
use kgen_ir::types::{ByteOrder, Type};
use kgen_schedulers::lowering::{self, Options};
use kgen_schedulers::machine::Machine;
use kgen_schedulers::program::Program;
use kgen_schedulers::target_file::embedded_machine;
use run::Given;
use std::sync::Arc;

const TARGETS: [&str; 2] = ["e600", "portable"];
const RUNS: u64 = 12;

fn machine(name: &str) -> Machine {
    embedded_machine(name).unwrap_or_else(|(_, errors)| panic!("{errors:#?}"))
}

fn unit(text: &str) -> Unit {
    let source = Source { name: "test.ir".to_string(), text: text.to_string() };
    kgen_ir::parse_unit(Arc::new(source), &[]).unwrap_or_else(|errors| panic!("{errors:#?}")).0
}

fn lower(kernel: &Kernel, machine: &Machine) -> Program {
    let lowered = lowering::lower(kernel, machine, &Options::default()).unwrap_or_else(|errors| panic!("{}: {errors:#?}", kernel.name));
    lowered.functions[0].1.clone()
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Now and then all zeros or ones, so that carries run.
    fn bits(&mut self, width: u32) -> Bits {
        match self.next() % 8 {
            0 => Bits::zero(width),
            1 => Bits::ones(width),
            _ => Bits::from_words(width, (0..width.div_ceil(64)).map(|_| self.next())),
        }
    }

    fn argument(&mut self, ty: &Type, slice_length: u64) -> Argument {
        match ty {
            Type::Bits { width, lanes } => {
                let mut all = Bits::zero(width * lanes);
                for lane in 0..*lanes {
                    all.insert(lane * width, &self.bits(*width));
                }
                Argument::Bits(all)
            }
            Type::Array { element, length } => Argument::List((0..*length).map(|_| self.argument(element, slice_length)).collect()),
            Type::Slice { element } => Argument::List((0..slice_length).map(|_| self.argument(element, slice_length)).collect()),
            other => panic!("no random {other}"),
        }
    }
}

fn to_bytes(ty: &Type, argument: &Argument, order: ByteOrder) -> Vec<u8> {
    match (ty, argument) {
        (Type::Bits { width, lanes }, Argument::Bits(bits)) => (0..*lanes)
            .flat_map(|lane| {
                let mut bytes = bits
                    .extract(lane * width, width.next_multiple_of(8))
                    .extract(0, *width)
                    .extract(0, width.next_multiple_of(8))
                    .to_bytes();
                if order == ByteOrder::Big {
                    bytes.reverse();
                }
                bytes
            })
            .collect(),
        (Type::Array { element, .. } | Type::Slice { element }, Argument::List(list)) => {
            list.iter().flat_map(|item| to_bytes(element, item, order)).collect()
        }
        _ => panic!("{argument:?} is no {ty}"),
    }
}

fn bytes_of(ty: &Type) -> usize {
    match ty {
        Type::Bits { width, lanes } => (width.div_ceil(8) * lanes) as usize,
        Type::Array { element, length } => bytes_of(element) * *length as usize,
        other => panic!("{other} has no size"),
    }
}

fn passes_by_value(parameter: &Parameter) -> bool {
    parameter.direction == Direction::In && matches!(parameter.ty, Type::Bits { width: ..=64, lanes: 1 })
}

/// One run with random arguments: the program's memory afterwards against the interpreter's results.
fn agrees_once(kernel: &Kernel, machine: &Machine, program: &Program, random: &mut Random, slice_length: u64, misalignment: u64) {
    let read: Vec<&Parameter> = kernel.parameters.iter().filter(|parameter| parameter.is_input()).collect();
    let arguments: Vec<Argument> = read.iter().map(|parameter| random.argument(&parameter.ty, slice_length)).collect();
    let expected = interpret(kernel, &arguments, &Interpretation::default()).unwrap_or_else(|fault| panic!("{}: {fault}", kernel.name));
    let order = machine.byte_order;
    let mut given = Vec::new();
    let mut next = arguments.iter();
    for parameter in &kernel.parameters {
        let argument = if parameter.is_input() { next.next() } else { None };
        given.push(match argument {
            Some(Argument::Bits(bits)) if passes_by_value(parameter) => Given::Scalar(bits.to_u64().unwrap()),
            Some(argument) => Given::Region(to_bytes(&parameter.ty, argument, order)),
            None => Given::Region(vec![0x77; bytes_of(&parameter.ty)]),
        });
        if program.parameters.get(given.len()).is_some_and(|extra| extra.name == format!("{}_count", parameter.name)) {
            given.push(Given::Scalar(slice_length));
        }
    }
    run::run(machine, program, &mut given, misalignment);
    let written = kernel.parameters.iter().filter(|parameter| parameter.direction != Direction::In);
    for (parameter, expected) in written.zip(&expected) {
        let place = program.parameters.iter().position(|other| other.name == parameter.name).unwrap();
        let Given::Region(bytes) = &given[place] else { panic!("{} is written", parameter.name) };
        assert_eq!(bytes, &to_bytes(&parameter.ty, expected, order), "{} of {} on {}", parameter.name, kernel.name, machine.name);
    }
}

fn agrees(kernel: &Kernel, machine: &Machine) {
    let program = lower(kernel, machine);
    let mut random = Random(1);
    for run in 0..RUNS {
        agrees_once(kernel, machine, &program, &mut random, run % 4, run % 16);
    }
}

fn all_agree(text: &str) {
    all_agree_on(&TARGETS, text);
}

fn all_agree_on(targets: &[&str], text: &str) {
    let unit = unit(text);
    for target in targets {
        let machine = machine(target);
        for kernel in &unit.kernels {
            agrees(kernel, &machine);
        }
    }
}

/// Rows of the program by name.
fn count(machine: &Machine, program: &Program, names: &[&str]) -> usize {
    let instructions = program.blocks.iter().flat_map(|block| &block.instructions);
    instructions.filter(|instruction| names.contains(&machine[instruction.row].name.as_str())).count()
}

#[test]
fn permutes_agree() {
    all_agree(include_str!("../../specs/permutes.ir"));
}

#[test]
fn xor_trees_agree() {
    all_agree(include_str!("../../specs/xor_trees.ir"));
}

#[test]
fn rotates_agree() {
    all_agree(include_str!("../../specs/rotates.ir"));
}

#[test]
fn carries_agree() {
    all_agree(include_str!("../../specs/carries.ir"));
}

#[test]
fn copies_agree_wherever_they_lie() {
    let unit = unit(include_str!("../../specs/copy.ir"));
    for target in TARGETS {
        let machine = machine(target);
        for kernel in &unit.kernels {
            let program = lower(kernel, &machine);
            let mut random = Random(2);
            for misalignment in 0..16 {
                agrees_once(kernel, &machine, &program, &mut random, 0, misalignment);
            }
        }
    }
}

#[test]
fn lane_operations_agree() {
    all_agree(
        "kernel sums(a: u64x2 secret, b: u64x2 secret) -> u64x2 secret { a + b }
         kernel differences(a: u64x2 secret, b: u64x2 secret) -> u64x2 secret { a - b }
         kernel products(a: u32x4 secret, b: u32x4 secret) -> u32x4 secret { a * b }
         kernel short_products(a: u16x8 secret, b: u16x8 secret) -> u16x8 secret { a * b }
         kernel full_products(a: u16x8 secret, b: u16x8 secret) -> u32x8 secret { wide(a) * wide(b) }
         kernel shifts(a: u64x2 secret) -> u64x2 secret { (a << 13) ^ (a >> 40) ^ rotl(a, 32) ^ rotl(a, 7) }
         kernel bytes(a: u8x16 secret, b: u8x16 secret) -> u8x16 secret { select(a < b, a ^ b, ~(a & b)) | max(a, b) }
         kernel signs(a: u16x8 secret, b: u16x8 secret) -> u16x8 secret { select(slt(a, b), sar(a, 3), smin(a, b)) }
         kernel narrowed(a: u32x4 secret) -> u16x4 secret { trunc(a, 16) }
         kernel widened(a: u8x16 secret) -> u32x16 secret { sext(a, 32) + zext(a, 32) }
         kernel mixed(a: u32x4 secret, b: u32x4 secret) -> u32x4 secret { [i in 0..4: a[i] + (b[3 - i] ^ (a[i] >> 5))] }
         kernel counted(a: u32x4 secret, n: u32x4 secret) -> u32x4 secret { (a << n) ^ (a >> n) }",
    );
}

#[test]
fn numbers_agree() {
    all_agree(
        "kernel logic(a: u32 secret, b: u32 secret) -> u32 secret { (a & ~b) ^ rotl(a, 5) ^ (b >> 3) ^ (a << 9) }
         kernel compared(a: u32 secret, b: u32 secret) -> u32 secret { select(a < b, a, b) + select(a == b, u32(7), u32(1)) + select(slt(a, b), u32(2), u32(0)) }
         kernel bytes_of(a: u8 secret, b: u8 secret) -> u8 secret { (a + b) ^ (a - b) ^ ~a ^ rotl(b, 3) ^ sar(a, 2) }
         kernel wider(a: u16 secret) -> u32 secret { sext(a, 32) ^ (zext(a, 32) << 7) }",
    );
}

#[test]
fn loops_and_maps_agree() {
    all_agree(
        "kernel xor_all(blocks: inout [u8x16] secret, key: u8x16 secret) { map b in blocks { b = b ^ key } }
         kernel doubled(n: u8, a: inout u32x4 secret) { s = a; loop i in 0..n { s = s + a }; a = s }
         kernel thrice(a: inout u32x4 secret) { s = a; loop i in 0..3 { s = rotl(s, 9) ^ a }; a = s }",
    );
}

#[test]
fn tables_are_scanned_for_secrets() {
    all_agree(
        "const BOX: [u8; 16] = [12, 5, 6, 11, 9, 0, 10, 13, 3, 14, 15, 8, 4, 7, 1, 2]
         kernel nibbles(a: u8x16 secret) -> u8x16 secret { BOX[a & 15] }
         kernel chosen(table: [u32; 8] secret, index: u32 secret) -> u32 secret { table[index & 7] }",
    );
}

#[test]
fn public_indices_become_addresses() {
    let unit = unit("kernel chosen(table: [u32; 8] secret, index: u32) -> u32 secret { table[index & 7] }");
    for target in TARGETS {
        let machine = machine(target);
        agrees(&unit.kernels[0], &machine);
        let program = lower(&unit.kernels[0], &machine);
        let loads = program
            .blocks
            .iter()
            .flat_map(|block| &block.instructions)
            .filter(|instruction| instruction.memory.as_ref().is_some_and(|memory| memory.read));
        assert_eq!(loads.count(), 1, "{target}");
    }
}

#[test]
fn permutes_take_few_rows() {
    let machine = machine("e600");
    let moves =
        ["vperm", "vsldoi", "vmrghb", "vmrghh", "vmrghw", "vmrglb", "vmrglh", "vmrglw", "vspltb", "vsplth", "vspltw", "vpkuhum", "vpkuwum"];
    let rows = |text: &str| {
        let unit = unit(text);
        let program = lower(&unit.kernels[0], &machine);
        (count(&machine, &program, &moves), count(&machine, &program, &["vperm"]))
    };
    assert_eq!(rows("kernel f(a: inout u8x16 align 16) { a = [i in 0..16: a[i ^ 3]] }"), (1, 1), "bytes of words reversed");
    assert_eq!(rows("kernel f(a: inout u8x16 align 16) { a = [i in 0..16: a[(i + 4) % 16]] }"), (1, 0), "a rotation of the register");
    assert_eq!(rows("kernel f(a: inout u32x4 align 16) { a = [i in 0..4: a[2]] }"), (1, 0), "a splat");
    assert_eq!(rows("kernel f(a: inout u8x16 align 16) { a = [i in 0..16: a[i]] }"), (0, 0), "a renaming");
    assert_eq!(rows("kernel f(a: u32x4 align 16, b: u32x4 align 16) -> u32x4 align 16 { [a[0], b[0], a[1], b[1]] }"), (1, 0), "a merge");
    assert_eq!(rows("kernel f(a: u32x8 align 16) -> u16x8 align 16 { trunc(a, 16) }"), (1, 0), "a pack");
    assert_eq!(rows("kernel f(a: u16x8 align 16) -> u32x4 align 16 { zext(a[0..4], 32) }"), (1, 0), "a merge with zero");
    assert_eq!(
        rows("kernel f(a: u8x16 align 16, b: u8x16 align 16) -> u8x16 align 16 { [i in 0..16: select(i % 2 == 0, a[i], b[15 - i])] }"),
        (1, 1),
        "any bytes of two registers"
    );
}
