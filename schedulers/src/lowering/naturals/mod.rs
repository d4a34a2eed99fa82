//! Limb products: kernels on naturals and residues.
//!
//! Which of two ways is taken depends on what the machine multiplies ([`ways`]); [`digits`] is what both leave in memory, [`kernel`] the walk over a kernel's dataflow.
//!
//! Lanes: the radix comes from the target's multiply-accumulate row ([`form`]); a bound for every lane proves that nothing overflows ([`columns`]). [`montgomery`] and
//! [`product`] are the products of naturals whose columns fit the registers, [`large_montgomery`] of longer ones: [`blocks`] says which rows meet which block of columns,
//! [`row_loops`] builds it. [`arithmetic`] sums and differences, [`repack`] naturals in another form's digits, [`integers`] operations that meet several forms,
//! [`setup`] what depends on the modulus only, [`conversion`] bytes to layout and back, [`select`] table access.
//!
//! Words: a product of two integers in a register twice as wide ([`words`]).
mod arithmetic;
mod blocks;
mod columns;
mod conversion;
mod digit_serial;
mod digits;
mod form;
mod integers;
mod kernel;
mod large_montgomery;
mod montgomery;
mod product;
mod repack;
mod row_loops;
mod scalar;
mod select;
mod setup;
mod ways;
mod words;

use super::builder::{Lowering, PoolAddressing, ProgramBuilder};
use super::memory_rows::MemoryRows;
use super::selection::Selector;
use crate::finished::FunctionRole;
use crate::program::Program;
use kgen_ir::kernel::Kernel;
use kgen_ir::types::Type;
use std::collections::BTreeSet;
use ways::Way;

/// Whether a kernel computes with naturals.
pub fn uses_naturals(kernel: &Kernel) -> bool {
    kernel.parameters.iter().any(|parameter| natural_bits(&parameter.ty).is_some())
}

/// Bits of a natural, modulus or residue, or of such elements of an array.
fn natural_bits(ty: &Type) -> Option<u32> {
    match ty {
        Type::Natural { bits } | Type::Modulus { bits } | Type::Residue { bits, .. } => Some(*bits),
        Type::Array { element, .. } | Type::Slice { element } => natural_bits(element),
        Type::Bits { .. } => None,
    }
}

/// The kernel's function, its setup where it has a modulus, and import and export of every size of natural that it takes.
///
/// # Errors
/// What the machine cannot do, or what would overflow a lane.
pub fn lower(
    kernel: &Kernel,
    selector: &Selector<'_>,
    memory_rows: &MemoryRows,
    pool: PoolAddressing,
) -> Lowering<Vec<(FunctionRole, Program)>> {
    let builder = |name: &str| -> Lowering<ProgramBuilder<'_>> {
        let mut builder = ProgramBuilder::new(name, selector, memory_rows, pool)?;
        builder.set_span(kernel.span);
        Ok(builder)
    };
    let mut functions = vec![(FunctionRole::Kernel, kernel::build(builder(&kernel.name)?, kernel)?)];
    let moduli = kernel.parameters.iter().filter_map(|parameter| match parameter.ty {
        Type::Modulus { bits } => Some(bits),
        _ => None,
    });
    for bits in moduli.collect::<BTreeSet<u32>>() {
        let mut setup = builder(&format!("{}_setup", kernel.name))?;
        Way::choose(&setup, bits)?.setup(&mut setup)?;
        functions.push((FunctionRole::Setup, setup.finish()?));
    }
    let sizes: BTreeSet<u32> = kernel.parameters.iter().filter_map(|parameter| natural_bits(&parameter.ty)).collect();
    for bits in &sizes {
        let suffix = if sizes.len() == 1 { String::new() } else { format!("_{bits}") };
        let mut import = builder(&format!("{}_import{suffix}", kernel.name))?;
        let way = Way::choose(&import, *bits)?;
        way.import(&mut import)?;
        functions.push((FunctionRole::Import, import.finish()?));
        let mut export = builder(&format!("{}_export{suffix}", kernel.name))?;
        way.export(&mut export)?;
        functions.push((FunctionRole::Export, export.finish()?));
    }
    Ok(functions)
}
