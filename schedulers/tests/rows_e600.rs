//! Every e600 row's meaning against an emulated processor: hundreds of operand sets per row in one program and one process. Undefined bits are left out.

mod tools;

use kgen_ir::bits::Bits;
use kgen_ir::domains::compiled::{CompiledMeaning, Scratch};
use kgen_ir::domains::concrete::ShadowedBits;
use kgen_ir::domains::memory::RegionMemory;
use kgen_schedulers::assembly::print_instruction;
use kgen_schedulers::code::{CodeInstruction, CodeOperand};
use kgen_schedulers::machine::{FileId, Machine, OperandKind, Row, RowId};
use kgen_schedulers::target_file;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::process::{Command, Stdio};

/// Operand sets per row at least.
const SETS: usize = 200;
/// Variants of a row with constants: each is its own piece of code, so there are fewer of them, with fewer sets each.
const VARIANTS: usize = 40;

/// Where the memory that rows load and store lies; the driver is linked so.
const BUFFER: u32 = 0x2000_0000;
const BUFFER_BYTES: usize = 64;

/// The block of inputs, and that of results: places by byte.
const VECTORS: usize = 0;
const GENERAL: usize = 128;
const CARRY: usize = 192;
const COUNT: usize = 196;
const LINK: usize = 200;
const CONDITION: usize = 204;
const SATURATION: usize = 208;
const VRSAVE: usize = 224;
const MEMORY: usize = 240;
const BLOCK: usize = MEMORY + BUFFER_BYTES;

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// A number of `bytes` bytes, one in three at an edge.
    fn number(&mut self, bytes: u32) -> u64 {
        let mask = if bytes == 8 { u64::MAX } else { (1 << (8 * bytes)) - 1 };
        let top = 1u64 << (8 * bytes - 1);
        match self.below(3) {
            0 => {
                [0, 1, 2, mask, mask - 1, top, top - 1, top + 1, 0x7fff & mask, 0xffff & mask, 0x10000 & mask, 31, 32, 33]
                    [self.below(14) as usize]
                    & mask
            }
            _ => self.next() & mask,
        }
    }

    /// A vector: numbers of one size, or one byte everywhere.
    fn vector(&mut self) -> [u8; 16] {
        let mut vector = [0; 16];
        if self.below(4) == 0 {
            return [self.next() as u8; 16];
        }
        let bytes = [1u32, 2, 4, 8][self.below(4) as usize];
        for chunk in vector.chunks_mut(bytes as usize) {
            let number = self.number(bytes).to_be_bytes();
            chunk.copy_from_slice(&number[8 - bytes as usize..]);
        }
        vector
    }
}

/// One instruction of a row with registers and constants chosen.
struct Variant {
    row: RowId,
    instruction: CodeInstruction,
}

fn register_of(machine: &Machine, name: &str) -> FileId {
    machine.file_named(name).unwrap_or_else(|| panic!("e600 has a file {name}"))
}

/// Chooses registers by operand number: general ones from 5, vectors from 2.
fn variant(machine: &Machine, row_id: RowId, random: &mut Random, zero: bool) -> Variant {
    let row = &machine[row_id];
    let general = register_of(machine, "r");
    let operands = row.explicit_operands().map(|(index, operand)| match operand.kind {
        OperandKind::Register(file) if file == general => CodeOperand::Register(file, 5 + index as u32),
        OperandKind::Register(file) if machine[file].name == "cr" => CodeOperand::Register(file, [0, 1, 5, 6, 7][random.below(5) as usize]),
        OperandKind::Register(file) => CodeOperand::Register(file, 2 + index as u32),
        OperandKind::RegisterOrZero(_) if zero => CodeOperand::Zero,
        OperandKind::RegisterOrZero(file) => CodeOperand::Register(file, 5 + index as u32),
        OperandKind::Immediate { low, high, step } => {
            let (low, high) = if row.memory().is_some() { (low.max(-16), high.min(16)) } else { (low, high) };
            let value = match random.below(4) {
                0 => low,
                1 => high - step,
                _ => low + i128::from(random.next()) % ((high - low) / step) * step,
            };
            CodeOperand::Immediate(value as i64)
        }
        OperandKind::Label | OperandKind::Symbol => unreachable!("rows with labels are tested by execution"),
    });
    let operands = operands.collect();
    Variant {
        row: row_id,
        instruction: CodeInstruction { row: row_id, operands, parallel: false, unit: None, comment: String::new(), span: None },
    }
}

fn is_testable(row: &Row) -> bool {
    row.control.is_none() && !row.operands.iter().any(|operand| matches!(operand.kind, OperandKind::Label | OperandKind::Symbol))
}

fn place(machine: &Machine, file: FileId, number: u32) -> (usize, usize) {
    match machine[file].name.as_str() {
        "v" => (VECTORS + 16 * (number as usize - 2), 16),
        "r" => (GENERAL + 4 * (number as usize - 5), 4),
        "CA" => (CARRY, 4),
        "CTR" => (COUNT, 4),
        "LR" => (LINK, 4),
        "cr" => (CONDITION, 4),
        "SAT" => (SATURATION, 16),
        "VRSAVE" => (VRSAVE, 4),
        other => panic!("the test does not know register file {other}"),
    }
}

/// The function that loads the inputs (at r3), executes the instruction and stores the results (at r4).
fn assembly(machine: &Machine, index: usize, variant: &Variant) -> String {
    let row = &machine[variant.row];
    let operands = variant.instruction.all_operands(machine).expect("the instruction fits its row");
    let mut text = format!("f{index}:\n    mflr 12\n    vspltisw 0,0\n    mtvscr 0\n");
    for (operand, found) in row.operands.iter().zip(&operands).filter(|(operand, _)| operand.read) {
        let CodeOperand::Register(file, number) = found else { continue };
        let (at, _) = place(machine, *file, *number);
        let _ = match machine[*file].name.as_str() {
            "v" => write!(text, "    li 11,{at}\n    lvx {number},3,11\n"),
            "r" => writeln!(text, "    lwz {number},{at}(3)"),
            // The carry of x + (2^32 − 1) is whether x is not zero.
            "CA" => write!(text, "    lwz 11,{at}(3)\n    addic 11,11,-1\n"),
            "CTR" => write!(text, "    lwz 11,{at}(3)\n    mtctr 11\n"),
            "LR" => write!(text, "    lwz 11,{at}(3)\n    mtlr 11\n"),
            "VRSAVE" => write!(text, "    lwz 11,{at}(3)\n    mtspr 256,11\n"),
            other => panic!("operand {} of {} reads {other}", operand.name, row.name),
        };
    }
    let _ = writeln!(text, "    {}", print_instruction(machine, &variant.instruction).expect("it is printed"));
    for (operand, found) in row.operands.iter().zip(&operands).filter(|(operand, _)| operand.written) {
        let CodeOperand::Register(file, number) = found else { continue };
        let (at, _) = place(machine, *file, *number);
        let _ = match machine[*file].name.as_str() {
            "v" => write!(text, "    li 11,{at}\n    stvx {number},4,11\n"),
            "r" => writeln!(text, "    stw {number},{at}(4)"),
            "CA" => write!(text, "    mfxer 11\n    stw 11,{at}(4)\n"),
            "CTR" => write!(text, "    mfctr 11\n    stw 11,{at}(4)\n"),
            "LR" => write!(text, "    mflr 11\n    stw 11,{at}(4)\n"),
            "cr" => write!(text, "    mfcr 11\n    stw 11,{at}(4)\n"),
            "SAT" => write!(text, "    mfvscr 1\n    li 11,{at}\n    stvx 1,4,11\n"),
            "VRSAVE" => write!(text, "    mfspr 11,256\n    stw 11,{at}(4)\n"),
            other => panic!("operand {} of {} writes {other}", operand.name, row.name),
        };
    }
    text.push_str("    mtlr 12\n    blr\n");
    text
}

/// The rows that name places, once each: the assembler must take their text. (What they do is tested by execution.)
fn unexecuted(machine: &Machine) -> String {
    let mut text = String::from("unexecuted:\n");
    for (index, row) in machine.rows.iter().enumerate().filter(|(_, row)| !is_testable(row)) {
        let operands = row.explicit_operands().map(|(_, operand)| match operand.kind {
            OperandKind::Register(file) | OperandKind::RegisterOrZero(file) => CodeOperand::Register(file, 6),
            OperandKind::Immediate { low, .. } => CodeOperand::Immediate(low as i64),
            OperandKind::Label => CodeOperand::Label("here".to_owned()),
            OperandKind::Symbol => CodeOperand::Symbol("table".to_owned(), 4),
        });
        let operands = operands.collect();
        let row = RowId(index as u32);
        let instruction = CodeInstruction { row, operands, parallel: false, unit: None, comment: String::new(), span: None };
        let _ = writeln!(text, "    {}", print_instruction(machine, &instruction).expect("it is printed"));
    }
    text.push_str("here:\n");
    text
}

const DRIVER: &str = r#"
#include <stdio.h>
#include <string.h>
#define BLOCK 304
#define MEMORY 240
__attribute__((section(".buffer"), aligned(64))) unsigned char buffer[64] = {1};
typedef void function(const unsigned char *, unsigned char *);
extern function *const table[];
int main(void) {
    static unsigned char in[BLOCK] __attribute__((aligned(16))), out[BLOCK] __attribute__((aligned(16)));
    unsigned index;
    while (fread(&index, 4, 1, stdin) == 1 && fread(in, BLOCK, 1, stdin) == 1) {
        memset(out, 0, BLOCK);
        memcpy(buffer, in + MEMORY, 64);
        table[index](in, out);
        memcpy(out + MEMORY, buffer, 64);
        if (fwrite(out, BLOCK, 1, stdout) != 1) return 1;
    }
    return fflush(stdout) != 0;
}
"#;

/// Inputs of one set: the block, with addresses that stay inside the buffer.
fn inputs(machine: &Machine, variant: &Variant, random: &mut Random) -> Vec<u8> {
    let row = &machine[variant.row];
    let operands = variant.instruction.all_operands(machine).expect("the instruction fits its row");
    let mut block = vec![0u8; BLOCK];
    let touches_memory = row.memory().is_some();
    let base_is_zero = operands.contains(&CodeOperand::Zero);
    for (operand, found) in row.operands.iter().zip(&operands).filter(|(operand, _)| operand.read) {
        let CodeOperand::Register(file, number) = found else { continue };
        let (at, bytes) = place(machine, *file, *number);
        match machine[*file].name.as_str() {
            "v" => block[at..at + 16].copy_from_slice(&random.vector()),
            "CA" => block[at + 3] = random.below(2) as u8,
            _ => {
                let offset = random.below(24) as u32;
                let number = match operand.name.as_str() {
                    "a" | "old" if touches_memory => BUFFER + 24 + offset % 8,
                    "b" if touches_memory && base_is_zero => BUFFER + 8 + offset,
                    "b" if touches_memory => offset.wrapping_sub(8),
                    _ => random.number(4) as u32,
                };
                block[at..at + bytes].copy_from_slice(&number.to_be_bytes());
            }
        }
    }
    for byte in &mut block[MEMORY..] {
        *byte = random.next() as u8;
    }
    block
}

/// What a register's place in a block holds, as the meaning sees it.
fn value(machine: &Machine, block: &[u8], file: FileId, number: u32) -> Bits {
    let (at, bytes) = place(machine, file, number);
    let word = || u32::from_be_bytes(block[at..at + 4].try_into().expect("four bytes"));
    match machine[file].name.as_str() {
        "v" => Bits::from_bytes(&block[at..at + bytes]),
        "r" | "CTR" | "LR" | "VRSAVE" => Bits::from_u64(32, u64::from(word())),
        "cr" => Bits::from_u64(4, u64::from(word() >> (28 - 4 * number))),
        "SAT" => Bits::from_u64(1, u64::from(block[at + 15])),
        other => panic!("{other} is no such file"),
    }
}

/// Compares one result block with the meaning; what differs.
fn difference(machine: &Machine, meaning: &CompiledMeaning, variant: &Variant, input: &[u8], output: &[u8]) -> Option<String> {
    let row = &machine[variant.row];
    let operands = variant.instruction.all_operands(machine).expect("the instruction fits its row");
    let mut memory = RegionMemory::default();
    assert!(memory.map(u64::from(BUFFER), input[MEMORY..].to_vec(), true));
    let read = row.operands.iter().zip(&operands).filter(|(operand, _)| operand.read);
    let values: Vec<ShadowedBits> = read
        .map(|(_, found)| match found {
            CodeOperand::Register(file, number) if machine[*file].name == "CA" => {
                Bits::from_u64(1, u64::from(input[place(machine, *file, *number).0 + 3])).into()
            }
            CodeOperand::Register(file, number) => value(machine, input, *file, *number).into(),
            CodeOperand::Immediate(value) => Bits::from_u64(32, *value as u64).into(),
            _ => Bits::zero(32).into(),
        })
        .collect();
    let references: Vec<&ShadowedBits> = values.iter().collect();
    let outcome = match meaning.run(&mut Scratch::default(), &mut memory, &references) {
        Ok(outcome) => outcome,
        Err(fault) => return Some(format!("the meaning faults: {fault}")),
    };
    let written = row.operands.iter().zip(&operands).filter(|(operand, _)| operand.written);
    for ((operand, found), expected) in written.zip(&outcome.outputs) {
        let CodeOperand::Register(file, number) = found else { continue };
        let actual = match machine[*file].name.as_str() {
            // XER: the carry is bit 29 from below.
            "CA" => Bits::from_u64(1, u64::from(output[CARRY] >> 5)),
            _ => value(machine, output, *file, *number),
        };
        if !expected.agrees_with(&actual) {
            return Some(format!("{}: the meaning gives {expected:x?}, the processor {actual:x?}", operand.name));
        }
    }
    let region = memory.region(u64::from(BUFFER)).expect("it was mapped");
    if region.bytes != output[MEMORY..] {
        return Some(format!("memory: the meaning gives {:x?}, the processor {:x?}", region.bytes, &output[MEMORY..]));
    }
    None
}

#[test]
fn meanings_are_what_the_processor_does() {
    if !tools::available(&["powerpc-linux-gnu-gcc", "qemu-ppc"]) {
        return;
    }
    let machine = target_file::embedded_machine("e600").expect("e600 is read");
    let mut random = Random(0x0e60_0e60);
    let mut variants = Vec::new();
    let mut sets: Vec<(usize, Vec<u8>)> = Vec::new();
    let mut rows = 0;
    for (index, row) in machine.rows.iter().enumerate().filter(|(_, row)| is_testable(row)) {
        rows += 1;
        let row_id = RowId(index as u32);
        let has_constant = row.operands.iter().any(|operand| matches!(operand.kind, OperandKind::Immediate { .. }));
        // A zero base with a short constant does not reach the buffer.
        let can_be_zero = row.operands.iter().any(|operand| matches!(operand.kind, OperandKind::RegisterOrZero(_)))
            && !(has_constant && row.memory().is_some());
        let count = if has_constant { VARIANTS } else { 2 };
        for number in 0..count {
            let variant = variant(&machine, row_id, &mut random, can_be_zero && number % 2 == 1);
            for _ in 0..SETS.div_ceil(count) {
                sets.push((variants.len(), inputs(&machine, &variant, &mut random)));
            }
            variants.push(variant);
        }
    }
    assert!(rows > 200, "only {rows} rows are tested");
    let mut text = String::from("    .machine \"7450\"\n    .text\n");
    for (index, variant) in variants.iter().enumerate() {
        text.push_str(&assembly(&machine, index, variant));
    }
    text.push_str(&unexecuted(&machine));
    text.push_str("    .section .rodata\n    .balign 4\n    .globl table\ntable:\n");
    for index in 0..variants.len() {
        let _ = writeln!(text, "    .long f{index}");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("rows.s"), &text).expect("written");
    std::fs::write(path("driver.c"), DRIVER).expect("written");
    let built = Command::new("powerpc-linux-gnu-gcc")
        .args(["-mcpu=7450", "-maltivec", "-static", "-O1", "-Wl,--section-start=.buffer=0x20000000", "-o"])
        .args([path("rows"), path("driver.c"), path("rows.s")])
        .output()
        .expect("gcc runs");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let mut data = Vec::new();
    for (index, block) in &sets {
        data.extend((*index as u32).to_be_bytes());
        data.extend(block);
    }
    std::fs::write(path("inputs"), &data).expect("written");
    let run = Command::new("qemu-ppc")
        .args(["-cpu", "7448"])
        .arg(path("rows"))
        .stdin(Stdio::from(std::fs::File::open(path("inputs")).expect("opened")))
        .output()
        .expect("qemu runs");
    assert!(run.status.success(), "{:?} {}", run.status, String::from_utf8_lossy(&run.stderr));
    assert_eq!(run.stdout.len(), sets.len() * BLOCK);
    let mut meanings: BTreeMap<RowId, CompiledMeaning> = BTreeMap::new();
    let mut failures: BTreeMap<String, (usize, String)> = BTreeMap::new();
    for ((index, input), output) in sets.iter().zip(run.stdout.chunks(BLOCK)) {
        let variant = &variants[*index];
        let row = &machine[variant.row];
        let first = !meanings.contains_key(&variant.row);
        let meaning = meanings.entry(variant.row).or_insert_with(|| CompiledMeaning::new(&row.meaning));
        // The comparison must be able to fail: with every bit of the results turned it does, for every row that has some.
        if first && row.name != "nop" {
            let turned: Vec<u8> = output.iter().map(|byte| !byte).collect();
            assert!(difference(&machine, meaning, variant, input, &turned).is_some(), "{}: any result is accepted", row.name);
        }
        if let Some(difference) = difference(&machine, meaning, variant, input, output) {
            let text = print_instruction(&machine, &variant.instruction).expect("it is printed");
            failures.entry(row.name.clone()).or_insert((0, format!("{text}: {difference}"))).0 += 1;
        }
    }
    let list: Vec<String> = failures.iter().map(|(row, (count, first))| format!("{row}: {count} sets differ; {first}")).collect();
    assert!(list.is_empty(), "{} of {rows} rows:\n{}", list.len(), list.join("\n"));
    println!("{rows} rows, {} operand sets", sets.len());
}
