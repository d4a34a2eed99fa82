//! Rows that move a whole register: to memory and back, to another register, and a constant into one. They are found by their meaning.

use crate::machine::{FileId, Machine, OperandKind, Row, RowId, RowOperand};
use kgen_ir::body::{BinaryOp, Body, Effect, NaryOp, NodeHandle, Op};
use kgen_ir::types::ByteOrder;

/// How the address of a frame slot is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameOffsetForm {
    /// An immediate operand.
    Immediate {
        /// Its number.
        operand: usize,
    },
    /// A register operand, set by another row.
    Register {
        /// Its number.
        operand: usize,
        /// How the register gets its value.
        constant: ConstantRow,
    },
}

/// A row that stores or loads one whole register at stack pointer plus offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameRow {
    /// The row.
    pub row: RowId,
    /// Number of the operand stored or loaded.
    pub data: usize,
    /// Number of the operand that takes the stack pointer.
    pub base: usize,
    /// The offset.
    pub offset: FrameOffsetForm,
}

/// A row that puts an immediate into a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConstantRow {
    /// The row.
    pub row: RowId,
    /// Number of the result.
    pub result: usize,
    /// Number of the immediate.
    pub immediate: usize,
    /// Number of an operand that has to be zero.
    pub zero: Option<usize>,
}

/// A row that copies a register.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyRow {
    /// The row.
    pub row: RowId,
    /// Number of the result.
    pub result: usize,
    /// Numbers of the operands that take the source.
    pub sources: Vec<usize>,
}

/// The way of a register of this file to memory, if the machine has one.
pub fn frame_store(machine: &Machine, file: FileId) -> Option<FrameRow> {
    best(
        machine,
        |row| {
            let [Effect::Store { address, value, condition: None }] = row.meaning.effects.as_slice() else { return None };
            if row.operands.iter().any(|operand| operand.written) || !whole_register(machine, file, &row.meaning, *value) {
                return None;
            }
            let data = input_operand(row, same_bytes(&row.meaning, *value, machine.byte_order)?)?;
            Some((data, *address))
        },
        file,
    )
}

/// The way back.
pub fn frame_load(machine: &Machine, file: FileId) -> Option<FrameRow> {
    best(
        machine,
        |row| {
            let [(_, output)] = row.meaning.outputs.as_slice() else { return None };
            if !row.meaning.effects.is_empty() {
                return None;
            }
            let loaded = same_bytes(&row.meaning, *output, machine.byte_order)?;
            let Op::Load { address } = row.meaning.nodes[loaded].op else { return None };
            if !whole_register(machine, file, &row.meaning, loaded) {
                return None;
            }
            Some((row.operands.iter().position(|operand| operand.written)?, address))
        },
        file,
    )
}

/// A row that copies a register of this file, if the machine has one.
pub fn register_copy(machine: &Machine, file: FileId) -> Option<CopyRow> {
    machine.rows.iter().enumerate().find_map(|(index, row)| {
        let [(_, output)] = row.meaning.outputs.as_slice() else { return None };
        let [result] = written_of(row).try_into().ok()?;
        if !row.meaning.effects.is_empty() || row.control.is_some() || !plain(row) || !is_register_of(&row.operands[result], file) {
            return None;
        }
        let mut sources = Vec::new();
        idempotent_inputs(row, *output, machine.byte_order, &mut sources)?;
        sources.sort_unstable();
        sources.dedup();
        let read: Vec<usize> = row.operands.iter().enumerate().filter(|(_, operand)| operand.read).map(|(number, _)| number).collect();
        let all = read == sources && sources.iter().all(|&number| is_register_of(&row.operands[number], file));
        all.then_some(CopyRow { row: RowId(index as u32), result, sources })
    })
}

/// A row that puts an immediate into a register of this file, the one with the widest range.
pub fn constant_row(machine: &Machine, file: FileId) -> Option<ConstantRow> {
    let found = machine.rows.iter().enumerate().filter_map(|(index, row)| {
        let [(_, output)] = row.meaning.outputs.as_slice() else { return None };
        let [result] = written_of(row).try_into().ok()?;
        if !row.meaning.effects.is_empty() || row.control.is_some() || !plain(row) || !is_register_of(&row.operands[result], file) {
            return None;
        }
        let mut inputs = Vec::new();
        sum_inputs(&row.meaning, *output, &mut inputs)?;
        let mut immediate = None;
        let mut zero = None;
        for input in inputs {
            let operand = input_operand(row, input)?;
            match row.operands[operand].kind {
                OperandKind::Immediate { low, high, step: 1 } if immediate.is_none() => immediate = Some((operand, high - low)),
                OperandKind::RegisterOrZero(_) if zero.is_none() => zero = Some(operand),
                _ => return None,
            }
        }
        let (immediate, range) = immediate?;
        let reads = row.operands.iter().filter(|operand| operand.read).count();
        (reads == 1 + usize::from(zero.is_some())).then_some((range, ConstantRow { row: RowId(index as u32), result, immediate, zero }))
    });
    // The first of the widest, so that the order of the target file decides.
    found.reduce(|best, other| if other.0 > best.0 { other } else { best }).map(|(_, row)| row)
}

/// The first row that fits, one with an immediate offset before one with a register.
fn best(machine: &Machine, access: impl Fn(&Row) -> Option<(usize, NodeHandle)>, file: FileId) -> Option<FrameRow> {
    let abi = machine.abi.as_ref()?;
    let mut with_register = None;
    for (index, row) in machine.rows.iter().enumerate().filter(|(_, row)| plain(row) && row.control.is_none()) {
        let Some((data, address)) = access(row) else { continue };
        if !is_register_of(&row.operands[data], file) {
            continue;
        }
        let mut inputs = Vec::new();
        if sum_inputs(&row.meaning, address, &mut inputs).is_none() {
            continue;
        }
        let operands: Option<Vec<usize>> = inputs.into_iter().map(|input| input_operand(row, input)).collect();
        let Some([first, second]) = operands.and_then(|operands| <[usize; 2]>::try_from(operands).ok()) else { continue };
        let is_base = |operand: usize| matches!(row.operands[operand].kind, OperandKind::Register(file) | OperandKind::RegisterOrZero(file) if file == abi.integer_file);
        let row = RowId(index as u32);
        let immediate = |operand: usize| matches!(machine[row].operands[operand].kind, OperandKind::Immediate { .. });
        for (base, offset) in [(first, second), (second, first)] {
            if is_base(base) && immediate(offset) {
                return Some(FrameRow { row, data, base, offset: FrameOffsetForm::Immediate { operand: offset } });
            }
        }
        if is_base(first)
            && is_base(second)
            && with_register.is_none()
            && let Some(constant) = constant_row(machine, abi.integer_file)
        {
            with_register = Some(FrameRow { row, data, base: first, offset: FrameOffsetForm::Register { operand: second, constant } });
        }
    }
    with_register
}

/// No operand but those of the text, nothing tied, no tuples.
fn plain(row: &Row) -> bool {
    row.operands.iter().all(|operand| !operand.implicit && operand.tied.is_none() && operand.tuple == 1)
}

fn is_register_of(operand: &RowOperand, file: FileId) -> bool {
    matches!(operand.kind, OperandKind::Register(own) if own == file)
}

fn written_of(row: &Row) -> Vec<usize> {
    row.operands.iter().enumerate().filter(|(_, operand)| operand.written).map(|(number, _)| number).collect()
}

fn whole_register(machine: &Machine, file: FileId, meaning: &Body, node: NodeHandle) -> bool {
    meaning.nodes[node].ty.total_bits() == Some(machine[file].width_bits)
}

/// The operand behind an input of the meaning.
fn input_operand(row: &Row, node: NodeHandle) -> Option<usize> {
    let Op::Input(number) = row.meaning.nodes[node].op else { return None };
    row.operands.iter().enumerate().filter(|(_, operand)| operand.read).nth(number as usize).map(|(index, _)| index)
}

/// The node whose bits, seen in the machine's byte order, these are.
fn same_bytes(meaning: &Body, mut node: NodeHandle, order: ByteOrder) -> Option<NodeHandle> {
    loop {
        match meaning.nodes[node].op {
            Op::Reinterpret(inner, own) if own == order => node = inner,
            Op::Reinterpret(inner, _) if meaning.nodes[inner].ty == meaning.nodes[node].ty => node = inner,
            Op::Reinterpret(..) => return None,
            _ => return Some(node),
        }
    }
}

/// The inputs of a sum, seen through views, changes of width and alignment of the result.
fn sum_inputs(meaning: &Body, node: NodeHandle, found: &mut Vec<NodeHandle>) -> Option<()> {
    match &meaning.nodes[node].op {
        Op::Input(_) => found.push(node),
        Op::Resize(inner) | Op::ResizeSigned(inner) | Op::Reinterpret(inner, _) => sum_inputs(meaning, *inner, found)?,
        Op::Nary(NaryOp::Add, terms) => {
            for term in terms {
                sum_inputs(meaning, *term, found)?;
            }
        }
        Op::Nary(NaryOp::And, terms) => {
            let mut masked = terms.iter().filter(|term| !matches!(meaning.nodes[**term].op, Op::Constant(_)));
            let (Some(term), None) = (masked.next(), masked.next()) else { return None };
            sum_inputs(meaning, *term, found)?;
        }
        _ => return None,
    }
    Some(())
}

/// Operands x for which the node is x itself, or `x op x` with an operation that gives x back.
fn idempotent_inputs(row: &Row, node: NodeHandle, order: ByteOrder, found: &mut Vec<usize>) -> Option<()> {
    let node = same_bytes_any(&row.meaning, node, order);
    match &row.meaning.nodes[node].op {
        Op::Input(_) => found.push(input_operand(row, node)?),
        Op::Nary(NaryOp::And | NaryOp::Or, terms) => {
            for term in terms {
                idempotent_inputs(row, *term, order, found)?;
            }
        }
        Op::Binary(BinaryOp::Minimum | BinaryOp::Maximum, a, b) => {
            idempotent_inputs(row, *a, order, found)?;
            idempotent_inputs(row, *b, order, found)?;
        }
        _ => return None,
    }
    Some(())
}

/// Views do not matter to an operation on bits that is undone by the view around it, as long as all are of one order.
fn same_bytes_any(meaning: &Body, node: NodeHandle, order: ByteOrder) -> NodeHandle {
    same_bytes(meaning, node, order).unwrap_or(node)
}
