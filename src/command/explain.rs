//! `explain`: a rule of messages, or an instruction of a target.

use super::{USAGE, machine, print};
use crate::messages::Messages;
use kgen::names;
use kgen::rules::{self, RULES};
use kgen_schedulers::machine::{Machine, OperandKind, Row, RowMemory, RowOperand, TimingClass};
use std::fmt::Write as _;

/// Prints what is known of a topic.
pub fn explain(messages: Messages, topic: &str, target: Option<&str>) -> u8 {
    let mut text = String::new();
    let rule = rules::rule(topic);
    if let Some(rule) = rule {
        let _ = writeln!(text, "{}: {}", rule.name, rule.text);
    }
    let mut instructions = Vec::new();
    if let Some(target) = target {
        let machine = match machine(messages, target) {
            Ok(machine) => machine,
            Err(code) => return code,
        };
        for row in machine.rows.iter().filter(|row| is_called(row, topic)) {
            if !text.is_empty() {
                text.push('\n');
            }
            describe(&machine, row, &mut text);
        }
        instructions = machine.rows.iter().map(|row| row.name.clone()).collect();
    }
    if text.is_empty() {
        let known = RULES.iter().map(|rule| rule.name).chain(instructions.iter().map(String::as_str));
        let mut help = names::suggestion(topic, known).map_or(String::new(), |near| format!("did you mean `{near}`? "));
        help.push_str("topics are the rules that messages name in brackets");
        help.push_str(if target.is_some() { " and the instructions of the target" } else { "; instructions want `--target`" });
        let place = target.map_or(String::new(), |target| format!(", and no instruction of `{target}`"));
        messages.plain("unknown-topic", &format!("`{topic}` is no rule{place}"), Some(&help));
        return USAGE;
    }
    print(&text)
}

/// By the row's name, or by the mnemonic of its text or of one of its aliases.
fn is_called(row: &Row, topic: &str) -> bool {
    let mnemonic = |template: &str| template.split_whitespace().next() == Some(topic);
    row.name == topic || row.assembly.as_deref().is_some_and(mnemonic) || row.aliases.iter().any(|alias| mnemonic(&alias.template))
}

fn describe(machine: &Machine, row: &Row, text: &mut String) {
    let mut line = |name: &str, said: String| {
        let _ = writeln!(text, "{name:<12}{said}");
    };
    line("instruction", format!("{} on {}", row.name, machine.name));
    if let Some(assembly) = &row.assembly {
        line("written", assembly.clone());
    }
    for alias in &row.aliases {
        line("or", alias.template.clone());
    }
    if let Some(rust) = &row.rust {
        line("in Rust", rust.clone());
    }
    for operand in &row.operands {
        line("operand", self::operand(machine, row, operand));
    }
    for (index, meaning) in row.meaning_text.trim_end().lines().enumerate() {
        line(if index == 0 { "meaning" } else { "" }, meaning.trim_end().to_owned());
    }
    match row.memory() {
        Some(RowMemory::Load { bytes }) => line("memory", format!("reads {bytes} bytes")),
        Some(RowMemory::Store { bytes }) => line("memory", format!("writes {bytes} bytes")),
        None => {}
    }
    let timing = &row.timing;
    let units: Vec<&str> = timing.units.iter().map(|unit| machine[*unit].name.as_str()).collect();
    line("units", if units.is_empty() { "none".to_owned() } else { units.join(" or ") });
    let mut latency = format!("{} cycles", timing.latency_cycles);
    for (number, cycles) in &timing.latency_of {
        let _ = write!(latency, ", `{}` after {cycles}", row.operands[*number as usize].name);
    }
    line("latency", latency);
    line("busy", format!("the unit for {} cycles", timing.throughput_cycles));
    if let Some((number, latency, busy)) = timing.short {
        let name = &row.operands[number as usize].name;
        line("short", format!("where `{name}` fits 16 bits: latency {latency}, busy {busy}"));
    }
    if timing.serialized {
        line("serialized", "starts only as the oldest instruction of the machine".to_owned());
    }
    if timing.retires_oldest {
        line("retires", "only as the oldest of its group".to_owned());
    }
    let class = match timing.class {
        TimingClass::Constant => "constant: secrets may flow into it",
        TimingClass::Operands => "depends on operands: secrets are refused",
    };
    line("time", class.to_owned());
    line("source", if timing.guess { format!("guess {}", timing.cite).trim_end().to_owned() } else { timing.cite.clone() });
}

fn operand(machine: &Machine, row: &Row, operand: &RowOperand) -> String {
    let mut text = format!("{}: ", operand.name);
    let _ = match operand.kind {
        OperandKind::Register(file) => write!(text, "register of {}", machine[file].name),
        OperandKind::RegisterOrZero(file) => write!(text, "register of {}, or the constant zero", machine[file].name),
        OperandKind::Immediate { low, high, step: 1 } => write!(text, "constant from {low} to {}", high - 1),
        OperandKind::Immediate { low, high, step } => {
            write!(text, "constant from {low} to {} in steps of {step}", (high - 1).div_euclid(step) * step)
        }
        OperandKind::Label => write!(text, "label"),
        OperandKind::Symbol => write!(text, "address of a symbol"),
    };
    text.push_str(match (operand.read, operand.written) {
        (true, true) => ", read and written",
        (true, false) => ", read",
        (false, true) => ", written",
        (false, false) => "",
    });
    if operand.tuple > 1 {
        let _ = write!(text, ", {} registers", operand.tuple);
    }
    if let Some(tied) = operand.tied {
        let _ = write!(text, ", the register of `{}`", row.operands[tied as usize].name);
    } else if let Some(number) = operand.fixed_register {
        let _ = write!(text, ", number {number} of them");
    }
    if operand.implicit {
        text.push_str(", not written in the text");
    }
    text
}
