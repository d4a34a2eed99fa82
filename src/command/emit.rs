//! `emit`, `schedule` and `check`: everything from specs to artifacts.

use super::{REFUSED, USAGE, machine, read_source, refused};
use crate::messages::Messages;
use crate::options::{EmitArgs, HeaderStyle, KernelArgs};
use kgen::compile::{self, CompileOptions};
use kgen::depfile;
use kgen::output::{self, Destination, OutputFile};
use kgen::refusal::Refusal;
use kgen_emitters::forms::Form;
use kgen_emitters::{Artifact, TextOptions};
use kgen_ir::source::Source;
use std::path::Path;
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
    if destination == Destination::Stdout && (arguments.verify || arguments.depfile.is_some()) {
        let help = "give the file or folder with `-o`";
        messages.plain("no-output-file", "`--verify` and `--depfile` are about files, and the output is standard output", Some(help));
        return USAGE;
    }
    let inputs = arguments.kernels.inputs();
    let same = |a: &Path, b: &Path| a == b || a.canonicalize().is_ok_and(|a| b.canonicalize().is_ok_and(|b| a == b));
    let outputs = [Some(Path::new(&arguments.output)), arguments.depfile.as_deref()];
    let overwritten = outputs.into_iter().flatten().find(|output| inputs.iter().any(|input| same(output, input)));
    let twice = arguments.depfile.as_deref().filter(|depfile| same(depfile, Path::new(&arguments.output)));
    if let Some(path) = overwritten.or(twice) {
        let help = "give the output, the dependency file and the spec names of their own";
        messages.plain(
            "output-overwrites",
            &format!("writing `{}` would overwrite another file of this command", path.display()),
            Some(help),
        );
        return USAGE;
    }
    // Forms with the artifacts of all their kernels: targets may differ in their first form.
    let mut printed: Vec<(&'static dyn Form, Vec<Vec<Artifact>>)> = Vec::new();
    let mut worst = 0;
    let code = each(messages, &arguments.kernels, &options, |source, unit, machine, finished| {
        let outcome =
            compile::form(machine, form_name).and_then(|form| Ok((form, compile::artifacts(unit, machine, finished, form, &options)?)));
        match outcome {
            Ok((form, artifacts)) => match printed.iter_mut().find(|(known, _)| known.name() == form.name()) {
                Some((_, all)) => all.extend(artifacts),
                None => printed.push((form, artifacts)),
            },
            Err(error) => worst = worst.max(refused(messages, &Refusal::of_spec(source, error))),
        }
    });
    let code = code.max(worst);
    if code != 0 {
        return code;
    }
    let files: Vec<OutputFile> = match &destination {
        Destination::Folder(_) => {
            let each_kernel = |(form, all): &(&'static dyn Form, Vec<Vec<Artifact>>)| {
                let file = |artifact: &Artifact| OutputFile { name: artifact.file_name.clone(), text: form.whole(&artifact.text) };
                all.iter().flatten().map(file).collect::<Vec<_>>()
            };
            printed.iter().flat_map(each_kernel).collect()
        }
        // One file holds one kind of text: the first of each form. A header for C is written into folders, beside its assembly.
        Destination::Stdout | Destination::File(_) => {
            printed.iter().filter_map(|(form, all)| compile::joined(*form, all, "").into_iter().next()).collect()
        }
    };
    if arguments.verify {
        let stale = output::stale(&destination, &files);
        for path in &stale {
            let help = "the same command without `--verify` writes it";
            messages.plain("stale", &format!("`{}` is not what kgen writes today", path.display()), Some(help));
        }
        return if stale.is_empty() { 0 } else { REFUSED };
    }
    let written = output::write(&destination, &files).and_then(|()| match &arguments.depfile {
        Some(path) => {
            let text = depfile::text(&output::paths(&destination, &files), &inputs);
            output::replace(path, &text).map_err(|error| (path.clone(), error))
        }
        None => Ok(()),
    });
    match written {
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
                worst = worst.max(refused(messages, &Refusal::of_spec(&source, error)));
                continue;
            }
        };
        messages.diagnostics(&source, &warnings);
        for machine in &machines {
            match compile::kernels(&unit, machine, options) {
                Ok(finished) => take(&source, &unit, machine, &finished),
                Err(error) => worst = worst.max(refused(messages, &Refusal::of_spec(&source, error))),
            }
        }
    }
    worst
}
