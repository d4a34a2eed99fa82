//! Parameters of emitted functions in Rust: names, and types that every Rust form shares.

use crate::Request;
use crate::interface::{self, InterfaceParameter, Shape};
use kgen_ir::kernel::Direction;
use kgen_schedulers::finished::FinishedFunction;
use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote};
use std::collections::{BTreeMap, BTreeSet};

/// The identifier of a parameter: its name, changed where Rust keeps the word for itself.
pub(crate) fn parameter_name(parameter: &InterfaceParameter<'_>) -> Ident {
    syn::parse_str::<Ident>(parameter.name).unwrap_or_else(|_| format_ident!("{}_", parameter.name))
}

/// The Rust type of a parameter, declared in `types` where it is an aggregate.
pub(crate) fn parameter_type(
    request: &Request<'_>,
    parameter: &InterfaceParameter<'_>,
    types: &mut BTreeMap<String, TokenStream>,
) -> TokenStream {
    match &parameter.shape {
        Shape::Scalar { bits } => {
            let name = format_ident!("u{}", bits.next_power_of_two().max(8));
            quote! { #name }
        }
        Shape::Region { bytes, align_bytes, layout } => {
            let reference = if parameter.direction == Direction::In {
                quote! { & }
            } else {
                quote! { &mut }
            };
            let Some(bytes) = bytes else { return quote! { #reference [u8] } };
            let length = usize::try_from(*bytes).unwrap_or(usize::MAX);
            if *align_bytes <= 1 {
                return quote! { #reference [u8; #length] };
            }
            let name = interface::type_name(&request.finished.kernel, *bytes, *align_bytes, layout);
            let ident = Ident::new(&name, Span::call_site());
            let align = proc_macro2::Literal::u32_unsuffixed(*align_bytes);
            let length = proc_macro2::Literal::usize_unsuffixed(length);
            let doc = format!(" {}.", capitalized(&interface::layout_text(layout)));
            types.entry(name).or_insert_with(|| {
                quote! {
                    #[doc = #doc]
                    #[derive(Clone, Copy)]
                    #[repr(C, align(#align))]
                    pub struct #ident(pub [u8; #length]);
                }
            });
            quote! { #reference #ident }
        }
    }
}

/// Declares what the kernel's functions say about R: log2(R) as a constant that belongs to the modulus's size, as its setup block does.
pub(crate) fn declare_radix(request: &Request<'_>, types: &mut BTreeMap<String, TokenStream>) {
    let Some(bits) = interface::modulus_bits(&request.finished.kernel) else { return };
    let Some((radix_bits, text)) = request.finished.functions.iter().find_map(interface::montgomery_text) else { return };
    let name = format_ident!("MODULUS_{}_R_BITS", bits);
    let radix_bits = proc_macro2::Literal::u32_unsuffixed(radix_bits);
    let doc = format!(" log2(R) of a modulus of {bits} bits. {text}.");
    types.entry(name.to_string()).or_insert_with(|| quote! { #[doc = #doc] pub const #name: u32 = #radix_bits; });
}

/// The documentation of a function: what it is, what its user must know, in lines as `#[doc]` takes them.
pub(crate) fn documentation(request: &Request<'_>, function: &FinishedFunction) -> Vec<String> {
    let mut lines = vec![format!(" `{}` on {}.", function.program.name, request.machine.name)];
    if let (Some(body), Some(call)) = (function.performance.cycles.body, function.performance.cycles.call) {
        lines.push(format!(" {body} cycles in the model without register saves, {call} the whole call."));
    }
    for sentence in interface::conventions(&request.finished.kernel, function) {
        lines.push(String::new());
        lines.push(format!(" {sentence}."));
    }
    lines
}

/// Texts of several kernels as one file: what they share (types of naturals and setup blocks, R) is declared once, where it comes first. Equal names are
/// equal declarations, since both are made of the layout.
pub(crate) fn join(texts: &[&str]) -> String {
    let mut declared = BTreeSet::new();
    let mut joined = Vec::new();
    for text in texts {
        let mut kept: Vec<&str> = Vec::new();
        for line in text.lines() {
            let shared = (line.starts_with("pub struct ") || line.starts_with("pub const ")) && line.ends_with(';');
            if !shared || declared.insert(line) {
                kept.push(line);
            } else {
                // With its documentation and attributes.
                while kept.last().is_some_and(|above| above.starts_with("///") || above.starts_with("#[")) {
                    kept.pop();
                }
            }
        }
        joined.push(kept.join("\n") + "\n");
    }
    joined.join("\n")
}

fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().collect::<String>() + letters.as_str()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_files_share_is_declared_once() {
        let one = "// one\n/// A type.\n#[repr(C)]\npub struct A(pub [u8; 4]);\npub struct B(u8);\nfn one() {}\n";
        let two = "// two\n/// A type.\n#[repr(C)]\npub struct A(pub [u8; 4]);\npub const C: u32 = 1;\nfn two() {}\n";
        let joined = "// one\n/// A type.\n#[repr(C)]\npub struct A(pub [u8; 4]);\npub struct B(u8);\nfn one() {}\n\n// two\npub const C: u32 = 1;\nfn two() {}\n";
        assert_eq!(super::join(&[one, two]), joined);
        assert_eq!(super::join(&[one]), one);
    }
}
