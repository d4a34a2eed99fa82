//! Expressions: literals, names, lists, comprehensions, folds.

use super::Elaborator;
use super::coercion::Asker;
use super::operators::Spanned;
use super::suggestion;
use super::value::Value;
use crate::body::NaryOp;
use crate::diagnostic::Diagnostic;
use crate::limits;
use crate::source::Span;
use crate::syntax::ast::{Expression, ExpressionKind, Fold, Name, Range};
use crate::types::Type;
use num_bigint::BigInt;
use num_traits::{Num, ToPrimitive};

/// Stack kept free below a recursive step, and how much is added when less is left: nesting and inlining are bounded by `limits`, frames of debug builds are not.
const RED_ZONE_BYTES: usize = 128 << 10;
const STACK_STEP_BYTES: usize = 2 << 20;

impl Elaborator {
    /// The value of an expression. `hint` is the type that the place wants; it decides the type of what has none, nothing else.
    pub fn expression(&mut self, expression: &Expression, hint: Option<&Type>) -> Value {
        stacker::maybe_grow(RED_ZONE_BYTES, STACK_STEP_BYTES, || self.expression_inner(expression, hint))
    }

    fn expression_inner(&mut self, expression: &Expression, hint: Option<&Type>) -> Value {
        let span = expression.span;
        match &expression.kind {
            ExpressionKind::Number(text) => self.number(text, span),
            ExpressionKind::Hex(text) => self.hex(text, span),
            ExpressionKind::Name(name) => self.read_name(name, span),
            ExpressionKind::List(items) => {
                let element = element_hint(hint);
                list(items.iter().map(|item| self.expression(item, element.as_ref())).collect())
            }
            ExpressionKind::Comprehension { variable, range, body } => {
                let element = element_hint(hint);
                let values = self.rounds(variable, range, body, element.as_ref());
                values.map_or(Value::Poison, |values| list(values.into_iter().map(|(value, _)| value).collect()))
            }
            ExpressionKind::Fold { fold, variable, range, body } => match self.rounds(variable, range, body, hint) {
                Some(values) => self.fold(*fold, &values, hint, span),
                None => Value::Poison,
            },
            ExpressionKind::Call { function, arguments } => self.call(function, arguments, hint, span),
            ExpressionKind::Not(operand) => {
                let value = self.expression(operand, hint);
                if matches!(value, Value::Poison) { Value::Poison } else { self.complement(&(value, operand.span), hint, span) }
            }
            ExpressionKind::Chain { first, rest } => self.chain(first, rest, hint),
            ExpressionKind::Postfix { base, steps } => self.postfix(base, steps),
            ExpressionKind::Error => Value::Poison,
        }
    }

    /// An expression as a node of this type; `None` after an error.
    pub fn expression_as(&mut self, expression: &Expression, ty: &Type, asker: &Asker) -> Option<crate::body::NodeHandle> {
        let value = self.expression(expression, Some(ty));
        self.coerce(&value, ty, expression.span, asker)
    }

    fn number(&mut self, text: &str, span: Span) -> Value {
        let digits = text.replace('_', "");
        let (radix, digits) = match digits.get(..2) {
            Some("0x") => (16, &digits[2..]),
            Some("0b") => (2, &digits[2..]),
            Some("0o") => (8, &digits[2..]),
            _ => (10, digits.as_str()),
        };
        // The limit on digits stands before the conversion, which is quadratic for decimal digits.
        if digits.len() > limits::NUMBER_DIGITS {
            return Value::Poison;
        }
        match BigInt::from_str_radix(digits, radix) {
            Ok(number) if number.bits() <= u64::from(limits::NATURAL_BITS) => Value::Number(number),
            Ok(number) => self.error("limit", span, format!("a number of {} bits, more than {}", number.bits(), limits::NATURAL_BITS)),
            Err(_) => self.report(
                Diagnostic::error("malformed-number", span, format!("`{text}` is no number"))
                    .help("numbers are written 42, 0x2a, 0b101010, 1_000_000"),
            ),
        }
    }

    fn hex(&mut self, text: &str, span: Span) -> Value {
        let digits: Vec<char> = text.chars().filter(|character| !character.is_whitespace()).collect();
        let bytes: Option<Vec<u8>> = digits
            .chunks(2)
            .map(|pair| match pair {
                [high, low] => Some((high.to_digit(16)? * 16 + low.to_digit(16)?) as u8),
                _ => None,
            })
            .collect();
        match bytes {
            Some(bytes) => Value::Bytes(bytes.into()),
            None => self.report(
                Diagnostic::error("malformed-number", span, "hex\"…\" holds pairs of hexadecimal digits and blanks")
                    .help("each byte takes two digits"),
            ),
        }
    }

    fn read_name(&mut self, name: &str, span: Span) -> Value {
        if let Some(binding) = self.place.frames.last().and_then(|frame| frame.find(name)).cloned() {
            if binding.unreadable {
                return self.report(
                    Diagnostic::error("read-before-assignment", span, format!("`{name}` is read before anything is assigned to it"))
                        .label(binding.span, "it is only written")
                        .help(format!("assign it first: `{name} = …`, or declare it as read too")),
                );
            }
            return self.import(&binding);
        }
        if let Some(value) = self.global(name, span) {
            return value;
        }
        let mut names: Vec<String> = self.place.frames.last().map(|frame| frame.names().map(str::to_owned).collect()).unwrap_or_default();
        names.extend(self.global_names());
        let mut diagnostic = Diagnostic::error("unknown-name", span, format!("`{name}` is not known here"));
        diagnostic.help = suggestion(name, names.iter().map(String::as_str));
        self.report(diagnostic)
    }

    /// Start and end of a constant range.
    pub fn range(&mut self, range: &Range) -> Option<(BigInt, BigInt)> {
        let start = self.constant_number(&range.start, "the start of a range");
        let end = self.constant_number(&range.end, "the end of a range");
        Some((start?, end?))
    }

    /// A constant expression as a number.
    pub fn constant_number(&mut self, expression: &Expression, what: &str) -> Option<BigInt> {
        let value = self.expression(expression, None);
        if matches!(value, Value::Poison) {
            return None;
        }
        let number = self.as_number(&value);
        if number.is_none() {
            self.not_constant(&value, expression.span, what);
        }
        number
    }

    /// A constant expression between bounds.
    pub fn constant_u32(&mut self, expression: &Expression, what: &str, low: u32, high: u32) -> Option<u32> {
        let value = self.expression(expression, None);
        self.as_u32(&value, expression.span, what, low, high)
    }

    /// How many rounds a constant range has; an error where it runs backwards.
    pub fn round_count(&mut self, range: &Range) -> Option<(BigInt, u32)> {
        let (start, end) = self.range(range)?;
        let span = range.start.span.join(range.end.span);
        match (&end - &start).to_i64() {
            Some(count @ 0..) if usize::try_from(count).is_ok_and(|count| count <= limits::UNROLLED_ROUNDS) => Some((start, count as u32)),
            Some(i64::MIN..0) => {
                self.report(
                    Diagnostic::error("out-of-range", span, format!("the range runs backwards, from {start} to {end}"))
                        .help("ranges are half open and ascend: `0..4` is 0, 1, 2, 3"),
                );
                None
            }
            _ => {
                self.error("limit", span, format!("more than {} rounds are unrolled", limits::UNROLLED_ROUNDS));
                None
            }
        }
    }

    /// The values of an expression over a constant range.
    fn rounds(&mut self, variable: &Name, range: &Range, body: &Expression, hint: Option<&Type>) -> Option<Vec<Spanned>> {
        let (start, count) = self.round_count(range)?;
        self.may_bind(variable);
        self.frame().push();
        let mut values = Vec::with_capacity(count as usize);
        let errors = self.diagnostics.len();
        for round in 0..count {
            if !self.count_round(body.span) {
                break;
            }
            let counter = self.bind(Value::Number(&start + round), variable.span);
            self.frame().declare(&variable.text, counter);
            let value = self.expression(body, hint);
            values.push((value, body.span));
            // The same mistake in every round is one mistake.
            if self.diagnostics.len() > errors {
                break;
            }
        }
        self.frame().pop();
        (self.diagnostics.len() == errors).then_some(values)
    }

    fn fold(&mut self, fold: Fold, values: &[Spanned], hint: Option<&Type>, span: Span) -> Value {
        let op = match fold {
            Fold::Sum => NaryOp::Add,
            Fold::Xor => NaryOp::Xor,
            Fold::And => NaryOp::And,
            Fold::Or => NaryOp::Or,
        };
        match values {
            [] if fold == Fold::And => self.report(
                Diagnostic::error("empty-fold", span, "`and` over an empty range has no value without a width")
                    .help("give the range at least one value"),
            ),
            [] => Value::Number(BigInt::ZERO),
            [(only, _)] => only.clone(),
            values => self.nary(op, values, hint, span),
        }
    }
}

/// A list, unless an item of it was reported.
fn list(items: Vec<Value>) -> Value {
    if items.iter().any(|item| matches!(item, Value::Poison)) { Value::Poison } else { Value::List(items.into()) }
}

/// The type that a place wants for the items of a list.
fn element_hint(hint: Option<&Type>) -> Option<Type> {
    match hint? {
        Type::Bits { width, lanes: 2.. } => Some(Type::bits(*width)),
        Type::Bits { lanes: _, .. } => Some(Type::bits(1)),
        Type::Array { element, .. } | Type::Slice { element } => Some((**element).clone()),
        _ => None,
    }
}
