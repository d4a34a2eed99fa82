//! From syntax to typed bodies: names are resolved, functions inlined, constant ranges unrolled, untyped numbers given the types of their places.

mod builder;
mod builtins;
mod calls;
mod circles;
mod coercion;
mod constants;
mod expressions;
mod fold;
mod globals;
mod kernels;
mod known_answers;
mod loops;
mod operators;
mod rows;
mod scope;
mod statements;
mod steps;
mod types;
mod units;
mod value;

pub(crate) use rows::row;
pub use units::parse_unit;

use crate::body::{NodeHandle, Op, Port};
use crate::diagnostic::{Diagnostic, Severity};
use crate::limits;
use crate::source::Span;
use crate::types::{ByteOrder, Type};
use builder::Builder;
use globals::Globals;
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

/// What the body of a loop or map has of the enclosing body.
#[derive(Default)]
struct Captures {
    /// Value of the enclosing body to input or copy. Looked up only.
    known: HashMap<NodeHandle, NodeHandle>,
    /// Captured values of the enclosing body, in the order of the inputs.
    order: Vec<NodeHandle>,
    /// Constants of the unit that were written into this body already, by index. Looked up only.
    constants: HashMap<usize, Value>,
}

/// What belongs to the constant, function or kernel being elaborated.
struct Place {
    /// Bodies under construction, the innermost last.
    bodies: Vec<Builder>,
    /// One for each of `bodies`.
    captures: Vec<Captures>,
    /// Scopes of the functions being inlined, the innermost last.
    frames: Vec<Frame>,
    /// The moduli by what residue types call them: their node in the outermost body.
    moduli: IndexMap<u32, NodeHandle>,
    /// Which modulus a node of a body (by level) is. Looked up only.
    modulus_of: HashMap<(usize, NodeHandle), u32>,
    /// Moduli of the signature whose types are being elaborated.
    signature_moduli: IndexMap<String, (u32, u32)>,
    /// Rounds unrolled so far.
    rounds: usize,
}

impl Place {
    fn new() -> Self {
        let mut frame = Frame::default();
        frame.push();
        Self {
            bodies: vec![Builder::default()],
            captures: vec![Captures::default()],
            frames: vec![frame],
            moduli: IndexMap::new(),
            modulus_of: HashMap::new(),
            signature_moduli: IndexMap::new(),
            rounds: 0,
        }
    }
}

/// The state of an elaboration.
struct Elaborator {
    setting: Setting,
    diagnostics: Vec<Diagnostic>,
    globals: Globals,
    place: Place,
    /// How many items are being elaborated because others need them.
    needs: usize,
}

impl Elaborator {
    fn new(setting: Setting) -> Self {
        Self { setting, diagnostics: Vec::new(), globals: Globals::default(), place: Place::new(), needs: 0 }
    }

    /// Elaborates something else in a place of its own; gives what was made of it and its place.
    fn elsewhere<T>(&mut self, work: impl FnOnce(&mut Self) -> T) -> (T, Place) {
        let outer = std::mem::replace(&mut self.place, Place::new());
        self.needs += 1;
        let result = work(self);
        self.needs -= 1;
        self.check_overflow();
        (result, std::mem::replace(&mut self.place, outer))
    }

    fn body(&mut self) -> &mut Builder {
        self.place.bodies.last_mut().expect("a body is always under construction")
    }

    fn body_ref(&self) -> &Builder {
        self.place.bodies.last().expect("a body is always under construction")
    }

    fn frame(&mut self) -> &mut Frame {
        self.place.frames.last_mut().expect("a frame is always open")
    }

    fn frame_ref(&self) -> &Frame {
        self.place.frames.last().expect("a frame is always open")
    }

    fn level(&self) -> usize {
        self.place.bodies.len() - 1
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
        self.place.rounds += 1;
        if self.place.rounds == limits::UNROLLED_ROUNDS + 1 {
            self.report(
                Diagnostic::error("limit", span, format!("more than {} rounds and calls are unrolled", limits::UNROLLED_ROUNDS))
                    .help("use `loop` for counts that need no unrolling, and names for values that are used twice"),
            );
        }
        self.place.rounds <= limits::UNROLLED_ROUNDS && self.body_ref().overflow.is_none()
    }

    /// Whether too many items wait for others; reported then.
    fn needs_too_much(&mut self, span: Span) -> bool {
        let deep = self.needs > limits::NEED_DEPTH;
        if deep {
            self.report(
                Diagnostic::error("limit", span, format!("more than {} items need each other one after another", limits::NEED_DEPTH))
                    .help("define what is needed first"),
            );
        }
        deep
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
        if let Some(inner) = self.place.captures[level].known.get(&outer) {
            return *inner;
        }
        let node = self.place.bodies[level - 1].node(outer).clone();
        let inner = if self.place.bodies[level - 1].is_constant(outer) {
            // Constants are written again inside: a table must stay a table there.
            let mut op = node.op;
            op.for_each_operand_mut(|operand| *operand = self.import_node(level, *operand));
            self.place.bodies[level].push(op, node.ty, node.span)
        } else {
            self.place.captures[level].order.push(outer);
            self.place.bodies[level].input(Port { name: node.name, ty: node.ty, span: node.span })
        };
        self.place.captures[level].known.insert(outer, inner);
        if let Some(modulus) = self.place.modulus_of.get(&(level - 1, outer)).copied() {
            self.place.modulus_of.insert((level, inner), modulus);
        }
        inner
    }

    fn has_errors(&self) -> bool {
        self.diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error)
    }

    /// Reports a body that grew beyond the limit.
    fn check_overflow(&mut self) {
        if let Some(span) = self.place.bodies.iter().find_map(|body| body.overflow) {
            self.report(
                Diagnostic::error("limit", span, format!("more than {} nodes in one body", limits::BODY_NODES))
                    .help("split the kernel, or use `loop` instead of `for`"),
            );
        }
    }
}

/// `did you mean …` for an unknown name.
fn suggestion<'a>(wanted: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    known
        .into_iter()
        .take(limits::SUGGESTION_CANDIDATES)
        .map(|name| (strsim::damerau_levenshtein(wanted, name), name))
        .filter(|(distance, name)| *distance * 3 <= wanted.len().max(name.len()))
        .min()
        .map(|(_, name)| format!("did you mean `{name}`?"))
}
