//! Names of the unit: parameters, constants, functions and kernels.

use super::Elaborator;
use super::value::Value;
use crate::body::NodeHandle;
use crate::diagnostic::Diagnostic;
use crate::source::Span;
use crate::syntax::ast::{Block, Expression, Name, Range};
use crate::types::Type;

impl Elaborator {
    /// The value of a name of the unit.
    pub fn global(&mut self, _name: &str, _span: Span) -> Option<Value> {
        None
    }

    /// Names of the unit, for suggestions.
    pub fn global_names(&self) -> Vec<String> {
        Vec::new()
    }

    /// Names of functions and kernels, for suggestions.
    pub fn global_callables(&self) -> Vec<String> {
        Vec::new()
    }

    /// The call of a function or kernel of the unit.
    pub fn call_global(&mut self, _function: &Name, _arguments: &[Expression], _span: Span) -> Option<Value> {
        None
    }

    /// `residue<m>`.
    pub fn residue_type(&mut self, modulus: &Name) -> Option<Type> {
        self.report(Diagnostic::error("no-modulus", modulus.span, format!("`{}` is no modulus", modulus.text)));
        None
    }

    /// The modulus that a residue type refers to, in the innermost body.
    pub fn modulus_node(&mut self, _modulus: u32) -> Option<NodeHandle> {
        None
    }

    pub fn counted_loop(&mut self, _variable: &Name, _range: &Range, _body: &Block, span: Span) {
        self.error("kernels-only", span, "`loop` is only for kernels");
    }

    pub fn map(&mut self, _bindings: &[(Name, Name)], _body: &Block, span: Span) {
        self.error("kernels-only", span, "`map` is only for kernels");
    }
}
