//! What stands after a value: `[index]`, `[range]`, `.u32x4`.

use super::value::{Value, shape};
use super::{Elaborator, Setting};
use crate::bits::Bits;
use crate::body::{BinaryOp, NodeHandle, Op};
use crate::diagnostic::Diagnostic;
use crate::source::Span;
use crate::syntax::ast::{Expression, Range, Step, StepKind, View};
use crate::types::{ByteOrder, Type};
use num_bigint::BigInt;
use num_traits::ToPrimitive;

impl Elaborator {
    /// A value with steps after it.
    pub fn postfix(&mut self, base: &Expression, steps: &[Step]) -> Value {
        let mut value = self.expression(base, None);
        let mut span = base.span;
        for step in steps {
            if matches!(value, Value::Poison) {
                return value;
            }
            let whole = span.join(step.span);
            value = match &step.kind {
                StepKind::Index(index) => {
                    let position = self.expression(index, None);
                    self.index(&value, span, &position, index.span, whole)
                }
                StepKind::Slice(range) => self.slice(&value, span, range, whole),
                StepKind::View(view) => match self.settle(&value, span) {
                    Some(node) => self.view(node, view, whole),
                    None => Value::Poison,
                },
            };
            span = whole;
        }
        value
    }

    fn index(&mut self, value: &Value, value_span: Span, index: &Value, index_span: Span, span: Span) -> Value {
        if matches!(index, Value::Poison) {
            return Value::Poison;
        }
        if let Some(number) = self.as_number(index) {
            return self.index_constant(value, value_span, &number, index_span, span);
        }
        let Some(node) = self.settle(value, value_span) else { return Value::Poison };
        let Some(position) = self.settle(index, index_span) else { return Value::Poison };
        let (ty, index_type) = (self.ty(node), self.ty(position));
        match (&ty, shape(&index_type)) {
            (Type::Bits { width, lanes }, Some((_, 1))) => {
                let result = if *lanes == 1 { Type::bits(1) } else { Type::bits(*width) };
                self.push(Op::Lane { vector: node, index: position }, result, span)
            }
            (Type::Array { element, .. }, Some((_, 1))) => {
                self.push(Op::Element { array: node, index: position }, (**element).clone(), span)
            }
            (Type::Array { element, .. }, Some((_, lanes))) if shape(element).is_some_and(|(_, element_lanes)| element_lanes == 1) => {
                let width = shape(element).map_or(0, |(width, _)| width);
                self.push(Op::Element { array: node, index: position }, Type::vector(width, lanes), span)
            }
            _ => {
                let (base, found) = (self.type_name(&ty), self.type_name(&index_type));
                self.report(
                    Diagnostic::error("bad-index", index_span, format!("{found} is no index into {base}"))
                        .at(found)
                        .label(value_span, format!("this is {base}"))
                        .help("indices are scalars uW; tables of scalars take a vector of indices; otherwise write a comprehension"),
                )
            }
        }
    }

    fn index_constant(&mut self, value: &Value, value_span: Span, number: &BigInt, index_span: Span, span: Span) -> Value {
        let (length, what) = match value {
            Value::List(items) => (items.len() as u64, "items"),
            Value::Bytes(bytes) => (bytes.len() as u64, "bytes"),
            _ => {
                let Some(node) = self.settle(value, value_span) else { return Value::Poison };
                match self.ty(node) {
                    Type::Bits { width, lanes: 1 } => (u64::from(width), "bits"),
                    Type::Bits { lanes, .. } => (u64::from(lanes), "lanes"),
                    Type::Array { length, .. } => (u64::from(length), "elements"),
                    other => {
                        let name = self.type_name(&other);
                        return self.error("bad-index", value_span, format!("{name} has no elements"));
                    }
                }
            }
        };
        let Some(place) = number.to_u64().filter(|place| *place < length) else {
            return self.report(
                Diagnostic::error(
                    "index-out-of-range",
                    index_span,
                    format!("index {} where there are {length} {what}", super::coercion::abbreviate(number)),
                )
                .label(value_span, format!("this is {}", self.describe(value)))
                .help(format!("indices run from 0 to {}", length.saturating_sub(1))),
            );
        };
        match value {
            Value::List(items) => items[place as usize].clone(),
            Value::Bytes(bytes) => Value::Number(bytes[place as usize].into()),
            Value::Node(node) => match self.ty(*node) {
                Type::Array { .. } => Value::Node(self.element_at(*node, place as u32, span)),
                _ => Value::Node(self.lane_at(*node, place as u32, span)),
            },
            _ => Value::Poison,
        }
    }

    /// Lane (or bit, of a scalar) `place`.
    pub fn lane_at(&mut self, vector: NodeHandle, place: u32, span: Span) -> NodeHandle {
        let result = match shape(&self.ty(vector)) {
            Some((width, 2..)) => Type::bits(width),
            _ => Type::bits(1),
        };
        let index = self.body().constant(Type::bits(32), Bits::from_u64(32, u64::from(place)), span);
        self.body().push(Op::Lane { vector, index }, result, span)
    }

    /// Element `place` of an array.
    pub fn element_at(&mut self, array: NodeHandle, place: u32, span: Span) -> NodeHandle {
        let element = match self.ty(array) {
            Type::Array { element, .. } => (*element).clone(),
            other => other,
        };
        let index = self.body().constant(Type::bits(32), Bits::from_u64(32, u64::from(place)), span);
        self.body().push(Op::Element { array, index }, element, span)
    }

    fn slice(&mut self, value: &Value, value_span: Span, range: &Range, span: Span) -> Value {
        let Some((start, count)) = self.round_count(range) else { return Value::Poison };
        let range_span = range.start.span.join(range.end.span);
        let length = match value {
            Value::List(items) => items.len() as u32,
            Value::Bytes(bytes) => bytes.len() as u32,
            Value::Node(node) => match self.ty(*node) {
                Type::Bits { width, lanes: 1 } => width,
                Type::Bits { lanes, .. } => lanes,
                Type::Array { length, .. } => length,
                other => {
                    let name = self.type_name(&other);
                    return self.error("bad-index", value_span, format!("{name} has no elements"));
                }
            },
            _ => {
                self.settle(value, value_span);
                return Value::Poison;
            }
        };
        let Some(first) = start.to_u32().filter(|first| count > 0 && u64::from(*first) + u64::from(count) <= u64::from(length)) else {
            return self.report(
                Diagnostic::error(
                    "index-out-of-range",
                    range_span,
                    format!("the slice starts at {start} and has {count} places, of {length}"),
                )
                .label(value_span, format!("this is {}", self.describe(value)))
                .help("slices lie inside and are not empty"),
            );
        };
        match value {
            Value::List(items) => Value::List(items[first as usize..(first + count) as usize].into()),
            Value::Bytes(bytes) => Value::Bytes(bytes[first as usize..(first + count) as usize].into()),
            Value::Node(node) => match self.ty(*node) {
                Type::Bits { width, lanes: 1 } => {
                    let amount = self.body().constant(Type::bits(32), Bits::from_u64(32, u64::from(first)), span);
                    let shifted = self.body().push(Op::Binary(BinaryOp::ShiftRight, *node, amount), Type::bits(width), span);
                    self.push(Op::Resize(shifted), Type::bits(count), span)
                }
                Type::Bits { .. } if count == 1 => Value::Node(self.lane_at(*node, first, span)),
                Type::Bits { width, .. } => self.push(Op::Slice { vector: *node, start: first }, Type::vector(width, count), span),
                Type::Array { element, .. } => {
                    let elements = (first..first + count).map(|place| self.element_at(*node, place, span)).collect();
                    self.push(Op::Array(elements), Type::Array { element, length: count }, span)
                }
                _ => Value::Poison,
            },
            _ => Value::Poison,
        }
    }

    /// The order of a view; `None` after an error. Lanes of one byte have no order, and where no grouping changes none is asked for.
    pub fn view_order(&mut self, from_width: u32, view: &View) -> Option<ByteOrder> {
        match (view.order, &self.setting) {
            (Some(order), _) => Some(order),
            (None, Setting::Row(order)) => Some(*order),
            (None, Setting::Unit) if from_width == view.width => Some(ByteOrder::Little),
            (None, Setting::Unit) => {
                let (width, lanes) = (view.width, view.lanes);
                let suffix = if lanes == 1 { String::new() } else { format!("x{lanes}") };
                self.report(
                    Diagnostic::error("byte-order", view.span, "which byte of a lane comes first?")
                        .help(format!("write `.be{width}{suffix}` (most significant first) or `.le{width}{suffix}`")),
                );
                None
            }
        }
    }

    /// `value.u32x4`.
    pub fn view(&mut self, node: NodeHandle, view: &View, span: Span) -> Value {
        let Some(target) = self.bits_type(view.width, view.lanes, view.span) else { return Value::Poison };
        let ty = self.ty(node);
        let Some((width, lanes)) = shape(&ty) else {
            let name = self.type_name(&ty);
            return self.not_bits(&name, span);
        };
        if !width.is_multiple_of(8) || !view.width.is_multiple_of(8) || width * lanes != view.width * view.lanes {
            return self.view_mismatch(&ty, &target, view.span);
        }
        match self.view_order(width, view) {
            Some(order) => self.push(Op::Reinterpret(node, order), target, span),
            None => Value::Poison,
        }
    }

    /// Reports a view of another size than what it views.
    pub fn view_mismatch(&mut self, ty: &Type, target: &Type, span: Span) -> Value {
        let (from, to) = (self.type_name(ty), self.type_name(target));
        let bits = |ty: &Type| ty.total_bits().unwrap_or(0);
        self.report(
            Diagnostic::error("view-size", span, format!("{from} has {} bits, its view {to} has {}", bits(ty), bits(target)))
                .help("a view shows the same bytes in lanes of whole bytes"),
        )
    }
}
