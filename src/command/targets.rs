//! `targets`: what there is, and what one target is made of.

use super::{machine, print};
use crate::messages::Messages;
use kgen::names;
use kgen_schedulers::machine::Enforcement;
use std::fmt::Write as _;

/// Lists the targets, or shows one.
pub fn targets(messages: Messages, target: Option<&str>) -> u8 {
    let mut text = String::new();
    let Some(name) = target else {
        let list = names::targets();
        let width = list.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        for (name, summary) in list {
            let _ = writeln!(text, "{name:<width$}  {summary}");
        }
        return print(&text);
    };
    let machine = match machine(messages, name) {
        Ok(machine) => machine,
        Err(code) => return code,
    };
    let _ = writeln!(text, "{}: {}", machine.name, machine.summary);
    let _ = writeln!(text, "forms: {}", machine.forms.join(", "));
    let _ = writeln!(text, "{} instructions", machine.rows.len());
    for file in &machine.register_files {
        let count = file.count.map_or("unlimited".to_owned(), |count| count.to_string());
        let _ = writeln!(text, "file {:<6} {count} of {} bits  [{}]", file.name, file.width_bits, file.cite);
    }
    for unit in &machine.units {
        let rows = machine.rows.iter().filter(|row| row.timing.units.iter().any(|id| machine[*id].name == unit.name)).count();
        let _ = writeln!(text, "unit {:<6} {} of them, {rows} instructions  [{}]", unit.name, unit.copies, unit.cite);
    }
    for hazard in &machine.hazards {
        let how = if hazard.enforcement == Enforcement::Must { "must be kept" } else { "costs time" };
        let _ = writeln!(text, "hazard {:?} {how}  [{}]", hazard.kind, hazard.cite);
    }
    for parameter in &machine.parameters {
        let _ = writeln!(text, "parameter {:<18} {:<6} {}  [{}]", parameter.name, parameter.value, parameter.meaning, parameter.cite);
    }
    for guess in &machine.guesses {
        let _ = writeln!(text, "guess {guess}");
    }
    for row in machine.rows.iter().filter(|row| row.timing.guess) {
        let _ = writeln!(text, "guess latency of {}", row.name);
    }
    print(&text)
}
