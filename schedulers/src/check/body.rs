//! Rule *complete*: the code between the body labels is the program, block by block, in the schedule's order.

use super::{Products, Violation};
use crate::code::{CodeInstruction, CodeOperand};
use crate::machine::OperandKind;
use crate::program::{BlockId, Operand, RegionKind};

/// Where each scheduled instruction stands in the code.
pub(super) struct Body {
    /// Code index of the first instruction of each block, and one past the last block's end.
    pub starts: Vec<usize>,
}

pub(super) fn match_code(products: Products<'_>) -> Result<Body, Vec<Violation>> {
    let Products { program, schedule, code, .. } = products;
    let mut violations = Vec::new();
    let begin = label(products, &format!(".Lbody_{}", program.name));
    let end = label(products, &format!(".Lend_{}", program.name));
    let (Some(begin), Some(end)) = (begin, end) else {
        let text = format!("the labels .Lbody_{0} and .Lend_{0} must enclose the body", program.name);
        return Err(vec![Violation { rule: "complete", instruction: None, text }]);
    };
    let total: usize = program.blocks.iter().map(|block| block.instructions.len()).sum();
    if end.checked_sub(begin) != Some(total) || schedule.blocks.len() != program.blocks.len() {
        let text = format!("the body holds {} instructions, the program {total}", end as i64 - begin as i64);
        return Err(vec![Violation { rule: "complete", instruction: None, text }]);
    }
    let mut starts = Vec::with_capacity(program.blocks.len() + 1);
    let mut position = begin;
    for block in &program.blocks {
        starts.push(position);
        position += block.instructions.len();
    }
    starts.push(position);
    for (number, (block, order)) in program.blocks.iter().zip(&schedule.blocks).enumerate() {
        let mut seen = vec![false; block.instructions.len()];
        for (offset, slot) in order.slots.iter().enumerate() {
            let index = starts[number] + offset;
            let Some(flag) = seen.get_mut(slot.instruction as usize).filter(|flag| !**flag) else {
                let text = format!("block {number} schedules instruction {} twice or it does not exist", slot.instruction);
                violations.push(Violation { rule: "complete", instruction: Some(index), text });
                continue;
            };
            *flag = true;
            if let Some(text) = differs(products, &starts, &block.instructions[slot.instruction as usize], &code.instructions[index]) {
                violations.push(Violation { rule: "complete", instruction: Some(index), text });
            }
        }
        if seen.contains(&false) {
            violations.push(Violation { rule: "complete", instruction: None, text: format!("block {number} leaves instructions out") });
        }
    }
    if violations.is_empty() { Ok(Body { starts }) } else { Err(violations) }
}

fn label(products: Products<'_>, name: &str) -> Option<usize> {
    products.code.labels.iter().find(|(label, _)| label == name).map(|(_, index)| *index)
}

/// The explicit operands of a row with the program's operands beside the code's.
pub(super) fn explicit_pairs<'a>(
    products: Products<'a>,
    instruction: &'a crate::program::Instruction,
    code: &'a CodeInstruction,
) -> impl Iterator<Item = (usize, &'a Operand, &'a CodeOperand)> {
    let row = &products.machine[instruction.row];
    let explicit = row.operands.iter().enumerate().filter(|(_, operand)| !operand.implicit).map(|(index, _)| index);
    explicit.zip(&code.operands).map(|(index, operand)| (index, &instruction.operands[index], operand))
}

fn differs(products: Products<'_>, starts: &[usize], instruction: &crate::program::Instruction, code: &CodeInstruction) -> Option<String> {
    let row = &products.machine[instruction.row];
    if instruction.row != code.row {
        return Some(format!("the program has {}, the code {}", row.name, products.machine[code.row].name));
    }
    let explicit = row.operands.iter().filter(|operand| !operand.implicit).count();
    if instruction.operands.len() != row.operands.len() || code.operands.len() != explicit {
        return Some(format!("{} has {} operands", row.name, row.operands.len()));
    }
    for (index, wanted, found) in explicit_pairs(products, instruction, code) {
        let agree = match (wanted, found) {
            (Operand::Value(_) | Operand::Unused, CodeOperand::Register(file, _)) => match row.operands[index].kind {
                OperandKind::Register(wanted) | OperandKind::RegisterOrZero(wanted) => wanted == *file,
                _ => false,
            },
            (Operand::Zero, CodeOperand::Zero) => true,
            (Operand::Immediate(wanted), CodeOperand::Immediate(found)) => wanted == found,
            (Operand::FrameOffset(region, offset), CodeOperand::Immediate(found)) => {
                let base = products.allocation.frame_offsets.iter().find(|(id, _)| id == region).map(|(_, base)| *base);
                base.is_some_and(|base| (base + offset) as i64 == *found)
            }
            (Operand::Block(BlockId(block)), CodeOperand::Label(name)) => {
                label(products, name).is_some_and(|place| starts.get(*block as usize) == Some(&place))
            }
            (Operand::Symbol(region, offset), CodeOperand::Symbol(name, found)) => {
                let region = &products.program.regions[region.0 as usize];
                let object = products.code.data.iter().find(|object| object.symbol == *name);
                region.kind == RegionKind::Pool
                    && offset == found
                    && object.is_some_and(|object| Some(&object.bytes) == region.contents.as_ref())
            }
            _ => false,
        };
        if !agree {
            return Some(format!("operand `{}` of {} is {found:?}, the program says {wanted:?}", row.operands[index].name, row.name));
        }
        if let (OperandKind::Immediate { low, high, step }, CodeOperand::Immediate(value)) = (&row.operands[index].kind, found)
            && (i128::from(*value) < *low || i128::from(*value) >= *high || i128::from(*value) % step != 0)
        {
            return Some(format!(
                "operand `{}` of {} is {value}, outside {low}..{high} in steps of {step}",
                row.operands[index].name, row.name
            ));
        }
    }
    None
}
