//! Parameters of emitted functions in Rust: names, and types that every Rust form shares.

use crate::Request;
use crate::interface::{self, InterfaceParameter, Shape};
use kgen_ir::kernel::Direction;
use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote};
use std::collections::BTreeMap;

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
            let name = interface::type_name(&request.finished.kernel.name, *bytes, *align_bytes, layout);
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

fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().collect::<String>() + letters.as_str()).unwrap_or_default()
}
