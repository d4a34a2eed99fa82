//! Finding things by name, with suggestions for names that do not exist.

use kgen_ir::diagnostic::Diagnostic;
use kgen_ir::source::Source;
use kgen_schedulers::machine::Machine;
use kgen_schedulers::target_file;
use std::path::Path;

/// Why a target cannot be had.
#[derive(Debug)]
pub enum TargetError {
    /// No embedded target of this name, and no such file.
    Unknown {
        /// Asked for.
        name: String,
        /// All names.
        known: Vec<String>,
    },
    /// The file cannot be read.
    Unreadable {
        /// Path.
        path: String,
        /// The system's reason.
        reason: String,
    },
    /// The target file is wrong.
    Wrong(Source, Vec<Diagnostic>),
}

/// Names and summaries of the embedded targets and their variants.
pub fn targets() -> Vec<(String, String)> {
    target_file::embedded().flat_map(|source| target_file::names(&source)).collect()
}

/// The name is the path of a target file: it holds a slash or ends in `.target`.
pub fn is_path(name: &str) -> bool {
    name.contains('/') || name.ends_with(".target")
}

/// A machine by name, or from a target file where the name is a path.
///
/// # Errors
/// See [`TargetError`].
pub fn target(name: &str) -> Result<Machine, TargetError> {
    if is_path(name) {
        let text = std::fs::read_to_string(Path::new(name))
            .map_err(|error| TargetError::Unreadable { path: name.to_owned(), reason: error.to_string() })?;
        let source = Source { name: name.to_owned(), text };
        return target_file::read(&source, None).map_err(|errors| TargetError::Wrong(source, errors));
    }
    let known: Vec<String> = targets().into_iter().map(|(name, _)| name).collect();
    if !known.iter().any(|known| known == name) {
        return Err(TargetError::Unknown { name: name.to_owned(), known });
    }
    target_file::embedded_machine(name).map_err(|(source, errors)| TargetError::Wrong(source, errors))
}

/// The known name most like the wanted one, where one is like it.
pub fn suggestion<'a>(wanted: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let known: Vec<&str> = known.into_iter().collect();
    target_file::nearest(wanted, &known)
}
