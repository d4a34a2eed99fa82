//! Calls of functions and kernels: both are inlined.

use super::Elaborator;
use super::coercion::Asker;
use super::globals::{FunctionItem, KernelItem, Progress};
use super::kernels::directions;
use super::scope::{Binding, Frame};
use super::value::Value;
use crate::body::{NodeHandle, Port};
use crate::diagnostic::{Diagnostic, Severity};
use crate::kernel::Direction;
use crate::limits;
use crate::source::Span;
use crate::syntax::ast::{Block, Expression, ExpressionKind, Name, Statement, StatementKind, TypeExpression, TypeKind};
use crate::types::Type;
use indexmap::IndexMap;
use std::rc::Rc;

impl Elaborator {
    /// The call of a function or kernel of the unit; `None` where there is none of this name.
    pub fn call_global(&mut self, function: &Name, arguments: &[Expression], span: Span) -> Option<Value> {
        if let Some((index, _, (item, _))) = self.globals.functions.get_full(&function.text) {
            let item = Rc::clone(item);
            return Some(if self.check_function(index, span) { self.call_function(&item, arguments, span) } else { Value::Poison });
        }
        let Some(filled) = self.fill_name(&function.text, function.span) else { return Some(Value::Poison) };
        let (index, _, (item, _)) = self.globals.kernels.get_full(&filled)?;
        let item = Rc::clone(item);
        Some(match self.kernel(index) {
            Some(_) => self.call_kernel(&item, arguments, span),
            None => Value::Poison,
        })
    }

    fn argument_count(&mut self, name: &Name, wanted: usize, found: usize, span: Span) -> bool {
        if wanted != found {
            let plural = if wanted == 1 { "" } else { "s" };
            self.report(
                Diagnostic::error("wrong-argument-count", span, format!("`{}` takes {wanted} argument{plural}, not {found}", name.text))
                    .label(name.span, "it is defined here"),
            );
        }
        wanted == found
    }

    fn too_deep(&mut self, span: Span) -> bool {
        let deep = self.place.frames.len() > limits::CALL_DEPTH;
        if deep {
            self.error("limit", span, format!("more than {} functions are inlined in one another", limits::CALL_DEPTH));
        }
        deep || !self.count_round(span)
    }

    /// Types of a signature; moduli may be declared after their residues.
    pub fn signature_types(&mut self, moduli: IndexMap<String, (u32, u32)>, types: &[&TypeExpression]) -> Vec<Option<Type>> {
        let outer = std::mem::replace(&mut self.place.signature_moduli, moduli);
        let types = types.iter().map(|ty| self.elaborate_type(ty)).collect();
        self.place.signature_moduli = outer;
        types
    }

    /// Elaborates a function once by itself, so that its mistakes are reported once; `false` where it has any.
    pub fn check_function(&mut self, index: usize, span: Span) -> bool {
        let Some((_, (item, progress))) = self.globals.functions.get_index(index) else { return false };
        let item = Rc::clone(item);
        match progress {
            Progress::Done(()) => return true,
            Progress::Failed => return false,
            Progress::Running => {
                self.report(
                    Diagnostic::error("circular-definition", span, format!("`{}` is needed to define itself", item.name.text))
                        .label(item.name.span, "it is defined here")
                        .help("break the circle"),
                );
                return false;
            }
            Progress::Waiting => {}
        }
        if self.needs_too_much(span) {
            self.globals.functions[index].1 = Progress::Failed;
            return false;
        }
        self.globals.functions[index].1 = Progress::Running;
        let before = self.errors();
        let (result, _) = self.elsewhere(|elaborator| {
            let mut moduli = IndexMap::new();
            for (place, (name, ty)) in item.parameters.iter().enumerate() {
                if let TypeKind::Modulus(_) = ty.kind
                    && let Some(Type::Modulus { bits }) = elaborator.elaborate_type(ty)
                {
                    moduli.insert(name.text.clone(), (place as u32, bits));
                }
            }
            let mut written: Vec<&TypeExpression> = item.parameters.iter().map(|(_, ty)| ty).collect();
            written.push(&item.result);
            let mut types = elaborator.signature_types(moduli, &written);
            let result = types.pop().flatten();
            for (place, ((name, _), ty)) in item.parameters.iter().zip(types).enumerate() {
                elaborator.may_bind(name);
                if let Some(previous) = elaborator.frame_ref().find(&name.text) {
                    let first = previous.span;
                    elaborator.report(
                        Diagnostic::error("duplicate-name", name.span, format!("parameter `{}` is declared twice", name.text))
                            .label(first, "the first one is here")
                            .help("rename one of them"),
                    );
                }
                let value = match ty {
                    Some(ty) => {
                        let is_modulus = matches!(ty, Type::Modulus { .. });
                        let node = elaborator.body().input(Port { name: name.text.clone(), ty, span: name.span });
                        if is_modulus {
                            elaborator.declare_modulus(place as u32, node);
                        }
                        Value::Node(node)
                    }
                    None => Value::Poison,
                };
                let binding = elaborator.bind(value, name.span);
                elaborator.frame().declare(&name.text, binding);
            }
            let asker = result_asker(elaborator, result.as_ref(), item.result.span);
            elaborator.block(&item.body, result.as_ref().map(|ty| (ty, &asker)))
        });
        // There is no result where it is made of something that was reported elsewhere.
        let good = self.errors() == before && result.is_some();
        self.globals.functions[index].1 = if good { Progress::Done(()) } else { Progress::Failed };
        good
    }

    /// How many errors there are so far.
    pub fn errors(&self) -> usize {
        self.diagnostics.iter().filter(|diagnostic| diagnostic.severity == Severity::Error).count()
    }

    /// Makes a node the modulus that residue types call `index`.
    pub fn declare_modulus(&mut self, index: u32, node: NodeHandle) {
        let level = self.level();
        self.place.moduli.insert(index, node);
        self.place.modulus_of.insert((level, node), index);
    }

    /// Statements and the result of a function or of a kernel with result; `None` after an error or where no result is wanted.
    pub fn block(&mut self, block: &Block, wanted: Option<(&Type, &Asker)>) -> Option<NodeHandle> {
        let Some((ty, asker)) = wanted else {
            self.statements(block);
            return None;
        };
        let (result, before) = match block.statements.split_last() {
            Some((Statement { kind: StatementKind::Expression(expression), .. }, before)) => (Some(expression), before),
            _ => (None, block.statements.as_slice()),
        };
        for statement in before {
            self.statement(statement);
        }
        match result {
            Some(expression) => self.expression_as(expression, ty, asker),
            None => {
                if !block.statements.iter().any(|statement| matches!(statement.kind, StatementKind::Error)) {
                    let end = Span { start: block.span.end.saturating_sub(1), end: block.span.end };
                    self.report(
                        Diagnostic::error("missing-result", end, "the block ends without a result")
                            .label(asker.span, asker.text.clone())
                            .help("the last statement is the result: an expression without `=`"),
                    );
                }
                None
            }
        }
    }

    fn call_function(&mut self, item: &FunctionItem, arguments: &[Expression], span: Span) -> Value {
        if !self.argument_count(&item.name, item.parameters.len(), arguments.len(), span) || self.too_deep(span) {
            return Value::Poison;
        }
        let parameters: Vec<(&Name, &TypeExpression)> = item.parameters.iter().map(|(name, ty)| (name, ty)).collect();
        let Some((nodes, result)) = self.pass(&parameters, Some(&item.result), arguments) else { return Value::Poison };
        let Some(result) = result else { return Value::Poison };
        let mut frame = Frame::default();
        frame.push();
        for ((name, _), node) in parameters.iter().zip(&nodes) {
            let binding = self.bind(node.map_or(Value::Poison, Value::Node), name.span);
            frame.declare(&name.text, binding);
        }
        if nodes.iter().any(Option::is_none) {
            return Value::Poison;
        }
        self.place.frames.push(frame);
        let asker = result_asker(self, Some(&result), item.result.span);
        let node = self.block(&item.body, Some((&result, &asker)));
        self.place.frames.pop();
        node.map_or(Value::Poison, Value::Node)
    }

    /// Arguments as nodes of the parameters' types, and the type of the result: residues of the callee's moduli become residues of ours.
    fn pass(
        &mut self,
        parameters: &[(&Name, &TypeExpression)],
        result: Option<&TypeExpression>,
        arguments: &[Expression],
    ) -> Option<(Vec<Option<NodeHandle>>, Option<Type>)> {
        let mut moduli = IndexMap::new();
        let mut passed: Vec<Option<NodeHandle>> = vec![None; arguments.len()];
        for (place, (name, ty)) in parameters.iter().enumerate() {
            if !matches!(ty.kind, TypeKind::Modulus(_)) {
                continue;
            }
            let argument = arguments.get(place)?;
            let modulus = self.elaborate_type(ty)?;
            let asker = Asker { span: name.span, text: format!("parameter `{}` is {}", name.text, self.type_name(&modulus)) };
            let node = self.expression_as(argument, &modulus, &asker)?;
            let level = self.level();
            let Some(index) = self.place.modulus_of.get(&(level, node)).copied() else {
                self.error("no-modulus", argument.span, "this is no parameter of type modulus");
                return None;
            };
            let Type::Modulus { bits } = modulus else { return None };
            moduli.insert(name.text.clone(), (index, bits));
            passed[place] = Some(node);
        }
        let mut written: Vec<&TypeExpression> = Vec::new();
        let slices: Vec<bool> = parameters.iter().map(|(_, ty)| matches!(ty.kind, TypeKind::Slice(_))).collect();
        for (_, ty) in parameters {
            written.push(match &ty.kind {
                TypeKind::Slice(element) => element,
                _ => ty,
            });
        }
        written.extend(result);
        let mut types = self.signature_types(moduli, &written);
        let result = if result.is_some() { types.pop().flatten() } else { None };
        for (place, ty) in types.into_iter().enumerate() {
            if passed[place].is_none()
                && let (Some(ty), Some(argument), Some((name, _))) = (ty, arguments.get(place), parameters.get(place))
            {
                let ty = if slices[place] { Type::Slice { element: ty.into() } } else { ty };
                let asker = Asker { span: name.span, text: format!("parameter `{}` is {}", name.text, self.type_name(&ty)) };
                passed[place] = match &argument.kind {
                    // The length of a slice may be read before its elements are written.
                    ExpressionKind::Name(text) if slices[place] => {
                        let binding = self.frame_ref().find(text).cloned().filter(|binding| binding.unreadable);
                        match binding.map(|binding| self.import(&binding)) {
                            Some(value) => self.coerce(&value, &ty, argument.span, &asker),
                            None => self.expression_as(argument, &ty, &asker),
                        }
                    }
                    _ => self.expression_as(argument, &ty, &asker),
                };
            }
        }
        Some((passed, result))
    }

    /// The call of a kernel: `out` and `inout` arguments are names that are assigned.
    fn call_kernel(&mut self, item: &KernelItem, arguments: &[Expression], span: Span) -> Value {
        if !self.argument_count(&item.name, item.parameters.len(), arguments.len(), span) || self.too_deep(span) {
            return Value::Poison;
        }
        let signature = directions(item);
        // What is only written has no value to pass, except the length of a slice.
        let passes: Vec<bool> = item
            .parameters
            .iter()
            .zip(&signature)
            .map(|(parameter, direction)| *direction != Direction::Out || matches!(parameter.ty.kind, TypeKind::Slice(_)))
            .collect();
        let is_input = |place: usize| passes[place];
        let parameters: Vec<(&Name, &TypeExpression)> = item
            .parameters
            .iter()
            .enumerate()
            .filter(|(place, _)| is_input(*place))
            .map(|(_, parameter)| (&parameter.name, &parameter.ty))
            .collect();
        let given: Vec<Expression> =
            arguments.iter().enumerate().filter(|(place, _)| is_input(*place)).map(|(_, argument)| argument.clone()).collect();
        let Some((nodes, result)) = self.pass(&parameters, item.result.as_ref().map(|(ty, _)| ty), &given) else { return Value::Poison };
        let mut targets: Vec<Option<Name>> = Vec::new();
        for (argument, direction) in arguments.iter().zip(&signature) {
            targets.push(match (&argument.kind, direction) {
                (_, Direction::In) => None,
                (ExpressionKind::Name(text), _) => Some(Name { text: text.clone(), span: argument.span }),
                _ => {
                    self.report(
                        Diagnostic::error("bad-target", argument.span, "this parameter is written, so its argument must be a name")
                            .help("pass a name and use it afterwards"),
                    );
                    return Value::Poison;
                }
            });
        }
        if nodes.iter().any(Option::is_none) || item.result.is_some() && result.is_none() {
            return Value::Poison;
        }
        let types = self.callee_types(item, &nodes, &passes);
        let mut frame = Frame::default();
        frame.push();
        let mut inputs = nodes.into_iter();
        for (((parameter, direction), passes), ty) in item.parameters.iter().zip(&signature).zip(&passes).zip(&types) {
            let value = if *passes { inputs.next().flatten() } else { None };
            let value = value.map_or(Value::Poison, Value::Node);
            let binding = Binding { value, level: self.level(), span: parameter.name.span, unreadable: *direction == Direction::Out };
            frame.declare(&parameter.name.text, binding);
            if *direction != Direction::In
                && let Some(ty) = ty
            {
                frame.fixed.insert(parameter.name.text.clone(), (ty.clone(), parameter.ty.span));
            }
        }
        self.place.frames.push(frame);
        let asker = result_asker(self, result.as_ref(), item.name.span);
        let node = self.block(&item.body, result.as_ref().map(|ty| (ty, &asker)));
        let Some(frame) = self.place.frames.pop() else { return Value::Poison };
        for (parameter, target) in item.parameters.iter().zip(targets) {
            let (Some(target), Some(binding)) = (target, frame.find(&parameter.name.text).cloned()) else { continue };
            let value = self.import(&binding);
            let value = match (self.wanted(&target.text), &value) {
                (Some((ty, asker)), Value::Node(_)) => self.coerce(&value, &ty, target.span, &asker).map_or(Value::Poison, Value::Node),
                _ => value,
            };
            self.assign_value(&target.text, value, target.span);
        }
        match (item.result.is_some(), node) {
            (false, _) => Value::Nothing,
            (true, Some(node)) => Value::Node(node),
            (true, None) => Value::Poison,
        }
    }

    /// Types of a kernel's parameters in terms of the caller's moduli, which the arguments passed show.
    fn callee_types(&mut self, item: &KernelItem, nodes: &[Option<NodeHandle>], passes: &[bool]) -> Vec<Option<Type>> {
        let mut moduli = IndexMap::new();
        let level = self.level();
        let mut inputs = nodes.iter();
        for (parameter, passes) in item.parameters.iter().zip(passes) {
            let node = if *passes { inputs.next().copied().flatten() } else { None };
            if let Some(node) = node
                && let Type::Modulus { bits } = self.ty(node)
                && let Some(index) = self.place.modulus_of.get(&(level, node))
            {
                moduli.insert(parameter.name.text.clone(), (*index, bits));
            }
        }
        let written: Vec<&TypeExpression> = item
            .parameters
            .iter()
            .map(|parameter| match &parameter.ty.kind {
                TypeKind::Slice(element) => element,
                _ => &parameter.ty,
            })
            .collect();
        let types = self.signature_types(moduli, &written);
        types
            .into_iter()
            .zip(&item.parameters)
            .map(|(ty, parameter)| match parameter.ty.kind {
                TypeKind::Slice(_) => ty.map(|element| Type::Slice { element: element.into() }),
                _ => ty,
            })
            .collect()
    }
}

/// Who asks for the type of a result.
pub fn result_asker(elaborator: &Elaborator, ty: Option<&Type>, span: Span) -> Asker {
    let name = ty.map(|ty| elaborator.type_name(ty)).unwrap_or_default();
    Asker { span, text: format!("the result is {name}") }
}
