//! Operator chains: `a ^ b ^ c`, `x << 3`, `a == b`.

use super::Elaborator;
use super::coercion::Asker;
use super::value::{Value, shape};
use crate::body::{BinaryOp, NaryOp, NodeHandle, Op, UnaryOp};
use crate::diagnostic::Diagnostic;
use crate::limits;
use crate::source::Span;
use crate::syntax::ast::{Expression, Operator};
use crate::types::Type;
use num_bigint::BigInt;
use num_traits::{ToPrimitive, Zero};

/// A value and where it was written.
pub type Spanned = (Value, Span);

fn nary(operator: Operator) -> Option<NaryOp> {
    match operator {
        Operator::Add => Some(NaryOp::Add),
        Operator::Xor => Some(NaryOp::Xor),
        Operator::And => Some(NaryOp::And),
        Operator::Or => Some(NaryOp::Or),
        _ => None,
    }
}

impl Elaborator {
    /// A chain of operators of one precedence.
    pub fn chain(&mut self, first: &Expression, rest: &[(Operator, Expression)], hint: Option<&Type>) -> Value {
        let lanewise = !matches!(
            rest.first().map(|(operator, _)| operator.precedence()),
            Some(level) if level == Operator::Equal.precedence() || level == Operator::Concatenate.precedence()
        );
        let hint = if lanewise { hint } else { None };
        let mut left = (self.expression(first, hint), first.span);
        let mut position = 0;
        while let Some((operator, _)) = rest.get(position) {
            // Runs of one associative operator are joined at once.
            let run = if nary(*operator).is_some() || *operator == Operator::Concatenate {
                rest[position..].iter().take_while(|(next, _)| next == operator).count()
            } else {
                1
            };
            let mut operands = vec![left.clone()];
            for (_, operand) in &rest[position..position + run] {
                let known = operands.iter().find_map(|(value, _)| match value {
                    Value::Node(node) => Some(self.ty(*node)),
                    _ => None,
                });
                let operand_hint = if matches!(operator, Operator::ShiftLeft | Operator::ShiftRight | Operator::Concatenate) {
                    None
                } else {
                    known.as_ref().or(hint)
                };
                let value = self.expression(operand, operand_hint);
                operands.push((value, operand.span));
            }
            let span = operands.iter().fold(left.1, |span, (_, place)| span.join(*place));
            let value = if operands.iter().any(|(value, _)| matches!(value, Value::Poison)) {
                Value::Poison
            } else if let Some(bad) = operands.iter().find(|(value, _)| matches!(value, Value::Nothing)) {
                self.error("no-value", bad.1, "this gives no value")
            } else {
                self.join(*operator, operands, hint, span)
            };
            left = (value, span);
            position += run;
        }
        left.0
    }

    /// Operands of one operator; two unless it is associative.
    fn join(&mut self, operator: Operator, operands: Vec<Spanned>, hint: Option<&Type>, span: Span) -> Value {
        if let Some(op) = nary(operator) {
            return self.nary(op, &operands, hint, span);
        }
        if operator == Operator::Concatenate {
            return self.concatenate(&operands, span);
        }
        let [left, right] = operands.as_slice() else { return Value::Poison };
        match operator {
            Operator::ShiftLeft | Operator::ShiftRight => {
                let op = if operator == Operator::ShiftLeft { BinaryOp::ShiftLeft } else { BinaryOp::ShiftRight };
                self.shift(op, left, right, hint, span)
            }
            Operator::Subtract => self.arithmetic(BinaryOp::Subtract, left, right, hint, span),
            Operator::Multiply => self.arithmetic(BinaryOp::Multiply, left, right, hint, span),
            Operator::Divide => self.arithmetic(BinaryOp::Divide, left, right, hint, span),
            Operator::Remainder => self.arithmetic(BinaryOp::Remainder, left, right, hint, span),
            Operator::Equal => self.compare(BinaryOp::Equal, left, right, false, span),
            Operator::NotEqual => self.compare(BinaryOp::Equal, left, right, true, span),
            Operator::Less => self.compare(BinaryOp::Less, left, right, false, span),
            Operator::Greater => self.compare(BinaryOp::Less, right, left, false, span),
            Operator::LessEqual => self.compare(BinaryOp::Less, right, left, true, span),
            Operator::GreaterEqual => self.compare(BinaryOp::Less, left, right, true, span),
            Operator::Add | Operator::Xor | Operator::And | Operator::Or | Operator::Concatenate => Value::Poison,
        }
    }

    fn numbers(operands: &[Spanned]) -> Option<Vec<&BigInt>> {
        operands
            .iter()
            .map(|(value, _)| match value {
                Value::Number(number) => Some(number),
                _ => None,
            })
            .collect()
    }

    /// `+ ^ & |` of any number of operands (at least one).
    pub fn nary(&mut self, op: NaryOp, operands: &[Spanned], hint: Option<&Type>, span: Span) -> Value {
        if let Some(numbers) = Self::numbers(operands) {
            let joined = numbers.into_iter().cloned().reduce(|a, b| match op {
                NaryOp::Add => a + b,
                NaryOp::Xor => a ^ b,
                NaryOp::And => a & b,
                NaryOp::Or => a | b,
            });
            return joined.map_or(Value::Poison, |number| self.bounded(number, span));
        }
        if op == NaryOp::Add && operands.iter().any(|(value, _)| self.is_natural(value)) {
            let mut sum: Option<Spanned> = None;
            for operand in operands {
                sum = Some(match sum {
                    None => operand.clone(),
                    Some(left) => {
                        let place = left.1.join(operand.1);
                        (self.natural(BinaryOp::Multiply, Some(NaryOp::Add), &left, operand, place), place)
                    }
                });
            }
            return sum.map_or(Value::Poison, |(value, _)| value);
        }
        if op == NaryOp::Add && operands.iter().any(|(value, _)| self.is_residue(value)) {
            let sum = operands.iter().cloned().reduce(|left, right| {
                let place = left.1.join(right.1);
                (self.residues(true, &left, &right, place), place)
            });
            return sum.map_or(Value::Poison, |(value, _)| value);
        }
        match self.unify(operands, hint, span) {
            Some((nodes, ty)) => self.push(Op::Nary(op, nodes), ty, span),
            None => Value::Poison,
        }
    }

    /// A number within the limit on constants.
    fn bounded(&mut self, number: BigInt, span: Span) -> Value {
        if number.bits() > u64::from(limits::NATURAL_BITS) {
            return self.error("limit", span, format!("a constant of more than {} bits", limits::NATURAL_BITS));
        }
        Value::Number(number)
    }

    fn is_natural(&self, value: &Value) -> bool {
        matches!(value, Value::Node(node) if matches!(self.body_ref().ty(*node), Type::Natural { .. }))
    }

    fn is_residue(&self, value: &Value) -> bool {
        matches!(value, Value::Node(node) if matches!(self.body_ref().ty(*node), Type::Residue { .. }))
    }

    /// Sum or difference of residues of one modulus; a number stands for a residue of the other's modulus.
    fn residues(&mut self, sum: bool, left: &Spanned, right: &Spanned, span: Span) -> Value {
        let operands = [left.clone(), right.clone()];
        let Some((ty, asker)) = self.common_type(&operands, None) else { return Value::Poison };
        let Type::Residue { modulus, .. } = ty else {
            let name = self.type_name(&ty);
            return self.not_bits(&name, asker.span);
        };
        let [a, b] = operands.map(|(value, place)| self.coerce(&value, &ty, place, &asker));
        let (Some(a), Some(b), Some(modulus)) = (a, b, self.modulus_node(modulus)) else { return Value::Poison };
        let op = if sum { Op::ResidueAdd { modulus, a, b } } else { Op::ResidueSubtract { modulus, a, b } };
        self.push(op, ty, span)
    }

    /// Operands as nodes of one `Bits` type.
    pub fn unify(&mut self, operands: &[Spanned], hint: Option<&Type>, span: Span) -> Option<(Vec<NodeHandle>, Type)> {
        if operands.iter().any(|(value, _)| matches!(value, Value::Poison)) {
            return None;
        }
        let Some((ty, asker)) = self.common_type(operands, hint) else {
            self.untyped(span);
            return None;
        };
        if shape(&ty).is_none() {
            let name = self.type_name(&ty);
            self.not_bits(&name, asker.span);
            return None;
        }
        let nodes: Vec<Option<NodeHandle>> = operands.iter().map(|(value, place)| self.coerce(value, &ty, *place, &asker)).collect();
        Some((nodes.into_iter().collect::<Option<_>>()?, ty))
    }

    /// Reports an operand that is not of the types `uW` and `uWxN`.
    pub fn not_bits(&mut self, found: &str, span: Span) -> Value {
        self.report(
            Diagnostic::error("not-bits", span, format!("this operation wants uW or uWxN, not {found}"))
                .help("naturals know + - * low high, residues know + - mont canonical; index arrays first"),
        )
    }

    /// `- * / %`.
    fn arithmetic(&mut self, op: BinaryOp, left: &Spanned, right: &Spanned, hint: Option<&Type>, span: Span) -> Value {
        if let (Value::Number(a), Value::Number(b)) = (&left.0, &right.0) {
            return match op {
                BinaryOp::Subtract => self.bounded(a - b, span),
                BinaryOp::Multiply => self.bounded(a * b, span),
                _ if b.is_zero() => self.error("division-by-zero", right.1, "division by zero"),
                BinaryOp::Divide => Value::Number(a / b),
                _ => Value::Number(a % b),
            };
        }
        if self.is_natural(&left.0) || self.is_natural(&right.0) {
            return self.natural(op, None, left, right, span);
        }
        if op == BinaryOp::Subtract && (self.is_residue(&left.0) || self.is_residue(&right.0)) {
            return self.residues(false, left, right, span);
        }
        if matches!(op, BinaryOp::Divide | BinaryOp::Remainder) && self.as_number(&right.0).is_some_and(|divisor| divisor.is_zero()) {
            return self.error("division-by-zero", right.1, "division by zero");
        }
        match self.unify(&[left.clone(), right.clone()], hint, span) {
            Some((nodes, ty)) => self.push(Op::Binary(op, nodes[0], nodes[1]), ty, span),
            None => Value::Poison,
        }
    }

    /// Sum (where `sum` is given), difference or product of naturals; an untyped number is as wide as it needs.
    fn natural(&mut self, op: BinaryOp, sum: Option<NaryOp>, left: &Spanned, right: &Spanned, span: Span) -> Value {
        let mut operands = Vec::new();
        for (index, (value, place)) in [left, right].into_iter().enumerate() {
            let other = if index == 0 { right } else { left };
            let node = match value {
                Value::Number(number) => {
                    let bits = u32::try_from(number.bits().max(1)).unwrap_or(u32::MAX);
                    let asker = Asker { span: other.1, text: format!("this is {}", self.describe(&other.0)) };
                    self.coerce(value, &Type::Natural { bits }, *place, &asker)
                }
                Value::Node(node) if self.is_natural(value) => Some(*node),
                Value::Poison => None,
                _ => {
                    let (this, that) = (self.describe(value), self.describe(&other.0));
                    self.report(
                        Diagnostic::error("type-mismatch", *place, format!("expected a natural, found {this}"))
                            .at(this)
                            .label(other.1, format!("this is {that}"))
                            .help("naturals are calculated with naturals and numbers"),
                    );
                    None
                }
            };
            operands.push(node);
        }
        let (Some(a), Some(b)) = (operands[0], operands[1]) else { return Value::Poison };
        let width = |elaborator: &Self, node| match elaborator.body_ref().ty(node) {
            Type::Natural { bits } => *bits,
            _ => 0,
        };
        let (a_bits, b_bits) = (width(self, a), width(self, b));
        let (op, bits) = match (sum, op) {
            (Some(_), _) => (Op::NaturalAdd(a, b), a_bits.max(b_bits) + 1),
            (None, BinaryOp::Subtract) => (Op::NaturalSubtract(a, b), a_bits),
            (None, BinaryOp::Multiply) => (Op::NaturalMultiply(a, b), a_bits + b_bits),
            _ => return self.error("not-bits", span, "naturals know + - *, not division"),
        };
        if bits > limits::NATURAL_BITS {
            return self.error("limit", span, format!("a natural of {bits} bits, more than {}", limits::NATURAL_BITS));
        }
        self.push(op, Type::Natural { bits }, span)
    }

    /// Shifts and rotations: the count is a scalar of any width, or one for each lane.
    pub fn shift(&mut self, op: BinaryOp, left: &Spanned, right: &Spanned, hint: Option<&Type>, span: Span) -> Value {
        if let (Value::Number(value), Value::Number(count)) = (&left.0, &right.0)
            && matches!(op, BinaryOp::ShiftLeft | BinaryOp::ShiftRight)
        {
            let Some(count) = count.to_u32().filter(|count| *count <= limits::NATURAL_BITS) else {
                return self.error("out-of-range", right.1, format!("constants are shifted by 0 to {} bits", limits::NATURAL_BITS));
            };
            let shifted = if op == BinaryOp::ShiftLeft { value << count } else { value >> count };
            return self.bounded(shifted, span);
        }
        let Some((nodes, ty)) = self.unify(std::slice::from_ref(left), hint, left.1) else { return Value::Poison };
        let count = match &right.0 {
            Value::Number(number) => self.count_constant(number, right.1),
            value => self.settle(value, right.1),
        };
        let Some(count) = count else { return Value::Poison };
        let count_type = self.ty(count);
        match (shape(&ty), shape(&count_type)) {
            (Some((_, lanes)), Some((_, count_lanes))) if count_lanes == 1 || count_lanes == lanes => {
                self.push(Op::Binary(op, nodes[0], count), ty, span)
            }
            _ => {
                let (value_name, count_name) = (self.type_name(&ty), self.type_name(&count_type));
                self.report(
                    Diagnostic::error("wrong-lane-count", right.1, format!("{count_name} cannot count the shift of {value_name}"))
                        .at(count_name)
                        .label(left.1, format!("this is {value_name}"))
                        .help("give one count, or one for each lane"),
                )
            }
        }
    }

    /// Comparisons give u1, per lane.
    pub fn compare(&mut self, op: BinaryOp, left: &Spanned, right: &Spanned, inverted: bool, span: Span) -> Value {
        if let (Value::Number(a), Value::Number(b)) = (&left.0, &right.0) {
            let holds = match op {
                BinaryOp::Equal => a == b,
                _ => a < b,
            };
            return Value::Number(BigInt::from(u8::from(holds != inverted)));
        }
        let Some((nodes, ty)) = self.unify(&[left.clone(), right.clone()], None, span) else { return Value::Poison };
        let lanes = shape(&ty).map_or(1, |(_, lanes)| lanes);
        let flags = Type::vector(1, lanes);
        let holds = self.body().push(Op::Binary(op, nodes[0], nodes[1]), flags.clone(), span);
        if inverted { self.push(Op::Unary(UnaryOp::Not, holds), flags, span) } else { Value::Node(holds) }
    }

    /// `~x`.
    pub fn complement(&mut self, operand: &Spanned, hint: Option<&Type>, span: Span) -> Value {
        match self.unify(std::slice::from_ref(operand), hint, span) {
            Some((nodes, ty)) => self.push(Op::Unary(UnaryOp::Not, nodes[0]), ty, span),
            None => Value::Poison,
        }
    }

    /// `a ++ b`: lanes one after another; arrays likewise.
    fn concatenate(&mut self, operands: &[Spanned], span: Span) -> Value {
        if operands.iter().all(|(value, _)| matches!(value, Value::List(_))) {
            let items = operands.iter().flat_map(|(value, _)| if let Value::List(items) = value { items.to_vec() } else { Vec::new() });
            return Value::List(items.collect());
        }
        let nodes: Vec<Option<NodeHandle>> = operands.iter().map(|(value, place)| self.settle(value, *place)).collect();
        let Some(nodes) = nodes.into_iter().collect::<Option<Vec<NodeHandle>>>() else { return Value::Poison };
        let first = self.ty(nodes[0]);
        let mut total = 0u32;
        let mut elements = Vec::new();
        for (node, (_, place)) in nodes.iter().zip(operands) {
            let ty = self.ty(*node);
            match (&first, &ty) {
                (Type::Bits { width, .. }, Type::Bits { width: other, lanes }) if width == other => total = total.saturating_add(*lanes),
                (Type::Array { element, .. }, Type::Array { element: other, length }) if element == other => {
                    for index in 0..*length {
                        elements.push(self.element_at(*node, index, *place));
                    }
                }
                _ => {
                    let (this, that) = (self.type_name(&ty), self.type_name(&first));
                    return self.report(
                        Diagnostic::error("type-mismatch", *place, format!("{this} cannot be concatenated with {that}"))
                            .at(this)
                            .label(operands[0].1, format!("this is {that}"))
                            .help("both sides need lanes (or elements) of one type"),
                    );
                }
            }
        }
        match first {
            Type::Bits { width, .. } => match self.bits_type(width, total, span) {
                Some(ty) => self.push(Op::Concatenate(nodes), ty, span),
                None => Value::Poison,
            },
            Type::Array { element, .. } => {
                let ty = Type::Array { element, length: elements.len() as u32 };
                self.push(Op::Array(elements), ty, span)
            }
            other => {
                let name = self.type_name(&other);
                self.not_bits(&name, span)
            }
        }
    }
}
