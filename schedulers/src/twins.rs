//! Functions that differ in their names only: the kernels of one spec have the same setup, import and export functions under names of their own. They are scheduled,
//! checked and replayed once; the others are assembled under their own names and compared.

use crate::code::{Code, CodeInstruction, CodeOperand};
use crate::program::Program;
use kgen_ir::source::Span;

/// Whether programs are equal but for their names and the places in the spec that they come from.
pub(crate) fn are_twins(a: &Program, b: &Program) -> bool {
    a.blocks.len() == b.blocks.len() && named(a, "", None) == named(b, "", None)
}

/// The program under another name, its instructions at the places of the other's spec.
pub(crate) fn renamed(program: &Program, twin: &Program) -> Program {
    let span = twin.blocks.iter().flat_map(|block| &block.instructions).find_map(|instruction| instruction.span);
    named(program, &twin.name, span)
}

fn named(program: &Program, name: &str, span: Option<Span>) -> Program {
    let mut program = Program { name: name.to_owned(), ..program.clone() };
    for instruction in program.blocks.iter_mut().flat_map(|block| &mut block.instructions) {
        instruction.span = instruction.span.and(span);
    }
    program
}

/// A label or symbol without the name of its function.
fn local<'a>(label: &'a str, function: &str) -> Option<&'a str> {
    label.strip_suffix(function)
}

/// Whether the codes of two functions are equal but for the functions' names in labels and symbols.
pub(crate) fn same_code(a: (&Code, &str), b: (&Code, &str)) -> bool {
    let ((a, a_name), (b, b_name)) = (a, b);
    let same_name = |x: &str, y: &str| local(x, a_name).is_some_and(|x| local(y, b_name) == Some(x));
    let same_operand = |x: &CodeOperand, y: &CodeOperand| match (x, y) {
        (CodeOperand::Label(x), CodeOperand::Label(y)) => same_name(x, y),
        (CodeOperand::Symbol(x, x_offset), CodeOperand::Symbol(y, y_offset)) => same_name(x, y) && x_offset == y_offset,
        _ => x == y,
    };
    let same_instruction = |x: &CodeInstruction, y: &CodeInstruction| {
        (x.row, x.parallel, x.unit) == (y.row, y.parallel, y.unit)
            && x.operands.len() == y.operands.len()
            && x.operands.iter().zip(&y.operands).all(|(x, y)| same_operand(x, y))
    };
    (a.instructions.len(), a.labels.len(), a.data.len()) == (b.instructions.len(), b.labels.len(), b.data.len())
        && a.instructions.iter().zip(&b.instructions).all(|(x, y)| same_instruction(x, y))
        && a.labels.iter().zip(&b.labels).all(|((x, x_place), (y, y_place))| same_name(x, y) && x_place == y_place)
        && a.data
            .iter()
            .zip(&b.data)
            .all(|(x, y)| same_name(&x.symbol, &y.symbol) && (x.align_bytes, &x.bytes) == (y.align_bytes, &y.bytes))
}
