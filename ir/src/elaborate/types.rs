//! Written types to types.

use super::Elaborator;
use crate::diagnostic::Diagnostic;
use crate::limits;
use crate::source::Span;
use crate::syntax::ast::{TypeExpression, TypeKind};
use crate::syntax::split_bits_type;
use crate::types::Type;

/// Names of the families of types.
pub const FAMILIES: [&str; 3] = ["nat", "modulus", "residue"];

/// Bits of a value, arrays included; saturated.
fn array_bits(ty: &Type) -> u64 {
    match ty {
        Type::Bits { width, lanes } => u64::from(*width) * u64::from(*lanes),
        Type::Natural { bits } | Type::Modulus { bits } | Type::Residue { bits, .. } => u64::from(*bits),
        Type::Array { element, length } => array_bits(element).saturating_mul(u64::from(*length)),
        Type::Slice { element } => array_bits(element),
    }
}

impl Elaborator {
    /// A type as messages show it: residues by the name of their modulus.
    pub fn type_name(&self, ty: &Type) -> String {
        match ty {
            Type::Residue { modulus, .. } => {
                let signature = self.place.signature_moduli.iter().find(|(_, (index, _))| index == modulus).map(|(name, _)| name.clone());
                let name = signature.or_else(|| self.place.moduli.get(modulus).map(|node| self.place.bodies[0].node(*node).name.clone()));
                name.map_or_else(|| ty.to_string(), |name| format!("residue<{name}>"))
            }
            Type::Array { element, length } => format!("[{}; {length}]", self.type_name(element)),
            Type::Slice { element } => format!("[{}]", self.type_name(element)),
            _ => ty.to_string(),
        }
    }

    /// `uWxN` within the limits.
    pub fn bits_type(&mut self, width: u32, lanes: u32, span: Span) -> Option<Type> {
        if width == 0 || width > limits::LANE_BITS {
            self.report(
                Diagnostic::error("width", span, format!("lanes have 1 to {} bits, not {width}", limits::LANE_BITS))
                    .help("naturals may be wider: `nat<1024>`"),
            );
            return None;
        }
        if lanes == 0 || lanes > limits::LANES || width * lanes > limits::VECTOR_BITS {
            self.report(
                Diagnostic::error(
                    "width",
                    span,
                    format!("a vector has 1 to {} lanes and at most {} bits", limits::LANES, limits::VECTOR_BITS),
                )
                .help("use an array: `[u32; 8192]`"),
            );
            return None;
        }
        Some(Type::vector(width, lanes))
    }

    /// `uW` or `uWxN` by name.
    pub fn named_bits_type(&mut self, name: &str, span: Span) -> Option<Type> {
        match split_bits_type(name) {
            Some((width, lanes)) => self.bits_type(width, lanes, span),
            None => {
                self.report(
                    Diagnostic::error("unknown-type", span, format!("`{name}` is no type"))
                        .help("types are uW, uWxN, nat<W>, modulus<BITS>, residue<m>, [T; N] and, for parameters, [T]"),
                );
                None
            }
        }
    }

    /// A written type.
    pub fn elaborate_type(&mut self, ty: &TypeExpression) -> Option<Type> {
        let span = ty.span;
        match &ty.kind {
            TypeKind::Named(name) => self.named_bits_type(name, span),
            TypeKind::Natural(bits) => {
                Some(Type::Natural { bits: self.constant_u32(bits, "the number of bits", 1, limits::NATURAL_BITS)? })
            }
            TypeKind::Modulus(bits) => {
                Some(Type::Modulus { bits: self.constant_u32(bits, "the number of bits", 2, limits::NATURAL_BITS)? })
            }
            TypeKind::Residue(modulus) => self.residue_type(modulus),
            TypeKind::Array(element, length) => {
                let element = self.elaborate_type(element);
                let length = self.constant_u32(length, "the length of an array", 1, limits::ARRAY_ELEMENTS);
                let ty = Type::Array { element: element?.into(), length: length? };
                if array_bits(&ty) > limits::ARRAY_BITS {
                    self.error("limit", span, format!("an array of more than {} bits", limits::ARRAY_BITS));
                    return None;
                }
                Some(ty)
            }
            TypeKind::Slice(_) => {
                self.report(
                    Diagnostic::error("slice-type", span, "a slice is only the type of a parameter of a kernel")
                        .help("an array has a length: `[u8x16; 4]`"),
                );
                None
            }
        }
    }
}
