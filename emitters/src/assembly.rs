//! Lines of assembly of a function, shared by the forms that print it.

use crate::{EmitError, Request};
use kgen_schedulers::assembly::print_instruction;
use kgen_schedulers::code::{Code, CodeOperand};
use kgen_schedulers::finished::FinishedFunction;
use kgen_schedulers::machine::ControlKind;

/// A line of a function's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// A label's name.
    Label(String),
    /// An instruction, with what its values are called.
    Instruction {
        /// The text.
        text: String,
        /// Comment, may be empty.
        comment: String,
        /// Bytes by which it lowers the stack pointer from now on, where it is the one that makes the frame, or 0 where it gives it back.
        frame: Option<u64>,
    },
}

/// The code of a function, or why there is none.
pub(crate) fn code_of<'a>(form: &'static str, function: &'a FinishedFunction) -> Result<&'a Code, EmitError> {
    let reason = "the target has no assembly".to_owned();
    function.code.as_ref().ok_or_else(|| EmitError::Unprintable { form, function: function.program.name.clone(), reason })
}

/// The lines of a function. `label` and `symbol` say how names are written where they are used: labels get whether they stand before or after.
pub(crate) fn lines(
    form: &'static str,
    request: &Request<'_>,
    function: &FinishedFunction,
    label: impl Fn(&str, bool) -> String,
    symbol: impl Fn(&str) -> String,
) -> Result<Vec<Line>, EmitError> {
    let machine = request.machine;
    let code = code_of(form, function)?;
    let mut lines = Vec::with_capacity(code.instructions.len() + code.labels.len());
    for (index, instruction) in code.instructions.iter().enumerate() {
        // The function's own label is the form's affair.
        let here = code.labels.iter().filter(|(name, place)| *place == index && *name != function.program.name);
        lines.extend(here.map(|(name, _)| Line::Label(name.clone())));
        let mut written = instruction.clone();
        for operand in &mut written.operands {
            match operand {
                CodeOperand::Label(name) => {
                    let backward = code.labels.iter().any(|(known, place)| known == name && *place <= index);
                    *name = label(name, backward);
                }
                CodeOperand::Symbol(name, _) => *name = symbol(name),
                _ => {}
            }
        }
        let text = print_instruction(machine, &written).map_err(|misfit| EmitError::Unprintable {
            form,
            function: function.program.name.clone(),
            reason: format!("{misfit:?}"),
        })?;
        lines.push(Line::Instruction { text, comment: instruction.comment.clone(), frame: frame_change(request, function, code, index) });
    }
    lines.extend(code.labels.iter().filter(|(_, place)| *place == code.instructions.len()).map(|(name, _)| Line::Label(name.clone())));
    Ok(lines)
}

/// Where the stack pointer is written: the first time the frame is made, the second time it is given back.
fn frame_change(request: &Request<'_>, function: &FinishedFunction, code: &Code, index: usize) -> Option<u64> {
    let abi = request.machine.abi.as_ref()?;
    let writes = |at: usize| {
        let instruction = &code.instructions[at];
        let row = &request.machine[instruction.row];
        row.explicit_operands().zip(&instruction.operands).any(|((_, declared), operand)| {
            // A row that modifies a register names it once in the text, as its result.
            declared.written && *operand == CodeOperand::Register(abi.integer_file, abi.stack_pointer)
        })
    };
    if !writes(index) {
        return None;
    }
    let earlier = (0..index).filter(|at| writes(*at)).count();
    let frame = function.allocation.as_ref().map_or(0, |allocation| allocation.frame_bytes);
    Some(if earlier == 0 { frame } else { 0 })
}

/// Whether an instruction returns to the caller.
pub(crate) fn returns(request: &Request<'_>, code: &Code, index: usize) -> bool {
    request.machine[code.instructions[index].row].control == Some(ControlKind::Return)
}
