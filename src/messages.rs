//! Drawing messages: source excerpts for people, JSON lines for programs.

use crate::options::{Color, MessageFormat};
use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};
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
            MessageFormat::Human => human(source, diagnostic, self.colored),
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
            MessageFormat::Human => {
                let mut groups = vec![Level::ERROR.primary_title(message).id(rule)];
                let group = match help {
                    Some(help) => groups.remove(0).element(Level::HELP.message(help.to_owned())),
                    None => Group::with_title(groups.remove(0)),
                };
                renderer(self.colored).render(&[group])
            }
        };
        self.line(&text);
    }

    fn line(&self, text: &str) {
        // A closed standard error is no reason to fail: the exit code still tells.
        let _ = writeln!(std::io::stderr(), "{text}");
    }
}

fn renderer(colored: bool) -> Renderer {
    if colored { Renderer::styled() } else { Renderer::plain() }
}

/// The message with source excerpts.
pub fn human(source: &Source, diagnostic: &Diagnostic, colored: bool) -> String {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let clamp = |span: Span| {
        let end = source.text.len();
        let mut start = span.range().start.min(end);
        let mut stop = span.range().end.clamp(start, end);
        while !source.text.is_char_boundary(start) {
            start -= 1;
        }
        while !source.text.is_char_boundary(stop) {
            stop += 1;
        }
        start..stop
    };
    let group = level.primary_title(diagnostic.message.as_str()).id(diagnostic.rule);
    if diagnostic.span == Span::default() {
        // About the source, but about no place in it: an excerpt of its first byte would mislead.
        let origin = Group::with_title(group).element(Origin::path(source.name.as_str()));
        let group = diagnostic.help.iter().fold(origin, |group, help| group.element(Level::HELP.message(help.as_str())));
        return renderer(colored).render(&[group]);
    }
    let mut snippet = Snippet::source(source.text.as_str()).path(source.name.as_str()).annotation(
        AnnotationKind::Primary.span(clamp(diagnostic.span)).label((!diagnostic.at.is_empty()).then_some(diagnostic.at.as_str())),
    );
    for label in &diagnostic.labels {
        snippet = snippet.annotation(AnnotationKind::Context.span(clamp(label.span)).label(label.text.as_str()));
    }
    let mut group = group.element(snippet);
    if let Some(help) = &diagnostic.help {
        group = group.element(Level::HELP.message(help.as_str()));
    }
    renderer(colored).render(&[group])
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
