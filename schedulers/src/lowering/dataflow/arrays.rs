//! Arrays: elements at constant places, at public ones by address, at secret ones by a scan.

use super::{Flow, constant_of};
use crate::lowering::builder::Lowering;
use crate::lowering::held::{Held, Scalar, bits_shape};
use crate::lowering::regions::bytes_of;
use kgen_ir::bits::Bits;
use kgen_ir::body::{Node, NodeHandle, Op};
use kgen_ir::types::Type;
use std::rc::Rc;

impl Flow<'_, '_, '_> {
    pub(super) fn elements(&mut self, array: NodeHandle) -> Lowering<Vec<Held>> {
        match (self.held(array)?, self.body.nodes[array].ty.clone()) {
            (Held::Array(elements), _) => Ok(elements.to_vec()),
            (Held::Memory(stored), Type::Array { element, length }) => {
                let step = bytes_of(&element).ok_or_else(|| self.builder.missing("an array of values in memory"))?;
                (0..u64::from(length)).map(|index| self.builder.load_held(self.files, &element, &stored.at(index * step))).collect()
            }
            (_, ty) => Err(self.builder.missing(&format!("elements of a {ty}"))),
        }
    }

    pub(super) fn element(&mut self, node: &Node, array: NodeHandle, index: NodeHandle) -> Lowering<Held> {
        let array_type = self.body.nodes[array].ty.clone();
        let Type::Array { element, .. } = &array_type else { return Err(self.builder.missing(&format!("an element of a {array_type}"))) };
        if matches!(self.body.nodes[index].ty, Type::Bits { lanes: 2.., .. }) {
            return self.scan_lanes(node, array, index);
        }
        if let Some(index) = constant_of(self.body, index).and_then(Bits::to_u64) {
            return match self.held(array)? {
                Held::Array(elements) => {
                    elements.get(index as usize).cloned().ok_or_else(|| self.builder.missing("an element past the last"))
                }
                Held::Memory(stored) => {
                    let step = bytes_of(element).ok_or_else(|| self.builder.missing("an array of values in memory"))?;
                    Ok(Held::Memory(stored.at(index * step)))
                }
                _ => Err(self.builder.missing(&format!("an element of a {array_type}"))),
            };
        }
        let position = self.scalar(index)?;
        let is_secret = position.words.iter().any(|word| self.builder.is_secret(*word));
        if let Held::Memory(stored) = self.held(array)?
            && !is_secret
            && let Some(bytes) = bytes_of(&array_type)
        {
            let step = bytes_of(element).ok_or_else(|| self.builder.missing("an array of values in memory"))?;
            return self.builder.load_indexed(self.files, element, &stored, &position, step, bytes);
        }
        let elements = self.elements(array)?;
        self.scan(&elements, &position)
    }

    pub(super) fn with_element(&mut self, array: NodeHandle, index: NodeHandle, value: NodeHandle) -> Lowering<Held> {
        let mut elements = self.elements(array)?;
        let new = self.value(value)?;
        if let Some(index) = constant_of(self.body, index).and_then(Bits::to_u64) {
            let place = elements.get_mut(index as usize).ok_or_else(|| self.builder.missing("an element past the last"))?;
            *place = new;
            return Ok(Held::Array(Rc::new(elements)));
        }
        let position = self.scalar(index)?;
        for (number, element) in elements.iter_mut().enumerate() {
            let is_this = self.builder.index_is(self.files, &position, number as u64)?;
            *element = self.builder.select_held(self.files, &is_this, &new, element)?;
        }
        Ok(Held::Array(Rc::new(elements)))
    }

    /// The element at a run-time index, by selection over all of them: in constant time wherever they are.
    pub(super) fn scan(&mut self, elements: &[Held], index: &Scalar) -> Lowering<Held> {
        self.builder.scan_elements(self.files, elements, index)
    }

    fn scan_lanes(&mut self, node: &Node, array: NodeHandle, index: NodeHandle) -> Lowering<Held> {
        let (width, lanes) = bits_shape(self.builder, &self.body.nodes[index].ty.clone())?;
        let (to, _) = bits_shape(self.builder, &node.ty)?;
        let Held::Registers(positions) = self.value(index)? else {
            let (elements, positions) = (self.elements(array)?, self.scalars(index)?);
            let mut results = Vec::with_capacity(positions.len());
            for position in &positions {
                match self.scan(&elements, position)? {
                    Held::Lanes(scalars) => results.extend(scalars),
                    _ => return Err(self.builder.missing("a lookup of vectors lane by lane")),
                }
            }
            return self.formed(&node.ty, results);
        };
        if to != width || lanes == 1 {
            return Err(self.builder.missing("a lookup lane by lane in a table of another width"));
        }
        let constants: Option<Vec<u64>> = match &self.body.nodes[self.array_of(node)].op {
            Op::Array(list) => list.iter().map(|item| constant_of(self.body, *item).and_then(Bits::to_u64)).collect(),
            _ => None,
        };
        let Some(table) = constants else { return Err(self.builder.missing("a lookup lane by lane in a table that is not constant")) };
        Ok(Held::Registers(self.builder.scan_table(width, &table, &positions)?))
    }

    /// A lookup lane by lane in a table of constants, in registers of many lanes.
    pub(super) fn is_scan_of_constants(&self, node: &Node, array: NodeHandle, index: NodeHandle) -> bool {
        let is_constant = |item: &NodeHandle| constant_of(self.body, *item).is_some();
        let constants = matches!(&self.body.nodes[array].op, Op::Array(list) if list.iter().all(is_constant));
        constants
            && self.body.nodes[index].ty == node.ty
            && matches!(node.ty, Type::Bits { lanes: 2.., .. })
            && self.is_in_registers(&node.ty)
    }

    fn array_of(&self, node: &Node) -> NodeHandle {
        node.op.operands()[0]
    }
}
