//! Forms `kernel`, `program`, `schedule`, `allocation`: each stage's product as text.

use super::Form;
use crate::{Artifact, EmitError, Request};
use kgen_ir::body::Body;
use kgen_schedulers::machine::Machine;
use kgen_schedulers::program::{Instruction, Operand, Program};
use std::fmt::Write;

/// Which stage.
pub(super) enum Stage {
    /// The validated kernel's dataflow.
    Kernel,
    /// The lowered program.
    Program,
    /// Order, cycle, unit.
    Schedule,
    /// Registers.
    Allocation,
}

impl Form for Stage {
    fn name(&self) -> &'static str {
        match self {
            Stage::Kernel => "kernel",
            Stage::Program => "program",
            Stage::Schedule => "schedule",
            Stage::Allocation => "allocation",
        }
    }

    fn summary(&self) -> &'static str {
        match self {
            Stage::Kernel => "the validated dataflow",
            Stage::Program => "the target's instructions over values",
            Stage::Schedule => "cycle and unit of each instruction",
            Stage::Allocation => "the register of each value and the frame",
        }
    }

    fn universal(&self) -> bool {
        true
    }

    fn emit(&self, request: &Request<'_>) -> Result<Vec<Artifact>, EmitError> {
        let mut text = String::new();
        match self {
            Stage::Kernel => body(&mut text, &request.finished.kernel.name, &request.finished.kernel.body, 0),
            Stage::Program => request.finished.functions.iter().for_each(|function| program(&mut text, request.machine, &function.program)),
            Stage::Schedule => request.finished.functions.iter().for_each(|function| {
                let _ = writeln!(text, "schedule {}", function.program.name);
                for (number, block) in function.schedule.blocks.iter().enumerate() {
                    let _ = writeln!(text, "block {number}, {} cycles", block.cycles);
                    for slot in &block.slots {
                        let instruction = &function.program.blocks[number].instructions[slot.instruction as usize];
                        let unit =
                            slot.unit.and_then(|unit| request.machine.units.get(unit.0 as usize)).map_or("", |unit| unit.name.as_str());
                        let line = instruction_line(request.machine, &function.program, instruction);
                        let _ = writeln!(text, "{:>6} {unit:<6} {line}", slot.cycle);
                    }
                }
            }),
            Stage::Allocation => request.finished.functions.iter().for_each(|function| {
                let _ = writeln!(text, "allocation {}", function.program.name);
                let Some(allocation) = &function.allocation else {
                    let _ = writeln!(text, "unlimited registers: every value is a variable");
                    return;
                };
                for (value, register) in function.program.values.iter().zip(&allocation.registers) {
                    if let Some(register) = register {
                        let place = request.machine[value.file].text.replace("{n}", &register.to_string());
                        let _ = writeln!(text, "{:<8}{}", place, value.name);
                    }
                }
                for (region, offset) in &allocation.frame_offsets {
                    let _ = writeln!(text, "frame+{offset:<4}{}", function.program.regions[region.0 as usize].name);
                }
                let _ = writeln!(text, "frame of {} bytes", allocation.frame_bytes);
            }),
        }
        Ok(vec![Artifact { file_name: format!("{}.{}.{}", request.finished.kernel.name, request.machine.name, self.name()), text }])
    }
}

fn program(text: &mut String, machine: &Machine, program: &Program) {
    let _ = writeln!(text, "program {}", program.name);
    for (name, note) in &program.notes {
        let _ = writeln!(text, "note {name}: {note}");
    }
    for (region, layout) in program.regions.iter().zip(&program.layouts) {
        let bytes = region.bytes.map_or("?".to_owned(), |bytes| bytes.to_string());
        let _ = writeln!(
            text,
            "region {} {:?} {bytes} bytes, aligned to {}, {}",
            region.name,
            region.kind,
            region.align_bytes,
            crate::interface::layout_text(layout)
        );
    }
    for lap in &program.loops {
        let carried: Vec<String> = lap
            .carried
            .iter()
            .map(|carried| {
                let name = |value: kgen_schedulers::program::ValueId| program.values[value.0 as usize].name.as_str();
                format!("{} = {} then {}", name(carried.current), name(carried.initial), name(carried.next))
            })
            .collect();
        let _ = writeln!(text, "loop blocks {}..={}: {}", lap.first.0, lap.last.0, carried.join(", "));
    }
    for (number, block) in program.blocks.iter().enumerate() {
        let _ = writeln!(text, "block {number}");
        for instruction in &block.instructions {
            let _ = writeln!(text, "  {}", instruction_line(machine, program, instruction));
        }
    }
}

/// `sum_3 = vadduwm high_2, low_2`, with the memory touched.
pub(super) fn instruction_line(machine: &Machine, program: &Program, instruction: &Instruction) -> String {
    let row = &machine[instruction.row];
    let side = |written: bool| -> Vec<String> {
        row.operands
            .iter()
            .zip(&instruction.operands)
            .filter(|(declared, _)| declared.written == written && (declared.read || declared.written))
            .map(|(_, operand)| operand_text(program, operand))
            .collect()
    };
    let (results, sources) = (side(true), side(false));
    let mut line = match results.is_empty() {
        true => format!("{} {}", row.name, sources.join(", ")),
        false => format!("{} = {} {}", results.join(", "), row.name, sources.join(", ")),
    };
    if let Some(memory) = &instruction.memory {
        let _ = write!(line, "  [{}+{}..{}]", program.regions[memory.region.0 as usize].name, memory.low, memory.high);
    }
    line
}

fn operand_text(program: &Program, operand: &Operand) -> String {
    match operand {
        Operand::Value(value) => program.values[value.0 as usize].name.clone(),
        Operand::Zero => "zero".to_owned(),
        Operand::Immediate(value) => value.to_string(),
        Operand::Block(block) => format!("block {}", block.0),
        Operand::Symbol(region, offset) => format!("&{}+{offset}", program.regions[region.0 as usize].name),
        Operand::FrameOffset(region, offset) => format!("frame {}+{offset}", program.regions[region.0 as usize].name),
        Operand::Unused => "_".to_owned(),
    }
}

fn body(text: &mut String, name: &str, body: &Body, depth: usize) {
    let indent = "  ".repeat(depth);
    let inputs: Vec<String> = body.inputs.iter().map(|port| format!("{}: {}", port.name, port.ty)).collect();
    let _ = writeln!(text, "{indent}kernel {name}({})", inputs.join(", "));
    for (handle, node) in body.nodes.iter() {
        let named = if node.name.is_empty() { String::new() } else { format!("  {}", node.name) };
        let _ = writeln!(text, "{indent}  {handle:?}: {} = {}{named}", node.ty, crate::forms::stages::op_text(&node.op));
        if let kgen_ir::body::Op::Loop { body: inner, .. } | kgen_ir::body::Op::Map { body: inner, .. } = &node.op {
            self::body(text, "round", inner, depth + 2);
        }
    }
    for (port, handle) in &body.outputs {
        let _ = writeln!(text, "{indent}  {} = {handle:?}", port.name);
    }
}

/// The operation with its operands' handles; bodies of loops are printed apart.
fn op_text(op: &kgen_ir::body::Op) -> String {
    use kgen_ir::body::Op;
    let operands: Vec<String> = op.operands().iter().map(|handle| format!("{handle:?}")).collect();
    let name = match op {
        Op::Input(index) => return format!("input {index}"),
        Op::Constant(bits) => return format!("0x{:x}", bits.to_integer()),
        Op::Integer(value) => return format!("0x{value:x}"),
        Op::Unary(op, _) => format!("{op:?}"),
        Op::Binary(op, ..) => format!("{op:?}"),
        Op::Nary(op, _) => format!("{op:?}"),
        Op::Reinterpret(_, order) => format!("Reinterpret{order:?}"),
        Op::Slice { start, .. } | Op::NaturalSlice { start, .. } => format!("Slice[{start}..]"),
        Op::Result(_, index) => format!("Result{index}"),
        Op::Select { .. } => "Select".to_owned(),
        Op::Resize(_) => "Resize".to_owned(),
        Op::ResizeSigned(_) => "ResizeSigned".to_owned(),
        Op::Lane { .. } => "Lane".to_owned(),
        Op::Lanes(_) => "Lanes".to_owned(),
        Op::Concatenate(_) => "Concatenate".to_owned(),
        Op::FieldMultiply { .. } => "FieldMultiply".to_owned(),
        Op::Affine { .. } => "Affine".to_owned(),
        Op::Array(_) => "Array".to_owned(),
        Op::Element { .. } => "Element".to_owned(),
        Op::WithElement { .. } => "WithElement".to_owned(),
        Op::NaturalAdd(..) => "NaturalAdd".to_owned(),
        Op::NaturalSubtract(..) => "NaturalSubtract".to_owned(),
        Op::NaturalMultiply(..) => "NaturalMultiply".to_owned(),
        Op::Montgomery { .. } => "Montgomery".to_owned(),
        Op::ResidueAdd { .. } => "ResidueAdd".to_owned(),
        Op::ResidueSubtract { .. } => "ResidueSubtract".to_owned(),
        Op::Canonical { .. } => "Canonical".to_owned(),
        Op::Load { .. } => "Load".to_owned(),
        Op::Loop { .. } => "Loop".to_owned(),
        Op::Map { .. } => "Map".to_owned(),
        Op::Undefined => "Undefined".to_owned(),
    };
    format!("{name} {}", operands.join(" "))
}
