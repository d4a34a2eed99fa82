//! The interface of an emitted function, as every form and header must agree on it.

use kgen_ir::kernel::Direction;
use kgen_schedulers::finished::FinishedFunction;
use kgen_schedulers::program::{Layout, ProgramParameterKind};

/// A parameter of an emitted function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InterfaceParameter<'a> {
    /// Name in the spec.
    pub name: &'a str,
    /// Use.
    pub direction: Direction,
    /// Secret.
    pub secret: bool,
    /// Shape.
    pub shape: Shape<'a>,
}

/// What is passed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Shape<'a> {
    /// An unsigned integer of this many bits in a register.
    Scalar {
        /// Bits.
        bits: u32,
    },
    /// A pointer.
    Region {
        /// Bytes, where known before run time.
        bytes: Option<u64>,
        /// Alignment in bytes that the caller must guarantee.
        align_bytes: u32,
        /// What the bytes mean.
        layout: &'a Layout,
    },
}

/// The parameters in order.
pub(crate) fn parameters(function: &FinishedFunction) -> Vec<InterfaceParameter<'_>> {
    let program = &function.program;
    program
        .parameters
        .iter()
        .map(|parameter| {
            let shape = match parameter.kind {
                ProgramParameterKind::Scalar { bits, .. } => Shape::Scalar { bits },
                ProgramParameterKind::Pointer { region, .. } => {
                    let layout = &program.layouts[region.0 as usize];
                    let region = &program.regions[region.0 as usize];
                    Shape::Region { bytes: region.bytes, align_bytes: region.align_bytes, layout }
                }
            };
            InterfaceParameter { name: &parameter.name, direction: parameter.direction, secret: parameter.secret, shape }
        })
        .collect()
}

/// The name of the aggregate type for a region: equal layouts get equal names, whatever kernel they belong to.
pub(crate) fn type_name(kernel: &str, bytes: u64, align_bytes: u32, layout: &Layout) -> String {
    match layout {
        Layout::Limbs { radix_bits, limb_order, .. } => format!("Limbs{}x{radix_bits}", limb_order.len()),
        Layout::SetupBlock { .. } => format!("{}Setup", camel(kernel)),
        Layout::Array { element, count, stride_bytes } => {
            format!("{}Table{count}", type_name(kernel, u64::from(*stride_bytes), align_bytes, element))
        }
        Layout::Bytes => format!("Bytes{bytes}Align{align_bytes}"),
    }
}

/// One sentence on what a region's bytes mean.
pub(crate) fn layout_text(layout: &Layout) -> String {
    match layout {
        Layout::Bytes => "bytes in the order of the spec's type".to_owned(),
        Layout::Array { element, count, .. } => format!("{count} times {}", layout_text(element)),
        Layout::SetupBlock { bytes } => format!("opaque block of {bytes} bytes made by the setup function"),
        Layout::Limbs { radix_bits, limb_bytes, limb_order, .. } => {
            format!("{} limbs of radix 2^{radix_bits} in {limb_bytes} bytes each, made by the import function", limb_order.len())
        }
    }
}

/// `mont_mul_512` as `MontMul512`.
pub(crate) fn camel(name: &str) -> String {
    name.split('_')
        .map(|word| {
            let mut letters = word.chars();
            letters.next().map(|first| first.to_uppercase().collect::<String>() + letters.as_str()).unwrap_or_default()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn camel_case_keeps_numbers() {
        assert_eq!(super::camel("mont_mul_512"), "MontMul512");
    }
}
