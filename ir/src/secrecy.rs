//! Secrecy of a kernel: which nodes depend on secret parameters, and what is done with them that shows in time.

use crate::diagnostic::Diagnostic;
use crate::domains::taint::{BodyTaint, SecretAddress, Taint, TaintDomain};
use crate::interpret::read_parameters;
use crate::kernel::Kernel;

/// What a kernel does with its secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Secrecy {
    /// Secrecy of every node, loops and maps included.
    pub body: BodyTaint,
    /// Whether each output depends on a secret, in the body's order.
    pub outputs: Vec<bool>,
    /// Secret array indices, in the order of the text: whether they show is for the target and the lookup strategy to say.
    pub addresses: Vec<SecretAddress>,
    /// What no target can hide: secret loop counts.
    pub errors: Vec<Diagnostic>,
}

/// Follows a kernel's secret parameters.
pub fn analyze(kernel: &Kernel) -> Secrecy {
    let mut domain = TaintDomain::default();
    let inputs: Vec<Taint> = read_parameters(kernel)
        .map(|parameter| if parameter.secret { domain.secret(&parameter.name, parameter.span) } else { Taint::Public })
        .collect();
    let (outputs, body) = domain.run(&kernel.body, &inputs);
    Secrecy { body, outputs: outputs.into_iter().map(Taint::is_secret).collect(), addresses: domain.addresses, errors: domain.errors }
}
