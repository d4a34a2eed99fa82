//! `emit`, `schedule` and `check`: everything from specs to artifacts.

use super::{REFUSED, machine, read_source, refused};
use crate::messages::Messages;
use crate::options::{EmitArgs, HeaderStyle, KernelArgs};
use crate::output::{self, Destination, OutputFile};
use kgen::compile::{self, CompileOptions};
use kgen_emitters::TextOptions;
use kgen_ir::source::Source;
use std::sync::Arc;

/// Prints artifacts.
pub fn emit(messages: Messages, arguments: &EmitArgs, default_form: Option<&str>) -> u8 {
    let text = TextOptions {
        with_tests: arguments.with_tests,
        prefix: arguments.prefix.clone(),
        spdx: arguments.spdx.clone(),
        version: (arguments.header == HeaderStyle::Full).then(|| env!("CARGO_PKG_VERSION").to_owned()),
    };
    let options = options(&arguments.kernels, arguments.pic, text);
    let form_name = arguments.form.as_deref().or(default_form);
    let destination = Destination::of(&arguments.output);
    let mut files = Vec::new();
    let mut worst = 0;
    // Files of one kind are joined where they do not go to a folder: the list of texts for each position of a form's files.
    let mut joined: Vec<(&'static dyn kgen_emitters::forms::Form, Vec<String>)> = Vec::new();
    let code = each(messages, &arguments.kernels, &options, |source, unit, machine, finished| {
        let outcome =
            compile::form(machine, form_name).and_then(|form| Ok((form, compile::artifacts(unit, machine, finished, form, &options)?)));
        match outcome {
            Ok((form, artifacts)) => {
                for artifact in artifacts.into_iter().flatten() {
                    if let Destination::Folder(_) = destination {
                        files.push(OutputFile { name: artifact.file_name, text: form.whole(&artifact.text) });
                    } else {
                        match joined.iter_mut().find(|(known, _)| known.name() == form.name()) {
                            Some((_, texts)) => texts.push(artifact.text),
                            None => joined.push((form, vec![artifact.text])),
                        }
                    }
                }
            }
            Err(error) => worst = worst.max(refused(messages, source, &error)),
        }
    });
    let code = code.max(worst);
    if code != 0 {
        return code;
    }
    for (form, texts) in joined {
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        files.push(OutputFile { name: String::new(), text: form.join(&texts) });
    }
    match output::write(&destination, &files) {
        Ok(()) => 0,
        Err((path, error)) => {
            messages.plain("unwritable", &format!("`{}` cannot be written: {error}", path.display()), None);
            REFUSED
        }
    }
}

/// Everything but the output.
pub fn check(messages: Messages, arguments: &KernelArgs) -> u8 {
    each(messages, arguments, &options(arguments, false, TextOptions::default()), |_, _, _, _| {})
}

fn options(arguments: &KernelArgs, position_independent: bool, text: TextOptions) -> CompileOptions {
    CompileOptions {
        parameters: arguments.param.clone(),
        kernels: arguments.kernel.clone(),
        effort: arguments.effort,
        interleave: arguments.interleave,
        position_independent,
        text,
    }
}

/// Every spec for every target, in order; all messages, and the worst exit code.
fn each(
    messages: Messages,
    arguments: &KernelArgs,
    options: &CompileOptions,
    mut take: impl FnMut(&Arc<Source>, &kgen_ir::kernel::Unit, &kgen_schedulers::machine::Machine, &[kgen_emitters::FinishedKernel]),
) -> u8 {
    let mut worst = 0;
    let mut machines = Vec::new();
    for name in &arguments.target {
        match machine(messages, name) {
            Ok(machine) => machines.push(machine),
            Err(code) => worst = worst.max(code),
        }
    }
    for path in &arguments.specs {
        let Some(source) = read_source(messages, path) else {
            worst = worst.max(REFUSED);
            continue;
        };
        let (unit, warnings) = match compile::unit(&source, &options.parameters) {
            Ok(valid) => valid,
            Err(error) => {
                worst = worst.max(refused(messages, &source, &error));
                continue;
            }
        };
        messages.diagnostics(&source, &warnings);
        for machine in &machines {
            match compile::kernels(&unit, machine, options) {
                Ok(finished) => take(&source, &unit, machine, &finished),
                Err(error) => worst = worst.max(refused(messages, &source, &error)),
            }
        }
    }
    worst
}
