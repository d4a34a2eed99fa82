//! Messages for people: what is wrong, the lines where it stands, and a way out.

use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};
use kgen_ir::diagnostic::{Diagnostic, Severity};
use kgen_ir::source::{Source, Span};

fn renderer(colored: bool) -> Renderer {
    if colored { Renderer::styled() } else { Renderer::plain() }
}

/// A message about a source, with the lines that it speaks of.
pub fn excerpt(source: &Source, diagnostic: &Diagnostic, colored: bool) -> String {
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
    let group = level(diagnostic).primary_title(diagnostic.message.as_str()).id(diagnostic.rule);
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

/// A message about no source text: a file that cannot be read, a name that does not exist.
pub fn plain(diagnostic: &Diagnostic, colored: bool) -> String {
    let title = level(diagnostic).primary_title(diagnostic.message.as_str()).id(diagnostic.rule);
    let group = match &diagnostic.help {
        Some(help) => title.element(Level::HELP.message(help.as_str())),
        None => Group::with_title(title),
    };
    renderer(colored).render(&[group])
}

fn level(diagnostic: &Diagnostic) -> Level<'static> {
    match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    }
}
