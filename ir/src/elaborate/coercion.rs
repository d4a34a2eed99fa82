//! Giving untyped values the type that their place asks for, and comparing types.

use super::value::{Value, shape};
use super::{Elaborator, Setting};
use crate::bits::Bits;
use crate::body::{NodeHandle, Op};
use crate::diagnostic::Diagnostic;
use crate::limits;
use crate::source::Span;
use crate::types::Type;
use num_bigint::{BigInt, BigUint};
use num_traits::ToPrimitive;

/// The other party of a type mismatch: who asks for the type.
#[derive(Clone, Debug)]
pub struct Asker {
    /// Where it stands.
    pub span: Span,
    /// What it is, with its type: `parameter a is u32`.
    pub text: String,
}

impl Elaborator {
    /// The type that a value has or, for a list of typed values, would have as a vector (of scalars) or array.
    pub fn type_of(&self, value: &Value) -> Option<Type> {
        match value {
            Value::Node(node) => Some(self.ty(*node)),
            Value::Bytes(bytes) => Some(Type::vector(8, bytes.len() as u32)),
            Value::List(items) => {
                let element = items.iter().find_map(|item| self.type_of(item))?;
                let length = items.len() as u32;
                Some(match element {
                    Type::Bits { width, lanes: 1 } => Type::vector(width, length),
                    element => Type::Array { element: element.into(), length },
                })
            }
            Value::Number(_) | Value::Nothing | Value::Poison => None,
        }
    }

    /// How a value is called in messages.
    pub fn describe(&self, value: &Value) -> String {
        match value {
            Value::Number(number) if number.bits() <= 128 => format!("the number {number}"),
            Value::Number(number) => abbreviate(number),
            Value::Bytes(bytes) => format!("{} bytes", bytes.len()),
            Value::List(items) => match self.type_of(value) {
                Some(ty) => self.type_name(&ty),
                None => format!("a list of {} numbers", items.len()),
            },
            Value::Nothing => "nothing".to_owned(),
            Value::Node(node) => self.type_name(&self.ty(*node)),
            Value::Poison => "an error".to_owned(),
        }
    }

    /// A value as a node of this type; `None` after an error.
    pub fn coerce(&mut self, value: &Value, ty: &Type, span: Span, asker: &Asker) -> Option<NodeHandle> {
        match value {
            Value::Node(node) => self.coerce_node(*node, ty, span, asker),
            Value::Number(number) => self.coerce_number(number, ty, span, asker),
            Value::Bytes(bytes) => self.coerce_bytes(bytes, ty, span, asker),
            Value::List(items) => self.coerce_list(items, ty, span, asker),
            Value::Nothing => {
                self.mismatch(value, ty, span, asker);
                None
            }
            Value::Poison => None,
        }
    }

    /// A value as a node of its own type.
    pub fn settle(&mut self, value: &Value, span: Span) -> Option<NodeHandle> {
        match value {
            Value::Node(node) => Some(*node),
            Value::Poison => None,
            Value::Nothing => {
                self.error("no-value", span, "this gives no value");
                None
            }
            _ => match self.type_of(value) {
                Some(ty) => {
                    match ty {
                        Type::Bits { width, lanes } => drop(self.bits_type(width, lanes, span)?),
                        Type::Array { length, .. } if length > limits::ARRAY_ELEMENTS => {
                            self.error("limit", span, format!("an array of {length} elements, more than {}", limits::ARRAY_ELEMENTS));
                            return None;
                        }
                        _ => {}
                    }
                    let asker = Asker { span, text: format!("the other items make it {}", self.type_name(&ty)) };
                    self.coerce(value, &ty, span, &asker)
                }
                None => {
                    self.untyped(span);
                    None
                }
            },
        }
    }

    /// Reports a number whose type nothing gives.
    pub fn untyped(&mut self, span: Span) -> Value {
        self.report(
            Diagnostic::error("untyped-number", span, "nothing here gives this number a type")
                .help("write the type around it: `u32(1)`, `u32x4(0)`"),
        )
    }

    fn mismatch(&mut self, value: &Value, ty: &Type, span: Span, asker: &Asker) {
        let found = self.describe(value);
        let wanted = self.type_name(ty);
        let mut diagnostic = Diagnostic::error("type-mismatch", span, format!("expected {wanted}, found {found}"))
            .at(found)
            .label(asker.span, asker.text.clone());
        if let (Some(Type::Bits { width, lanes }), Type::Bits { width: wanted_width, lanes: wanted_lanes }) = (self.type_of(value), ty) {
            if width * lanes == wanted_width * wanted_lanes && width % 8 == 0 && wanted_width % 8 == 0 {
                let order = if matches!(self.setting, Setting::Row(_)) { "u" } else { "be" };
                let lanes = if *wanted_lanes == 1 { String::new() } else { format!("x{wanted_lanes}") };
                diagnostic = diagnostic.help(format!("to see the same bytes otherwise, use a view: `.{order}{wanted_width}{lanes}`"));
            } else if lanes == *wanted_lanes && width < *wanted_width {
                diagnostic = diagnostic.help(format!("widen it: `zext(…, {wanted_width})` or `sext(…, {wanted_width})`"));
            } else if lanes == *wanted_lanes {
                diagnostic = diagnostic.help(format!("cut it: `trunc(…, {wanted_width})`"));
            } else if lanes == 1 && width == *wanted_width {
                diagnostic = diagnostic.help(format!("repeat it in every lane: `[i in 0..{wanted_lanes}: …]`"));
            }
        }
        self.report(diagnostic);
    }

    fn coerce_node(&mut self, node: NodeHandle, ty: &Type, span: Span, asker: &Asker) -> Option<NodeHandle> {
        let found = self.ty(node);
        if found == *ty {
            return Some(node);
        }
        if let (Type::Natural { bits }, Type::Natural { bits: wanted }) = (&found, ty)
            && bits < wanted
        {
            return Some(self.body().push(Op::NaturalSlice { value: node, start: 0 }, ty.clone(), span));
        }
        self.mismatch(&Value::Node(node), ty, span, asker);
        None
    }

    fn coerce_number(&mut self, number: &BigInt, ty: &Type, span: Span, asker: &Asker) -> Option<NodeHandle> {
        let bits = match ty {
            Type::Bits { width, .. } => *width,
            Type::Natural { bits } | Type::Modulus { bits } | Type::Residue { bits, .. } => *bits,
            Type::Array { .. } | Type::Slice { .. } => {
                self.mismatch(&Value::Number(number.clone()), ty, span, asker);
                return None;
            }
        };
        let Some(value) = number.to_biguint().filter(|value| value.bits() <= u64::from(bits)) else {
            let name = self.type_name(ty);
            let diagnostic = Diagnostic::error("number-too-large", span, format!("{} does not fit {name}", abbreviate(number)))
                .label(asker.span, asker.text.clone());
            let help = if number.sign() == num_bigint::Sign::Minus {
                "everything is unsigned: write the complement, or subtract typed values".to_owned()
            } else {
                format!("{} bits are needed, {bits} are there", number.bits())
            };
            self.report(diagnostic.help(help));
            return None;
        };
        Some(match ty {
            Type::Bits { width, lanes } => {
                let bits = splat(&value, *width, *lanes);
                self.body().constant(ty.clone(), bits, span)
            }
            _ => self.body().push(Op::Integer(value), ty.clone(), span),
        })
    }

    fn coerce_bytes(&mut self, bytes: &[u8], ty: &Type, span: Span, asker: &Asker) -> Option<NodeHandle> {
        match ty {
            Type::Bits { width: 8, lanes } if *lanes as usize == bytes.len() => {
                Some(self.body().constant(ty.clone(), Bits::from_bytes(bytes), span))
            }
            Type::Array { element, length } if *length > 0 && bytes.len().is_multiple_of(*length as usize) => {
                let size = bytes.len() / *length as usize;
                let elements: Option<Vec<NodeHandle>> =
                    bytes.chunks(size.max(1)).map(|chunk| self.coerce_bytes(chunk, element, span, asker)).collect();
                Some(self.body().push(Op::Array(elements?), ty.clone(), span))
            }
            _ => {
                self.mismatch(&Value::Bytes(bytes.into()), ty, span, asker);
                None
            }
        }
    }

    fn coerce_list(&mut self, items: &[Value], ty: &Type, span: Span, asker: &Asker) -> Option<NodeHandle> {
        let (element, length) = match ty {
            Type::Bits { width, lanes: 1 } if items.len() != 1 => (Type::bits(1), *width),
            Type::Bits { width, lanes } => (Type::bits(*width), *lanes),
            Type::Array { element, length } => ((**element).clone(), *length),
            _ => {
                self.mismatch(&Value::List(items.into()), ty, span, asker);
                return None;
            }
        };
        if items.len() != length as usize {
            let name = self.type_name(ty);
            self.report(
                Diagnostic::error("wrong-lane-count", span, format!("{} items where {name} has {length}", items.len()))
                    .at(format!("{} items", items.len()))
                    .label(asker.span, asker.text.clone())
                    .help(format!("give {length} items")),
            );
            return None;
        }
        let nodes: Vec<Option<NodeHandle>> = items.iter().map(|item| self.coerce(item, &element, span, asker)).collect();
        let nodes: Vec<NodeHandle> = nodes.into_iter().collect::<Option<_>>()?;
        let op = if matches!(ty, Type::Array { .. }) { Op::Array(nodes) } else { Op::Lanes(nodes) };
        Some(self.body().push(op, ty.clone(), span))
    }

    /// The one type of several values, and where the first typed one stands; `hint` where all are untyped.
    pub fn common_type(&mut self, values: &[(Value, Span)], hint: Option<&Type>) -> Option<(Type, Asker)> {
        let typed = values.iter().find(|(value, _)| matches!(value, Value::Node(_)));
        let typed = typed.or_else(|| values.iter().find(|(value, _)| self.type_of(value).is_some() && hint.is_none()));
        if let Some((value, span)) = typed {
            let ty = self.type_of(value)?;
            let text = format!("this is {}", self.type_name(&ty));
            return Some((ty, Asker { span: *span, text }));
        }
        let hint = hint?;
        let span = values.first().map(|(_, span)| *span).unwrap_or_default();
        Some((hint.clone(), Asker { span, text: format!("{} is wanted here", self.type_name(hint)) }))
    }

    /// A number fixed when the body is made, as a number; a typed constant counts.
    pub fn as_number(&self, value: &Value) -> Option<BigInt> {
        match value {
            Value::Number(number) => Some(number.clone()),
            Value::Node(node) => match &self.body_ref().node(*node).op {
                Op::Constant(bits) if shape(self.body_ref().ty(*node)).is_some_and(|(_, lanes)| lanes == 1) => {
                    Some(bits.to_integer().into())
                }
                Op::Integer(value) => Some(value.clone().into()),
                _ => None,
            },
            _ => None,
        }
    }

    /// The same, as a `u32` between bounds; an error otherwise.
    pub fn as_u32(&mut self, value: &Value, span: Span, what: &str, low: u32, high: u32) -> Option<u32> {
        if matches!(value, Value::Poison) {
            return None;
        }
        let Some(number) = self.as_number(value) else {
            self.report(Diagnostic::error("not-constant", span, format!("{what} must be a constant")).at(self.describe(value)).help(
                "constants are numbers, `param`s, `const`s, counters of `for`, comprehensions and folds, and what is computed from these",
            ));
            return None;
        };
        match number.to_u32().filter(|number| (low..=high).contains(number)) {
            Some(number) => Some(number),
            None => {
                self.error("out-of-range", span, format!("{what} is {}, which lies outside {low}..={high}", abbreviate(&number)));
                None
            }
        }
    }

    /// An untyped number as a count of a shift or an index: `u32`, saturated, for what is larger is out of range of everything.
    pub fn count_constant(&mut self, number: &BigInt, span: Span) -> Option<NodeHandle> {
        let Some(value) = number.to_biguint() else {
            self.error("out-of-range", span, format!("{} is negative", abbreviate(number)));
            return None;
        };
        let value = value.to_u32().unwrap_or(u32::MAX);
        Some(self.body().constant(Type::bits(32), Bits::from_u64(32, u64::from(value)), span))
    }
}

/// A number short enough for a message.
pub fn abbreviate(number: &BigInt) -> String {
    if number.bits() <= 128 { number.to_string() } else { format!("a number of {} bits", number.bits()) }
}

/// The same value in every lane.
pub fn splat(value: &BigUint, width: u32, lanes: u32) -> Bits {
    let lane = Bits::from_integer(width, value);
    let mut bits = Bits::zero(width * lanes);
    for index in 0..lanes {
        bits.insert(index * width, &lane);
    }
    bits
}
