//! Form `json`: figures for programs. An array of objects, one per kernel and target.

use super::Form;
use crate::{Artifact, EmitError, Request};
use kgen_schedulers::finished::FunctionRole;
use serde_json::{Value, json};

/// The form.
pub(super) struct Json;

impl Form for Json {
    fn name(&self) -> &'static str {
        "json"
    }

    fn summary(&self) -> &'static str {
        "cycles, bounds and sizes as JSON"
    }

    fn universal(&self) -> bool {
        true
    }

    fn emit(&self, request: &Request<'_>) -> Result<Vec<Artifact>, EmitError> {
        let text = serde_json::to_string_pretty(&object(request))
            .map_err(|error| EmitError::Skeleton { form: "json", reason: error.to_string() })?;
        Ok(vec![Artifact { file_name: format!("{}.{}.json", name(request), request.machine.name), text }])
    }

    fn join(&self, texts: &[&str]) -> String {
        let indented: Vec<String> =
            texts.iter().map(|text| text.lines().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")).collect();
        format!("[\n{}\n]\n", indented.join(",\n"))
    }
}

fn name<'a>(request: &Request<'a>) -> &'a str {
    request
        .finished
        .functions
        .iter()
        .find(|function| function.role == FunctionRole::Kernel)
        .map_or(&request.finished.kernel.name, |function| &function.program.name)
}

fn object(request: &Request<'_>) -> Value {
    let copies = request.code.interleave;
    let Some(main) = request.finished.functions.iter().find(|function| function.role == FunctionRole::Kernel) else { return Value::Null };
    let performance = &main.performance;
    let cycles = performance.cycles.body;
    let binding = performance.bounds.first();
    let functions: Vec<Value> = request
        .finished
        .functions
        .iter()
        .map(|function| {
            json!({
                "function": function.program.name,
                "role": function.role,
                "cycles": function.performance.cycles.body,
                "cycles_call": function.performance.cycles.call,
                "code_bytes": function.performance.code_bytes,
                "replayed_inputs": function.evidence.replayed_inputs,
            })
        })
        .collect();
    let registers: Vec<Value> = performance
        .registers
        .iter()
        .map(|(file, live, available)| json!({ "file": file, "most_live": live, "available": available }))
        .collect();
    json!({
        "kernel": main.program.name,
        "target": request.machine.name,
        "options": request.code,
        "cycles": cycles,
        "cycles_per_copy": cycles.map(|cycles| cycles as f64 / f64::from(copies)),
        "cycles_first": performance.cycles.per_iteration.and(cycles),
        "cycles_per_iteration": performance.cycles.per_iteration,
        "bytes_per_iteration": Value::Null,
        "cycles_per_byte": Value::Null,
        "saves_included": false,
        "cycles_call": performance.cycles.call,
        "bounds": performance.bounds,
        "binding": performance.binding,
        "gap_cycles": cycles.zip(binding).map(|(cycles, bound)| cycles as f64 - bound.cycles),
        "unit_operations": performance.unit_operations.iter().map(|(unit, count)| json!({ "unit": unit, "operations": count })).collect::<Vec<_>>(),
        "registers": registers,
        "spills": performance.spills,
        "rematerialized": performance.rematerialized,
        "frame_bytes": performance.frame_bytes,
        "code_bytes": performance.code_bytes,
        "pool_bytes": performance.pool_bytes,
        "montgomery": main.program.montgomery.map(|form| json!({ "r_bits": form.radix_bits, "residues_below_moduli": form.bound })),
        "stalls": performance.stalls.iter().map(|(reason, cycles)| json!({ "reason": reason, "cycles": cycles })).collect::<Vec<_>>(),
        "guesses": performance.guesses,
        "notes": main.program.notes.iter().map(|(name, text)| json!({ "name": name, "text": text })).collect::<Vec<_>>(),
        "functions": functions,
    })
}
