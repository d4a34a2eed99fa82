//! From [`Code`] to our canonical assembly text.

use super::template::Template;
use crate::code::{Code, CodeInstruction, CodeOperand, Misfit};
use crate::machine::Machine;
use std::fmt::Write;

/// One instruction, without indentation and line end.
///
/// # Errors
/// Where it does not fit its row.
pub fn print_instruction(machine: &Machine, instruction: &CodeInstruction) -> Result<String, Misfit> {
    let all = instruction.all_operands(machine)?;
    let row = &machine[instruction.row];
    let operands: Vec<Option<&CodeOperand>> =
        row.operands.iter().zip(&all).map(|(operand, found)| (!operand.implicit).then_some(found)).collect();
    let mut text = String::new();
    if instruction.parallel
        && let Some(mark) = &machine.parallel
    {
        text.push_str(mark);
        text.push(' ');
    }
    // The first template is the row's own text; rows of target files always have one.
    if let Some(template) = Template::of_row(instruction.row, row).first() {
        template.write(machine, &operands, instruction.unit, &mut text);
    }
    Ok(text)
}

/// A whole text: instructions with their labels, then constants in `.rodata`. Reading it gives the same code, without comments and spans.
///
/// # Errors
/// Where an instruction does not fit its row.
pub fn print(machine: &Machine, code: &Code) -> Result<String, Misfit> {
    let mut text = String::new();
    let mut labels: Vec<&(String, usize)> = code.labels.iter().collect();
    labels.sort_by_key(|(_, place)| *place);
    let mut labels = labels.into_iter().peekable();
    for (index, instruction) in code.instructions.iter().enumerate() {
        while let Some((name, _)) = labels.next_if(|(_, place)| *place <= index) {
            let _ = writeln!(text, "{name}:");
        }
        let _ = writeln!(text, "    {}", print_instruction(machine, instruction)?);
    }
    for (name, _) in labels {
        let _ = writeln!(text, "{name}:");
    }
    if !code.data.is_empty() {
        text.push_str("    .section .rodata\n");
    }
    for object in &code.data {
        let _ = writeln!(text, "    .balign {}\n{}:", object.align_bytes, object.symbol);
        for line in object.bytes.chunks(16) {
            let bytes: Vec<String> = line.iter().map(|byte| format!("0x{byte:02x}")).collect();
            let _ = writeln!(text, "    .byte {}", bytes.join(","));
        }
    }
    Ok(text)
}
