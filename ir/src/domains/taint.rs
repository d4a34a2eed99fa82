//! Which values depend on secrets, and by which way the secret came.
//!
//! A value is secret as soon as an operand is; arrays are secret as a whole. Loops run to a fixpoint over their carried values.

use crate::bits::Bits;
use crate::body::{Body, NodeHandle, Op};
use crate::diagnostic::Diagnostic;
use crate::evaluate::{Context, Domain, Trace, evaluate_nodes};
use crate::source::Span;
use crate::types::Type;
use num_bigint::BigUint;
use std::collections::BTreeMap;
use std::convert::Infallible;

/// Labels of a message along the way of a secret, the origin included: more say less.
const MOST_LABELS: usize = 6;

/// Public, or secret with the step that made it so. It belongs to the domain that made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taint {
    /// Depends on no secret.
    Public,
    /// Depends on a secret; index of the last step of its way.
    Secret(u32),
}

impl Taint {
    /// Whether it depends on a secret.
    pub fn is_secret(self) -> bool {
        matches!(self, Self::Secret(_))
    }

    /// Secret where either is, by the way of the first.
    pub fn join(self, other: Self) -> Self {
        if self.is_secret() { self } else { other }
    }
}

/// One step of a secret's way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Where in the source.
    pub span: Span,
    /// The name bound there, or of the parameter; may be empty.
    pub name: String,
    /// The step before; absent at the origin.
    pub from: Option<u32>,
}

/// A place where a secret chooses an address: an element of an array or a load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretAddress {
    /// The loops and maps around it, outermost first.
    pub within: Vec<NodeHandle>,
    /// The `Element`, `WithElement` or `Load` in the innermost body.
    pub node: NodeHandle,
    /// Where it was written.
    pub span: Span,
    /// The way of the secret, origin first.
    pub path: Vec<Step>,
}

/// Secrecy of the nodes of one body.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BodyTaint {
    /// Whether each node is secret, in the body's order; a loop or map counts as secret where one of its results is.
    pub nodes: Vec<bool>,
    /// The bodies of its loops and maps.
    pub nested: BTreeMap<NodeHandle, BodyTaint>,
}

/// The domain.
#[derive(Clone, Debug, Default)]
pub struct TaintDomain {
    steps: Vec<Step>,
    within: Vec<NodeHandle>,
    nested: BTreeMap<NodeHandle, BodyTaint>,
    /// Secret addresses met.
    pub addresses: Vec<SecretAddress>,
    /// Uses of secrets that no lowering can make constant in time.
    pub errors: Vec<Diagnostic>,
}

impl TaintDomain {
    /// A secret that comes from outside.
    pub fn secret(&mut self, name: &str, span: Span) -> Taint {
        self.step(name, span, None)
    }

    /// The way of a secret, origin first; empty for public values.
    pub fn path(&self, taint: Taint) -> Vec<Step> {
        let mut path = Vec::new();
        let mut next = if let Taint::Secret(step) = taint { Some(step) } else { None };
        while let Some(step) = next.and_then(|index| self.steps.get(index as usize)) {
            path.push(step.clone());
            next = step.from;
        }
        path.reverse();
        path
    }

    /// Runs a body and tells the secrecy of every node besides that of its outputs.
    pub fn run(&mut self, body: &Body, inputs: &[Taint]) -> (Vec<Taint>, BodyTaint) {
        let outer = std::mem::take(&mut self.nested);
        let Ok(Trace { outcome, nodes }) = evaluate_nodes(self, body, inputs);
        let nested = std::mem::replace(&mut self.nested, outer);
        let mut secret: Vec<bool> = nodes.iter().map(|taint| taint.is_some_and(Taint::is_secret)).collect();
        for (handle, node) in body.nodes.iter() {
            if let Op::Result(of, _) = node.op {
                secret[of.index()] |= secret[handle.index()];
            }
        }
        (outcome.outputs, BodyTaint { nodes: secret, nested })
    }

    fn step(&mut self, name: &str, span: Span, from: Option<u32>) -> Taint {
        self.steps.push(Step { span, name: name.to_owned(), from });
        Taint::Secret(self.steps.len() as u32 - 1)
    }

    fn address(&mut self, context: Context<'_>, taint: Taint) {
        if taint.is_secret() {
            let (within, span, path) = (self.within.clone(), context.node.span, self.path(taint));
            self.addresses.push(SecretAddress { within, node: context.handle, span, path });
        }
    }

    /// An error about a use of a secret, with the way that it came.
    fn error(&mut self, rule: &'static str, span: Span, taint: Taint, message: &str, help: &str) {
        let path = self.path(taint);
        let origin = path.first().map_or(String::new(), |step| step.name.clone());
        let mut diagnostic = Diagnostic::error(rule, span, format!("{message} depends on the secret `{origin}`")).help(help);
        let named: Vec<&Step> = path.iter().filter(|step| !step.name.is_empty()).collect();
        let skip = named.len().saturating_sub(MOST_LABELS - 1).max(1);
        for (index, step) in named.iter().take(1).chain(named.iter().skip(skip)).enumerate() {
            let text = if index == 0 { "the secret comes from here" } else { "and goes through this value" };
            diagnostic = diagnostic.label(step.span, text);
        }
        self.errors.push(diagnostic);
    }

    fn run_loop(&mut self, context: Context<'_>, operands: &[Taint], carried: usize, body: &Body) -> Vec<Taint> {
        if operands[0].is_secret() {
            let help = "run a public number of rounds and `select` what to keep in each";
            self.error("secret-loop-count", context.node.span, operands[0], "the number of rounds", help);
        }
        let mut inputs = operands.to_vec();
        // The counter itself is known to whoever sees the time.
        inputs[0] = Taint::Public;
        let recorded = (self.addresses.len(), self.errors.len());
        loop {
            self.addresses.truncate(recorded.0);
            self.errors.truncate(recorded.1);
            let (outputs, taint) = self.run(body, &inputs);
            let mut stable = true;
            for (input, output) in inputs[1..=carried].iter_mut().zip(outputs) {
                stable &= input.is_secret() || !output.is_secret();
                *input = input.join(output);
            }
            if stable {
                self.nested.insert(context.handle, taint);
                return inputs[1..=carried].to_vec();
            }
        }
    }
}

impl Domain for TaintDomain {
    type Value = Taint;
    type Fault = Infallible;

    fn constant(&mut self, _ty: &Type, _bits: &Bits) -> Taint {
        Taint::Public
    }

    fn integer(&mut self, _ty: &Type, _value: &BigUint) -> Taint {
        Taint::Public
    }

    fn apply(&mut self, context: Context<'_>, operands: &[&Taint]) -> Result<Taint, Infallible> {
        if let (Op::Element { .. } | Op::WithElement { .. }, [_, index, ..]) = (&context.node.op, operands) {
            self.address(context, **index);
        }
        let joined = operands.iter().fold(Taint::Public, |taint, operand| taint.join(**operand));
        Ok(match joined {
            Taint::Public => Taint::Public,
            Taint::Secret(from) => self.step(&context.node.name, context.node.span, Some(from)),
        })
    }

    fn structured(&mut self, context: Context<'_>, operands: &[&Taint]) -> Result<Vec<Taint>, Infallible> {
        let operands: Vec<Taint> = operands.iter().map(|taint| **taint).collect();
        self.within.push(context.handle);
        let results = match &context.node.op {
            Op::Loop { carried, body, .. } => self.run_loop(context, &operands, carried.len(), body),
            Op::Map { body, .. } => {
                let (outputs, taint) = self.run(body, &operands);
                self.nested.insert(context.handle, taint);
                outputs
            }
            _ => Vec::new(),
        };
        self.within.pop();
        Ok(results)
    }

    fn load(&mut self, context: Context<'_>, address: &Taint, _bytes: u32) -> Result<Taint, Infallible> {
        // What memory holds is the caller's affair; the address is ours.
        self.address(context, *address);
        Ok(*address)
    }

    fn store(&mut self, _: &Taint, _: &Taint, _: u32, _: Option<&Taint>) -> Result<(), Infallible> {
        Ok(())
    }

    fn branch(&mut self, _: Option<&Taint>, _: Option<&Taint>) -> Result<(), Infallible> {
        Ok(())
    }

    fn forbidden(&mut self, _: &Taint, _: Span) -> Result<(), Infallible> {
        Ok(())
    }
}
