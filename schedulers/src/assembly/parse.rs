//! From assembly text to [`Code`]. A line that cannot be read is a message with its place; all of them come at once.

use super::directives::{Directive, directive};
use super::expression::Definitions;
use super::template::{Match, Mismatch, Template, identifier_length};
use crate::code::{Code, CodeInstruction, CodeOperand, DataObject};
use crate::machine::Machine;
use indexmap::IndexMap;
use kgen_ir::diagnostic::Diagnostic;
use kgen_ir::source::{Source, Span};
use std::collections::BTreeMap;

/// Reads instructions of one machine; made once for many texts.
pub struct AssemblyReader<'m> {
    machine: &'m Machine,
    templates: BTreeMap<String, Vec<Template>>,
}

/// Reads a whole text for a machine.
///
/// # Errors
/// Every line that cannot be read, every label that is missing or there twice.
pub fn parse(machine: &Machine, source: &Source) -> Result<Code, Vec<Diagnostic>> {
    AssemblyReader::new(machine).code(&source.text)
}

/// A label as it stands in the text.
struct LabelUse {
    /// Instruction and operand that name it.
    instruction: usize,
    operand: usize,
    span: Span,
}

/// What has been read so far.
struct Reading {
    code: Code,
    errors: Vec<Diagnostic>,
    definitions: Definitions,
    /// Where each label stands in the text.
    label_spans: IndexMap<String, Span>,
    /// How often each numeric label has come.
    numeric: BTreeMap<u32, u32>,
    uses: Vec<LabelUse>,
    in_data: bool,
    align: u32,
    /// Labels seen since the last instruction or constant, by their index in the code's labels.
    pending: Vec<usize>,
    /// Data labels before their first bytes.
    data_labels: Vec<String>,
}

impl<'m> AssemblyReader<'m> {
    /// A reader for this machine.
    pub fn new(machine: &'m Machine) -> Self {
        let mut templates: BTreeMap<String, Vec<Template>> = BTreeMap::new();
        for (index, row) in machine.rows.iter().enumerate() {
            for template in Template::of_row(crate::machine::RowId(index as u32), row) {
                templates.entry(template.mnemonic.clone()).or_default().push(template);
            }
        }
        Self { machine, templates }
    }

    /// Reads one instruction, as it stands in a line without label and comment; `offset` is its place in the source.
    ///
    /// # Errors
    /// Why no row has this text.
    pub fn instruction(&self, text: &str, offset: usize) -> Result<CodeInstruction, Diagnostic> {
        self.read_instruction(text, offset, &Definitions::new())
    }

    /// Reads a whole text.
    ///
    /// # Errors
    /// See [`parse`].
    pub fn code(&self, text: &str) -> Result<Code, Vec<Diagnostic>> {
        let mut reading = Reading {
            code: Code::default(),
            errors: Vec::new(),
            definitions: Definitions::new(),
            label_spans: IndexMap::new(),
            numeric: BTreeMap::new(),
            uses: Vec::new(),
            in_data: false,
            align: 1,
            pending: Vec::new(),
            data_labels: Vec::new(),
        };
        let text = &without_block_comments(text);
        let mut offset = 0;
        for line in text.split_inclusive('\n') {
            let code = line.find(self.machine.comment.as_str()).map_or(line, |comment| &line[..comment]);
            let mut start = 0;
            // `;` separates statements unless it is the comment's sign.
            for statement in code.split(';') {
                self.statement(statement, offset + start, &mut reading);
                start += statement.len() + 1;
            }
            offset += line.len();
        }
        resolve_labels(&mut reading);
        if reading.errors.is_empty() {
            Ok(reading.code)
        } else {
            reading.errors.sort_by_key(|error| error.span);
            Err(reading.errors)
        }
    }

    fn statement(&self, text: &str, offset: usize, reading: &mut Reading) {
        let mut start = text.len() - text.trim_start().len();
        loop {
            let rest = &text[start..];
            let length = identifier_length(rest);
            let after = rest[length..].trim_start();
            if length == 0 || !after.starts_with(':') {
                break;
            }
            reading.label(&rest[..length], Span::new(offset + start..offset + start + length));
            start = text.len() - after.len() + 1;
            start += text[start..].len() - text[start..].trim_start().len();
        }
        let body = text[start..].trim_end();
        if body.is_empty() {
            return;
        }
        let span = Span::new(offset + start..offset + start + body.len());
        // `name = value`
        let length = identifier_length(body);
        if let Some(value) = body[length..].trim_start().strip_prefix('=')
            && length > 0
        {
            reading.apply(directive(".set", &format!("{},{value}", &body[..length]), self.machine.byte_order, &reading.definitions), span);
            return;
        }
        if body.starts_with('.') {
            let (name, rest) = body.split_once(char::is_whitespace).unwrap_or((body, ""));
            reading.apply(directive(name, rest, self.machine.byte_order, &reading.definitions), span);
            return;
        }
        match self.read_instruction(body, offset + start, &reading.definitions) {
            Ok(instruction) => {
                if reading.in_data {
                    reading
                        .errors
                        .push(Diagnostic::error("code-in-data", span, "an instruction stands in a data section").help("add `.text`"));
                }
                let index = reading.code.instructions.len();
                for (operand, found) in instruction.operands.iter().enumerate() {
                    if let CodeOperand::Label(_) = found {
                        reading.uses.push(LabelUse { instruction: index, operand, span });
                    }
                }
                // Numeric labels are named at once: `1b` means the last one before here.
                let mut instruction = instruction;
                for operand in &mut instruction.operands {
                    if let CodeOperand::Label(name) = operand
                        && let Some(unique) = reading.numeric_reference(name)
                    {
                        *name = unique;
                    }
                }
                reading.code.instructions.push(instruction);
                reading.pending.clear();
            }
            Err(error) => reading.errors.push(error),
        }
    }

    fn read_instruction(&self, text: &str, offset: usize, definitions: &Definitions) -> Result<CodeInstruction, Diagnostic> {
        let (parallel, start) = match &self.machine.parallel {
            Some(mark) => match text.strip_prefix(mark.as_str()) {
                Some(rest) => (true, text.len() - rest.trim_start().len()),
                None => (false, 0),
            },
            None => (false, 0),
        };
        let body = &text[start..];
        let length = body.find(char::is_whitespace).unwrap_or(body.len());
        let (mnemonic, rest) = body.split_at(length);
        let span = Span::new(offset..offset + text.len());
        let Some(candidates) = self.templates.get(mnemonic) else {
            let known: Vec<&str> = self.templates.keys().map(String::as_str).collect();
            let place = Span::new(offset + start..offset + start + length);
            let error = Diagnostic::error("unknown-instruction", place, format!("{} has no instruction `{mnemonic}`", self.machine.name));
            return Err(match crate::target_file::nearest(mnemonic, &known) {
                Some(near) => error.help(format!("did you mean `{near}`?")),
                None => error,
            });
        };
        let mut furthest: Option<Mismatch> = None;
        for template in candidates {
            match template.matches(self.machine, definitions, rest) {
                Ok(Match { row, operands, unit }) => {
                    return Ok(CodeInstruction { row, operands, parallel, unit, comment: String::new(), span: Some(span) });
                }
                Err(mismatch) if furthest.as_ref().is_none_or(|best| best.at < mismatch.at) => furthest = Some(mismatch),
                Err(_) => {}
            }
        }
        let mismatch = furthest.unwrap_or(Mismatch { at: 0, expected: "operands".to_owned() });
        let at = offset + start + length + mismatch.at;
        let place = Span::new(at..(at + 1).min(offset + text.len()).max(at));
        let error =
            Diagnostic::error("instruction-operands", place, format!("`{mnemonic}` cannot be read: expected {}", mismatch.expected));
        let texts: Vec<String> = candidates.iter().filter_map(|template| self.machine[template.row].assembly.clone()).collect();
        Err(error.help(format!("it is written `{}`", texts.first().map_or("", String::as_str))))
    }
}

/// Block comments as spaces, so that places stay.
fn without_block_comments(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("/*") {
        result.push_str(&rest[..start]);
        let end = rest[start + 2..].find("*/").map_or(rest.len(), |end| start + 2 + end + 2);
        result.extend(rest[start..end].bytes().map(|byte| if byte == b'\n' { '\n' } else { ' ' }));
        rest = &rest[end..];
    }
    result.push_str(rest);
    result
}

impl Reading {
    fn label(&mut self, name: &str, span: Span) {
        let name = match name.parse::<u32>() {
            Ok(number) => {
                let count = self.numeric.entry(number).or_insert(0);
                *count += 1;
                numeric_name(number, *count)
            }
            Err(_) => name.to_owned(),
        };
        if let Some(other) = self.label_spans.insert(name.clone(), span) {
            let error = Diagnostic::error("duplicate-label", span, format!("there are two labels `{name}`"));
            self.errors.push(error.label(other, "the first one"));
            return;
        }
        if self.in_data {
            self.data_labels.push(name);
        } else {
            self.pending.push(self.code.labels.len());
            self.code.labels.push((name, self.code.instructions.len()));
        }
    }

    /// The unique name that `1b` or `1f` means here.
    fn numeric_reference(&self, name: &str) -> Option<String> {
        let (digits, forward) = match name.strip_suffix('f') {
            Some(digits) => (digits, 1),
            None => (name.strip_suffix('b')?, 0),
        };
        let number: u32 = digits.parse().ok()?;
        Some(numeric_name(number, self.numeric.get(&number).copied().unwrap_or(0) + forward))
    }

    fn apply(&mut self, directive: Result<Directive, (String, Option<String>)>, span: Span) {
        match directive {
            Ok(Directive::Ignored) => {}
            Ok(Directive::Text) => self.in_data = false,
            Ok(Directive::Data) => {
                self.in_data = true;
                self.align = 1;
            }
            Ok(Directive::Align(bytes)) => self.align = bytes,
            Ok(Directive::Set(name, value)) => {
                self.definitions.insert(name, value);
            }
            Ok(Directive::Bytes(bytes)) => self.bytes(bytes, span),
            Err((message, help)) => {
                let error = Diagnostic::error("directive", span, message);
                self.errors.push(match help {
                    Some(help) => error.help(help),
                    None => error,
                });
            }
        }
    }

    /// Constants go to the object of the last data label; a table in the middle of code takes the labels before it along.
    fn bytes(&mut self, bytes: Vec<u8>, span: Span) {
        if !self.in_data {
            for index in self.pending.drain(..).rev() {
                self.data_labels.insert(0, self.code.labels.remove(index).0);
            }
        }
        if self.data_labels.is_empty() {
            match self.code.data.last_mut() {
                Some(object) => object.bytes.extend(bytes),
                None => self.errors.push(Diagnostic::error("data-without-label", span, "constants without a label cannot be reached")),
            }
            return;
        }
        if let [first, other, ..] = &self.data_labels[..] {
            let message = format!("constant `{first}` has a second name `{other}`");
            self.errors.push(Diagnostic::error("data-with-two-labels", span, message).help("use one name for it"));
        }
        if let Some(symbol) = self.data_labels.drain(..).next() {
            self.code.data.push(DataObject { symbol, align_bytes: self.align, bytes });
        }
        self.align = 1;
    }
}

fn numeric_name(number: u32, count: u32) -> String {
    format!(".L{number}_{count}")
}

fn resolve_labels(reading: &mut Reading) {
    let known: Vec<&str> = reading.code.labels.iter().map(|(name, _)| name.as_str()).collect();
    for used in &reading.uses {
        let CodeOperand::Label(name) = &reading.code.instructions[used.instruction].operands[used.operand] else { continue };
        if !known.contains(&name.as_str()) {
            let error = Diagnostic::error("unknown-label", used.span, format!("there is no label `{name}` in this text"));
            reading.errors.push(match crate::target_file::nearest(name, &known) {
                Some(near) => error.help(format!("did you mean `{near}`?")),
                None => error.help("calls and jumps to other files are not followed"),
            });
        }
    }
}
