//! The subcommands: each returns its exit code.

pub mod emit;
pub mod explain;
pub mod targets;
pub mod time;

use crate::messages::Messages;
use kgen::compile::CompileError;
use kgen::names::{self, TargetError};
use kgen_ir::source::Source;
use kgen_schedulers::finish::FinishError;
use kgen_schedulers::machine::Machine;
use std::io::{Read, Write};
use std::path::Path;
use std::sync::Arc;

/// The input was refused.
pub const REFUSED: u8 = 1;
/// The command line was wrong.
pub const USAGE: u8 = 2;

/// A text by path; `-` is standard input.
pub fn read_source(messages: Messages, path: &Path) -> Option<Arc<Source>> {
    let (name, bytes) = if path == Path::new("-") {
        let mut bytes = Vec::new();
        ("<stdin>".to_owned(), std::io::stdin().lock().read_to_end(&mut bytes).map(|_| bytes))
    } else {
        (path.display().to_string(), std::fs::read(path))
    };
    match bytes.map(String::from_utf8) {
        Ok(Ok(text)) => Some(Arc::new(Source { name, text })),
        Ok(Err(error)) => {
            let place = error.utf8_error().valid_up_to();
            messages.plain(
                "not-text",
                &format!("`{name}` is not UTF-8 text: byte {place} belongs to no character"),
                Some("a spec is a text file"),
            );
            None
        }
        Err(error) => {
            messages.plain("unreadable", &format!("`{name}` cannot be read: {error}"), None);
            None
        }
    }
}

/// A machine, or the message why there is none and the exit code.
pub fn machine(messages: Messages, name: &str) -> Result<Machine, u8> {
    names::target(name).map_err(|error| match error {
        TargetError::Unknown { name, known } => {
            let help = match names::suggestion(&name, known.iter().map(String::as_str)) {
                Some(near) => format!("did you mean `{near}`? `kgen targets` lists them; a target file is given by its path"),
                None => format!("there are {}; a target file is given by its path", known.join(", ")),
            };
            messages.plain("unknown-target", &format!("there is no target `{name}`"), Some(&help));
            USAGE
        }
        TargetError::Unreadable { path, reason } => {
            messages.plain("unreadable", &format!("target file `{path}` cannot be read: {reason}"), None);
            REFUSED
        }
        TargetError::Wrong(source, errors) => {
            messages.diagnostics(&source, &errors);
            REFUSED
        }
    })
}

/// Says why a spec was refused; the exit code.
pub fn refused(messages: Messages, source: &Source, error: &CompileError) -> u8 {
    match error {
        CompileError::Diagnostics(errors) => {
            messages.diagnostics(source, errors);
            REFUSED
        }
        CompileError::UnknownKernel { name, known } => {
            let help = match names::suggestion(name, known.iter().map(String::as_str)) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("it has {}", known.join(", ")),
            };
            messages.plain("unknown-kernel", &format!("`{}` has no kernel `{name}`", source.name), Some(&help));
            USAGE
        }
        CompileError::Emit(error) => {
            messages.plain("form", &error.to_string(), None);
            USAGE
        }
        CompileError::Finish { error: FinishError::Refused(errors), .. } => {
            messages.diagnostics(source, errors);
            REFUSED
        }
        CompileError::Finish { kernel, error } => {
            messages.plain("refused", &format!("kernel `{kernel}`: {error}"), None);
            REFUSED
        }
    }
}

/// Writes a text to standard output; the exit code.
pub fn print(text: &str) -> u8 {
    // A reader that has seen enough is no error.
    let _ = std::io::stdout().lock().write_all(text.as_bytes());
    0
}
