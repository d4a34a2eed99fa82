//! From a spec's text to finished kernels and artifacts.

use crate::output::OutputFile;
use kgen_emitters::forms::{Form, form_of};
use kgen_emitters::{Artifact, CodeOptions, EmitError, FinishedKernel, Request, TextOptions};
use kgen_ir::diagnostic::Diagnostic;
use kgen_ir::kernel::{Kernel, Unit};
use kgen_ir::source::Source;
use kgen_schedulers::finish::{FinishError, FinishOptions, finish_all};
use kgen_schedulers::lowering::builder::PoolAddressing;
use kgen_schedulers::machine::Machine;
use kgen_schedulers::replay::ReplayOptions;
use kgen_schedulers::scheduling::Effort;
use std::sync::Arc;

/// What to compile and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompileOptions {
    /// Parameters of the spec.
    pub parameters: Vec<(String, u64)>,
    /// Only these kernels; all where empty.
    pub kernels: Vec<String>,
    /// 0, 1 or 2.
    pub effort: u8,
    /// Copies of a kernel in one function.
    pub interleave: u32,
    /// Position-independent constants.
    pub position_independent: bool,
    /// What shapes text only.
    pub text: TextOptions,
}

impl Default for CompileOptions {
    fn default() -> Self {
        Self {
            parameters: Vec::new(),
            kernels: Vec::new(),
            effort: 0,
            interleave: 1,
            position_independent: false,
            text: TextOptions::default(),
        }
    }
}

/// Why a spec was refused.
#[derive(Debug)]
pub enum CompileError {
    /// Messages about the spec's text.
    Diagnostics(Vec<Diagnostic>),
    /// No kernel of this name.
    UnknownKernel {
        /// Asked for.
        name: String,
        /// What there is.
        known: Vec<String>,
    },
    /// A form cannot print it.
    Emit(EmitError),
    /// A stage refused a kernel.
    Finish {
        /// The kernel.
        kernel: String,
        /// Why.
        error: FinishError,
    },
}

/// A validated spec with its warnings.
///
/// # Errors
/// Everything that is wrong with the text.
pub fn unit(source: &Arc<Source>, parameters: &[(String, u64)]) -> Result<(Unit, Vec<Diagnostic>), CompileError> {
    kgen_ir::parse_unit(source.clone(), parameters).map_err(CompileError::Diagnostics)
}

/// Lowers, schedules, checks and replays the kernels asked for.
///
/// # Errors
/// The first kernel that is refused, or a name that does not exist.
pub fn kernels(unit: &Unit, machine: &Machine, options: &CompileOptions) -> Result<Vec<FinishedKernel>, CompileError> {
    let known = || unit.kernels.iter().map(|kernel| kernel.name.clone()).collect::<Vec<_>>();
    if let Some(name) = options.kernels.iter().find(|name| !unit.kernels.iter().any(|kernel| kernel.name == **name)) {
        return Err(CompileError::UnknownKernel { name: name.clone(), known: known() });
    }
    let finish_options = FinishOptions {
        effort: Effort::from_level(options.effort),
        interleave: options.interleave,
        pool: if options.position_independent { PoolAddressing::PositionIndependent } else { PoolAddressing::Absolute },
        replay: ReplayOptions { setups: if options.effort == 0 { 1 } else { 3 }, inputs: if options.effort == 0 { 4 } else { 12 } },
    };
    let chosen: Vec<&Kernel> =
        unit.kernels.iter().filter(|kernel| options.kernels.is_empty() || options.kernels.contains(&kernel.name)).collect();
    let finished = finish_all(machine, &chosen, finish_options);
    chosen
        .into_iter()
        .zip(finished)
        .map(|(kernel, functions)| match functions {
            Ok(functions) => Ok(FinishedKernel { kernel: kernel.clone(), functions }),
            Err(error) => Err(CompileError::Finish { kernel: kernel.name.clone(), error }),
        })
        .collect()
}

/// The form that the machine has under this name, or its first.
///
/// # Errors
/// It has no such form.
pub fn form(machine: &Machine, name: Option<&str>) -> Result<&'static dyn Form, CompileError> {
    form_of(machine, name).map_err(CompileError::Emit)
}

/// Prints finished kernels: a list of files for each.
///
/// # Errors
/// What the form cannot say.
pub fn artifacts(
    unit: &Unit,
    machine: &Machine,
    finished: &[FinishedKernel],
    form: &dyn Form,
    options: &CompileOptions,
) -> Result<Vec<Vec<Artifact>>, CompileError> {
    if options.text.with_tests && !form.prints_known_answers() {
        return Err(CompileError::Emit(EmitError::NoKnownAnswers { form: form.name() }));
    }
    let code = CodeOptions {
        parameters: unit.parameters.iter().filter(|(_, _, changed)| *changed).map(|(name, value, _)| (name.clone(), *value)).collect(),
        interleave: options.interleave,
        effort: options.effort,
        position_independent: options.position_independent,
    };
    finished
        .iter()
        .map(|kernel| {
            let request = Request { machine, unit, finished: kernel, code: &code, text: &options.text };
            form.emit(&request).map_err(CompileError::Emit)
        })
        .collect()
}

/// Artifacts of several kernels as one file of each kind, called `stem` and the extension of the kind.
pub fn joined(form: &dyn Form, artifacts: &[Vec<Artifact>], stem: &str) -> Vec<OutputFile> {
    let mut kinds: Vec<(String, Vec<&str>)> = Vec::new();
    for artifact in artifacts.iter().flatten() {
        let extension = artifact.file_name.rsplit('.').next().unwrap_or_default().to_owned();
        match kinds.iter_mut().find(|(known, _)| *known == extension) {
            Some((_, texts)) => texts.push(&artifact.text),
            None => kinds.push((extension, vec![&artifact.text])),
        }
    }
    kinds.into_iter().map(|(extension, texts)| OutputFile { name: format!("{stem}.{extension}"), text: form.join(&texts) }).collect()
}
