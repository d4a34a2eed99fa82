//! `test` blocks: values by parameter name, typed by the kernel.

use super::Elaborator;
use super::coercion::Asker;
use super::kernels::RESULT;
use super::suggestion;
use super::value::Value;
use crate::bits::Bits;
use crate::diagnostic::Diagnostic;
use crate::interpret::Argument;
use crate::kernel::{Direction, Kernel, KnownAnswer, Parameter};
use crate::limits;
use crate::source::Span;
use crate::syntax::ast::{Expected, Expression, Name};
use crate::types::Type;
use num_bigint::BigUint;
use std::rc::Rc;

/// A `test` item.
pub struct TestItem {
    /// The kernel as written.
    pub kernel: Name,
    /// What the test calls itself.
    pub title: String,
    /// Values of the parameters read.
    pub given: Vec<(Name, Expression)>,
    /// The values expected.
    pub expected: Expected,
    /// The whole item.
    pub span: Span,
}

/// A value of the same shape with nothing in it.
fn blank(value: &Argument) -> Argument {
    match value {
        Argument::Bits(bits) => Argument::Bits(Bits::zero(bits.width())),
        Argument::Integer(_) => Argument::Integer(BigUint::ZERO),
        Argument::List(items) => Argument::List(items.iter().map(blank).collect()),
    }
}

impl Elaborator {
    /// A known answer; `None` after an error or where its kernel has one.
    pub fn known_answer(&mut self, item: &TestItem) -> Option<KnownAnswer> {
        let filled = self.fill_name(&item.kernel.text, item.kernel.span)?;
        let Some(index) = self.globals.kernels.get_index_of(&filled) else {
            let names: Vec<String> = self.globals.kernels.keys().cloned().collect();
            let mut diagnostic = Diagnostic::error("unknown-name", item.kernel.span, format!("no kernel is called `{filled}`"));
            diagnostic.help = suggestion(&filled, names.iter().map(String::as_str));
            self.report(diagnostic);
            return None;
        };
        let kernel: Rc<Kernel> = self.kernel(index)?;
        let inputs: Vec<&Parameter> = kernel.parameters.iter().filter(|parameter| parameter.direction != Direction::Out).collect();
        let outputs: Vec<&Parameter> = kernel.parameters.iter().filter(|parameter| parameter.direction != Direction::In).collect();
        let given = self.values(&kernel, &item.given, &inputs, "reads");
        let missing: Vec<&str> = inputs
            .iter()
            .map(|parameter| parameter.name.as_str())
            .filter(|name| !item.given.iter().any(|(given, _)| given.text == *name))
            .collect();
        if !missing.is_empty() {
            self.report(
                Diagnostic::error("incomplete-test", item.span, format!("the test gives no value for `{}`", missing.join("`, `")))
                    .label(kernel.span, format!("`{}` reads it", kernel.name))
                    .help(format!("write `{} = …` before the arrow", missing[0])),
            );
        }
        let expected = match &item.expected {
            Expected::Named(entries) => self.values(&kernel, entries, &outputs, "writes"),
            Expected::Only(value) => {
                let [only] = outputs.as_slice() else {
                    let names: Vec<&str> = outputs.iter().map(|parameter| parameter.name.as_str()).collect();
                    self.report(
                        Diagnostic::error("incomplete-test", value.span, format!("`{}` has {} results", kernel.name, outputs.len()))
                            .label(kernel.span, "the kernel")
                            .help(format!("name what is expected: `{} = …`", names.first().unwrap_or(&RESULT))),
                    );
                    return None;
                };
                let name = Name { text: only.name.clone(), span: value.span };
                self.values(&kernel, &[(name, value.clone())], &outputs, "writes")
            }
        };
        let (mut given, expected) = (given?, expected?);
        if !missing.is_empty() {
            return None;
        }
        // A slice that is only written is given for its length; its elements are not read.
        for parameter in kernel.parameters.iter().filter(|parameter| parameter.is_input() && parameter.direction == Direction::Out) {
            if let Some((name, value)) = expected.iter().find(|(name, _)| *name == parameter.name) {
                given.push((name.clone(), blank(value)));
            }
        }
        Some(KnownAnswer { kernel: kernel.name.clone(), title: item.title.clone(), given, expected, span: item.span })
    }

    fn values(
        &mut self,
        kernel: &Kernel,
        entries: &[(Name, Expression)],
        known: &[&Parameter],
        verb: &str,
    ) -> Option<Vec<(String, Argument)>> {
        let mut values: Vec<(String, Argument)> = Vec::new();
        let before = self.errors();
        for (place, (name, expression)) in entries.iter().enumerate() {
            let Some(parameter) = known.iter().find(|parameter| parameter.name == name.text) else {
                let names = known.iter().map(|parameter| parameter.name.as_str());
                let mut diagnostic =
                    Diagnostic::error("unknown-name", name.span, format!("`{}` {verb} no parameter `{}`", kernel.name, name.text))
                        .label(kernel.span, "the kernel");
                diagnostic.help = suggestion(&name.text, names);
                self.report(diagnostic);
                continue;
            };
            if let Some((first, _)) = entries[..place].iter().find(|(first, _)| first.text == name.text) {
                self.report(
                    Diagnostic::error("duplicate-name", name.span, format!("`{}` has a value already", name.text))
                        .label(first.span, "the first one is here")
                        .help("remove one of them"),
                );
                continue;
            }
            if let Some(argument) = self.test_value(kernel, parameter, expression) {
                values.push((name.text.clone(), argument));
            }
        }
        (self.errors() == before).then_some(values)
    }

    fn test_value(&mut self, kernel: &Kernel, parameter: &Parameter, expression: &Expression) -> Option<Argument> {
        let moduli = kernel.parameters.iter().enumerate().filter_map(|(index, parameter)| match parameter.ty {
            Type::Modulus { bits } => Some((parameter.name.clone(), (index as u32, bits))),
            _ => None,
        });
        let moduli = moduli.collect();
        let (fixed, _) = self.elsewhere(|elaborator| {
            elaborator.place.signature_moduli = moduli;
            let asker = Asker { span: parameter.span, text: format!("`{}` is {}", parameter.name, elaborator.type_name(&parameter.ty)) };
            let value = elaborator.expression(expression, Some(&parameter.ty));
            let ty = elaborator.sized(&parameter.ty, &value, expression.span)?;
            let node = elaborator.coerce(&value, &ty, expression.span, &asker)?;
            elaborator.fix(&Value::Node(node), expression.span, "a value of a test")
        });
        fixed?.argument()
    }

    /// A slice takes the length of its value.
    fn sized(&mut self, ty: &Type, value: &Value, span: Span) -> Option<Type> {
        let Type::Slice { element } = ty else { return Some(ty.clone()) };
        let length = match value {
            Value::List(items) => items.len(),
            Value::Bytes(bytes) => {
                let size = element.total_bits().map_or(1, |bits| bits.div_ceil(8)) as usize;
                if !bytes.len().is_multiple_of(size) {
                    let name = self.type_name(element);
                    self.report(
                        Diagnostic::error("wrong-lane-count", span, format!("{} bytes are no whole number of {name}", bytes.len()))
                            .help(format!("give a multiple of {size} bytes")),
                    );
                    return None;
                }
                bytes.len() / size
            }
            _ => 0,
        };
        if length > limits::ARRAY_ELEMENTS as usize {
            self.error("limit", span, format!("a slice of {length} elements, more than {}", limits::ARRAY_ELEMENTS));
            return None;
        }
        Some(Type::Array { element: element.clone(), length: length as u32 })
    }
}
