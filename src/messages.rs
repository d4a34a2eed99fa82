//! Drawing messages: source excerpts for people, JSON lines for programs.

use crate::options::{Color, MessageFormat};
use kgen::excerpt;
use kgen::refusal::Refusal;
use kgen_ir::diagnostic::{Diagnostic, Severity};
use kgen_ir::source::{Source, Span};
use std::io::{IsTerminal, Write};

/// Where and how messages go.
#[derive(Clone, Copy, Debug)]
pub struct Messages {
    format: MessageFormat,
    colored: bool,
}

/// A text with more mistakes than this is something else than it was taken for; more messages help nobody.
const SHOWN: usize = 50;

impl Messages {
    /// Messages to standard error.
    pub fn new(format: MessageFormat, color: Color) -> Self {
        let colored = match color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none(),
        };
        Self { format, colored }
    }

    /// One message about a source.
    pub fn diagnostic(&self, source: &Source, diagnostic: &Diagnostic) {
        let text = match self.format {
            MessageFormat::Human => excerpt::excerpt(source, diagnostic, self.colored),
            MessageFormat::Json => json(Some(source), diagnostic),
        };
        self.line(&text);
    }

    /// Messages about a source, in their order. People get the first [`SHOWN`] and the number of the others, programs all.
    pub fn diagnostics(&self, source: &Source, diagnostics: &[Diagnostic]) {
        let shown = match self.format {
            MessageFormat::Human => diagnostics.len().min(SHOWN),
            MessageFormat::Json => diagnostics.len(),
        };
        diagnostics[..shown].iter().for_each(|diagnostic| self.diagnostic(source, diagnostic));
        if shown < diagnostics.len() {
            self.line(&format!("… and {} more about `{}`", diagnostics.len() - shown, source.name));
        }
    }

    /// An error that belongs to no source text (a file that cannot be read, a name that does not exist).
    pub fn plain(&self, rule: &'static str, message: &str, help: Option<&str>) {
        let mut diagnostic = Diagnostic::error(rule, Span::default(), message);
        diagnostic.help = help.map(str::to_owned);
        let text = match self.format {
            MessageFormat::Json => json(None, &diagnostic),
            MessageFormat::Human => excerpt::plain(&diagnostic, self.colored),
        };
        self.line(&text);
    }

    /// The messages of a refusal.
    pub fn refusal(&self, refusal: &Refusal) {
        match &refusal.source {
            Some(source) => self.diagnostics(source, &refusal.diagnostics),
            None => refusal
                .diagnostics
                .iter()
                .for_each(|diagnostic| self.plain(diagnostic.rule, &diagnostic.message, diagnostic.help.as_deref())),
        }
    }

    fn line(&self, text: &str) {
        // A closed standard error is no reason to fail: the exit code still tells.
        let _ = writeln!(std::io::stderr(), "{text}");
    }
}

fn json(source: Option<&Source>, diagnostic: &Diagnostic) -> String {
    let place = |span: Span| {
        source.map(|source| {
            if span == Span::default() {
                return serde_json::json!({ "file": source.name });
            }
            let before = &source.text[..source.text.floor_char_boundary(span.range().start.min(source.text.len()))];
            let line = before.matches('\n').count() + 1;
            let column = before.rsplit('\n').next().map_or(0, |last| last.chars().count()) + 1;
            serde_json::json!({ "file": source.name, "start": span.start, "end": span.end, "line": line, "column": column })
        })
    };
    let labels: Vec<_> =
        diagnostic.labels.iter().map(|label| serde_json::json!({ "place": place(label.span), "text": label.text })).collect();
    serde_json::json!({
        "severity": match diagnostic.severity { Severity::Error => "error", Severity::Warning => "warning" },
        "rule": diagnostic.rule,
        "message": diagnostic.message,
        "place": place(diagnostic.span),
        "at": diagnostic.at,
        "labels": labels,
        "help": diagnostic.help,
    })
    .to_string()
}
