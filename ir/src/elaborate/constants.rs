//! Constants of a unit: elaborated in a body of their own, which must come out constant, and written into each body that uses them.

use super::Elaborator;
use super::coercion::Asker;
use super::globals::Progress;
use super::value::Value;
use crate::bits::Bits;
use crate::body::{NodeHandle, Op};
use crate::diagnostic::Diagnostic;
use crate::interpret::Argument;
use crate::source::Span;
use crate::types::Type;
use num_bigint::{BigInt, BigUint};
use std::rc::Rc;

/// A value outside of any body.
#[derive(Clone, Debug)]
pub enum Fixed {
    /// An untyped number.
    Number(BigInt),
    /// Untyped bytes.
    Bytes(Rc<[u8]>),
    /// An untyped list.
    List(Vec<Fixed>),
    /// Of a `Bits` type.
    Bits(Type, Bits),
    /// A natural, modulus or residue.
    Integer(Type, BigUint),
    /// An array.
    Array(Type, Vec<Fixed>),
}

impl Fixed {
    /// As an argument of a kernel; `None` where it has no type.
    pub fn argument(self) -> Option<Argument> {
        match self {
            Fixed::Bits(_, bits) => Some(Argument::Bits(bits)),
            Fixed::Integer(_, value) => Some(Argument::Integer(value)),
            Fixed::Array(_, elements) => elements.into_iter().map(Fixed::argument).collect::<Option<_>>().map(Argument::List),
            Fixed::Number(_) | Fixed::Bytes(_) | Fixed::List(_) => None,
        }
    }
}

impl Elaborator {
    /// Constant number `index` of the unit in the innermost body.
    pub fn constant(&mut self, index: usize, span: Span) -> Value {
        if let Some(value) = self.place.captures.last().and_then(|captures| captures.constants.get(&index)) {
            return value.clone();
        }
        let Some(fixed) = self.constant_value(index, span) else { return Value::Poison };
        let value = self.plant(&fixed, span);
        if let Value::Node(node) = value {
            let name = self.globals.constants.get_index(index).map(|(name, _)| name.clone()).unwrap_or_default();
            self.body().name(node, &name);
        }
        if let Some(captures) = self.place.captures.last_mut() {
            captures.constants.insert(index, value.clone());
        }
        value
    }

    /// The value of a constant, elaborated when first needed; `None` after an error.
    pub fn constant_value(&mut self, index: usize, span: Span) -> Option<Rc<Fixed>> {
        let (name, (item, progress)) = self.globals.constants.get_index(index)?;
        let (name, item) = (name.clone(), Rc::clone(item));
        match progress {
            Progress::Done(fixed) => return Some(Rc::clone(fixed)),
            Progress::Failed => return None,
            Progress::Running => {
                self.report(
                    Diagnostic::error("circular-definition", span, format!("`{name}` is computed from itself"))
                        .label(item.span, format!("the definition of `{name}`"))
                        .help("break the circle: a constant is computed from others"),
                );
                return None;
            }
            Progress::Waiting => {}
        }
        if self.needs_too_much(span) {
            self.globals.constants[index].1 = Progress::Failed;
            return None;
        }
        self.globals.constants[index].1 = Progress::Running;
        let (fixed, _) = self.elsewhere(|elaborator| {
            let value = match &item.ty {
                Some(ty) => {
                    let written = ty.span;
                    let ty = elaborator.elaborate_type(ty)?;
                    let asker = Asker { span: written, text: format!("`{name}` is {}", elaborator.type_name(&ty)) };
                    Value::Node(elaborator.expression_as(&item.value, &ty, &asker)?)
                }
                None => elaborator.expression(&item.value, None),
            };
            elaborator.fix(&value, item.value.span, &format!("constant `{name}`"))
        });
        let fixed = fixed.map(Rc::new);
        self.globals.constants[index].1 = fixed.clone().map_or(Progress::Failed, Progress::Done);
        fixed
    }

    /// A value as one outside of any body; an error where it is not constant.
    pub fn fix(&mut self, value: &Value, span: Span, what: &str) -> Option<Fixed> {
        match value {
            Value::Number(number) => Some(Fixed::Number(number.clone())),
            Value::Bytes(bytes) => Some(Fixed::Bytes(Rc::clone(bytes))),
            Value::List(items) => items.iter().map(|item| self.fix(item, span, what)).collect::<Option<_>>().map(Fixed::List),
            Value::Node(node) => {
                let fixed = self.fix_node(*node);
                if fixed.is_none() {
                    self.not_constant(value, span, what);
                }
                fixed
            }
            Value::Nothing => {
                self.error("no-value", span, "this gives no value");
                None
            }
            Value::Poison => None,
        }
    }

    fn fix_node(&self, node: NodeHandle) -> Option<Fixed> {
        let ty = self.ty(node);
        match &self.body_ref().node(node).op {
            Op::Constant(bits) => Some(Fixed::Bits(ty, bits.clone())),
            Op::Integer(value) => Some(Fixed::Integer(ty, value.clone())),
            Op::Array(elements) => {
                let elements = elements.iter().map(|element| self.fix_node(*element)).collect::<Option<_>>()?;
                Some(Fixed::Array(ty, elements))
            }
            _ => None,
        }
    }

    fn plant(&mut self, fixed: &Fixed, span: Span) -> Value {
        match fixed {
            Fixed::Number(number) => Value::Number(number.clone()),
            Fixed::Bytes(bytes) => Value::Bytes(Rc::clone(bytes)),
            Fixed::List(items) => Value::List(items.iter().map(|item| self.plant(item, span)).collect()),
            Fixed::Bits(ty, bits) => Value::Node(self.body().constant(ty.clone(), bits.clone(), span)),
            Fixed::Integer(ty, value) => self.push(Op::Integer(value.clone()), ty.clone(), span),
            Fixed::Array(ty, elements) => {
                let nodes = elements
                    .iter()
                    .filter_map(|element| match self.plant(element, span) {
                        Value::Node(node) => Some(node),
                        _ => None,
                    })
                    .collect();
                self.push(Op::Array(nodes), ty.clone(), span)
            }
        }
    }
}
