//! kgen in a `build.rs`: specs to files in `OUT_DIR`, with the lines that tell cargo when to do it again.

use crate::compile::{self, CompileOptions};
use crate::names;
use crate::output::{self, Destination};
use crate::refusal::{self, Refusal};
use kgen_emitters::TextOptions;
use std::fmt;
use std::path::{Path, PathBuf};

/// What a build script asks for.
///
/// ```no_run
/// // build.rs
/// fn main() -> Result<(), kgen::BuildError> {
///     kgen::Build::new().spec("specs/mul_128.ir").target("portable").compile()?;
///     Ok(())
/// }
/// ```
///
/// ```text
/// // src/lib.rs
/// include!(concat!(env!("OUT_DIR"), "/mul_128.portable.rs"));
/// ```
///
/// Every kernel of a spec goes into one file `SPEC.TARGET.EXTENSION` of `OUT_DIR` (forms of several files, such as assembly with its header, write one of each kind).
#[derive(Clone, Debug, Default)]
pub struct Build {
    specs: Vec<PathBuf>,
    targets: Vec<String>,
    form: Option<String>,
    folder: Option<PathBuf>,
    options: CompileOptions,
}

/// Everything that was wrong. Both its `Display` and its `Debug` are the messages with their excerpts, since a `build.rs` that returns it has it printed by `Debug`.
pub struct BuildError {
    refusals: Vec<Refusal>,
}

impl fmt::Display for BuildError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts: Vec<String> = self.refusals.iter().map(|refusal| refusal.text(false)).collect();
        write!(formatter, "kgen refused its input\n\n{}", texts.join("\n"))
    }
}

impl fmt::Debug for BuildError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

impl std::error::Error for BuildError {}

impl Build {
    /// Nothing asked for yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Compile this spec too; relative to the package's folder.
    #[must_use]
    pub fn spec(mut self, path: impl AsRef<Path>) -> Self {
        self.specs.push(path.as_ref().to_owned());
        self
    }

    /// Compile for this target too: a name, or the path of a target file.
    #[must_use]
    pub fn target(mut self, name: &str) -> Self {
        self.targets.push(name.to_owned());
        self
    }

    /// Output form; each target's first is the default.
    #[must_use]
    pub fn form(mut self, name: &str) -> Self {
        self.form = Some(name.to_owned());
        self
    }

    /// Compile this kernel; all where none is named.
    #[must_use]
    pub fn kernel(mut self, name: &str) -> Self {
        self.options.kernels.push(name.to_owned());
        self
    }

    /// Set a `param` of the specs.
    #[must_use]
    pub fn param(mut self, name: &str, value: u64) -> Self {
        self.options.parameters.push((name.to_owned(), value));
        self
    }

    /// 0 (default): list scheduling; 1: short search; 2: search guided by the timing simulation.
    #[must_use]
    pub fn effort(mut self, effort: u8) -> Self {
        self.options.effort = effort;
        self
    }

    /// Copies of a kernel interleaved into one function.
    #[must_use]
    pub fn interleave(mut self, copies: u32) -> Self {
        self.options.interleave = copies;
        self
    }

    /// Position-independent addressing of constants.
    #[must_use]
    pub fn position_independent(mut self, yes: bool) -> Self {
        self.options.position_independent = yes;
        self
    }

    /// Write into this folder instead of `OUT_DIR`.
    #[must_use]
    pub fn out_dir(mut self, folder: impl AsRef<Path>) -> Self {
        self.folder = Some(folder.as_ref().to_owned());
        self
    }

    /// What shapes text only: prefix, licence, known answers.
    #[must_use]
    pub fn text(mut self, text: TextOptions) -> Self {
        self.options.text = text;
        self
    }

    /// Compiles everything, writes the files, and tells cargo what they depend on. Gives their paths.
    ///
    /// # Errors
    /// Everything that is wrong with any spec, target or name, all at once; nothing is written then.
    pub fn compile(&self) -> Result<Vec<PathBuf>, BuildError> {
        let on_disk = self.targets.iter().filter(|name| names::is_path(name)).map(PathBuf::from);
        for path in self.specs.iter().cloned().chain(on_disk) {
            println!("cargo:rerun-if-changed={}", path.display());
        }
        let mut refusals = Vec::new();
        let mut files = Vec::new();
        if self.specs.is_empty() || self.targets.is_empty() {
            let message = "a build needs a spec and a target";
            refusals.push(Refusal::plain("nothing-to-build", message, Some("call `.spec(…)` and `.target(…)`".to_owned())));
        }
        let mut machines = Vec::new();
        for name in &self.targets {
            match names::target(name) {
                Ok(machine) => machines.push(machine),
                Err(error) => refusals.push(error.into()),
            }
        }
        for path in &self.specs {
            match refusal::read(path) {
                Ok(source) => match compile::unit(&source, &self.options.parameters) {
                    Ok((unit, warnings)) => {
                        for warning in &warnings {
                            println!("cargo:warning={}: {}", source.name, warning.message);
                        }
                        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
                        for machine in &machines {
                            let artifacts = compile::form(machine, self.form.as_deref())
                                .and_then(|form| Ok((form, compile::kernels(&unit, machine, &self.options)?)))
                                .and_then(|(form, finished)| {
                                    Ok((form, compile::artifacts(&unit, machine, &finished, form, &self.options)?))
                                });
                            match artifacts {
                                Ok((form, artifacts)) => {
                                    files.extend(compile::joined(form, &artifacts, &format!("{stem}.{}", machine.name)))
                                }
                                Err(error) => refusals.push(Refusal::of_spec(&source, error)),
                            }
                        }
                    }
                    Err(error) => refusals.push(Refusal::of_spec(&source, error)),
                },
                Err(refusal) => refusals.push(refusal),
            }
        }
        let folder = self.folder.clone().or_else(|| std::env::var_os("OUT_DIR").map(PathBuf::from));
        let Some(folder) = folder else {
            let help = "cargo sets it for build scripts; elsewhere, call `.out_dir(…)`".to_owned();
            refusals.push(Refusal::plain("nothing-to-build", "there is no folder to write to: OUT_DIR is not set", Some(help)));
            return Err(BuildError { refusals });
        };
        if !refusals.is_empty() {
            return Err(BuildError { refusals });
        }
        let destination = Destination::Folder(folder);
        output::write(&destination, &files).map_err(|(path, error)| {
            let message = format!("`{}` cannot be written: {error}", path.display());
            BuildError { refusals: vec![Refusal::plain("unwritable", message, None)] }
        })?;
        Ok(output::paths(&destination, &files))
    }
}

#[cfg(test)]
mod tests {
    use super::Build;

    #[test]
    fn everything_wrong_is_said_at_once_with_excerpts() {
        let folder = tempfile::tempdir().unwrap();
        let spec = folder.path().join("wrong.ir");
        std::fs::write(&spec, "kernel k(a: u32) -> u32 { b + c }\n").unwrap();
        let build = Build::new().spec(&spec).spec("missing.ir").target("portble").target("portable").out_dir(folder.path());
        let error = build.compile().unwrap_err();
        let text = format!("{error:?}");
        for words in ["did you mean `portable`", "`b` is not known here", "`c` is not known here", "missing.ir", "wrong.ir:1:"] {
            assert!(text.contains(words), "no `{words}` in:\n{text}");
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "something was written");
    }
}
