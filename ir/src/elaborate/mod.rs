//! From syntax to typed bodies: names are resolved, functions inlined, constant ranges unrolled, untyped numbers given the types of their places.

mod builder;
mod builtins;
mod coercion;
mod expressions;
mod fold;
mod globals;
mod operators;
mod rows;
mod scope;
mod statements;
mod steps;
mod types;
mod value;

pub(crate) use rows::row;

use crate::body::{NodeHandle, Op};
use crate::diagnostic::{Diagnostic, Severity};
use crate::limits;
use crate::source::Span;
use crate::types::{ByteOrder, Type};
use builder::Builder;
use indexmap::IndexMap;
use scope::{Binding, Frame};
use std::collections::HashMap;
use value::Value;

/// What is being elaborated, as far as expressions and statements differ by it.
enum Setting {
    /// The statements of an instruction row; views without byte order mean this one.
    Row(ByteOrder),
    /// Constants, functions and kernels of a unit.
    Unit,
}

/// The body of a loop or map reads values of the enclosing body through inputs of its own.
#[derive(Default)]
struct Captures {
    /// Value of the enclosing body to input. Looked up only.
    known: HashMap<NodeHandle, NodeHandle>,
    /// Captured values of the enclosing body, in the order of the inputs.
    order: Vec<NodeHandle>,
}

/// The state of an elaboration.
struct Elaborator {
    setting: Setting,
    diagnostics: Vec<Diagnostic>,
    /// Bodies under construction, the innermost last.
    bodies: Vec<Builder>,
    /// One for each of `bodies`.
    captures: Vec<Captures>,
    /// Scopes of the functions being inlined, the innermost last.
    frames: Vec<Frame>,
    /// Names that are outputs: their types and where those are declared.
    outputs: IndexMap<String, (Type, Span)>,
    /// Rounds unrolled so far.
    rounds: usize,
}

impl Elaborator {
    fn new(setting: Setting) -> Self {
        let mut frame = Frame::default();
        frame.push();
        Self {
            setting,
            diagnostics: Vec::new(),
            bodies: vec![Builder::default()],
            captures: vec![Captures::default()],
            frames: vec![frame],
            outputs: IndexMap::new(),
            rounds: 0,
        }
    }

    fn body(&mut self) -> &mut Builder {
        self.bodies.last_mut().expect("a body is always under construction")
    }

    fn body_ref(&self) -> &Builder {
        self.bodies.last().expect("a body is always under construction")
    }

    fn frame(&mut self) -> &mut Frame {
        self.frames.last_mut().expect("a frame is always open")
    }

    fn level(&self) -> usize {
        self.bodies.len() - 1
    }

    fn report(&mut self, diagnostic: Diagnostic) -> Value {
        if self.diagnostics.len() < limits::ERRORS {
            self.diagnostics.push(diagnostic);
        }
        Value::Poison
    }

    fn error(&mut self, rule: &'static str, span: Span, message: impl Into<String>) -> Value {
        self.report(Diagnostic::error(rule, span, message))
    }

    fn push(&mut self, op: Op, ty: Type, span: Span) -> Value {
        Value::Node(self.body().push(op, ty, span))
    }

    fn ty(&self, node: NodeHandle) -> Type {
        self.body_ref().ty(node).clone()
    }

    fn bind(&mut self, value: Value, span: Span) -> Binding {
        Binding { value, level: self.level(), span, unreadable: false }
    }

    /// One more unrolled round; `false` when there were too many.
    fn count_round(&mut self, span: Span) -> bool {
        self.rounds += 1;
        if self.rounds == limits::UNROLLED_ROUNDS + 1 {
            self.report(
                Diagnostic::error("limit", span, format!("more than {} rounds are unrolled", limits::UNROLLED_ROUNDS))
                    .help("use `loop` for counts that need no unrolling"),
            );
        }
        self.rounds <= limits::UNROLLED_ROUNDS
    }

    /// A value of an enclosing body as one of the innermost body.
    fn import(&mut self, binding: &Binding) -> Value {
        let target = self.level();
        (binding.level + 1..=target).fold(binding.value.clone(), |value, level| self.import_into(level, &value))
    }

    fn import_into(&mut self, level: usize, value: &Value) -> Value {
        match value {
            Value::Node(node) => Value::Node(self.import_node(level, *node)),
            Value::List(items) => Value::List(items.iter().map(|item| self.import_into(level, item)).collect()),
            other => other.clone(),
        }
    }

    fn import_node(&mut self, level: usize, outer: NodeHandle) -> NodeHandle {
        if let Some(inner) = self.captures[level].known.get(&outer) {
            return *inner;
        }
        let node = self.bodies[level - 1].node(outer).clone();
        let inner = if self.bodies[level - 1].is_constant(outer) {
            // Constants are written again inside: a table must stay a table there.
            let mut op = node.op;
            op.for_each_operand_mut(|operand| *operand = self.import_node(level, *operand));
            self.bodies[level].push(op, node.ty, node.span)
        } else {
            self.captures[level].order.push(outer);
            self.bodies[level].input(crate::body::Port { name: node.name, ty: node.ty, span: node.span })
        };
        self.captures[level].known.insert(outer, inner);
        inner
    }

    fn has_errors(&self) -> bool {
        self.diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error)
    }

    /// The errors so far, those of limits included.
    fn check_overflow(&mut self) {
        if let Some(span) = self.bodies.iter().find_map(|body| body.overflow) {
            self.report(
                Diagnostic::error("limit", span, format!("more than {} nodes in one body", limits::BODY_NODES))
                    .help("split the kernel, or use `loop` instead of `for`"),
            );
        }
    }
}

/// ` did you mean …` help for an unknown name.
fn suggestion<'a>(wanted: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    known
        .into_iter()
        .map(|name| (strsim::damerau_levenshtein(wanted, name), name))
        .filter(|(distance, name)| *distance * 3 <= wanted.len().max(name.len()))
        .min()
        .map(|(_, name)| format!("did you mean `{name}`?"))
}
