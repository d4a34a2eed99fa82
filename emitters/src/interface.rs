//! The interface of an emitted function, as every form and header must agree on it.

use kgen_ir::kernel::{Direction, Kernel};
use kgen_ir::types::Type;
use kgen_schedulers::finished::{FinishedFunction, FunctionRole};
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
pub(crate) fn type_name(kernel: &Kernel, bytes: u64, align_bytes: u32, layout: &Layout) -> String {
    match layout {
        Layout::Limbs { radix_bits, limb_order, .. } => format!("Limbs{}x{radix_bits}", limb_order.len()),
        Layout::SetupBlock { .. } => match modulus_bits(kernel) {
            Some(bits) => format!("Modulus{bits}Setup"),
            None => format!("{}Setup", camel(&kernel.name)),
        },
        Layout::Array { element, count, stride_bytes } => {
            format!("{}Table{count}", type_name(kernel, u64::from(*stride_bytes), align_bytes, element))
        }
        Layout::Bytes => format!("Bytes{bytes}Align{align_bytes}"),
    }
}

/// Bits of the kernel's modulus, where all that is set up are moduli of one size. Their blocks depend on target and size only, so every such kernel takes the same.
pub(crate) fn modulus_bits(kernel: &Kernel) -> Option<u32> {
    let mut sizes = kernel.parameters.iter().filter(|parameter| parameter.setup).map(|parameter| match parameter.ty {
        Type::Modulus { bits } => Some(bits),
        _ => None,
    });
    let first = sizes.next()??;
    sizes.all(|size| size == Some(first)).then_some(first)
}

/// R and what residues are, where the function holds Montgomery products: log2(R), and a sentence.
pub(crate) fn montgomery_text(function: &FinishedFunction) -> Option<(u32, String)> {
    let form = function.program.montgomery?;
    let bound = if form.bound == 1 { "the modulus".to_owned() } else { format!("{} times the modulus", form.bound) };
    let text = format!(
        "Montgomery products are a*b/R modulo m with R = 2^{}. A residue r stands for the number r/R modulo m and is below {bound}; \
         a product with R^2 enters this form, a product with 1 leaves it",
        form.radix_bits
    );
    Some((form.radix_bits, text))
}

/// What a user of a function must know beside its parameters, one sentence each.
pub(crate) fn conventions(kernel: &Kernel, function: &FinishedFunction) -> Vec<String> {
    let bytes = |index: usize| function.program.regions.get(index).and_then(|region| region.bytes).unwrap_or(0);
    match function.role {
        FunctionRole::Kernel => montgomery_text(function).into_iter().map(|(_, text)| text).collect(),
        FunctionRole::Setup => match modulus_bits(kernel) {
            Some(bits) => vec![format!(
                "Once for each modulus, an odd number: fills the block that every kernel with a modulus of {bits} bits takes on this target"
            )],
            None => vec!["Once for each value of the setup parameters".to_owned()],
        },
        FunctionRole::Import => vec![format!(
            "The natural becomes the number whose {} bytes are given, most significant first; a layout and nothing else: no product with R^2",
            bytes(1)
        )],
        FunctionRole::Export => vec![format!(
            "Writes the number, below 2^{}, as {} bytes, most significant first; a layout and nothing else: a residue leaves Montgomery form before",
            8 * bytes(0),
            bytes(0)
        )],
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
