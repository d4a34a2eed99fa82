//! `loop` and `map`: bodies of their own that read the enclosing one through captured inputs.

use super::Elaborator;
use super::builder::Builder;
use super::kernels::directions;
use super::scope::Binding;
use super::value::{Value, shape};
use super::{Captures, Setting};
use crate::body::{Body, NodeHandle, Op, Port};
use crate::diagnostic::Diagnostic;
use crate::kernel::Direction;
use crate::source::Span;
use crate::syntax::ast::{Block, Expression, ExpressionKind, Name, Range, StatementKind};
use crate::types::Type;
use indexmap::IndexMap;

/// A name that a loop rebinds or a map writes.
struct Carried {
    name: String,
    ty: Type,
    span: Span,
}

impl Elaborator {
    fn kernels_only(&mut self, what: &str, span: Span) -> bool {
        let row = matches!(self.setting, Setting::Row(_));
        if row {
            self.report(
                Diagnostic::error("kernels-only", span, format!("`{what}` is only for functions and kernels"))
                    .help("the meaning of a row is straight: use `for` with a constant range"),
            );
        }
        row
    }

    /// Names that a block assigns, in order, each with its first place.
    fn assigned_names(&self, block: &Block, names: &mut IndexMap<String, Span>) {
        for statement in &block.statements {
            match &statement.kind {
                StatementKind::Assign { target, .. } => {
                    names.entry(target.text.clone()).or_insert(target.span);
                }
                StatementKind::For { body, .. } | StatementKind::Loop { body, .. } => self.assigned_names(body, names),
                StatementKind::Map { bindings, body } => {
                    let mut inner = IndexMap::new();
                    self.assigned_names(body, &mut inner);
                    for (element, slice) in bindings {
                        if let Some(span) = inner.shift_remove(&element.text) {
                            names.entry(slice.text.clone()).or_insert(span);
                        }
                    }
                    for (name, span) in inner {
                        names.entry(name).or_insert(span);
                    }
                }
                StatementKind::Expression(Expression { kind: ExpressionKind::Call { function, arguments }, .. }) => {
                    for name in self.written_arguments(&function.text, arguments) {
                        names.entry(name.0).or_insert(name.1);
                    }
                }
                _ => {}
            }
        }
    }

    fn written_arguments(&self, function: &str, arguments: &[Expression]) -> Vec<(String, Span)> {
        let Some((item, _)) = self.globals.filled(function).and_then(|name| self.globals.kernels.get(&name)) else { return Vec::new() };
        let written = arguments.iter().zip(directions(item)).filter(|(_, direction)| *direction != Direction::In);
        written
            .filter_map(|(argument, _)| match &argument.kind {
                ExpressionKind::Name(text) => Some((text.clone(), argument.span)),
                _ => None,
            })
            .collect()
    }

    fn open_body(&mut self) {
        self.place.bodies.push(Builder::default());
        self.place.captures.push(Captures::default());
        self.frame().push();
    }

    /// Closes the innermost body: it, what it captured of the enclosing one, and the bindings of its scope.
    fn close_body(&mut self, outputs: Vec<(Port, NodeHandle)>) -> (Body, Vec<NodeHandle>) {
        let level = self.level();
        self.check_overflow();
        self.frame().pop();
        self.place.modulus_of.retain(|(node_level, _), _| *node_level != level);
        let builder = self.place.bodies.pop().unwrap_or_default();
        let captures = self.place.captures.pop().unwrap_or_default();
        (builder.finish(outputs), captures.order)
    }

    /// Fixes the types of names for the body about to be elaborated; gives what was fixed before.
    fn fix_types(&mut self, carried: &[Carried]) -> Vec<(String, Option<(Type, Span)>)> {
        let fixed = &mut self.frame().fixed;
        carried.iter().map(|name| (name.name.clone(), fixed.insert(name.name.clone(), (name.ty.clone(), name.span)))).collect()
    }

    fn restore_types(&mut self, before: Vec<(String, Option<(Type, Span)>)>) {
        let fixed = &mut self.frame().fixed;
        for (name, old) in before.into_iter().rev() {
            match old {
                Some(old) => {
                    fixed.insert(name, old);
                }
                None => {
                    fixed.shift_remove(&name);
                }
            }
        }
    }

    /// `loop NAME in 0..count { … }`.
    pub fn counted_loop(&mut self, variable: &Name, range: &Range, body: &Block, span: Span) {
        if self.kernels_only("loop", span) {
            return;
        }
        let errors = self.errors();
        self.may_bind(variable);
        self.as_zero(&range.start);
        let count = match self.expression(&range.end, None) {
            Value::Number(number) => self.count_constant(&number, range.end.span),
            value => self.settle(&value, range.end.span),
        };
        let mut assigned = IndexMap::new();
        self.assigned_names(body, &mut assigned);
        let mut carried = Vec::new();
        let mut initial = Vec::new();
        for (name, place) in assigned {
            if name == variable.text {
                continue;
            }
            let Some(binding) = self.frame_ref().find(&name).cloned() else { continue };
            if binding.unreadable {
                self.report(
                    Diagnostic::error(
                        "read-before-assignment",
                        place,
                        format!("`{name}` has no value before the loop, which may have no round at all"),
                    )
                    .label(binding.span, "it is only written")
                    .help(format!("assign `{name}` before the loop")),
                );
                continue;
            }
            let value = self.import(&binding);
            if let Some(node) = self.settle(&value, binding.span) {
                carried.push(Carried { ty: self.ty(node), name, span: binding.span });
                initial.push(node);
            }
        }
        let count_type = count.map(|count| self.ty(count));
        if let (Some(count_type), Some(_)) = (&count_type, count)
            && shape(count_type).is_none_or(|(width, lanes)| lanes != 1 || width > 64)
        {
            let name = self.type_name(count_type);
            self.report(
                Diagnostic::error("type-mismatch", range.end.span, format!("a count is a scalar of at most 64 bits, not {name}"))
                    .at(name)
                    .help("write `count: u32 public` among the parameters"),
            );
            return;
        }
        self.open_body();
        let counter_type = count_type.unwrap_or(Type::bits(32));
        let counter = self.body().input(Port { name: variable.text.clone(), ty: counter_type, span: variable.span });
        let binding = self.bind(Value::Node(counter), variable.span);
        self.frame().declare(&variable.text, binding);
        for name in &carried {
            let input = self.body().input(Port { name: name.name.clone(), ty: name.ty.clone(), span: name.span });
            let binding = self.bind(Value::Node(input), name.span);
            self.frame().declare(&name.name, binding);
        }
        let before = self.fix_types(&carried);
        self.statements(body);
        self.restore_types(before);
        let mut outputs = Vec::new();
        for name in &carried {
            let value = self.frame_ref().find(&name.name).map(|binding| binding.value.clone());
            let Some(Value::Node(node)) = value else { continue };
            outputs.push((Port { name: name.name.clone(), ty: name.ty.clone(), span: name.span }, node));
        }
        let complete = outputs.len() == carried.len();
        let (inner, captured) = self.close_body(outputs);
        if carried.is_empty() && inner.effects.is_empty() && self.errors() == errors {
            self.report(
                Diagnostic::error("loop-without-effect", span, "this loop changes nothing")
                    .help("a loop rebinds names that were bound before it: `s = …` before, `s = …` inside"),
            );
        }
        let (Some(count), true) = (count, complete) else {
            for name in carried {
                self.assign_value(&name.name, Value::Poison, name.span);
            }
            return;
        };
        let op = Op::Loop { count, carried: initial, captured, body: Box::new(inner) };
        self.bind_results(op, &carried, span);
    }

    fn as_zero(&mut self, start: &Expression) {
        if let Some(number) = self.constant_number(start, "the start of a loop")
            && number != num_bigint::BigInt::ZERO
        {
            self.report(
                Diagnostic::error("out-of-range", start.span, format!("a loop counts from 0, not from {number}"))
                    .help("add the offset to the counter inside"),
            );
        }
    }

    fn bind_results(&mut self, op: Op, names: &[Carried], span: Span) {
        let node = self.body().push(op, Type::bits(1), span);
        for (index, name) in names.iter().enumerate() {
            let result = self.push(Op::Result(node, index as u32), name.ty.clone(), span);
            self.assign_value(&name.name, result, span);
        }
    }

    /// `map NAME in NAME, … { … }`.
    pub fn map(&mut self, bindings: &[(Name, Name)], body: &Block, span: Span) {
        if self.kernels_only("map", span) {
            return;
        }
        let errors = self.errors();
        let mut assigned = IndexMap::new();
        self.assigned_names(body, &mut assigned);
        let mut slices = Vec::new();
        let mut elements = Vec::new();
        let mut written: Vec<(u32, Carried)> = Vec::new();
        for (element, slice) in bindings {
            self.may_bind(element);
            let Some((node, element_type, unreadable)) = self.slice_operand(slice) else { continue };
            let place = assigned.shift_remove(&element.text);
            if let Some(place) = place {
                if self.frame_ref().fixed.contains_key(&slice.text) {
                    let ty = Type::Slice { element: element_type.clone().into() };
                    written.push((slices.len() as u32, Carried { name: slice.text.clone(), ty, span: slice.span }));
                } else {
                    self.report(
                        Diagnostic::error(
                            "bad-target",
                            place,
                            format!("`{}` is an element of `{}`, which is only read", element.text, slice.text),
                        )
                        .label(slice.span, "the slice")
                        .help(format!("declare `{}` as `inout` or `out`", slice.text)),
                    );
                }
            }
            slices.push(node);
            elements.push((Carried { name: element.text.clone(), ty: element_type, span: element.span }, unreadable));
        }
        for (name, place) in &assigned {
            if let Some(binding) = self.frame_ref().find(name) {
                let first = binding.span;
                self.report(
                    Diagnostic::error(
                        "map-carries",
                        *place,
                        format!("`{name}` is bound outside of the map, whose rounds know nothing of each other"),
                    )
                    .label(first, "it is bound here")
                    .help("choose another name, or use `loop`, which carries values"),
                );
            }
        }
        if slices.len() != bindings.len() {
            return;
        }
        self.open_body();
        for (element, unreadable) in &elements {
            let input = self.body().input(Port { name: element.name.clone(), ty: element.ty.clone(), span: element.span });
            let binding = Binding { unreadable: *unreadable, ..self.bind(Value::Node(input), element.span) };
            self.frame().declare(&element.name, binding);
        }
        let fixed: Vec<Carried> = elements
            .iter()
            .map(|(element, _)| Carried { name: element.name.clone(), ty: element.ty.clone(), span: element.span })
            .collect();
        let before = self.fix_types(&fixed);
        self.statements(body);
        self.restore_types(before);
        let mut outputs = Vec::new();
        for (index, _) in &written {
            let (element, _) = &elements[*index as usize];
            if let Some(Value::Node(node)) = self.frame_ref().find(&element.name).map(|binding| binding.value.clone()) {
                outputs.push((Port { name: element.name.clone(), ty: element.ty.clone(), span: element.span }, node));
            }
        }
        let complete = outputs.len() == written.len();
        let (inner, captured) = self.close_body(outputs);
        if written.is_empty() && inner.effects.is_empty() && self.errors() == errors {
            self.report(
                Diagnostic::error("loop-without-effect", span, "this map changes nothing")
                    .help("assign the name of an element: it is written to its slice"),
            );
        }
        let (indices, names): (Vec<u32>, Vec<Carried>) = written.into_iter().unzip();
        if !complete {
            for name in names {
                self.assign_value(&name.name, Value::Poison, name.span);
            }
            return;
        }
        let op = Op::Map { slices, written: indices, captured, body: Box::new(inner) };
        self.bind_results(op, &names, span);
    }

    /// A slice by name: its node, the type of its elements, and whether they may only be written.
    fn slice_operand(&mut self, slice: &Name) -> Option<(NodeHandle, Type, bool)> {
        let binding = self.frame_ref().find(&slice.text).cloned();
        let value = match &binding {
            Some(binding) => self.import(binding),
            None => self.expression(&Expression { kind: ExpressionKind::Name(slice.text.clone()), span: slice.span }, None),
        };
        if let Value::Node(node) = value
            && let Type::Slice { element } = self.ty(node)
        {
            return Some((node, (*element).clone(), binding.is_some_and(|binding| binding.unreadable)));
        }
        if !matches!(value, Value::Poison) {
            let found = self.describe(&value);
            self.report(
                Diagnostic::error("type-mismatch", slice.span, format!("a map runs over slices `[T]`, not over {found}"))
                    .at(found)
                    .help("use `for` or a comprehension over what has a fixed length"),
            );
        }
        None
    }
}
