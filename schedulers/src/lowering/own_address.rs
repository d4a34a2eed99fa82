//! Position-independent addresses: the program learns its own address at run time and adds a symbol's distance from it.
//!
//! The entry block is preceded by one that holds nothing but a call to the next instruction; a label's distance stands for the block behind it. Nothing else of the
//! program knows: the distance is an operand of the rows that add it (a symbol and a label), and the register that the call leaves the address in is saved like any other.

use super::builder::{Lowering, ProgramBuilder};
use super::probes;
use super::selection::{RowKind, RowPorts, register_file};
use crate::machine::{ControlKind, FileId, OperandKind, RowId};
use crate::program::{Block, BlockId, Instruction, Operand, Program, RegionId, ValueId};

/// The block behind the call, until [`put_call_first`] moves all blocks on.
const ENTRY: BlockId = BlockId(0);

/// Addresses and places of code on which rows are compared.
const PROBES: [(i64, i64); 5] = [
    (0x1000_0040, 0x1000_8000),
    (0x1234_8770, 0x0200_0004),
    (0x0001_7ff0, 0x0001_0008),
    (0x7ffe_8000, 0x7ffd_fff8),
    (0x20_0000, 0x1f_8004),
];

/// A row that adds a symbol's distance from a label, or a part of it, to a register.
struct DistanceRow {
    row: RowId,
    symbol: usize,
    label: usize,
    register: usize,
    result: usize,
}

fn distance_rows(builder: &ProgramBuilder<'_>) -> Vec<DistanceRow> {
    let machine = builder.machine();
    let file = builder.pointer_file();
    let found = builder.selector.rows_of_kind(RowKind::Compute).filter_map(|(id, row)| {
        let ports = RowPorts::of(row);
        let one = |wanted: &dyn Fn(&OperandKind) -> bool| {
            let mut fitting = ports.read.iter().copied().filter(|number| wanted(&row.operands[*number].kind));
            fitting.next().filter(|_| fitting.next().is_none())
        };
        let symbol = one(&|kind| *kind == OperandKind::Symbol)?;
        let label = one(&|kind| *kind == OperandKind::Label)?;
        let register = one(&|kind| register_file(kind) == Some(file))?;
        let [result] = ports.written[..] else { return None };
        let fits = ports.read.len() == 3 && register_file(&machine[id].operands[result].kind) == Some(file);
        fits.then_some(DistanceRow { row: id, symbol, label, register, result })
    });
    found.collect()
}

fn run(builder: &ProgramBuilder<'_>, row: &DistanceRow, symbol: i64, label: i64, register: i64) -> Option<i64> {
    let described = &builder.machine()[row.row];
    let ports = RowPorts::of(described);
    let value = |number: usize| {
        if number == row.symbol {
            symbol
        } else if number == row.label {
            label
        } else {
            register
        }
    };
    let inputs: Vec<_> =
        ports.read.iter().zip(&described.meaning.inputs).map(|(number, port)| probes::integer(&port.ty, value(*number))).collect();
    let results = probes::run(&described.meaning, &inputs)?;
    Some(results.first()?.defined()?.to_u64()? as i64)
}

/// A region's address from the program's own.
///
/// # Errors
/// The machine has no rows for it.
pub(super) fn distant_address(builder: &mut ProgramBuilder<'_>, region: RegionId) -> Lowering<ValueId> {
    let rows = distance_rows(builder);
    let leads = |chain: &[&DistanceRow]| {
        PROBES.iter().all(|(symbol, label)| {
            let end = chain.iter().try_fold(*label, |register, row| run(builder, row, *symbol, *label, register));
            end == Some(*symbol)
        })
    };
    let single = rows.iter().map(|row| vec![row]).find(|chain| leads(chain));
    let pair = || rows.iter().flat_map(|first| rows.iter().map(move |second| vec![first, second])).find(|chain| leads(chain));
    let chain = single.or_else(pair).ok_or_else(|| builder.missing("a symbol's distance from a label"))?;
    let mut address = own_address(builder)?;
    let name = builder.program.regions[region.0 as usize].name.clone();
    for row in chain {
        let operands = builder.machine()[row.row].operands.len();
        address = builder.in_prologue(|builder| {
            builder.set_name(&name);
            let result = builder.new_value(builder.pointer_file(), false);
            let mut list = vec![Operand::Unused; operands];
            list[row.symbol] = Operand::Symbol(region, 0);
            list[row.label] = Operand::Block(ENTRY);
            list[row.register] = Operand::Value(address);
            list[row.result] = Operand::Value(result);
            builder.place_instruction(Instruction { row: row.row, operands: list, memory: None, span: None });
            result
        });
    }
    Ok(address)
}

/// The address of the entry block in a pointer register.
fn own_address(builder: &mut ProgramBuilder<'_>) -> Lowering<ValueId> {
    if let Some((_, address)) = builder.own_address {
        return Ok(address);
    }
    let mut calls = builder.selector.rows_of_kind(RowKind::Control).filter_map(|(id, row)| {
        let label = row.operands.iter().position(|operand| operand.kind == OperandKind::Label)?;
        let [link] = RowPorts::of(row).written[..] else { return None };
        let fits = row.control == Some(ControlKind::CallNext);
        fits.then(|| Some((id, label, link, register_file(&row.operands[link].kind)?))).flatten()
    });
    let (row, label, link, file) = calls.next().ok_or_else(|| builder.missing("the program's own address"))?;
    drop(calls);
    builder.set_name("here");
    let returned = builder.new_value(file, false);
    let mut operands = vec![Operand::Unused; builder.machine()[row].operands.len()];
    operands[label] = Operand::Block(ENTRY);
    operands[link] = Operand::Value(returned);
    let call = Instruction { row, operands, memory: None, span: None };
    let address = if file == builder.pointer_file() { returned } else { moved(builder, file, returned)? };
    builder.own_address = Some((call, address));
    Ok(address)
}

/// A value of another file moved to a pointer register.
fn moved(builder: &mut ProgramBuilder<'_>, from: FileId, value: ValueId) -> Lowering<ValueId> {
    let to = builder.pointer_file();
    let found = builder.selector.rows_of_kind(RowKind::Compute).find_map(|(id, row)| {
        let ports = RowPorts::of(row);
        let ([source], [result]) = (&ports.read[..], &ports.written[..]) else { return None };
        let files = register_file(&row.operands[*source].kind) == Some(from) && register_file(&row.operands[*result].kind) == Some(to);
        let copies = || {
            PROBES.iter().all(|(number, _)| {
                let inputs = [probes::integer(&row.meaning.inputs[0].ty, *number)];
                let moved = probes::run(&row.meaning, &inputs).and_then(|results| results.first()?.defined()?.to_u64());
                moved == Some(*number as u64)
            })
        };
        (files && copies()).then_some((id, *source, *result, row.operands.len()))
    });
    let (row, source, result, operands) = found.ok_or_else(|| builder.missing("the program's own address in a pointer"))?;
    Ok(builder.in_prologue(|builder| {
        let address = builder.new_value(to, false);
        let mut list = vec![Operand::Unused; operands];
        list[source] = Operand::Value(value);
        list[result] = Operand::Value(address);
        builder.place_instruction(Instruction { row, operands: list, memory: None, span: None });
        address
    }))
}

/// Puts the call to the next instruction into a block of its own before all others.
pub(super) fn put_call_first(program: &mut Program, call: Instruction) {
    program.blocks.insert(0, Block { instructions: vec![call] });
    for lap in &mut program.loops {
        lap.first.0 += 1;
        lap.last.0 += 1;
    }
    for instruction in program.blocks.iter_mut().flat_map(|block| &mut block.instructions) {
        for operand in &mut instruction.operands {
            if let Operand::Block(target) = operand {
                target.0 += 1;
            }
        }
    }
}
