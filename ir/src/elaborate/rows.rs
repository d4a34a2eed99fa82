//! Meanings of instruction rows.

use super::scope::Binding;
use super::value::Value;
use super::{Elaborator, Setting};
use crate::body::{Body, Port};
use crate::diagnostic::{Diagnostic, Severity};
use crate::meaning::MeaningOperand;
use crate::source::Span;
use crate::syntax::parse_statements;
use crate::types::ByteOrder;

/// Elaborates the statements of a row; see [`crate::meaning::elaborate_meaning`].
pub(crate) fn row(text: &str, offset: usize, operands: &[MeaningOperand], order: ByteOrder) -> Result<Body, Vec<Diagnostic>> {
    let parsed = parse_statements(text, offset);
    let mut elaborator = Elaborator::new(Setting::Row(order));
    elaborator.diagnostics = parsed.diagnostics;
    let whole = Span::new(offset..offset + text.trim_end().len());
    for operand in operands {
        let port = Port { name: operand.name.clone(), ty: operand.ty.clone(), span: whole };
        let value = if operand.read { Value::Node(elaborator.body().input(port)) } else { Value::Poison };
        elaborator.frame().declare(&operand.name, Binding { value, level: 0, span: whole, unreadable: !operand.read });
        if operand.written {
            elaborator.frame().fixed.insert(operand.name.clone(), (operand.ty.clone(), whole));
        }
    }
    elaborator.statements(&parsed.tree);
    let mut outputs = Vec::new();
    for operand in operands.iter().filter(|operand| operand.written) {
        let Some(binding) = elaborator.frame().find(&operand.name).cloned() else { continue };
        let port = Port { name: operand.name.clone(), ty: operand.ty.clone(), span: whole };
        match binding.value {
            _ if binding.unreadable => {
                elaborator.report(
                    Diagnostic::error("never-assigned", whole, format!("nothing is assigned to `{}`", operand.name))
                        .help(format!("the row declares it as a result: write `{} = …`", operand.name)),
                );
            }
            Value::Node(node) => outputs.push((port, node)),
            _ => {}
        }
    }
    elaborator.check_overflow();
    if elaborator.has_errors() {
        elaborator.diagnostics.retain(|diagnostic| diagnostic.severity == Severity::Error);
        return Err(elaborator.diagnostics);
    }
    let body = elaborator.place.bodies.swap_remove(0);
    Ok(body.finish(outputs))
}
