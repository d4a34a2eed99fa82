//! The subcommands: each returns its exit code.

pub mod completions;
pub mod cost;
pub mod emit;
pub mod explain;
pub mod format;
pub mod targets;
pub mod time;

use crate::messages::Messages;
use kgen::names;
use kgen::refusal::{self, Refusal};
use kgen_ir::source::Source;
use kgen_schedulers::machine::Machine;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

/// The input was refused.
pub const REFUSED: u8 = 1;
/// The command line was wrong.
pub const USAGE: u8 = 2;

/// A text by path; `-` is standard input.
pub fn read_source(messages: Messages, path: &Path) -> Option<Arc<Source>> {
    let source = if path == Path::new("-") {
        match refusal::bounded(std::io::stdin().lock()) {
            Ok(bytes) => refusal::text("<stdin>".to_owned(), bytes),
            Err(error) => Err(Refusal::plain("unreadable", format!("`<stdin>` cannot be read: {error}"), None)),
        }
    } else {
        refusal::read(path)
    };
    source.map_err(|refusal| messages.refusal(&refusal)).ok()
}

/// A machine, or the exit code after the message why there is none.
pub fn machine(messages: Messages, name: &str) -> Result<Machine, u8> {
    names::target(name).map_err(|error| refused(messages, &error.into()))
}

/// Says why something was refused; the exit code.
pub fn refused(messages: Messages, refusal: &Refusal) -> u8 {
    messages.refusal(refusal);
    if refusal.usage { USAGE } else { REFUSED }
}

/// Writes a text to standard output; the exit code.
pub fn print(text: &str) -> u8 {
    // A reader that has seen enough is no error.
    let _ = std::io::stdout().lock().write_all(text.as_bytes());
    0
}
