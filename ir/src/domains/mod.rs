//! The domains over which bodies are evaluated ([`crate::evaluate`]).
pub mod affine;
pub mod bit_level;
pub mod compiled;
pub mod concrete;
pub mod interval;
mod lane;
pub mod memory;
pub mod provenance;
pub mod taint;

use crate::body::Op;
use crate::evaluate::Context;
use crate::types::Type;

/// Types of the results of a loop or map, for domains that know nothing of them.
fn structured_types<'a>(context: Context<'a>) -> impl Iterator<Item = &'a Type> {
    let (carried, slices) = match &context.node.op {
        Op::Loop { carried, .. } => (&carried[..], None),
        Op::Map { slices, written, .. } => (&[][..], Some((slices, written))),
        _ => (&[][..], None),
    };
    let written = slices.into_iter().flat_map(|(slices, written)| written.iter().map(|index| &slices[*index as usize]));
    carried.iter().chain(written).map(move |handle| context.type_of(*handle))
}
