//! Built-in functions.

use super::coercion::Asker;
use super::operators::Spanned;
use super::value::{Value, shape};
use super::{Elaborator, Setting, suggestion};
use crate::bits::Bits;
use crate::body::{BinaryOp, NodeHandle, Op, UnaryOp};
use crate::diagnostic::Diagnostic;
use crate::limits;
use crate::source::Span;
use crate::syntax::ast::{Expression, ExpressionKind, Name};
use crate::syntax::split_bits_type;
use crate::types::{ByteOrder, Type};
use num_bigint::BigInt;
use num_traits::{One, Zero};

/// A built-in function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Builtin {
    Wide,
    ZeroExtend,
    SignExtend,
    Truncate,
    Select,
    Shift(BinaryOp),
    RotateRight,
    Binary(BinaryOp),
    LessSigned,
    Unary(UnaryOp),
    FieldMultiply,
    Affine,
    Undefined,
    Words(ByteOrder, u32),
    Bytes(ByteOrder),
    Montgomery,
    Canonical,
    Low,
    High,
    Load,
}

/// Names, what they are, and how they are called.
const BUILTINS: &[(&str, Builtin, &str)] = &[
    ("wide", Builtin::Wide, "wide(x)"),
    ("zext", Builtin::ZeroExtend, "zext(x, WIDTH)"),
    ("sext", Builtin::SignExtend, "sext(x, WIDTH)"),
    ("trunc", Builtin::Truncate, "trunc(x, WIDTH)"),
    ("select", Builtin::Select, "select(condition, then, otherwise)"),
    ("rotl", Builtin::Shift(BinaryOp::RotateLeft), "rotl(x, count)"),
    ("rotr", Builtin::RotateRight, "rotr(x, count)"),
    ("sar", Builtin::Shift(BinaryOp::ShiftRightSigned), "sar(x, count)"),
    ("min", Builtin::Binary(BinaryOp::Minimum), "min(a, b)"),
    ("max", Builtin::Binary(BinaryOp::Maximum), "max(a, b)"),
    ("smin", Builtin::Binary(BinaryOp::MinimumSigned), "smin(a, b)"),
    ("smax", Builtin::Binary(BinaryOp::MaximumSigned), "smax(a, b)"),
    ("slt", Builtin::LessSigned, "slt(a, b)"),
    ("clz", Builtin::Unary(UnaryOp::LeadingZeros), "clz(x)"),
    ("popcount", Builtin::Unary(UnaryOp::PopulationCount), "popcount(x)"),
    ("clmul", Builtin::Binary(BinaryOp::CarrylessMultiply), "clmul(a, b)"),
    ("gfmul", Builtin::FieldMultiply, "gfmul(a, b, POLYNOMIAL)"),
    ("affine", Builtin::Affine, "affine(x, [ROWS], CONSTANT)"),
    ("undefined", Builtin::Undefined, "undefined(TYPE)"),
    ("be16", Builtin::Words(ByteOrder::Big, 16), "be16(bytes)"),
    ("be32", Builtin::Words(ByteOrder::Big, 32), "be32(bytes)"),
    ("be64", Builtin::Words(ByteOrder::Big, 64), "be64(bytes)"),
    ("le16", Builtin::Words(ByteOrder::Little, 16), "le16(bytes)"),
    ("le32", Builtin::Words(ByteOrder::Little, 32), "le32(bytes)"),
    ("le64", Builtin::Words(ByteOrder::Little, 64), "le64(bytes)"),
    ("bytes_be", Builtin::Bytes(ByteOrder::Big), "bytes_be(words)"),
    ("bytes_le", Builtin::Bytes(ByteOrder::Little), "bytes_le(words)"),
    ("mont", Builtin::Montgomery, "mont(a, b)"),
    ("canonical", Builtin::Canonical, "canonical(x)"),
    ("low", Builtin::Low, "low(x, WIDTH)"),
    ("high", Builtin::High, "high(x, WIDTH)"),
    ("load", Builtin::Load, "load(address, BYTES)"),
];

/// The names that a unit may not define.
pub fn names() -> impl Iterator<Item = &'static str> {
    BUILTINS.iter().map(|(name, _, _)| *name)
}

impl Elaborator {
    /// `NAME(arguments)`: a built-in function, a type around an untyped value, a function or a kernel.
    pub fn call(&mut self, function: &Name, arguments: &[Expression], hint: Option<&Type>, span: Span) -> Value {
        if let Some((_, builtin, usage)) = BUILTINS.iter().find(|(name, _, _)| *name == function.text) {
            let wanted = usage.matches(',').count() + 1;
            if arguments.len() != wanted {
                return self.report(
                    Diagnostic::error(
                        "wrong-argument-count",
                        span,
                        format!("`{}` takes {wanted} arguments, not {}", function.text, arguments.len()),
                    )
                    .help(format!("it is called `{usage}`")),
                );
            }
            return self.builtin(*builtin, arguments, hint, span).unwrap_or(Value::Poison);
        }
        if split_bits_type(&function.text).is_some() {
            return self.ascription(function, arguments, span).unwrap_or(Value::Poison);
        }
        if let Some(value) = self.call_global(function, arguments, span) {
            return value;
        }
        let mut known: Vec<String> = names().map(str::to_owned).collect();
        known.extend(self.global_callables());
        let mut diagnostic =
            Diagnostic::error("unknown-name", function.span, format!("no function or kernel is called `{}`", function.text));
        diagnostic.help = suggestion(&function.text, known.iter().map(String::as_str));
        self.report(diagnostic)
    }

    /// `u32x4(0)`: an untyped value with this type.
    fn ascription(&mut self, function: &Name, arguments: &[Expression], span: Span) -> Option<Value> {
        let ty = self.named_bits_type(&function.text, function.span)?;
        let [argument] = arguments else {
            self.error("wrong-argument-count", span, format!("`{}` takes 1 argument, not {}", function.text, arguments.len()));
            return None;
        };
        let asker = Asker { span: function.span, text: "this type is written here; it changes no typed value".to_owned() };
        self.expression_as(argument, &ty, &asker).map(Value::Node)
    }

    /// An argument as a node of a `Bits` type.
    fn bits_argument(&mut self, argument: &Expression, hint: Option<&Type>) -> Option<(NodeHandle, u32, u32)> {
        let value = self.expression(argument, hint);
        let node = match (&value, hint) {
            (Value::Number(_), Some(hint)) => {
                let asker = Asker { span: argument.span, text: format!("{} is wanted here", self.type_name(hint)) };
                self.coerce(&value, hint, argument.span, &asker)?
            }
            _ => self.settle(&value, argument.span)?,
        };
        let ty = self.ty(node);
        match shape(&ty) {
            Some((width, lanes)) => Some((node, width, lanes)),
            None => {
                let name = self.type_name(&ty);
                self.not_bits(&name, argument.span);
                None
            }
        }
    }

    fn spanned(&mut self, argument: &Expression, hint: Option<&Type>) -> Option<Spanned> {
        match self.expression(argument, hint) {
            Value::Poison => None,
            value => Some((value, argument.span)),
        }
    }

    /// Two arguments of one type; the first typed one decides.
    fn pair(&mut self, a: &Expression, b: &Expression, hint: Option<&Type>) -> Option<[Spanned; 2]> {
        let left = self.spanned(a, hint);
        let known = match &left {
            Some((Value::Node(node), _)) => Some(self.ty(*node)),
            _ => None,
        };
        let right = self.spanned(b, known.as_ref().or(hint));
        Some([left?, right?])
    }

    fn builtin(&mut self, builtin: Builtin, arguments: &[Expression], hint: Option<&Type>, span: Span) -> Option<Value> {
        match builtin {
            Builtin::Wide => {
                let half = hint.and_then(shape).filter(|(width, _)| width % 2 == 0).map(|(width, lanes)| Type::vector(width / 2, lanes));
                let (node, width, lanes) = self.bits_argument(&arguments[0], half.as_ref())?;
                let ty = self.bits_type(width * 2, lanes, span)?;
                Some(self.push(Op::Resize(node), ty, span))
            }
            Builtin::ZeroExtend | Builtin::SignExtend | Builtin::Truncate => self.resize(builtin, arguments, hint, span),
            Builtin::Select => self.select(arguments, hint, span),
            Builtin::Shift(op) => {
                let value = self.spanned(&arguments[0], hint);
                let count = self.spanned(&arguments[1], None);
                Some(self.shift(op, &value?, &count?, hint, span))
            }
            Builtin::RotateRight => self.rotate_right(arguments, hint, span),
            Builtin::Binary(op) => {
                let pair = self.pair(&arguments[0], &arguments[1], hint)?;
                let (nodes, ty) = self.unify(&pair, hint, span)?;
                Some(self.push(Op::Binary(op, nodes[0], nodes[1]), ty, span))
            }
            Builtin::LessSigned => {
                let [left, right] = self.pair(&arguments[0], &arguments[1], None)?;
                if left.0.is_untyped() && right.0.is_untyped() {
                    return Some(self.untyped(span));
                }
                Some(self.compare(BinaryOp::LessSigned, &left, &right, false, span))
            }
            Builtin::Unary(op) => {
                let (node, width, lanes) = self.bits_argument(&arguments[0], hint)?;
                Some(self.push(Op::Unary(op, node), Type::vector(width, lanes), span))
            }
            Builtin::FieldMultiply => self.field_multiply(arguments, hint, span),
            Builtin::Affine => self.affine(arguments, hint, span),
            Builtin::Undefined => match &arguments[0].kind {
                ExpressionKind::Name(name) => {
                    let ty = self.named_bits_type(name, arguments[0].span)?;
                    Some(self.push(Op::Undefined, ty, span))
                }
                _ => Some(
                    self.report(
                        Diagnostic::error("unknown-type", arguments[0].span, "`undefined` takes the name of a type")
                            .help("write `undefined(u32)` or `undefined(u8x16)`"),
                    ),
                ),
            },
            Builtin::Words(order, word) => {
                let (node, width, lanes) = self.bits_argument(&arguments[0], None)?;
                if width != 8 || lanes * 8 % word != 0 {
                    let name = self.type_name(&Type::vector(width, lanes));
                    return Some(
                        self.report(
                            Diagnostic::error(
                                "view-size",
                                arguments[0].span,
                                format!("words of {word} bits are made of bytes, not of {name}"),
                            )
                            .help(format!("give u8x{} or a multiple", word / 8)),
                        ),
                    );
                }
                Some(self.push(Op::Reinterpret(node, order), Type::vector(word, lanes * 8 / word), span))
            }
            Builtin::Bytes(order) => {
                let (node, width, lanes) = self.bits_argument(&arguments[0], None)?;
                if width % 8 != 0 {
                    let name = self.type_name(&Type::vector(width, lanes));
                    return Some(self.error("view-size", arguments[0].span, format!("{name} has no whole bytes")));
                }
                let ty = self.bits_type(8, width / 8 * lanes, span)?;
                Some(self.push(Op::Reinterpret(node, order), ty, span))
            }
            Builtin::Montgomery => self.montgomery(arguments, hint, span),
            Builtin::Canonical => self.canonical(arguments, hint, span),
            Builtin::Low | Builtin::High => self.natural_slice(builtin, arguments, span),
            Builtin::Load => self.load(arguments, span),
        }
    }

    fn resize(&mut self, builtin: Builtin, arguments: &[Expression], hint: Option<&Type>, span: Span) -> Option<Value> {
        let target = self.constant_u32(&arguments[1], "the width", 1, limits::LANE_BITS);
        let value = self.expression(&arguments[0], None);
        let target = target?;
        if let Value::Number(_) = value {
            let lanes = hint.and_then(shape).filter(|(width, _)| *width == target).map_or(1, |(_, lanes)| lanes);
            let asker = Asker { span: arguments[1].span, text: "the width is written here".to_owned() };
            return self.coerce(&value, &Type::vector(target, lanes), arguments[0].span, &asker).map(Value::Node);
        }
        let node = self.settle(&value, arguments[0].span)?;
        let ty = self.ty(node);
        let Some((width, lanes)) = shape(&ty) else {
            let name = self.type_name(&ty);
            return Some(self.not_bits(&name, arguments[0].span));
        };
        let narrows = builtin == Builtin::Truncate;
        if if narrows { target > width } else { target < width } {
            let other = if narrows { "`zext` and `sext` widen" } else { "`trunc` narrows" };
            let name = self.type_name(&ty);
            return Some(
                self.report(
                    Diagnostic::error(
                        "bad-width",
                        arguments[1].span,
                        format!("{name} cannot be {} to {target} bits", if narrows { "cut" } else { "extended" }),
                    )
                    .label(arguments[0].span, format!("this is {name}"))
                    .help(other),
                ),
            );
        }
        let ty = self.bits_type(target, lanes, span)?;
        let op = if builtin == Builtin::SignExtend { Op::ResizeSigned(node) } else { Op::Resize(node) };
        Some(self.push(op, ty, span))
    }

    fn select(&mut self, arguments: &[Expression], hint: Option<&Type>, span: Span) -> Option<Value> {
        let condition = self.spanned(&arguments[0], None);
        let pair = self.pair(&arguments[1], &arguments[2], hint);
        let (condition, pair) = (condition?, pair?);
        if let Value::Number(number) = &condition.0 {
            if number.is_one() {
                return Some(pair[0].0.clone());
            }
            if number.is_zero() {
                return Some(pair[1].0.clone());
            }
        }
        let node = self.condition_node(&condition)?;
        let Some((ty, asker)) = self.common_type(&pair, hint) else { return Some(self.untyped(span)) };
        let then = self.coerce(&pair[0].0, &ty, pair[0].1, &asker);
        let otherwise = self.coerce(&pair[1].0, &ty, pair[1].1, &asker);
        let (then, otherwise) = (then?, otherwise?);
        let condition_lanes = shape(&self.ty(node)).map_or(1, |(_, lanes)| lanes);
        if condition_lanes != 1 && shape(&ty).is_none_or(|(_, lanes)| lanes != condition_lanes) {
            let name = self.type_name(&ty);
            return Some(
                self.report(
                    Diagnostic::error(
                        "wrong-lane-count",
                        condition.1,
                        format!("u1x{condition_lanes} cannot choose between values of {name}"),
                    )
                    .label(pair[0].1, format!("this is {name}"))
                    .help("give one condition, or one for each lane"),
                ),
            );
        }
        Some(self.push(Op::Select { condition: node, then, otherwise }, ty, span))
    }

    /// A value as u1 or u1xN.
    fn condition_node(&mut self, condition: &Spanned) -> Option<NodeHandle> {
        let node = match &condition.0 {
            Value::Number(_) => {
                let asker = Asker { span: condition.1, text: "a condition is u1".to_owned() };
                self.coerce(&condition.0, &Type::bits(1), condition.1, &asker)?
            }
            value => self.settle(value, condition.1)?,
        };
        if shape(&self.ty(node)).is_none_or(|(width, _)| width != 1) {
            let name = self.type_name(&self.ty(node));
            self.report(
                Diagnostic::error("type-mismatch", condition.1, format!("a condition is u1, not {name}"))
                    .at(name)
                    .help("compare it: `x != 0`"),
            );
            return None;
        }
        Some(node)
    }

    /// An expression as u1.
    pub fn flag(&mut self, expression: &Expression) -> Option<NodeHandle> {
        let condition = self.spanned(expression, Some(&Type::bits(1)))?;
        let node = self.condition_node(&condition)?;
        if self.ty(node) != Type::bits(1) {
            let name = self.type_name(&self.ty(node));
            self.report(
                Diagnostic::error("wrong-lane-count", expression.span, format!("one condition is wanted, not {name}"))
                    .help("join the lanes: `or(i in 0..N: c[i])` or `and(i in 0..N: c[i])`"),
            );
            return None;
        }
        Some(node)
    }

    /// A rotation right by n is one left by W − n mod W.
    fn rotate_right(&mut self, arguments: &[Expression], hint: Option<&Type>, span: Span) -> Option<Value> {
        let value = self.spanned(&arguments[0], hint);
        let count = self.spanned(&arguments[1], None);
        let (value, count) = (value?, count?);
        let (nodes, ty) = self.unify(std::slice::from_ref(&value), hint, value.1)?;
        let (width, _) = shape(&ty)?;
        let value = (Value::Node(nodes[0]), value.1);
        let left = match &count.0 {
            Value::Number(number) => {
                let modulus = BigInt::from(width);
                Value::Number(((&modulus - number) % &modulus + &modulus) % &modulus)
            }
            other => {
                let node = self.settle(other, count.1)?;
                let count_type = self.ty(node);
                let Some((count_width, count_lanes)) = shape(&count_type) else {
                    let name = self.type_name(&count_type);
                    return Some(self.not_bits(&name, count.1));
                };
                // W − (n mod W) needs room for W itself.
                let room = count_width.max(32 - width.leading_zeros());
                let wide = self.bits_type(room, count_lanes, count.1)?;
                let wide_count = self.body().push(Op::Resize(node), wide.clone(), count.1);
                let bits = super::coercion::splat(&width.into(), room, count_lanes);
                let modulus = self.body().constant(wide.clone(), bits, count.1);
                let remainder = self.body().push(Op::Binary(BinaryOp::Remainder, wide_count, modulus), wide.clone(), count.1);
                self.push(Op::Binary(BinaryOp::Subtract, modulus, remainder), wide, count.1)
            }
        };
        Some(self.shift(BinaryOp::RotateLeft, &value, &(left, count.1), hint, span))
    }

    fn field_multiply(&mut self, arguments: &[Expression], hint: Option<&Type>, span: Span) -> Option<Value> {
        let pair = self.pair(&arguments[0], &arguments[1], hint);
        let polynomial = self.constant_number(&arguments[2], "the polynomial");
        let (nodes, ty) = self.unify(&pair?, hint, span)?;
        let (width, _) = shape(&ty)?;
        let polynomial = polynomial?;
        let Some(integer) = polynomial.to_biguint().filter(|polynomial| polynomial.bits() <= u64::from(width) + 1) else {
            let name = self.type_name(&ty);
            return Some(
                self.report(
                    Diagnostic::error(
                        "number-too-large",
                        arguments[2].span,
                        format!("a reduction polynomial of {name} has degree {width}"),
                    )
                    .help("its top bit may be left out: 0x11b and 0x1b are the same for u8"),
                ),
            );
        };
        let polynomial = Bits::from_integer(width, &integer);
        Some(self.push(Op::FieldMultiply { polynomial, a: nodes[0], b: nodes[1] }, ty, span))
    }

    fn affine(&mut self, arguments: &[Expression], hint: Option<&Type>, span: Span) -> Option<Value> {
        let (node, width, lanes) = self.bits_argument(&arguments[0], hint)?;
        let row = Type::bits(width);
        let rows_type = Type::Array { element: row.clone().into(), length: width };
        let asker =
            Asker { span: arguments[0].span, text: format!("u{width} takes {width} rows of {width} bits, row i for bit i of the result") };
        let rows = self.expression_as(&arguments[1], &rows_type, &asker);
        let constant = self.expression_as(&arguments[2], &row, &asker);
        let (rows, constant) = (rows?, constant?);
        let bits_of = |elaborator: &Self, node: NodeHandle| elaborator.body_ref().constant_bits(node).cloned();
        let matrix: Option<Vec<Bits>> = match &self.body_ref().node(rows).op {
            Op::Array(elements) => elements.iter().map(|element| bits_of(self, *element)).collect(),
            _ => None,
        };
        let (Some(matrix), Some(constant)) = (matrix, bits_of(self, constant)) else {
            return Some(self.not_constant(&Value::Node(rows), arguments[1].span, "an affine map"));
        };
        Some(self.push(Op::Affine { matrix, constant, value: node }, Type::vector(width, lanes), span))
    }

    /// Reports what should have been fixed when the body is made.
    pub fn not_constant(&mut self, value: &Value, span: Span, what: &str) -> Value {
        self.report(Diagnostic::error("not-constant", span, format!("{what} must be a constant")).at(self.describe(value)).help(
            "constants are numbers, `param`s, `const`s, counters of `for`, comprehensions and folds, and what is computed from these",
        ))
    }

    /// `mont(a, b)`: the modulus is that of the residues among its operands, or of the residue that the place wants.
    fn montgomery(&mut self, arguments: &[Expression], hint: Option<&Type>, span: Span) -> Option<Value> {
        let a = self.spanned(&arguments[0], None);
        let b = self.spanned(&arguments[1], None);
        let operands = [a?, b?];
        let residue = operands.iter().find_map(|(value, place)| match self.type_of(value) {
            Some(ty @ Type::Residue { .. }) => Some((ty, *place)),
            _ => None,
        });
        let residue = residue.or_else(|| match hint {
            Some(ty @ Type::Residue { .. }) => Some((ty.clone(), span)),
            _ => None,
        });
        let Some((ty, place)) = residue else {
            let found = self.describe(&operands[0].0);
            return Some(
                self.report(
                    Diagnostic::error("no-modulus", span, "nothing here says which modulus `mont` reduces by")
                        .label(operands[0].1, format!("this is {found}"))
                        .help("one operand at least must be a `residue<m>`"),
                ),
            );
        };
        let Type::Residue { modulus, bits } = ty else { return None };
        let asker = Asker { span: place, text: format!("this is {}", self.type_name(&ty)) };
        let mut nodes = Vec::new();
        for (value, place) in &operands {
            nodes.push(match self.type_of(value) {
                // A natural that fits the modulus's width may stand for a residue: it is below R.
                Some(Type::Natural { bits: natural }) if natural <= bits => self.settle(value, *place),
                _ => self.coerce(value, &ty, *place, &asker),
            });
        }
        let (a, b) = (nodes[0]?, nodes[1]?);
        let modulus = self.modulus_node(modulus)?;
        Some(self.push(Op::Montgomery { modulus, a, b }, ty, span))
    }

    fn canonical(&mut self, arguments: &[Expression], hint: Option<&Type>, span: Span) -> Option<Value> {
        let value = self.spanned(&arguments[0], hint)?;
        let node = match (&value.0, hint) {
            (Value::Number(_), Some(ty @ Type::Residue { .. })) => {
                let asker = Asker { span, text: format!("this is {}", self.type_name(ty)) };
                self.coerce(&value.0, ty, value.1, &asker)?
            }
            _ => self.settle(&value.0, value.1)?,
        };
        let ty = self.ty(node);
        let Type::Residue { modulus, bits } = ty else {
            let name = self.type_name(&ty);
            return Some(
                self.report(
                    Diagnostic::error("type-mismatch", value.1, format!("expected a residue, found {name}"))
                        .at(name)
                        .help("`canonical` brings a residue below its modulus"),
                ),
            );
        };
        let modulus = self.modulus_node(modulus)?;
        Some(self.push(Op::Canonical { modulus, value: node }, Type::Natural { bits }, span))
    }

    fn natural_slice(&mut self, builtin: Builtin, arguments: &[Expression], span: Span) -> Option<Value> {
        let value = self.spanned(&arguments[0], None);
        let place = self.constant_u32(&arguments[1], "the number of bits", 1, limits::NATURAL_BITS);
        let (value, place) = (value?, place?);
        let node = self.settle(&value.0, value.1)?;
        let Type::Natural { bits } = self.ty(node) else {
            let name = self.type_name(&self.ty(node));
            return Some(
                self.report(
                    Diagnostic::error("type-mismatch", value.1, format!("expected a natural, found {name}"))
                        .at(name)
                        .help("bits of uW are taken with a slice: `x[0..8]`"),
                ),
            );
        };
        if place > bits || builtin == Builtin::High && place == bits {
            return Some(
                self.report(
                    Diagnostic::error("out-of-range", arguments[1].span, format!("nat<{bits}> has no bits from {place} on"))
                        .label(value.1, format!("this is nat<{bits}>")),
                ),
            );
        }
        let (start, width) = if builtin == Builtin::Low { (0, place) } else { (place, bits - place) };
        Some(self.push(Op::NaturalSlice { value: node, start }, Type::Natural { bits: width }, span))
    }

    fn load(&mut self, arguments: &[Expression], span: Span) -> Option<Value> {
        if !matches!(self.setting, Setting::Row(_)) {
            return Some(self.rows_only("load", span));
        }
        let address = self.scalar(&arguments[0], "an address");
        let bytes = self.constant_u32(&arguments[1], "the number of bytes", 1, limits::LANES);
        let (address, bytes) = (address?, bytes?);
        Some(self.push(Op::Load { address }, Type::vector(8, bytes), span))
    }

    /// Reports what only the rows of machines may do.
    pub fn rows_only(&mut self, what: &str, span: Span) -> Value {
        self.report(
            Diagnostic::error("rows-only", span, format!("`{what}` is only for the rows of a machine"))
                .help("kernels read and write memory through their parameters"),
        )
    }

    /// An expression as a typed scalar.
    pub fn scalar(&mut self, expression: &Expression, what: &str) -> Option<NodeHandle> {
        let (node, width, lanes) = self.bits_argument(expression, None)?;
        if lanes != 1 {
            let name = self.type_name(&Type::vector(width, lanes));
            self.report(Diagnostic::error("wrong-lane-count", expression.span, format!("{what} is a scalar, not {name}")).at(name));
            return None;
        }
        Some(node)
    }
}
