//! Kernels: parameters with their attributes, inputs, outputs.

use super::Elaborator;
use super::calls::result_asker;
use super::globals::{KernelItem, Progress};
use super::scope::Binding;
use super::value::Value;
use crate::body::{NodeHandle, Port};
use crate::diagnostic::Diagnostic;
use crate::kernel::{Alias, Direction, Kernel, Parameter};
use crate::source::Span;
use crate::syntax::ast::{Attribute, AttributeKind, TypeExpression, TypeKind};
use crate::types::Type;
use indexmap::IndexMap;
use std::rc::Rc;

/// The name of a kernel's result among its outputs.
pub const RESULT: &str = "result";

/// Alignment that the caller of a kernel guarantees for naturals, moduli, residues and setup blocks where nothing else is said.
const WIDE_ALIGNMENT_BYTES: u32 = 16;
/// The largest alignment that may be asked for: a page.
const ALIGNMENT_LIMIT_BYTES: u32 = 4096;

/// Outputs with the nodes that they are.
type Outputs = Vec<(Port, NodeHandle)>;

/// How each parameter of a kernel is used.
pub fn directions(item: &KernelItem) -> Vec<Direction> {
    item.parameters.iter().map(|parameter| direction(&parameter.attributes)).collect()
}

fn direction(attributes: &[Attribute]) -> Direction {
    let found = attributes.iter().find_map(|attribute| match attribute.kind {
        AttributeKind::In => Some(Direction::In),
        AttributeKind::Out => Some(Direction::Out),
        AttributeKind::InOut => Some(Direction::InOut),
        _ => None,
    });
    found.unwrap_or(Direction::In)
}

/// Naturals and what is made of them take 16 bytes, bits the size of a lane (a power of two, at most 16).
fn default_alignment(ty: &Type, setup: bool) -> u32 {
    match ty {
        _ if setup => WIDE_ALIGNMENT_BYTES,
        Type::Bits { width, .. } => width.div_ceil(8).next_power_of_two().min(WIDE_ALIGNMENT_BYTES),
        Type::Natural { .. } | Type::Modulus { .. } | Type::Residue { .. } => WIDE_ALIGNMENT_BYTES,
        Type::Array { element, .. } | Type::Slice { element } => default_alignment(element, false),
    }
}

impl Elaborator {
    /// Kernel number `index`, elaborated when first needed; `None` where it has errors.
    pub fn kernel(&mut self, index: usize) -> Option<Rc<Kernel>> {
        let (_, (item, progress)) = self.globals.kernels.get_index(index)?;
        let item = Rc::clone(item);
        match progress {
            Progress::Done(kernel) => return Some(Rc::clone(kernel)),
            // Circles were reported before anything was elaborated.
            Progress::Failed | Progress::Running => return None,
            Progress::Waiting => {}
        }
        if self.needs_too_much(item.name.span) {
            self.globals.kernels[index].1 = Progress::Failed;
            return None;
        }
        self.globals.kernels[index].1 = Progress::Running;
        let before = self.errors();
        let (parts, place) = self.elsewhere(|elaborator| elaborator.kernel_parts(&item));
        let kernel = match parts {
            // An output is missing where it is made of something that was reported elsewhere.
            Some((parameters, outputs)) if self.errors() == before && outputs.len() == written_count(&parameters) => {
                let body = place.bodies.into_iter().next().map(|body| body.finish(outputs)).unwrap_or_default();
                Some(Rc::new(Kernel { name: item.name.text.clone(), parameters, body, span: item.span }))
            }
            _ => None,
        };
        if let Some(kernel) = &kernel {
            self.warn_unused(kernel);
        }
        self.globals.kernels[index].1 = kernel.clone().map_or(Progress::Failed, Progress::Done);
        kernel
    }

    fn kernel_parts(&mut self, item: &KernelItem) -> Option<(Vec<Parameter>, Outputs)> {
        let parameters = self.kernel_parameters(item);
        for (place, parameter) in parameters.iter().enumerate() {
            let Some(parameter) = parameter else {
                let Some(written) = item.parameters.get(place) else { continue };
                let binding = Binding { value: Value::Poison, level: 0, span: written.name.span, unreadable: false };
                self.frame().declare(&written.name.text, binding);
                continue;
            };
            if place >= item.parameters.len() {
                continue;
            }
            let port = Port { name: parameter.name.clone(), ty: parameter.ty.clone(), span: parameter.span };
            let value = if parameter.is_input() {
                let node = self.body().input(port);
                if matches!(parameter.ty, Type::Modulus { .. }) {
                    self.declare_modulus(place as u32, node);
                }
                Value::Node(node)
            } else {
                Value::Poison
            };
            let unreadable = parameter.direction == Direction::Out;
            self.frame().declare(&parameter.name, Binding { value, level: 0, span: parameter.span, unreadable });
            if parameter.direction != Direction::In {
                self.frame().fixed.insert(parameter.name.clone(), (parameter.ty.clone(), parameter.span));
            }
        }
        let result = match (&item.result, parameters.last()) {
            (Some(_), Some(Some(result))) => Some(result.clone()),
            _ => None,
        };
        let asker = result_asker(self, result.as_ref().map(|result| &result.ty), item.result.as_ref().map_or(item.span, |(ty, _)| ty.span));
        let node = self.block(&item.body, result.as_ref().map(|result| (&result.ty, &asker)));
        let mut outputs = Vec::new();
        for parameter in parameters.iter().flatten().filter(|parameter| parameter.direction != Direction::In) {
            let port = Port { name: parameter.name.clone(), ty: parameter.ty.clone(), span: parameter.span };
            if result.as_ref().is_some_and(|result| result.name == parameter.name) {
                outputs.extend(node.map(|node| (port, node)));
                continue;
            }
            let Some(binding) = self.frame_ref().find(&parameter.name).cloned() else { continue };
            if binding.unreadable || parameter.direction == Direction::InOut && binding.span == parameter.span {
                let what = if parameter.direction == Direction::Out { "out" } else { "inout" };
                let help = if parameter.direction == Direction::Out {
                    format!("assign it: `{} = …`", parameter.name)
                } else {
                    format!("assign it, or declare it without `inout`: `{}` is only read", parameter.name)
                };
                self.report(
                    Diagnostic::error("never-assigned", parameter.span, format!("nothing is assigned to `{}`", parameter.name))
                        .at(format!("declared `{what}`"))
                        .help(help),
                );
            } else if let Value::Node(node) = binding.value {
                outputs.push((port, node));
            }
        }
        let complete: Option<Vec<Parameter>> = parameters.into_iter().collect();
        complete.map(|parameters| (parameters, outputs))
    }

    fn kernel_parameters(&mut self, item: &KernelItem) -> Vec<Option<Parameter>> {
        let mut moduli = IndexMap::new();
        let mut first: IndexMap<&str, (u32, Span)> = IndexMap::new();
        for (place, parameter) in item.parameters.iter().enumerate() {
            let name = &parameter.name;
            self.may_bind(name);
            if item.result.is_some() && name.text == RESULT {
                self.report(
                    Diagnostic::error("duplicate-name", name.span, "`result` names the result of this kernel")
                        .help("choose another name for the parameter"),
                );
            }
            if let Some((_, span)) = first.get(name.text.as_str()) {
                self.report(
                    Diagnostic::error("duplicate-name", name.span, format!("parameter `{}` is declared twice", name.text))
                        .label(*span, "the first one is here")
                        .help("rename one of them"),
                );
            } else {
                first.insert(&name.text, (place as u32, name.span));
            }
            if matches!(parameter.ty.kind, TypeKind::Modulus(_)) {
                // Its mistakes are reported with the other types.
                let before = self.diagnostics.len();
                if let Some(Type::Modulus { bits }) = self.elaborate_type(&parameter.ty) {
                    moduli.insert(name.text.clone(), (place as u32, bits));
                }
                self.diagnostics.truncate(before);
            }
        }
        let mut written: Vec<&TypeExpression> = Vec::new();
        for parameter in &item.parameters {
            written.push(match &parameter.ty.kind {
                TypeKind::Slice(element) => element,
                _ => &parameter.ty,
            });
        }
        written.extend(item.result.as_ref().map(|(ty, _)| ty));
        let types = self.signature_types(moduli, &written);
        let mut parameters = Vec::new();
        for (place, ty) in types.into_iter().enumerate() {
            let (name, attributes, span, mut direction) = match (item.parameters.get(place), &item.result) {
                (Some(parameter), _) => {
                    (parameter.name.text.clone(), &parameter.attributes, parameter.name.span, direction(&parameter.attributes))
                }
                (None, Some((ty, attributes))) => (RESULT.to_owned(), attributes, ty.span, Direction::Out),
                (None, None) => continue,
            };
            let slice = item.parameters.get(place).is_some_and(|parameter| matches!(parameter.ty.kind, TypeKind::Slice(_)));
            let ty = ty.map(|ty| if slice { Type::Slice { element: ty.into() } } else { ty });
            if place >= item.parameters.len() {
                direction = Direction::Out;
            }
            let parameter = self.attributes(attributes, &first, place as u32, direction, ty.as_ref(), place >= item.parameters.len());
            parameters.push(ty.map(|ty| Parameter { name, ty, span, ..parameter }));
        }
        parameters
    }

    /// What the attributes say; clashes are errors. The name, type and place are filled in by the caller.
    fn attributes(
        &mut self,
        attributes: &[Attribute],
        names: &IndexMap<&str, (u32, Span)>,
        place: u32,
        direction: Direction,
        ty: Option<&Type>,
        is_result: bool,
    ) -> Parameter {
        let mut setup = None;
        let mut secret: Option<(bool, Span)> = None;
        let mut used: Option<Span> = None;
        let mut align: Option<(u32, Span)> = None;
        let mut alias: Option<(Alias, Span)> = None;
        for attribute in attributes {
            let span = attribute.span;
            let previous = match &attribute.kind {
                AttributeKind::In | AttributeKind::Out | AttributeKind::InOut => {
                    if is_result {
                        self.report(Diagnostic::error("attribute", span, "a result is always written").help("remove the attribute"));
                        continue;
                    }
                    used.replace(span)
                }
                AttributeKind::Setup => setup.replace(span),
                AttributeKind::Secret => secret.replace((true, span)).map(|(_, span)| span),
                AttributeKind::Public => secret.replace((false, span)).map(|(_, span)| span),
                AttributeKind::Align(text) => {
                    let bytes = text.parse::<u32>().ok().filter(|bytes| bytes.is_power_of_two() && *bytes <= ALIGNMENT_LIMIT_BYTES);
                    if bytes.is_none() {
                        self.report(
                            Diagnostic::error("attribute", span, format!("an alignment of {text} bytes"))
                                .help(format!("alignments are powers of two from 1 to {ALIGNMENT_LIMIT_BYTES} bytes")),
                        );
                    }
                    align.replace((bytes.unwrap_or(1), span)).map(|(_, span)| span)
                }
                AttributeKind::AliasAny => alias.replace((Alias::Any, span)).map(|(_, span)| span),
                AttributeKind::AliasSame(name) => match names.get(name.text.as_str()) {
                    Some((other, _)) if *other != place => alias.replace((Alias::Same(*other), span)).map(|(_, span)| span),
                    _ => {
                        let mut diagnostic =
                            Diagnostic::error("unknown-name", name.span, format!("no other parameter is called `{}`", name.text));
                        let others = names.iter().filter(|(_, (other, _))| *other != place).map(|(name, _)| *name);
                        diagnostic.help = super::suggestion(&name.text, others);
                        self.report(diagnostic);
                        None
                    }
                },
            };
            if let Some(previous) = previous {
                self.report(
                    Diagnostic::error("attribute", span, "this attribute contradicts or repeats another one")
                        .label(previous, "the other one is here")
                        .help("keep one of them"),
                );
            }
        }
        if let Some(span) = setup
            && (direction != Direction::In || is_result)
        {
            self.report(
                Diagnostic::error("attribute", span, "a `setup` parameter serves many calls, so a call cannot write it")
                    .help("remove `setup`, or only read it"),
            );
        }
        if let (Some(span), Some(Type::Slice { .. })) = (setup, ty) {
            self.report(Diagnostic::error("attribute", span, "a `setup` parameter has a fixed size").help("use an array: `[u8x16; 4]`"));
        }
        if let (Some(Type::Modulus { .. }), Direction::Out | Direction::InOut) = (ty, direction) {
            let span = used.unwrap_or_default();
            self.report(Diagnostic::error("attribute", span, "a modulus is only read").help("remove the attribute"));
        }
        let setup = setup.is_some();
        Parameter {
            name: String::new(),
            ty: Type::bits(1),
            direction,
            setup,
            secret: secret.is_some_and(|(secret, _)| secret),
            align_bytes: align.map_or_else(|| ty.map_or(1, |ty| default_alignment(ty, setup)), |(bytes, _)| bytes),
            alias: alias.map_or(Alias::Disjoint, |(alias, _)| alias),
            span: Span::default(),
        }
    }

    fn warn_unused(&mut self, kernel: &Kernel) {
        let mut used = vec![false; kernel.body.nodes.len()];
        for (_, node) in kernel.body.nodes.iter() {
            for operand in node.op.operands() {
                used[operand.index()] = true;
            }
        }
        for (_, node) in &kernel.body.outputs {
            used[node.index()] = true;
        }
        let inputs = kernel.parameters.iter().filter(|parameter| parameter.is_input());
        for (index, parameter) in inputs.enumerate() {
            let node = kernel.body.nodes.iter().find(|(_, node)| node.op == crate::body::Op::Input(index as u32));
            let residues = kernel.parameters.iter().any(|other| refers_to(&other.ty, kernel, parameter));
            if parameter.direction == Direction::In && !residues && node.is_some_and(|(handle, _)| !used[handle.index()]) {
                self.report(
                    Diagnostic::warning("unused-parameter", parameter.span, format!("`{}` influences nothing", parameter.name))
                        .help("remove the parameter, or use it"),
                );
            }
        }
    }
}

fn written_count(parameters: &[Parameter]) -> usize {
    parameters.iter().filter(|parameter| parameter.direction != Direction::In).count()
}

/// Whether a type is a residue of this parameter.
fn refers_to(ty: &Type, kernel: &Kernel, modulus: &Parameter) -> bool {
    match ty {
        Type::Residue { modulus: index, .. } => {
            kernel.parameters.get(*index as usize).is_some_and(|parameter| parameter.name == modulus.name)
        }
        Type::Array { element, .. } | Type::Slice { element } => refers_to(element, kernel, modulus),
        _ => false,
    }
}
