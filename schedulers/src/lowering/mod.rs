//! Lowering: from a kernel to the target's instructions over values. Rows are asked for by what they mean ([`selection`]), never by name.
//!
//! [`builder`] makes programs instruction by instruction; what it offers and where it is written:
//! [`shapes`] the questions that a lowering may ask of a machine, [`constants`] constants and the pool, [`addresses`] base and index registers of all
//! accesses together, [`loops`] loops and branches, [`permutes`] constant byte permutes,
//! [`numbers`] bytes and words in memory as integers.
//!
//! Kernels on naturals go through [`naturals`]. All others go through [`dataflow`], node by node: [`held`] says how values stand in registers, [`interface`]
//! how parameters arrive, [`regions`] moves values to and from memory, [`lanes`] and [`scalars`] calculate ([`scalar_shifts`] too), [`lookups`] reads tables, [`superword`] makes
//! vectors of like lanes.

pub mod addresses;
pub mod builder;
pub mod constants;
pub mod dataflow;
pub mod held;
pub mod interface;
pub mod lanes;
pub mod lookups;
pub mod loops;
pub mod memory_rows;
pub mod naturals;
pub mod numbers;
mod own_address;
pub mod permutes;
mod probes;
pub mod regions;
pub mod scalar_shifts;
pub mod scalars;
pub mod selection;
pub mod shapes;
pub mod superword;

use crate::finished::FunctionRole;
use crate::machine::Machine;
use crate::program::Program;
use builder::{Lowering, PoolAddressing, ProgramBuilder};
use held::{Files, Held};
use kgen_ir::diagnostic::Diagnostic;
use kgen_ir::kernel::Kernel;
use memory_rows::MemoryRows;
use selection::Selector;

/// What the user may choose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// How addresses of the constant pool are made.
    pub pool_addressing: PoolAddressing,
}

/// The functions that a kernel became: its own first, then those that serve it.
#[derive(Clone, Debug)]
pub struct Lowered {
    /// What each is for, and its program, in the order in which they are emitted.
    pub functions: Vec<(FunctionRole, Program)>,
}

/// Lowers a kernel for a machine.
///
/// # Errors
/// What the machine has no rows for; secrets that would reach addresses or variable time.
pub fn lower(kernel: &Kernel, machine: &Machine, options: &Options) -> Result<Lowered, Vec<Diagnostic>> {
    let selector = Selector::new(machine);
    let memory_rows = MemoryRows::of(&selector);
    let functions = lower_selected(kernel, &selector, &memory_rows, options).map_err(|error| vec![*error])?;
    Ok(Lowered { functions })
}

/// As [`lower`], for callers that keep the machine's index of rows over several kernels.
///
/// # Errors
/// As [`lower`].
pub fn lower_selected(
    kernel: &Kernel,
    selector: &Selector<'_>,
    memory_rows: &MemoryRows,
    options: &Options,
) -> Lowering<Vec<(FunctionRole, Program)>> {
    if naturals::uses_naturals(kernel) {
        naturals::lower(kernel, selector, memory_rows, options.pool_addressing)
    } else {
        Ok(vec![(FunctionRole::Kernel, lower_dataflow(kernel, selector, memory_rows, options)?)])
    }
}

/// A kernel without naturals ([`naturals::uses_naturals`]).
///
/// # Errors
/// As [`lower`].
pub fn lower_dataflow(kernel: &Kernel, selector: &Selector<'_>, memory_rows: &MemoryRows, options: &Options) -> Lowering<Program> {
    let mut builder = ProgramBuilder::new(&kernel.name, selector, memory_rows, options.pool_addressing)?;
    builder.set_span(kernel.span);
    let files = Files::of(&builder);
    let interface = interface::declare(&mut builder, &files, kernel)?;
    let outputs = dataflow::lower_body(&mut builder, &files, &kernel.body, interface.inputs)?;
    // Everything is read before anything is written, since results may replace what they were made of.
    let mut ready = Vec::with_capacity(outputs.len());
    for (held, (ty, stored)) in outputs.into_iter().zip(&interface.outputs) {
        let held = match held {
            Held::Memory(from) if from.region == stored.region => None,
            Held::Memory(from) => Some(builder.load_held(&files, ty, &from)?),
            other => Some(builder.without_memory(&files, ty, other)?),
        };
        ready.push(held);
    }
    for (held, (ty, stored)) in ready.iter().zip(&interface.outputs) {
        if let Some(held) = held {
            builder.store_held(&files, ty, held, stored)?;
        }
    }
    builder.finish()
}
