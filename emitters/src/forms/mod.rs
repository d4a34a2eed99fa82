//! The output forms, one file each.

use crate::{Artifact, EmitError, Request};

mod gas;
mod json;
mod report;
mod rust_asm;
mod rust_intrinsics;
mod rust_portable;
mod stages;

/// An output form.
pub trait Form: Sync {
    /// Its name on the command line and in target files.
    fn name(&self) -> &'static str;
    /// One line for help.
    fn summary(&self) -> &'static str;
    /// Every target has it, without its file saying so.
    fn universal(&self) -> bool {
        false
    }
    /// It prints the spec's known answers where [`crate::TextOptions::with_tests`] asks for them.
    fn prints_known_answers(&self) -> bool {
        false
    }
    /// The files of one kernel.
    ///
    /// # Errors
    /// What the form cannot say.
    fn emit(&self, request: &Request<'_>) -> Result<Vec<Artifact>, EmitError>;
    /// Several kernels' texts of one kind as one text.
    fn join(&self, texts: &[&str]) -> String {
        texts.join("\n")
    }
    /// The text of one kernel as a file of its own.
    fn whole(&self, text: &str) -> String {
        self.join(&[text])
    }
}

/// All forms, in the order of help.
pub const FORMS: &[&dyn Form] = &[
    &rust_asm::RustAsm,
    &rust_intrinsics::RustIntrinsics,
    &rust_portable::RustPortable,
    &gas::Gas,
    &report::Report,
    &json::Json,
    &stages::Stage::Kernel,
    &stages::Stage::Program,
    &stages::Stage::Schedule,
    &stages::Stage::Allocation,
];

/// The form of this name that the machine has; its first one where no name is given.
///
/// # Errors
/// [`EmitError::UnknownForm`].
pub fn form_of(machine: &kgen_schedulers::machine::Machine, name: Option<&str>) -> Result<&'static dyn Form, EmitError> {
    let wanted = name.or(machine.forms.first().map(String::as_str)).unwrap_or("report");
    let known = |form: &&dyn Form| form.universal() || machine.forms.iter().any(|name| name == form.name());
    FORMS.iter().copied().find(|form| form.name() == wanted && known(form)).ok_or_else(|| EmitError::UnknownForm {
        form: wanted.to_owned(),
        target: machine.name.clone(),
        known: FORMS.iter().filter(|form| known(form)).map(|form| form.name().to_owned()).collect(),
    })
}
