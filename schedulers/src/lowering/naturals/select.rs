//! A natural chosen from a table by a secret index: the whole table is read and the wanted entry kept by masks, so that neither time nor addresses tell.

use super::columns::byte_permute;
use super::form::NaturalForm;
use crate::lowering::builder::{Lowering, Place, ProgramBuilder};
use crate::lowering::shapes::LaneOp;
use crate::program::{RegionId, ValueId};

/// Registers beside the kept natural: the entry, its mask, the index, constants.
const REST: u32 = 8;

/// `result = table[index]`; an index past the table gives entry 0.
pub(super) fn scan(
    builder: &mut ProgramBuilder<'_>,
    form: &NaturalForm,
    table: RegionId,
    entries: u32,
    index: ValueId,
    result: RegionId,
) -> Lowering<()> {
    let lane_bits = form.lane_bits();
    let lane_bytes = lane_bits / 8;
    let register_bytes = form.register_bytes();
    // Scalars reach the lanes through memory.
    let passage = builder.frame_region("index", u64::from(register_bytes), register_bytes, true);
    builder.store(index, lane_bytes, Place::at(passage, 0))?;
    builder.set_name("wanted");
    let stored = builder.load_lanes(passage, 0)?;
    let pattern: Vec<Option<(ValueId, u32)>> = (0..form.lanes).flat_map(|_| (0..lane_bytes).map(|byte| Some((stored, byte)))).collect();
    let wanted = byte_permute(builder, &pattern)?;
    let one = builder.splat(lane_bits, 1)?;
    let vectors = form.packed_vectors();
    let registers = builder.machine()[form.file].count.unwrap_or(u32::MAX);
    // Long naturals are kept in parts, and the table is read part by part.
    let part = vectors.div_ceil(vectors.div_ceil(registers.saturating_sub(REST).max(1)));
    for first in (0..vectors).step_by(part.max(1) as usize) {
        let part = first..(first + part).min(vectors);
        let mut entry = builder.splat(lane_bits, 0)?;
        let mut kept: Vec<ValueId> = Vec::new();
        for number in 0..entries {
            let place = |vector: u32| u64::from((number * vectors + vector) * register_bytes);
            if number == 0 {
                builder.set_name("kept");
                kept = part.clone().map(|vector| builder.load_lanes(table, place(vector))).collect::<Lowering<_>>()?;
                continue;
            }
            builder.set_name("entry");
            entry = builder.lane_row(LaneOp::Add, lane_bits, &[entry, one])?;
            builder.set_name("mask");
            let mask = builder.lane_row(LaneOp::Equal, lane_bits, &[entry, wanted])?;
            builder.set_name("kept");
            for (vector, kept) in part.clone().zip(&mut kept) {
                let loaded = builder.load_lanes(table, place(vector))?;
                *kept = builder.lane_row(LaneOp::SelectBits, lane_bits, &[*kept, loaded, mask])?;
            }
        }
        builder.set_name("result");
        for (vector, value) in part.zip(kept) {
            builder.store_lanes(value, result, u64::from(vector * register_bytes))?;
        }
    }
    Ok(())
}
