//! Parameters of kernels as parameters of programs: scalars by value, everything else as regions; a slice's number of elements follows its pointer.

use super::builder::{Lowering, ProgramBuilder};
use super::held::{Files, Held, Scalar, Stored};
use super::regions::bytes_of;
use crate::program::{Layout, RegionId, ValueId};
use kgen_ir::body::Op;
use kgen_ir::kernel::{Alias, Direction, Kernel, Parameter};
use kgen_ir::types::Type;

/// Scalars up to this many bits pass by value.
const BY_VALUE_BITS: u32 = 64;

/// What a kernel's parameters became.
pub struct Interface {
    /// What the body's inputs are held in, in order.
    pub inputs: Vec<Held>,
    /// Where the body's outputs go, in order, with their types.
    pub outputs: Vec<(Type, Stored)>,
    /// Regions of the parameters, in order; `None` where one passes by value.
    regions: Vec<Option<RegionId>>,
}

/// Declares the parameters of a kernel without naturals.
///
/// # Errors
/// A parameter's type has no form in memory or in a register.
pub fn declare(builder: &mut ProgramBuilder<'_>, files: &Files, kernel: &Kernel) -> Lowering<Interface> {
    let leaders = slices_that_lead(kernel);
    let mut interface = Interface { inputs: Vec::new(), outputs: Vec::new(), regions: Vec::new() };
    for parameter in &kernel.parameters {
        builder.set_span(parameter.span);
        let by_value = match parameter.ty {
            Type::Bits { width, lanes: 1 } => width <= BY_VALUE_BITS && parameter.direction == Direction::In,
            _ => false,
        };
        if by_value {
            let width = parameter.ty.total_bits().unwrap_or(0);
            let value = builder.scalar_parameter(&parameter.name, width, parameter.secret)?;
            let scalar = builder.resize_scalar(files, &Scalar { width, words: vec![value] }, width)?;
            interface.inputs.push(Held::Lanes(vec![scalar]));
            interface.regions.push(None);
            continue;
        }
        let stored = declare_region(builder, parameter)?;
        if parameter.is_input() {
            interface.inputs.push(Held::Memory(stored.clone()));
        }
        if parameter.direction != Direction::In {
            interface.outputs.push((parameter.ty.clone(), stored.clone()));
        }
        interface.regions.push(Some(stored.region));
        if leaders.contains(&parameter.name) {
            let count = builder.count_parameter(&format!("{}_count", parameter.name));
            builder.set_slice_count(stored.region, count);
        }
    }
    declare_aliases(builder, kernel, &interface.regions);
    Ok(interface)
}

fn declare_region(builder: &mut ProgramBuilder<'_>, parameter: &Parameter) -> Lowering<Stored> {
    let bytes = match &parameter.ty {
        Type::Slice { .. } => None,
        ty => Some(bytes_of(ty).ok_or_else(|| builder.missing(&format!("parameter `{}` of type {ty} in memory", parameter.name)))?),
    };
    let region =
        builder.region_parameter(&parameter.name, parameter.direction, parameter.secret, bytes, parameter.align_bytes, Layout::Bytes);
    Ok(Stored { region, base: None, offset: 0, window: None, align_bytes: parameter.align_bytes })
}

/// The first slice of each map: its number of elements is that of all of them.
fn slices_that_lead(kernel: &Kernel) -> Vec<String> {
    let maps = kernel.body.nodes.iter().filter_map(|(_, node)| match &node.op {
        Op::Map { slices, .. } => slices.first(),
        _ => None,
    });
    maps.filter_map(|slice| match kernel.body.nodes[*slice].op {
        Op::Input(index) => kernel.body.inputs.get(index as usize).map(|port| port.name.clone()),
        _ => None,
    })
    .collect()
}

fn declare_aliases(builder: &mut ProgramBuilder<'_>, kernel: &Kernel, regions: &[Option<RegionId>]) {
    for (index, parameter) in kernel.parameters.iter().enumerate() {
        let others: Vec<usize> = match parameter.alias {
            Alias::Disjoint => Vec::new(),
            Alias::Same(other) => vec![other as usize],
            Alias::Any => (0..regions.len()).filter(|other| *other != index).collect(),
        };
        for other in others {
            if let (Some(region), Some(Some(other))) = (regions[index], regions.get(other)) {
                builder.may_alias(region, *other);
            }
        }
    }
}

impl ProgramBuilder<'_> {
    /// A public count in the integer file, the next parameter.
    pub fn count_parameter(&mut self, name: &str) -> ValueId {
        let bits = self.machine()[self.integer_file()].width_bits;
        self.push_scalar_parameter(name, bits, false, self.integer_file())
    }
}
