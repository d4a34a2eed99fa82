//! Whole files: items are declared first, so that their order does not matter, and elaborated in order.

use super::globals::{ConstantItem, FunctionItem, KernelItem, Progress};
use super::known_answers::TestItem;
use super::{Elaborator, Setting, suggestion};
use crate::diagnostic::Diagnostic;
use crate::kernel::{Kernel, Unit};
use crate::secrecy;
use crate::source::{Source, Span};
use crate::syntax;
use crate::syntax::ast::{Item, ItemKind, Name, UnitSyntax};
use num_traits::ToPrimitive;
use sha2::{Digest, Sha256};
use std::rc::Rc;
use std::sync::Arc;

/// Parses and validates a spec with these values for its parameters; the unit comes with the warnings.
///
/// # Errors
/// Every mistake of the text and every parameter that the unit does not have, in the order of their places, warnings included.
pub fn parse_unit(source: Arc<Source>, parameters: &[(String, u64)]) -> Result<(Unit, Vec<Diagnostic>), Vec<Diagnostic>> {
    let parsed = syntax::parse_unit(&source.text);
    let mut elaborator = Elaborator::new(Setting::Unit);
    elaborator.diagnostics = parsed.diagnostics;
    elaborator.parameters(&parsed.tree, parameters);
    let tests = elaborator.declare_items(&parsed.tree);
    elaborator.report_circles();
    for index in 0..elaborator.globals.constants.len() {
        let span = elaborator.globals.constants[index].0.span;
        elaborator.constant_value(index, span);
    }
    for index in 0..elaborator.globals.functions.len() {
        let span = elaborator.globals.functions[index].0.name.span;
        elaborator.check_function(index, span);
    }
    let kernels: Vec<Option<Rc<Kernel>>> = (0..elaborator.globals.kernels.len()).map(|index| elaborator.kernel(index)).collect();
    for kernel in kernels.iter().flatten() {
        // What no target can hide is a mistake of the spec.
        elaborator.diagnostics.extend(secrecy::analyze(kernel).errors);
    }
    let answers: Vec<_> = tests.iter().map(|test| elaborator.known_answer(test)).collect();
    let broken = parsed.tree.items.iter().any(|item| matches!(item.kind, ItemKind::Error));
    if kernels.is_empty() && !broken && !elaborator.has_errors() {
        elaborator.report_no_kernels(&source);
    }
    let failed = elaborator.has_errors();
    let mut diagnostics = elaborator.diagnostics;
    diagnostics.sort_by_key(|diagnostic| (diagnostic.span, diagnostic.rule));
    diagnostics.dedup();
    if failed {
        return Err(diagnostics);
    }
    let values = elaborator.globals.parameters.iter().map(|(name, (value, changed, _))| (name.clone(), *value, *changed)).collect();
    let kernels = kernels.into_iter().flatten().map(Rc::unwrap_or_clone).collect();
    let tests = answers.into_iter().flatten().collect();
    let mut unit = Unit { source, parameters: values, kernels, tests, hash: String::new() };
    unit.hash = hash(&parsed.tree, &unit);
    Ok((unit, diagnostics))
}

/// SHA-256 of the printed unit, its parameters at their present values: comments and layout do not count.
fn hash(tree: &UnitSyntax, unit: &Unit) -> String {
    let values = unit.parameters.iter().map(|(name, value, _)| (name.as_str(), *value)).collect::<Vec<_>>();
    let digest = Sha256::digest(syntax::print_with_parameters(tree, &values).as_bytes());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Elaborator {
    fn report_no_kernels(&mut self, source: &Source) {
        let span = Span { start: 0, end: 0 };
        let diagnostic = if source.text.trim().is_empty() {
            Diagnostic::error("no-kernels", span, "the file is empty")
        } else {
            Diagnostic::error("no-kernels", span, "the file has no kernel")
        };
        self.report(diagnostic.help("write one: `kernel NAME(a: u32) -> u32 { … }`"));
    }

    /// Values of the unit's parameters: defaults, and what the user gave.
    fn parameters(&mut self, tree: &UnitSyntax, given: &[(String, u64)]) {
        for item in &tree.items {
            let ItemKind::Parameter { name, value } = &item.kind else { continue };
            if !self.declare(name) {
                continue;
            }
            let (default, _) = self.elsewhere(|elaborator| elaborator.constant_number(value, "the value of a parameter"));
            let Some(default) = default else { continue };
            let Some(default) = default.to_u64() else {
                self.report(
                    Diagnostic::error("out-of-range", value.span, format!("a parameter of {} bits", default.bits()))
                        .help("parameters are numbers from 0 to 2^64 − 1"),
                );
                continue;
            };
            let changed = given.iter().rev().find(|(given, _)| *given == name.text).map(|(_, value)| *value);
            let value = changed.unwrap_or(default);
            self.globals.parameters.insert(name.text.clone(), (value, value != default, name.span));
        }
        let known: Vec<String> = self.globals.parameters.keys().cloned().collect();
        for (name, _) in given {
            let written =
                tree.items.iter().any(|item| matches!(&item.kind, ItemKind::Parameter { name: written, .. } if written.text == *name));
            if !written {
                let mut diagnostic = Diagnostic::error("unknown-parameter", Span::default(), format!("the unit has no parameter `{name}`"));
                let all = if known.is_empty() { "it has none".to_owned() } else { format!("it has {}", known.join(", ")) };
                diagnostic.help = suggestion(name, known.iter().map(String::as_str)).or(Some(all));
                self.report(diagnostic);
            }
        }
    }

    fn declare_items(&mut self, tree: &UnitSyntax) -> Vec<TestItem> {
        let mut tests = Vec::new();
        for item in &tree.items {
            match &item.kind {
                ItemKind::Constant { name, ty, value } => {
                    if self.declare(name) {
                        let item = ConstantItem { span: name.span, ty: ty.clone(), value: value.clone() };
                        self.globals.constants.insert(name.text.clone(), (Rc::new(item), Progress::Waiting));
                    }
                }
                ItemKind::Function { name, parameters, result, body } => {
                    if self.declare(name) {
                        let function =
                            FunctionItem { name: name.clone(), parameters: parameters.clone(), result: result.clone(), body: body.clone() };
                        self.globals.functions.insert(name.text.clone(), (Rc::new(function), Progress::Waiting));
                    }
                }
                ItemKind::Kernel { .. } => self.declare_kernel(item),
                ItemKind::Test { kernel, title, given, expected } => tests.push(TestItem {
                    kernel: kernel.clone(),
                    title: title.clone(),
                    given: given.clone(),
                    expected: expected.clone(),
                    span: item.span,
                }),
                ItemKind::Parameter { .. } | ItemKind::Error => {}
            }
        }
        tests
    }

    fn declare_kernel(&mut self, item: &Item) {
        let ItemKind::Kernel { name, parameters, result, body } = &item.kind else { return };
        let Some(filled) = self.fill_name(&name.text, name.span) else { return };
        let name = Name { text: filled, span: name.span };
        if self.declare(&name) {
            let kernel = KernelItem {
                name: name.clone(),
                parameters: parameters.clone(),
                result: result.clone(),
                body: body.clone(),
                span: item.span,
            };
            self.globals.kernels.insert(name.text, (Rc::new(kernel), Progress::Waiting));
        }
    }
}
