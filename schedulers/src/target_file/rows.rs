//! Instruction rows: `instr NAME OPERANDS ATTRIBUTES` with the meaning and more attributes below.

use super::cursor::{Cursor, Token};
use super::lines::Entry;
use super::mapped::MappedText;
use super::operands::{directions, meaning_operands, operands};
use super::sections::{Classes, choice, figure};
use crate::machine::{AliasValue, AssemblyAlias, ControlKind, Machine, OperandKind, Row, RowOperand, RowTiming, TimingClass, UnitId};
use kgen_ir::body::{Effect, Op};
use kgen_ir::diagnostic::Diagnostic;
use kgen_ir::meaning::elaborate_meaning;
use kgen_ir::source::Span;
use std::collections::BTreeMap;

const ATTRIBUTES: [&str; 16] = [
    "on",
    "latency",
    "of",
    "throughput",
    "short",
    "serialized",
    "oldest",
    "timing",
    "control",
    "bytes",
    "class",
    "guess",
    "cite",
    "asm",
    "alias",
    "rust",
];

/// What the attributes of a row say.
struct Attributes {
    timing: RowTiming,
    has_unit: bool,
    has_latency: bool,
    assembly: Option<(String, Span)>,
    aliases: Vec<(AssemblyAlias, Span)>,
    rust: Option<(String, Span)>,
    control: Option<ControlKind>,
    code_bytes: u32,
}

/// Reads all rows into the machine.
pub fn rows(entries: &[Entry], machine: &mut Machine, classes: &Classes, errors: &mut Vec<Diagnostic>) {
    let mut first: BTreeMap<String, Span> = BTreeMap::new();
    for entry in entries {
        let mut cursor = Cursor::new(&entry.line, errors);
        if !cursor.take_word("instr") {
            continue;
        }
        let Some(name) = cursor.word("the row's name") else { continue };
        let span = cursor.last_span();
        if let Some(other) = first.insert(name.clone(), span) {
            let error = Diagnostic::error("duplicate-name", span, format!("there are two rows `{name}`"));
            cursor.errors.push(error.label(other, "the first one").help("add a suffix to one: the text is what `asm` says"));
        }
        if let Some(row) = row(entry, &mut cursor, name, span, machine, classes) {
            machine.rows.push(row);
        }
    }
}

fn row(entry: &Entry, cursor: &mut Cursor<'_>, name: String, span: Span, machine: &Machine, classes: &Classes) -> Option<Row> {
    let mut operands = operands(cursor, machine)?;
    let mut attributes = Attributes {
        timing: RowTiming {
            units: Vec::new(),
            latency_cycles: 1,
            latency_of: Vec::new(),
            throughput_cycles: 1,
            short: None,
            serialized: false,
            retires_oldest: false,
            class: TimingClass::Constant,
            cite: String::new(),
            guess: false,
        },
        has_unit: false,
        has_latency: false,
        assembly: None,
        aliases: Vec::new(),
        rust: None,
        control: None,
        code_bytes: machine.instruction_bytes,
    };
    read_attributes(cursor, machine, classes, &operands, &mut attributes, 0)?;
    let mut meaning_lines = MappedText::default();
    for child in &entry.children {
        if is_attribute_line(&child.line.text) {
            let mut cursor = Cursor::new(&child.line, cursor.errors);
            read_attributes(&mut cursor, machine, classes, &operands, &mut attributes, 0)?;
        } else {
            push_meaning(&mut meaning_lines, child);
        }
    }
    directions(&meaning_lines.text, &mut operands);
    implicit_operands(&mut operands, machine, attributes.assembly.as_ref().map(|(text, _)| text.as_str()));
    check(&operands, &attributes, machine, span, cursor.errors);
    let meaning = match elaborate_meaning(&meaning_lines.text, 0, &meaning_operands(machine, &operands), machine.byte_order) {
        Ok(mut body) => {
            let back = |span: Span| meaning_lines.span(span.range());
            let handles: Vec<_> = body.nodes.iter().map(|(handle, _)| handle).collect();
            for handle in handles {
                body.nodes[handle].span = back(body.nodes[handle].span);
            }
            // Ports are declared by the operands of the header, not in the meaning.
            for port in body.inputs.iter_mut().chain(body.outputs.iter_mut().map(|(port, _)| port)) {
                port.span = span;
            }
            for effect in &mut body.effects {
                if let Effect::Forbidden { span, .. } = effect {
                    *span = back(*span);
                }
            }
            body
        }
        Err(list) => {
            cursor.errors.extend(list.into_iter().map(|mut error| {
                error.span = meaning_lines.span(error.span.range());
                for label in &mut error.labels {
                    label.span = meaning_lines.span(label.span.range());
                }
                error
            }));
            return None;
        }
    };
    let accesses = meaning.nodes.iter().filter(|(_, node)| matches!(node.op, Op::Load { .. })).count()
        + meaning.effects.iter().filter(|effect| matches!(effect, Effect::Store { .. })).count();
    if accesses > 1 {
        cursor.errors.push(Diagnostic::error("row-memory", span, format!("row `{name}` accesses memory {accesses} times")));
    }
    let assembly = match attributes.assembly {
        Some((text, _)) => text,
        None => generic_text(&name, &operands),
    };
    Some(Row {
        name,
        operands,
        meaning,
        meaning_text: meaning_lines.text,
        timing: attributes.timing,
        assembly: Some(assembly),
        aliases: attributes.aliases.into_iter().map(|(alias, _)| alias).collect(),
        rust: attributes.rust.map(|(text, _)| text),
        control: attributes.control,
        code_bytes: attributes.code_bytes,
        span,
    })
}

/// A row without `asm` is written as its name and its explicit operands.
fn generic_text(name: &str, operands: &[RowOperand]) -> String {
    let list: Vec<String> = operands.iter().filter(|operand| !operand.implicit).map(|operand| format!("{{{}}}", operand.name)).collect();
    format!("{name} {}", list.join(",")).trim_end().to_owned()
}

fn push_meaning(lines: &mut MappedText, entry: &Entry) {
    lines.push_line(&entry.line);
    for child in &entry.children {
        push_meaning(lines, child);
    }
}

/// Whether a line below a row holds attributes; a meaning may use the same words for its own names.
fn is_attribute_line(line: &str) -> bool {
    let end = line.find(|character: char| !(character.is_ascii_alphanumeric() || character == '_')).unwrap_or(line.len());
    let rest = line[end..].trim_start();
    ATTRIBUTES.contains(&&line[..end]) && !rest.starts_with(['=', '.', '['])
}

/// The greatest depth of classes that use classes.
const CLASS_DEPTH_LIMIT: u32 = 8;

fn read_attributes(
    cursor: &mut Cursor<'_>,
    machine: &Machine,
    classes: &Classes,
    operands: &[RowOperand],
    attributes: &mut Attributes,
    depth: u32,
) -> Option<()> {
    let timing = &mut attributes.timing;
    while !cursor.at_end() {
        match cursor.word("an attribute of rows")?.as_str() {
            "on" => {
                attributes.has_unit = true;
                timing.units = vec![unit(cursor, machine)?];
                while cursor.take(&Token::Bar) {
                    timing.units.push(unit(cursor, machine)?);
                }
            }
            "latency" => {
                attributes.has_latency = true;
                timing.latency_cycles = figure(cursor, machine, "latency in cycles")?;
            }
            "of" => {
                let operand = operand_number(cursor, operands)?;
                timing.latency_of.push((operand, figure(cursor, machine, "latency in cycles")?));
            }
            "throughput" => timing.throughput_cycles = figure(cursor, machine, "throughput in cycles")?,
            "short" => {
                let operand = operand_number(cursor, operands)?;
                let latency = figure(cursor, machine, "latency in cycles")?;
                timing.short = Some((operand, latency, figure(cursor, machine, "throughput in cycles")?));
            }
            "serialized" => timing.serialized = true,
            "oldest" => timing.retires_oldest = true,
            "timing" => {
                let classes = [("constant", TimingClass::Constant), ("operands", TimingClass::Operands)];
                timing.class = *choice(cursor, "timing class", &classes)?;
            }
            "control" => {
                let kinds = [
                    ("jump", ControlKind::Jump),
                    ("conditional", ControlKind::ConditionalJump),
                    ("counted", ControlKind::CountedJump),
                    ("return", ControlKind::Return),
                    ("call_next", ControlKind::CallNext),
                ];
                attributes.control = Some(*choice(cursor, "kind of control", &kinds)?);
            }
            "bytes" => attributes.code_bytes = cursor.small("bytes of code")?,
            "class" => {
                let name = cursor.word("a class")?;
                let Some(class) = classes.get(&name) else {
                    let known: Vec<&str> = classes.keys().map(String::as_str).collect();
                    cursor.unknown("class", &name, &known);
                    return None;
                };
                if depth == CLASS_DEPTH_LIMIT {
                    let span = cursor.last_span();
                    let message = format!("classes use each other more than {CLASS_DEPTH_LIMIT} deep");
                    cursor.errors.push(Diagnostic::error("class-depth", span, message));
                    return None;
                }
                let mut inner = Cursor::new(class, cursor.errors);
                inner.next();
                inner.next();
                read_attributes(&mut inner, machine, classes, operands, attributes, depth + 1)?;
                return read_attributes(cursor, machine, classes, operands, attributes, depth);
            }
            "guess" => timing.guess = true,
            "cite" => timing.cite = cursor.text("a source in quotes")?,
            "asm" => attributes.assembly = Some((cursor.text("a template in quotes")?, cursor.last_span())),
            "rust" => attributes.rust = Some((cursor.text("a template in quotes")?, cursor.last_span())),
            "alias" => {
                let template = cursor.text("a template in quotes")?;
                let span = cursor.last_span();
                let mut given = Vec::new();
                while matches!((cursor.peek(0), cursor.peek(1)), (Some(Token::Word(_)), Some(Token::Equals))) {
                    let operand = operand_number(cursor, operands)?;
                    cursor.next();
                    given.push((operand, alias_value(cursor, operands)?));
                }
                attributes.aliases.push((AssemblyAlias { template, given }, span));
            }
            other => {
                cursor.unknown("attribute of rows", other, &ATTRIBUTES);
                return None;
            }
        }
    }
    Some(())
}

fn alias_value(cursor: &mut Cursor<'_>, operands: &[RowOperand]) -> Option<AliasValue> {
    if let Some(Token::Number(_)) = cursor.peek(0) {
        let span = cursor.span();
        let number = cursor.number("a number")?;
        match i64::try_from(number) {
            Ok(number) => return Some(AliasValue::Number(number)),
            Err(_) => cursor.errors.push(Diagnostic::error("target-number", span, "the number does not fit 64 bits")),
        }
        return None;
    }
    Some(AliasValue::Operand(operand_number(cursor, operands)?))
}

/// A unit, or the parameter that names one.
fn unit(cursor: &mut Cursor<'_>, machine: &Machine) -> Option<UnitId> {
    let word = cursor.word("a unit")?;
    let name = machine.parameters.iter().find(|parameter| parameter.name == word).map_or(word.as_str(), |parameter| &parameter.value);
    let found = machine.units.iter().position(|unit| unit.name == name).map(|index| UnitId(index as u16));
    if found.is_none() {
        let known: Vec<&str> = machine.units.iter().map(|unit| unit.name.as_str()).collect();
        cursor.unknown("unit", name, &known);
    }
    found
}

fn operand_number(cursor: &mut Cursor<'_>, operands: &[RowOperand]) -> Option<u32> {
    let name = cursor.word("an operand")?;
    let found = operands.iter().position(|operand| operand.name == name).map(|index| index as u32);
    if found.is_none() {
        let known: Vec<&str> = operands.iter().map(|operand| operand.name.as_str()).collect();
        cursor.unknown("operand", &name, &known);
    }
    found
}

/// What the text does not hold is implicit; without a text, what can be only one register is.
fn implicit_operands(operands: &mut [RowOperand], machine: &Machine, assembly: Option<&str>) {
    for operand in operands {
        let single = match operand.kind {
            OperandKind::Register(file) => operand.tied.is_some() || operand.fixed_register.is_some() || machine[file].is_singleton(),
            _ => false,
        };
        operand.implicit = match assembly {
            Some(text) => !text.contains(&format!("{{{}}}", operand.name)),
            None => single,
        };
    }
}

fn check(operands: &[RowOperand], attributes: &Attributes, machine: &Machine, span: Span, errors: &mut Vec<Diagnostic>) {
    for operand in operands {
        let name = &operand.name;
        if operand.read && operand.written {
            let error = Diagnostic::error("operand-read-and-written", span, format!("operand `{name}` is both read and written"));
            errors.push(error.help(format!("read it through a second operand, `old_{name}:FILE={name}`")));
        }
        let names_code = matches!(operand.kind, OperandKind::Label | OperandKind::Symbol);
        let used = operand.read || operand.written || (names_code && attributes.control.is_some());
        if !used {
            errors.push(Diagnostic::error("operand-unused", span, format!("the meaning does not use operand `{name}`")));
        }
        if let OperandKind::Register(file) = operand.kind {
            let single = operand.tied.is_some() || operand.fixed_register.is_some() || machine[file].is_singleton();
            if operand.implicit && !single {
                let error = Diagnostic::error("operand-not-in-text", span, format!("the text does not hold operand `{name}`"));
                errors.push(error.help(format!("write `{{{name}}}` in the template, or fix its register with `@N`")));
            }
        } else if operand.implicit {
            errors.push(Diagnostic::error("operand-not-in-text", span, format!("the text does not hold operand `{name}`")));
        }
        if let Some(tied) = operand.tied
            && !operands.get(tied as usize).is_some_and(|result| result.written && result.kind == operand.kind)
        {
            errors.push(Diagnostic::error(
                "operand-tie",
                span,
                format!("operand `{name}` is tied to something that is no result of its file"),
            ));
        }
    }
    let texts = attributes.assembly.iter().chain(&attributes.rust).map(|(text, span)| (text, *span, true));
    for (text, span, _) in texts.chain(attributes.aliases.iter().map(|(alias, span)| (&alias.template, *span, false))) {
        for hole in holes(text) {
            let name = hole.split('.').next().unwrap_or(hole);
            if name != "unit" && !operands.iter().any(|operand| operand.name == name) {
                let known: Vec<&str> = operands.iter().map(|operand| operand.name.as_str()).collect();
                errors.push(super::cursor::unknown_name(span, "operand", name, &known));
            }
        }
    }
    for (alias, span) in &attributes.aliases {
        for (number, operand) in operands.iter().enumerate().filter(|(_, operand)| !operand.implicit) {
            let given = alias.given.iter().any(|(given, _)| *given as usize == number);
            if given == alias.template.contains(&format!("{{{}}}", operand.name)) {
                let message = format!("the alias must give operand `{}` once, in the text or behind it", operand.name);
                errors.push(Diagnostic::error("alias-operand", *span, message));
            }
        }
    }
    if !machine.units.is_empty() {
        if !attributes.has_unit || !attributes.has_latency {
            let message = "the row does not say its unit and latency";
            errors.push(Diagnostic::error("row-timing", span, message).help("add `on UNIT latency CYCLES`, or a `class`"));
        }
        if attributes.timing.cite.is_empty() && !attributes.timing.guess {
            let error = Diagnostic::error("no-source", span, "the row's figures have no source");
            errors.push(error.help("add `cite \"…\"` or `guess`"));
        }
        if attributes.timing.throughput_cycles == 0 {
            errors.push(Diagnostic::error("row-timing", span, "a row keeps its unit busy for at least one cycle"));
        }
    }
}

/// The names in braces.
fn holes(text: &str) -> impl Iterator<Item = &str> {
    text.split('{').skip(1).filter_map(|rest| rest.split_once('}').map(|(name, _)| name))
}
