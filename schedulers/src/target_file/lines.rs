//! From the text of a target file to entries: lines nested by indentation, with `for` templates expanded.
//!
//! ```text
//! for s, T in b u8x16; h u16x8; w u32x4
//!     instr vaddu{s}m d:v a:v b:v …
//!         d.{T} = a.{T} + b.{T}
//! ```

use super::mapped::MappedText;
use kgen_ir::diagnostic::Diagnostic;
use kgen_ir::source::Span;

/// A line with the lines that are indented below it.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Its text without indentation and comment.
    pub line: MappedText,
    /// Deeper lines.
    pub children: Vec<Entry>,
}

/// The greatest number of entries that templates may expand to; a real machine has hundreds.
const ENTRIES_LIMIT: usize = 100_000;

struct RawLine<'a> {
    indent: usize,
    text: &'a str,
    offset: usize,
}

/// Splits a text into entries and expands its templates.
pub fn entries(text: &str, errors: &mut Vec<Diagnostic>) -> Vec<Entry> {
    let mut lines = Vec::new();
    let mut offset = 0;
    for line in text.split_inclusive('\n') {
        let code = without_comment(line).trim_end();
        let trimmed = code.trim_start();
        let indent = code.len() - trimmed.len();
        if code[..indent].contains('\t') {
            let span = Span::new(offset..offset + indent);
            errors.push(
                Diagnostic::error("tab-indentation", span, "a line is indented by tabs").help("indent by spaces: depth is meaning here"),
            );
        }
        if !trimmed.is_empty() {
            lines.push(RawLine { indent, text: trimmed, offset: offset + indent });
        }
        offset += line.len();
    }
    let mut expansion = Expansion { errors, count: 0 };
    let mut result = Vec::new();
    expansion.block(&lines, &mut Vec::new(), &mut result);
    result
}

/// The line up to `//` outside of a string.
fn without_comment(line: &str) -> &str {
    let (mut quoted, mut escaped) = (false, false);
    for (index, byte) in line.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'/' if !quoted && line[index..].starts_with("//") => return &line[..index],
            _ => {}
        }
    }
    line
}

struct Expansion<'a> {
    errors: &'a mut Vec<Diagnostic>,
    count: usize,
}

impl Expansion<'_> {
    fn block(&mut self, lines: &[RawLine<'_>], bindings: &mut Vec<(String, String)>, result: &mut Vec<Entry>) {
        let mut index = 0;
        while index < lines.len() {
            let head = &lines[index];
            let mut end = index + 1;
            while end < lines.len() && lines[end].indent > head.indent {
                end += 1;
            }
            let below = &lines[index + 1..end];
            let line = fill(head, bindings);
            if line.text.starts_with("for ") {
                self.template(&line, below, bindings, result);
            } else {
                self.count += 1;
                if self.count == ENTRIES_LIMIT {
                    let message = format!("templates expand to more than {ENTRIES_LIMIT} lines");
                    self.errors.push(Diagnostic::error("template-limit", line.whole(), message));
                }
                if self.count >= ENTRIES_LIMIT {
                    return;
                }
                let mut children = Vec::new();
                self.block(below, bindings, &mut children);
                result.push(Entry { line, children });
            }
            index = end;
        }
    }

    /// `for NAMES in ROW; ROW`: the block once per row, with each name replaced by its field.
    fn template(&mut self, line: &MappedText, below: &[RawLine<'_>], bindings: &mut Vec<(String, String)>, result: &mut Vec<Entry>) {
        let Some((names, rows)) = line.text.strip_prefix("for ").and_then(|rest| rest.split_once(" in ")) else {
            let error = Diagnostic::error("template-syntax", line.whole(), "a template has no ` in `");
            self.errors.push(error.help("write `for s, T in b u8x16; h u16x8`"));
            return;
        };
        let names: Vec<&str> = names.split(',').map(str::trim).collect();
        for row in rows.split(';') {
            // `""` is the empty field: a suffix that one row does not have.
            let fields: Vec<&str> = row.split_whitespace().map(|field| if field == "\"\"" { "" } else { field }).collect();
            if fields.len() != names.len() {
                let message = format!("a template row has {} fields for {} names", fields.len(), names.len());
                self.errors.push(Diagnostic::error("template-fields", line.whole(), message).at(format!("the row `{}`", row.trim())));
                continue;
            }
            let outer = bindings.len();
            bindings.extend(names.iter().zip(&fields).map(|(name, field)| ((*name).to_owned(), (*field).to_owned())));
            self.block(below, bindings, result);
            bindings.truncate(outer);
        }
    }
}

/// The line with `{NAME}` replaced where NAME is bound; other braces stay (operand holes of texts).
fn fill(line: &RawLine<'_>, bindings: &[(String, String)]) -> MappedText {
    let mut mapped = MappedText::default();
    let mut done = 0;
    while let Some(open) = line.text[done..].find('{').map(|index| done + index) {
        let Some(close) = line.text[open..].find('}').map(|index| open + index) else { break };
        let name = &line.text[open + 1..close];
        match bindings.iter().rev().find(|(bound, _)| bound == name) {
            Some((_, value)) => {
                mapped.push_verbatim(&line.text[done..open], line.offset + done);
                mapped.push_substituted(value, Span::new(line.offset + open..line.offset + close + 1));
                done = close + 1;
            }
            None => {
                mapped.push_verbatim(&line.text[done..=open], line.offset + done);
                done = open + 1;
            }
        }
    }
    mapped.push_verbatim(&line.text[done..], line.offset + done);
    mapped
}
