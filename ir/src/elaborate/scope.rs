//! Names and what they are bound to.

use super::value::Value;
use crate::source::Span;
use crate::types::Type;
use indexmap::IndexMap;

/// A bound name.
#[derive(Clone, Debug)]
pub struct Binding {
    /// Its value, in the body of `level`.
    pub value: Value,
    /// Which body of the stack of bodies the value belongs to.
    pub level: usize,
    /// Where it was bound.
    pub span: Span,
    /// Why it may not be read, where it may not: an output that nothing was assigned to yet.
    pub unreadable: bool,
}

/// The scopes of one function, kernel or row.
#[derive(Default)]
pub struct Frame {
    /// Names whose type is fixed (outputs, carried values, written elements): the type and where it is declared.
    pub fixed: IndexMap<String, (Type, Span)>,
    scopes: Vec<IndexMap<String, Binding>>,
}

impl Frame {
    /// Opens a scope.
    pub fn push(&mut self) {
        self.scopes.push(IndexMap::new());
    }

    /// Closes the innermost scope and gives its names.
    pub fn pop(&mut self) -> IndexMap<String, Binding> {
        self.scopes.pop().unwrap_or_default()
    }

    /// The innermost binding of a name.
    pub fn find(&self, name: &str) -> Option<&Binding> {
        self.scopes.iter().rev().find_map(|scope| scope.get(name))
    }

    /// Binds a name in the innermost scope, hiding others.
    pub fn declare(&mut self, name: &str, binding: Binding) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name.to_owned(), binding);
        }
    }

    /// Rebinds a name where it is bound, or binds it in the innermost scope.
    pub fn assign(&mut self, name: &str, binding: Binding) {
        match self.scopes.iter_mut().rev().find_map(|scope| scope.get_mut(name)) {
            Some(place) => *place = binding,
            None => self.declare(name, binding),
        }
    }

    /// Every name in sight, for suggestions.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.scopes.iter().flat_map(|scope| scope.keys().map(String::as_str))
    }
}
