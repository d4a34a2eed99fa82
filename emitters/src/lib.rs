//! kgen-emitters: from finished functions to text. One file per output form in `forms/`; skeletons of assembly and HTML in `templates/`.
//!
//! Forms only print: whatever they get has passed `check` and `replay`, and a form that finds something it cannot say returns an error instead of text.
mod assembly;
pub mod forms;
mod header;
mod interface;
mod rust_interface;
mod rust_meaning;
mod rust_program;
mod rust_values;

use kgen_ir::kernel::{Kernel, Unit};
use kgen_schedulers::finished::FinishedFunction;
use kgen_schedulers::machine::Machine;
use serde::Serialize;

/// Options that shape text only. Everything that changes code was decided before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextOptions {
    /// Put the spec's known answers beside the artifact; forms that print none refuse.
    pub with_tests: bool,
    /// Symbol prefix.
    pub prefix: String,
    /// SPDX expression for the header.
    pub spdx: Option<String>,
    /// kgen's version for the header, where asked for.
    pub version: Option<String>,
}

/// Options that shaped the code, as reports and headers repeat them; defaults are left out of the command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CodeOptions {
    /// Parameters of the spec that the user changed.
    pub parameters: Vec<(String, u64)>,
    /// Copies interleaved.
    pub interleave: u32,
    /// 0, 1 or 2.
    pub effort: u8,
    /// Position-independent.
    pub position_independent: bool,
}

/// One kernel with its functions: the kernel first, then setup, import and export.
#[derive(Clone, Debug)]
pub struct FinishedKernel {
    /// What it means.
    pub kernel: Kernel,
    /// What was made of it.
    pub functions: Vec<FinishedFunction>,
}

/// What a form prints.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The machine.
    pub machine: &'a Machine,
    /// The spec.
    pub unit: &'a Unit,
    /// The kernel.
    pub finished: &'a FinishedKernel,
    /// What shaped the code.
    pub code: &'a CodeOptions,
    /// What shapes the text.
    pub text: &'a TextOptions,
}

/// One output file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Artifact {
    /// `mont_mul_512.e600.rs`.
    pub file_name: String,
    /// Contents.
    pub text: String,
}

/// Why a form cannot print a kernel.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EmitError {
    /// The target has no such form.
    #[error("target `{target}` has no form `{form}`; it has {}", known.join(", "))]
    UnknownForm {
        /// Asked for.
        form: String,
        /// The target.
        target: String,
        /// What there is.
        known: Vec<String>,
    },
    /// Known answers are asked of a form that prints none.
    #[error("form `{form}` prints no known answers (--with-tests)")]
    NoKnownAnswers {
        /// The form.
        form: &'static str,
    },
    /// The form needs something that the function lacks.
    #[error("form `{form}` cannot print `{function}`: {reason}")]
    Unprintable {
        /// The form.
        form: &'static str,
        /// The function.
        function: String,
        /// Why.
        reason: String,
    },
    /// A skeleton is wrong: a defect of kgen.
    #[error("form `{form}`: {reason}")]
    Skeleton {
        /// The form.
        form: &'static str,
        /// Why.
        reason: String,
    },
}
