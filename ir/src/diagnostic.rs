//! Messages to the user: place, rule, both parties, a way out. Drawing them is the command's work.

use crate::source::Span;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// The input is refused.
    Error,
    /// The input is taken; the user should look.
    Warning,
}

/// A second place that a message speaks of (the other party).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// Where.
    pub span: Span,
    /// What stands there.
    pub text: String,
}

/// One message about one source text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Error or warning.
    pub severity: Severity,
    /// The rule that is broken, in kebab case, stable over versions: `type-mismatch`.
    pub rule: &'static str,
    /// What is wrong, one sentence without a full stop.
    pub message: String,
    /// The place.
    pub span: Span,
    /// What to say at the place, may be empty.
    pub at: String,
    /// Other parties.
    pub labels: Vec<Label>,
    /// A way out, where one is known.
    pub help: Option<String>,
}

impl Diagnostic {
    /// An error by this rule at this place.
    pub fn error(rule: &'static str, span: Span, message: impl Into<String>) -> Self {
        Self { severity: Severity::Error, rule, message: message.into(), span, at: String::new(), labels: Vec::new(), help: None }
    }

    /// A warning by this rule at this place.
    pub fn warning(rule: &'static str, span: Span, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(rule, span, message) }
    }

    /// Says something at the place itself.
    pub fn at(mut self, text: impl Into<String>) -> Self {
        self.at = text.into();
        self
    }

    /// Adds the other party.
    pub fn label(mut self, span: Span, text: impl Into<String>) -> Self {
        self.labels.push(Label { span, text: text.into() });
        self
    }

    /// Adds a way out.
    pub fn help(mut self, text: impl Into<String>) -> Self {
        self.help = Some(text.into());
        self
    }
}
