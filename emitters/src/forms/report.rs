//! Form `report`: how far from the machine's limit each function is and what binds, then its schedule, so that a review reads schedules as diffs.

use super::Form;
use super::stages::instruction_line;
use crate::{Artifact, EmitError, Request, header, interface};
use kgen_schedulers::finished::{FinishedFunction, FunctionRole};
use std::fmt::Write;

/// The form.
pub(super) struct Report;

impl Form for Report {
    fn name(&self) -> &'static str {
        "report"
    }

    fn summary(&self) -> &'static str {
        "cycles, bounds, what binds, and the schedule"
    }

    fn universal(&self) -> bool {
        true
    }

    fn emit(&self, request: &Request<'_>) -> Result<Vec<Artifact>, EmitError> {
        let mut text = String::new();
        for line in header::lines(request, self.name()) {
            let _ = writeln!(text, "# {line}");
        }
        for function in &request.finished.functions {
            text.push('\n');
            figures(&mut text, request, function);
            if function.role == FunctionRole::Kernel {
                schedule(&mut text, request, function);
            }
        }
        Ok(vec![Artifact { file_name: format!("{}.{}.report", request.finished.kernel.name, request.machine.name), text }])
    }
}

fn figures(text: &mut String, request: &Request<'_>, function: &FinishedFunction) {
    let performance = &function.performance;
    let mut row = |name: &str, value: String| {
        let _ = writeln!(text, "{name:<24}{value}");
    };
    row("function", format!("{} ({})", function.program.name, role(function.role)));
    if let Some((_, sentence)) = interface::montgomery_text(function) {
        row("Montgomery form", sentence);
    }
    match performance.cycles.body {
        Some(cycles) => row(
            "cycles (model)",
            format!("{cycles} body, {} whole call", performance.cycles.call.map_or("-".to_owned(), |call| call.to_string())),
        ),
        None => row("cycles (model)", "none: the target has no timing model".to_owned()),
    }
    if let Some(each) = performance.cycles.per_iteration {
        row("each further round", format!("{each:.1} cycles"));
    }
    for bound in &performance.bounds {
        row("bound", format!("{:>8.1}  {}", bound.cycles, bound.name));
    }
    if let (Some(cycles), Some(bound)) = (performance.cycles.body, performance.bounds.first()) {
        row("gap", format!("{:.1} cycles over `{}`, which binds", cycles as f64 - bound.cycles, bound.name));
    }
    for (unit, count) in &performance.unit_operations {
        row("operations", format!("{count:>8}  {unit}"));
    }
    for (reason, cycles) in &performance.stalls {
        row("cycles lost", format!("{cycles:>8}  {reason}"));
    }
    for (file, live, available) in &performance.registers {
        row("most live", format!("{live:>8}  {file}{}", available.map_or(String::new(), |count| format!(" of {count}"))));
    }
    row("spills", format!("{} stored, {} computed again", performance.spills, performance.rematerialized));
    row("bytes", format!("{} code, {} constants, {} frame", performance.code_bytes, performance.pool_bytes, performance.frame_bytes));
    row("replayed on", format!("{} inputs", function.evidence.replayed_inputs));
    for guess in &performance.guesses {
        row("rests on a guess", guess.clone());
    }
    if let (Some(cache), true) = (request.machine.instruction_cache_bytes, performance.code_bytes > 0)
        && performance.code_bytes > u64::from(cache)
    {
        row("warning", format!("the code is larger than the instruction cache of {cache} bytes"));
    }
}

fn role(role: FunctionRole) -> &'static str {
    match role {
        FunctionRole::Kernel => "the kernel",
        FunctionRole::Setup => "once per setup",
        FunctionRole::Import => "bytes to layout",
        FunctionRole::Export => "layout to bytes",
    }
}

fn schedule(text: &mut String, request: &Request<'_>, function: &FinishedFunction) {
    for (number, block) in function.schedule.blocks.iter().enumerate() {
        let _ = writeln!(text, "\nblock {number}, {} cycles", block.cycles);
        for slot in &block.slots {
            let instruction = &function.program.blocks[number].instructions[slot.instruction as usize];
            let unit = slot.unit.and_then(|unit| request.machine.units.get(unit.0 as usize)).map_or("", |unit| unit.name.as_str());
            let _ = writeln!(text, "{:>6} {unit:<6} {}", slot.cycle, instruction_line(request.machine, &function.program, instruction));
        }
    }
}
