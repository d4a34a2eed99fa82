//! Loops and maps of the language as counted loops of the program.

use super::{Flow, constant_of, lower_body};
use crate::lowering::addresses;
use crate::lowering::builder::Lowering;
use crate::lowering::held::{Held, Stored, bits_shape};
use crate::lowering::loops::Rounds;
use crate::lowering::regions::bytes_of;
use crate::program::ValueId;
use kgen_ir::bits::Bits;
use kgen_ir::body::{Body, NaryOp, NodeHandle, Op};
use kgen_ir::types::Type;

impl Flow<'_, '_, '_> {
    pub(super) fn counted_loop(
        &mut self,
        count: NodeHandle,
        carried: &[NodeHandle],
        captured: &[NodeHandle],
        body: &Body,
    ) -> Lowering<Vec<Held>> {
        let initial: Lowering<Vec<Held>> = carried.iter().map(|item| self.loaded(*item)).collect();
        let initial = initial?;
        let captured: Lowering<Vec<Held>> = captured.iter().map(|item| self.held(*item)).collect();
        let captured = captured?;
        let (counter_bits, _) = bits_shape(self.builder, &self.body.nodes[count].ty.clone())?;
        let rounds = match constant_of(self.body, count).and_then(Bits::to_u64) {
            Some(0) => return Ok(initial),
            Some(rounds) => Rounds::Constant(rounds),
            None => Rounds::Value(self.public_integer(count)?),
        };
        let start = Held::Lanes(vec![self.builder.scalar_constant(self.files, &Bits::zero(counter_bits))?]);
        let uses_counter = body.nodes.iter().any(|(_, node)| node.op == Op::Input(0));
        let held: Vec<Held> = uses_counter.then_some(start.clone()).into_iter().chain(initial.iter().cloned()).collect();
        let values: Vec<ValueId> = held.iter().flat_map(Held::values).collect();
        let has_inner = body.nodes.iter().any(|(_, node)| matches!(node.op, Op::Loop { .. } | Op::Map { .. }));
        let files = self.files;
        let shapes = held.clone();
        let after = self.builder.counted_loop(rounds, has_inner, &values, |builder, current| {
            let mut current = current.iter().copied();
            let mut inputs: Vec<Held> = shapes.iter().map(|shape| shape.with_values(&mut current)).collect();
            let counter = inputs[0].clone();
            if !uses_counter {
                inputs.insert(0, start.clone());
            }
            inputs.extend(captured.iter().cloned());
            let outputs = lower_body(builder, files, body, inputs)?;
            let mut next: Vec<Held> = Vec::new();
            if uses_counter && let Held::Lanes(scalars) = &counter {
                let one = builder.scalar_constant(files, &Bits::from_u64(counter_bits, 1))?;
                next.push(Held::Lanes(vec![builder.scalar_nary(NaryOp::Add, &[scalars[0].clone(), one])?]));
            }
            for (output, (port, _)) in outputs.into_iter().zip(&body.outputs) {
                next.push(builder.without_memory(files, &port.ty, output)?);
            }
            Ok(next.iter().flat_map(Held::values).collect())
        })?;
        let mut after = after.into_iter();
        let results: Vec<Held> = held.iter().map(|shape| shape.with_values(&mut after)).collect();
        Ok(results[usize::from(uses_counter)..].to_vec())
    }

    /// A value without any part in memory.
    fn loaded(&mut self, handle: NodeHandle) -> Lowering<Held> {
        let held = self.held(handle)?;
        let ty = self.body.nodes[handle].ty.clone();
        self.builder.without_memory(self.files, &ty, held)
    }

    fn public_integer(&mut self, handle: NodeHandle) -> Lowering<ValueId> {
        let scalar = self.scalar(handle)?;
        self.builder.to_integer(self.files, &scalar)
    }

    pub(super) fn map(&mut self, slices: &[NodeHandle], written: &[u32], captured: &[NodeHandle], body: &Body) -> Lowering<Vec<Held>> {
        let places: Lowering<Vec<Stored>> = slices
            .iter()
            .map(|slice| match self.held(*slice)? {
                Held::Memory(stored) => Ok(stored),
                _ => Err(self.builder.missing("a map over a slice that is not in memory")),
            })
            .collect();
        let places = places?;
        let captured: Lowering<Vec<Held>> = captured.iter().map(|item| self.held(*item)).collect();
        let captured = captured?;
        let mut steps = Vec::new();
        for slice in slices {
            let bytes = match &self.body.nodes[*slice].ty {
                Type::Slice { element } => bytes_of(element),
                _ => None,
            };
            steps.push(bytes.ok_or_else(|| self.builder.missing("a map over elements in memory"))?);
        }
        let leader = places.first().map(|stored| stored.region).ok_or_else(|| self.builder.missing("a map over no slice"))?;
        let count = self.builder.slice_count(leader).ok_or_else(|| self.builder.missing("the number of elements of a slice"))?;
        let pointers: Lowering<Vec<ValueId>> = places.iter().map(|stored| addresses::region_address(self.builder, stored.region)).collect();
        let files = self.files;
        let has_inner = body.nodes.iter().any(|(_, node)| matches!(node.op, Op::Loop { .. } | Op::Map { .. }));
        self.builder.counted_loop(Rounds::Value(count), has_inner, &pointers?, |builder, current| {
            let element = |index: usize| Stored {
                base: Some(current[index]),
                window: Some((0, u64::MAX)),
                align_bytes: places[index].at(steps[index]).align_bytes,
                ..places[index].clone()
            };
            let inputs = (0..places.len()).map(|index| Held::Memory(element(index))).chain(captured.iter().cloned()).collect();
            let outputs = lower_body(builder, files, body, inputs)?;
            let ready: Lowering<Vec<Held>> =
                outputs.into_iter().zip(&body.outputs).map(|(output, (port, _))| builder.without_memory(files, &port.ty, output)).collect();
            for ((slice, output), (port, _)) in written.iter().zip(ready?).zip(&body.outputs) {
                builder.store_held(files, &port.ty, &output, &element(*slice as usize))?;
            }
            current.iter().zip(&steps).map(|(pointer, step)| builder.advance(*pointer, *step)).collect()
        })?;
        // What a map writes stands in memory already.
        Ok(written.iter().map(|slice| Held::Memory(places[*slice as usize].clone())).collect())
    }
}
