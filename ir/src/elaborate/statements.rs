//! Statements: bindings, unrolled loops, effects.

use super::Elaborator;
use super::coercion::Asker;
use super::scope::Binding;
use super::value::{Value, shape};
use super::{Setting, suggestion};
use crate::body::{BinaryOp, Effect, NodeHandle, Op};
use crate::diagnostic::Diagnostic;
use crate::source::Span;
use crate::syntax::ast::{Block, Expression, Name, Range, Statement, StatementKind, View};
use crate::types::Type;

impl Elaborator {
    /// The statements of a block without result.
    pub fn statements(&mut self, block: &Block) {
        for statement in &block.statements {
            self.statement(statement);
        }
    }

    /// One statement; an expression must be the call of a kernel without result.
    pub fn statement(&mut self, statement: &Statement) {
        let span = statement.span;
        match &statement.kind {
            StatementKind::Assign { target, view, index, value } => self.assign(target, view.as_ref(), index.as_ref(), value, span),
            StatementKind::For { variable, range, body } => self.unrolled(variable, range, body),
            StatementKind::Loop { variable, range, body } => self.counted_loop(variable, range, body, span),
            StatementKind::Map { bindings, body } => self.map(bindings, body, span),
            StatementKind::Store { address, value, condition } => {
                if !matches!(self.setting, Setting::Row(_)) {
                    self.rows_only("store", span);
                    return;
                }
                let address = self.scalar(address, "an address");
                let stored = self.expression(value, None);
                let stored = self.settle(&stored, value.span);
                let bytes = stored.filter(|node| self.is_bytes(*node));
                if let (Some(node), None) = (stored, bytes) {
                    let name = self.type_name(&self.ty(node));
                    self.report(
                        Diagnostic::error("type-mismatch", value.span, format!("bytes are stored, not {name}"))
                            .at(name)
                            .help("`bytes_be(x)` and `bytes_le(x)` give the bytes of words, `.u8xN` those of a register"),
                    );
                }
                let condition = condition.as_ref().map(|condition| self.flag(condition));
                if let (Some(address), Some(value)) = (address, bytes)
                    && condition != Some(None)
                {
                    self.body().effects.push(Effect::Store { address, value, condition: condition.flatten() });
                }
            }
            StatementKind::Branch { target, condition } => {
                if !matches!(self.setting, Setting::Row(_)) {
                    self.rows_only("branch", span);
                    return;
                }
                let target = target.as_ref().map(|target| self.scalar(target, "an address"));
                let condition = condition.as_ref().map(|condition| self.flag(condition));
                if target != Some(None) && condition != Some(None) {
                    self.body().effects.push(Effect::Branch { condition: condition.flatten(), target: target.flatten() });
                }
            }
            StatementKind::Forbidden { condition } => {
                if let Some(condition) = self.flag(condition) {
                    self.body().effects.push(Effect::Forbidden { condition, span });
                }
            }
            StatementKind::Expression(expression) => {
                let value = self.expression(expression, None);
                if !matches!(value, Value::Nothing | Value::Poison) {
                    self.report(
                        Diagnostic::error("unused-value", span, "this value is used by nothing")
                            .at(self.describe(&value))
                            .help("bind it to a name: `t = …`; only the last statement of a function or kernel is its result"),
                    );
                }
            }
            StatementKind::Error => {}
        }
    }

    fn is_bytes(&self, node: NodeHandle) -> bool {
        shape(self.body_ref().ty(node)).is_some_and(|(width, _)| width == 8)
    }

    /// What an output of this name wants to be assigned, where it is one.
    pub fn wanted(&self, name: &str) -> Option<(Type, Asker)> {
        let (ty, span) = self.place.frames.last()?.fixed.get(name)?;
        Some((ty.clone(), Asker { span: *span, text: format!("`{name}` is {}", self.type_name(ty)) }))
    }

    fn assign(&mut self, target: &Name, view: Option<&View>, index: Option<&Expression>, value: &Expression, span: Span) {
        let name = &target.text;
        if !self.may_bind(target) {
            return;
        }
        let wanted = self.wanted(name);
        let assigned = match (view, index) {
            (Some(view), None) => self.assigned_view(target, view, value, span),
            (None, Some(index)) => self.assigned_element(target, index, value, span),
            (Some(view), Some(_)) => {
                self.report(
                    Diagnostic::error("bad-target", view.span, "an element of a view cannot be assigned")
                        .help("assign the whole view at once"),
                );
                Value::Poison
            }
            (None, None) => match &wanted {
                Some((ty, asker)) => self.expression_as(value, ty, asker).map_or(Value::Poison, Value::Node),
                None => self.expression(value, None),
            },
        };
        if matches!(assigned, Value::Nothing) {
            self.error("no-value", value.span, "this gives no value");
        }
        self.assign_value(name, assigned, target.span);
    }

    /// Binds a name to a value of the innermost body.
    pub fn assign_value(&mut self, name: &str, value: Value, span: Span) {
        if let Value::Node(node) = value {
            self.body().name(node, name);
        }
        let binding = self.bind(value, span);
        self.frame().assign(name, binding);
    }

    /// `d.u32x4 = value`: the bytes of the target through a view.
    fn assigned_view(&mut self, target: &Name, view: &View, value: &Expression, span: Span) -> Value {
        let Some(seen) = self.bits_type(view.width, view.lanes, view.span) else { return Value::Poison };
        let whole = match self.wanted(&target.text) {
            Some((ty, _)) => Some(ty),
            None => self.place.frames.last().and_then(|frame| frame.find(&target.text)).and_then(|binding| match binding.value {
                Value::Node(node) => Some(self.place.bodies[binding.level].ty(node).clone()),
                _ => None,
            }),
        };
        let Some(whole) = whole else {
            let names: Vec<String> = self.place.frames.last().map(|frame| frame.fixed.keys().cloned().collect()).unwrap_or_default();
            let mut diagnostic =
                Diagnostic::error("bad-target", target.span, format!("`{}` has no type yet that a view could be of", target.text));
            diagnostic.help = suggestion(&target.text, names.iter().map(String::as_str)).or(Some("assign it without a view".to_owned()));
            return self.report(diagnostic);
        };
        let Some((width, lanes)) = shape(&whole)
            .filter(|(width, lanes)| width.is_multiple_of(8) && view.width.is_multiple_of(8) && width * lanes == view.width * view.lanes)
        else {
            return self.view_mismatch(&whole, &seen, view.span);
        };
        let asker = Asker { span: view.span, text: format!("the view is {}", self.type_name(&seen)) };
        let value = self.expression_as(value, &seen, &asker);
        let Some(order) = self.view_order(width, view) else { return Value::Poison };
        match value {
            Some(node) => self.push(Op::Reinterpret(node, order), Type::vector(width, lanes), span),
            None => Value::Poison,
        }
    }

    /// `a[i] = value`: the array or vector with that element replaced.
    fn assigned_element(&mut self, target: &Name, index: &Expression, value: &Expression, span: Span) -> Value {
        let name = Expression { kind: crate::syntax::ast::ExpressionKind::Name(target.text.clone()), span: target.span };
        let wanted = self.wanted(&target.text).map(|(ty, _)| ty);
        let old = self.expression(&name, wanted.as_ref());
        let position = self.expression(index, None);
        let Some(old) = self.settle(&old, target.span) else { return Value::Poison };
        let ty = self.ty(old);
        let (element, length) = match &ty {
            Type::Array { element, length } => ((**element).clone(), *length),
            Type::Bits { width, lanes: lanes @ 2.. } => (Type::bits(*width), *lanes),
            Type::Bits { width, .. } => (Type::bits(1), *width),
            other => {
                let name = self.type_name(other);
                self.error("bad-index", target.span, format!("{name} has no elements"));
                return Value::Poison;
            }
        };
        let asker = Asker { span: target.span, text: format!("elements of `{}` are {}", target.text, self.type_name(&element)) };
        let Some(new) = self.expression_as(value, &element, &asker) else { return Value::Poison };
        let constant = self.as_number(&position);
        let place = match &constant {
            Some(_) => self.as_u32(&position, index.span, "the index", 0, length - 1),
            None => None,
        };
        if constant.is_some() && place.is_none() {
            return Value::Poison;
        }
        let position = match place {
            Some(place) => self.count_constant(&place.into(), index.span),
            None => self.settle(&position, index.span),
        };
        let Some(position) = position else { return Value::Poison };
        let Some((position_width, 1)) = shape(&self.ty(position)) else {
            let found = self.type_name(&self.ty(position));
            return self.report(
                Diagnostic::error("bad-index", index.span, format!("{found} is no index of one element")).help("indices are scalars uW"),
            );
        };
        if matches!(ty, Type::Array { .. }) {
            return self.push(Op::WithElement { array: old, index: position, value: new }, ty, span);
        }
        let mut lanes = Vec::with_capacity(length as usize);
        for lane in 0..length {
            let before = self.lane_at(old, lane, span);
            lanes.push(match place {
                Some(place) if place == lane => new,
                Some(_) => before,
                // A lane number that the index cannot hold is never meant.
                None if position_width < 32 && lane >> position_width != 0 => before,
                None => {
                    let bits = crate::bits::Bits::from_u64(position_width, u64::from(lane));
                    let number = self.body().constant(Type::bits(position_width), bits, span);
                    let condition = self.body().push(Op::Binary(BinaryOp::Equal, position, number), Type::bits(1), span);
                    self.body().push(Op::Select { condition, then: new, otherwise: before }, element.clone(), span)
                }
            });
        }
        self.push(Op::Lanes(lanes), ty, span)
    }

    fn unrolled(&mut self, variable: &Name, range: &Range, body: &Block) {
        let Some((start, count)) = self.round_count(range) else { return };
        self.may_bind(variable);
        let errors = self.diagnostics.len();
        for round in 0..count {
            if !self.count_round(variable.span) {
                break;
            }
            self.frame().push();
            let counter: Binding = self.bind(Value::Number(&start + round), variable.span);
            self.frame().declare(&variable.text, counter);
            self.statements(body);
            self.frame().pop();
            // The same mistake in every round is one mistake.
            if self.diagnostics.len() > errors {
                break;
            }
        }
    }
}
