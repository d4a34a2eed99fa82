//! `cost`: what a whole operation costs, from a list of its calls.

use super::{REFUSED, USAGE, machine, read_source, refused};
use crate::messages::Messages;
use crate::options::{CostArgs, CostFormat};
use kgen::cost::print::Style;
use kgen::cost::{description, figures, print};
use kgen::output::{self, Destination, OutputFile};
use std::path::Path;

/// Reads the list, compiles what it calls, and prints the sum; the exit code.
pub fn cost(messages: Messages, arguments: &CostArgs) -> u8 {
    let Some(source) = read_source(messages, &arguments.file) else { return REFUSED };
    let description = match description::read(&source) {
        Ok(description) => description,
        Err(errors) => {
            messages.diagnostics(&source, &errors);
            return REFUSED;
        }
    };
    let mut wanted: Vec<&str> = arguments.target.iter().map(String::as_str).collect();
    if wanted.is_empty() {
        wanted = description.processors.iter().map(|processor| processor.target.get_ref().as_str()).collect();
    }
    let mut names: Vec<&str> = Vec::new();
    for name in wanted {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    if names.is_empty() {
        messages.plain("unknown-target", "no target is given, and the file names no processor", Some("give `--target TARGET`"));
        return USAGE;
    }
    let mut machines = Vec::new();
    for name in names {
        match machine(messages, name) {
            Ok(machine) => machines.push(machine),
            Err(code) => return code,
        }
    }
    let folder = arguments.file.parent().unwrap_or(Path::new(""));
    let costs = match figures::figures(&description, &source, folder, &machines, arguments.effort) {
        Ok(costs) => costs,
        Err(refusals) => return refusals.iter().map(|refusal| refused(messages, refusal)).max().unwrap_or(REFUSED),
    };
    let (text, extension) = match arguments.format {
        CostFormat::Text => (print::tables(&costs, Style::Text), "txt"),
        CostFormat::Markdown => (print::tables(&costs, Style::Markdown), "md"),
        CostFormat::Json => match serde_json::to_string_pretty(&costs) {
            Ok(text) => (text + "\n", "json"),
            Err(error) => {
                messages.plain("form", &format!("the costs cannot be written as JSON: {error}"), None);
                return REFUSED;
            }
        },
    };
    let stem = arguments.file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let file = OutputFile { name: format!("{stem}.cost.{extension}"), text };
    match output::write(&Destination::of(&arguments.output), &[file]) {
        Ok(()) => 0,
        Err((path, error)) => {
            messages.plain("unwritable", &format!("`{}` cannot be written: {error}", path.display()), None);
            REFUSED
        }
    }
}
