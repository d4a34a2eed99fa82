//! Why an input is refused, as messages: the same for the command and for build scripts.

use crate::compile::CompileError;
use crate::excerpt;
use crate::names::{self, TargetError};
use kgen_ir::diagnostic::Diagnostic;
use kgen_ir::source::{Source, Span};
use kgen_schedulers::finish::FinishError;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

/// Messages that belong together.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// What the messages speak of; none for a name that does not exist or a file that cannot be read.
    pub source: Option<Arc<Source>>,
    /// At least one.
    pub diagnostics: Vec<Diagnostic>,
    /// The request was wrong (a name that does not exist), not what it names.
    pub usage: bool,
}

impl Refusal {
    /// One message about no source.
    pub fn plain(rule: &'static str, message: impl Into<String>, help: Option<String>) -> Self {
        let mut diagnostic = Diagnostic::error(rule, Span::default(), message);
        diagnostic.help = help;
        Self { source: None, diagnostics: vec![diagnostic], usage: false }
    }

    fn wrong_request(self) -> Self {
        Self { usage: true, ..self }
    }

    /// The messages as people read them, one after another.
    pub fn text(&self, colored: bool) -> String {
        let texts = self.diagnostics.iter().map(|diagnostic| match &self.source {
            Some(source) => excerpt::excerpt(source, diagnostic, colored),
            None => excerpt::plain(diagnostic, colored),
        });
        texts.collect::<Vec<_>>().join("\n")
    }

    /// Why a spec was refused.
    pub fn of_spec(source: &Arc<Source>, error: CompileError) -> Self {
        let about_source = |diagnostics| Self { source: Some(source.clone()), diagnostics, usage: false };
        match error {
            CompileError::Diagnostics(errors) | CompileError::Finish { error: FinishError::Refused(errors), .. } => about_source(errors),
            CompileError::UnknownKernel { name, known } => {
                let help = match names::suggestion(&name, known.iter().map(String::as_str)) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("it has {}", known.join(", ")),
                };
                Self::plain("unknown-kernel", format!("`{}` has no kernel `{name}`", source.name), Some(help)).wrong_request()
            }
            CompileError::Emit(error) => Self::plain("form", error.to_string(), None).wrong_request(),
            CompileError::Finish { kernel, error } => Self::plain("refused", format!("kernel `{kernel}`: {error}"), None),
        }
    }
}

impl From<TargetError> for Refusal {
    fn from(error: TargetError) -> Self {
        match error {
            TargetError::Unknown { name, known } => {
                let help = match names::suggestion(&name, known.iter().map(String::as_str)) {
                    Some(near) => format!("did you mean `{near}`? `kgen targets` lists them; a target file is given by its path"),
                    None => format!("there are {}; a target file is given by its path", known.join(", ")),
                };
                Self::plain("unknown-target", format!("there is no target `{name}`"), Some(help)).wrong_request()
            }
            TargetError::Unreadable { path, reason } => {
                Self::plain("unreadable", format!("target file `{path}` cannot be read: {reason}"), None)
            }
            TargetError::Wrong(source, diagnostics) => Self { source: Some(Arc::new(source)), diagnostics, usage: false },
        }
    }
}

/// The text of a file, called `name` in messages.
///
/// # Errors
/// It cannot be read, or is no text.
pub fn read(path: &Path) -> Result<Arc<Source>, Refusal> {
    let name = path.display().to_string();
    let unreadable = |error| Refusal::plain("unreadable", format!("`{name}` cannot be read: {error}"), None);
    let file = std::fs::File::open(path).map_err(unreadable)?;
    text(name.clone(), bounded(file).map_err(unreadable)?)
}

/// Longer inputs are no texts that anybody wrote; devices that never end are among them.
const TEXT_BYTES: u64 = 1 << 26;

/// The bytes of an input, up to a bound.
///
/// # Errors
/// The system's, or that it is too long.
pub fn bounded(input: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    input.take(TEXT_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > TEXT_BYTES {
        return Err(io::Error::other(format!("it is longer than {} MiB", TEXT_BYTES >> 20)));
    }
    Ok(bytes)
}

/// Bytes as a source.
///
/// # Errors
/// They are no text.
pub fn text(name: String, bytes: Vec<u8>) -> Result<Arc<Source>, Refusal> {
    match String::from_utf8(bytes) {
        Ok(text) => Ok(Arc::new(Source { name, text })),
        Err(error) => {
            let place = error.utf8_error().valid_up_to();
            let message = format!("`{name}` is not UTF-8 text: byte {place} belongs to no character");
            Err(Refusal::plain("not-text", message, Some("a spec is a text file".to_owned())))
        }
    }
}
