//! What a unit declares, by name: parameters, constants, functions and kernels. Constants, functions and kernels are elaborated when they are first needed.

use super::constants::Fixed;
use super::value::Value;
use super::{Elaborator, builtins};
use crate::body::NodeHandle;
use crate::diagnostic::Diagnostic;
use crate::kernel::Kernel;
use crate::source::Span;
use crate::syntax::ast::{Attribute, Block, Expression, KernelParameter, Name, TypeExpression};
use crate::syntax::{STATEMENT_WORDS, split_bits_type};
use crate::types::Type;
use indexmap::IndexMap;
use std::rc::Rc;

/// How far the elaboration of an item is.
#[derive(Clone, Debug, Default)]
pub enum Progress<T> {
    /// Not needed yet.
    #[default]
    Waiting,
    /// Being elaborated: needing it now is a circle.
    Running,
    /// Done.
    Done(T),
    /// It has errors, which were reported; what uses it is silent.
    Failed,
}

/// A constant.
pub struct ConstantItem {
    /// Where it is named.
    pub span: Span,
    /// Its type where written.
    pub ty: Option<TypeExpression>,
    /// How it is computed.
    pub value: Expression,
}

/// A function.
pub struct FunctionItem {
    /// Its name.
    pub name: Name,
    /// Names and types.
    pub parameters: Vec<(Name, TypeExpression)>,
    /// Type of the result.
    pub result: TypeExpression,
    /// What it computes.
    pub body: Block,
}

/// A kernel.
pub struct KernelItem {
    /// Its name with parameters filled in.
    pub name: Name,
    /// Names, types, attributes.
    pub parameters: Vec<KernelParameter>,
    /// Type and attributes of the result.
    pub result: Option<(TypeExpression, Vec<Attribute>)>,
    /// What it computes.
    pub body: Block,
    /// The whole item.
    pub span: Span,
}

/// The names of a unit.
#[derive(Default)]
pub struct Globals {
    /// Parameters with their values, and whether the user changed it.
    pub parameters: IndexMap<String, (u64, bool, Span)>,
    /// Constants.
    pub constants: IndexMap<String, (Rc<ConstantItem>, Progress<Rc<Fixed>>)>,
    /// Functions.
    pub functions: IndexMap<String, (Rc<FunctionItem>, Progress<()>)>,
    /// Kernels by full name.
    pub kernels: IndexMap<String, (Rc<KernelItem>, Progress<Rc<Kernel>>)>,
}

impl Globals {
    /// Where a name is declared.
    pub fn declared(&self, name: &str) -> Option<Span> {
        let parameter = self.parameters.get(name).map(|(_, _, span)| *span);
        let constant = || self.constants.get(name).map(|(item, _)| item.span);
        let function = || self.functions.get(name).map(|(item, _)| item.name.span);
        let kernel = || self.kernels.get(name).map(|(item, _)| item.name.span);
        parameter.or_else(constant).or_else(function).or_else(kernel)
    }

    /// A kernel's name with parameters filled in, where all are known.
    pub fn filled(&self, name: &str) -> Option<String> {
        let mut filled = String::new();
        let mut rest = name;
        while let Some((before, after)) = rest.split_once('{') {
            let (parameter, after) = after.split_once('}')?;
            filled.push_str(before);
            filled.push_str(&self.parameters.get(parameter)?.0.to_string());
            rest = after;
        }
        filled.push_str(rest);
        Some(filled)
    }
}

/// Whether a name is part of the language.
pub fn is_reserved(name: &str) -> bool {
    builtins::names().any(|builtin| builtin == name)
        || split_bits_type(name).is_some()
        || super::types::FAMILIES.contains(&name)
        || STATEMENT_WORDS.contains(&name)
}

impl Elaborator {
    /// Checks a name about to be bound inside of an item; `false` after an error.
    pub fn may_bind(&mut self, name: &Name) -> bool {
        let reserved = split_bits_type(&name.text).is_some() || STATEMENT_WORDS.contains(&name.text.as_str());
        if reserved {
            self.report(
                Diagnostic::error("reserved-name", name.span, format!("`{}` is part of the language and cannot be bound", name.text))
                    .help("choose another name"),
            );
        }
        !reserved
    }

    /// Checks a name about to be declared; `false` after an error.
    pub fn declare(&mut self, name: &Name) -> bool {
        if is_reserved(&name.text) {
            self.report(
                Diagnostic::error("reserved-name", name.span, format!("`{}` is part of the language and cannot be defined", name.text))
                    .help("choose another name"),
            );
            return false;
        }
        if let Some(span) = self.globals.declared(&name.text) {
            self.report(
                Diagnostic::error("duplicate-name", name.span, format!("`{}` is defined twice", name.text))
                    .label(span, "the first definition is here")
                    .help("rename one of them: parameters, constants, functions and kernels share one space of names"),
            );
            return false;
        }
        true
    }

    /// The value of a parameter or constant of the unit.
    pub fn global(&mut self, name: &str, span: Span) -> Option<Value> {
        if let Some((value, _, _)) = self.globals.parameters.get(name) {
            return Some(Value::Number((*value).into()));
        }
        let index = self.globals.constants.get_index_of(name)?;
        Some(self.constant(index, span))
    }

    /// Names that have values, for suggestions.
    pub fn global_names(&self) -> Vec<String> {
        self.globals.parameters.keys().chain(self.globals.constants.keys()).cloned().collect()
    }

    /// Names of functions and kernels, for suggestions.
    pub fn global_callables(&self) -> Vec<String> {
        self.globals.functions.keys().chain(self.globals.kernels.keys()).cloned().collect()
    }

    /// A kernel's name with parameters filled in; `None` after an error.
    pub fn fill_name(&mut self, name: &str, span: Span) -> Option<String> {
        let filled = self.globals.filled(name);
        if filled.is_none() {
            let holes = name.split('{').skip(1).filter_map(|piece| piece.split('}').next());
            let unknown: Vec<String> = holes.filter(|hole| !self.globals.parameters.contains_key(*hole)).map(str::to_owned).collect();
            let names: Vec<String> = self.globals.parameters.keys().cloned().collect();
            for parameter in unknown {
                let mut diagnostic =
                    Diagnostic::error("unknown-name", span, format!("`{parameter}` in the name is no parameter of this unit"));
                let near = super::suggestion(&parameter, names.iter().map(String::as_str));
                diagnostic.help = near.or(Some(format!("declare it: `param {parameter} = …`")));
                self.report(diagnostic);
            }
        }
        filled
    }

    /// `residue<m>` in a signature.
    pub fn residue_type(&mut self, modulus: &Name) -> Option<Type> {
        if let Some((modulus, bits)) = self.place.signature_moduli.get(&modulus.text) {
            return Some(Type::Residue { modulus: *modulus, bits: *bits });
        }
        let names: Vec<String> = self.place.signature_moduli.keys().cloned().collect();
        let mut diagnostic = Diagnostic::error("no-modulus", modulus.span, format!("no parameter `{}` is a modulus", modulus.text));
        diagnostic.help = super::suggestion(&modulus.text, names.iter().map(String::as_str))
            .or(Some(format!("declare it: `{}: modulus<BITS>`", modulus.text)));
        self.report(diagnostic);
        None
    }

    /// The modulus that a residue type refers to, in the innermost body.
    pub fn modulus_node(&mut self, modulus: u32) -> Option<NodeHandle> {
        let node = *self.place.moduli.get(&modulus)?;
        let target = self.level();
        Some((1..=target).fold(node, |node, level| self.import_node(level, node)))
    }
}
