//! Form `rust-portable`: safe scalar Rust. One `let` for each instruction by its row's Rust text, loops as loops, regions as byte arrays.

use super::Form;
use crate::interface::{self, Shape};
use crate::rust_interface::{self, declare_radix, parameter_type};
use crate::rust_program::{ProgramText, RowText};
use crate::rust_values::{Names, needed_values};
use crate::{Artifact, EmitError, Request, header};
use kgen_ir::body::{NaryOp, Op};
use kgen_schedulers::finished::{FinishedFunction, FunctionRole};
use kgen_schedulers::machine::{FileId, Machine, Row};
use kgen_schedulers::program::{Instruction, Operand, Program, ProgramParameterKind, RegionKind, ValueId};
use proc_macro2::{Ident, Literal, TokenStream};
use quote::quote;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// The form.
pub(super) struct RustPortable;

const NAME: &str = "rust-portable";

impl Form for RustPortable {
    fn name(&self) -> &'static str {
        NAME
    }

    fn summary(&self) -> &'static str {
        "safe Rust functions for any machine"
    }

    fn emit(&self, request: &Request<'_>) -> Result<Vec<Artifact>, EmitError> {
        let mut text = String::new();
        for line in header::lines(request, NAME) {
            let _ = writeln!(text, "// {line}");
        }
        let mut types = BTreeMap::new();
        declare_radix(request, &mut types);
        let mut functions = Vec::new();
        for function in &request.finished.functions {
            functions.push(Printer::new(request, function).function(&mut types)?);
        }
        let types = types.into_values();
        let file: syn::File = syn::parse2(quote! { #(#types)* #(#functions)* })
            .map_err(|error| EmitError::Skeleton { form: NAME, reason: error.to_string() })?;
        text.push_str(&prettyplease::unparse(&file));
        Ok(vec![Artifact { file_name: format!("{}.{}.rs", request.finished.kernel.name, request.machine.name), text }])
    }

    fn join(&self, texts: &[&str]) -> String {
        rust_interface::join(texts)
    }
}

struct Printer<'a> {
    function: &'a FinishedFunction,
    parameters: Vec<Ident>,
    text: ProgramText<'a, PortableRows<'a>>,
}

impl<'a> Printer<'a> {
    fn new(request: &'a Request<'a>, function: &'a FinishedFunction) -> Self {
        let (machine, program) = (request.machine, &function.program);
        let needed = needed_values(machine, program);
        let rows: BTreeSet<_> = program.blocks.iter().flat_map(|block| &block.instructions).map(|instruction| instruction.row).collect();
        let mut names = Names::new(rows.into_iter().filter_map(|row| machine[row].rust.as_deref()));
        // What a pointer points to, since safe Rust calculates with the array itself.
        let mut parameters = Vec::new();
        for (parameter, declared) in interface::parameters(function).iter().zip(&program.parameters) {
            let ident = names.claim(parameter.name);
            let name = ident.to_string();
            parameters.push(ident);
            match (declared.kind.clone(), &parameter.shape) {
                (ProgramParameterKind::Pointer { value, .. }, Shape::Region { bytes: Some(_), align_bytes: 2.., .. }) => {
                    names.places.insert(value, format!("{name}.0"));
                }
                (ProgramParameterKind::Pointer { value, .. } | ProgramParameterKind::Scalar { value, .. }, _) => {
                    names.places.insert(value, name);
                }
            }
        }
        names.regions = program
            .regions
            .iter()
            .map(|region| match region.kind {
                RegionKind::Parameter { .. } => String::new(),
                RegionKind::Pool => names.claim(&format!("{}_{}", program.name, region.name).to_uppercase()).to_string(),
                RegionKind::Frame => names.claim(&region.name).to_string(),
            })
            .collect();
        for instruction in program.blocks.iter().flat_map(|block| &block.instructions) {
            if let Some((value, region)) = region_pointer(&machine[instruction.row], instruction) {
                names.places.insert(value, names.regions[region].clone());
            }
        }
        names.bases = pointer_bases(machine, program, &names.places);
        let text = ProgramText::new(request, function, names, needed, PortableRows { request, program });
        Self { function, parameters, text }
    }

    fn function(&mut self, types: &mut BTreeMap<String, TokenStream>) -> Result<TokenStream, EmitError> {
        let request = self.text.rows.request;
        let parameters: Vec<TokenStream> = interface::parameters(self.function)
            .iter()
            .zip(&self.parameters)
            .map(|(parameter, ident)| {
                let ty = parameter_type(request, parameter, types);
                quote! { #ident: #ty }
            })
            .collect();
        let name = Ident::new(&self.function.program.name, proc_macro2::Span::call_site());
        let (pools, frames) = self.arrays()?;
        let body = self.text.body()?;
        let doc = match self.function.role {
            FunctionRole::Kernel => format!(" `{name}` in safe Rust."),
            FunctionRole::Setup => " What depends on setup parameters only: made once, used by many calls.".to_owned(),
            FunctionRole::Import => " Big-endian bytes to the layout that the other functions take.".to_owned(),
            FunctionRole::Export => " The layout of the other functions to big-endian bytes.".to_owned(),
        };
        // A kernel may ignore a parameter, which stays part of its interface.
        let words = body.to_string();
        let is_used = |name: &Ident| words.split(|letter: char| !letter.is_alphanumeric() && letter != '_').any(|word| name == word);
        let unused = (!self.parameters.iter().all(is_used)).then(|| quote! { #[allow(unused_variables)] });
        let conventions = interface::conventions(&self.text.rows.request.finished.kernel, self.function);
        let docs: Vec<String> =
            std::iter::once(doc).chain(conventions.iter().flat_map(|sentence| [String::new(), format!(" {sentence}.")])).collect();
        // Offsets and shift counts of zero are written like all others.
        Ok(quote! {
            #pools
            #(#[doc = #docs])*
            #unused
            #[allow(clippy::identity_op, clippy::too_many_arguments)]
            pub fn #name(#(#parameters),*) {
                #frames
                #body
            }
        })
    }

    /// Constants before the function, scratch at its start.
    fn arrays(&self) -> Result<(TokenStream, TokenStream), EmitError> {
        let (mut pools, mut frames) = (TokenStream::new(), TokenStream::new());
        for (index, region) in self.function.program.regions.iter().enumerate() {
            let pointers = self.function.program.blocks.iter().flat_map(|block| &block.instructions);
            let used = pointers
                .filter_map(|instruction| region_pointer(&self.text.rows.request.machine[instruction.row], instruction))
                .any(|(value, of)| of == index && self.text.needed.contains(&value));
            let name = &self.text.names.regions[index];
            if !used || name.is_empty() {
                continue;
            }
            let name: Ident = syn::parse_str(name).map_err(|_| self.text.rows.unprintable(format!("region `{name}` cannot be named")))?;
            match (&region.kind, &region.contents, region.bytes) {
                (RegionKind::Pool, Some(contents), _) => {
                    let length = Literal::usize_unsuffixed(contents.len());
                    let bytes = contents.iter().map(|byte| Literal::u8_unsuffixed(*byte));
                    pools.extend(quote! { static #name: [u8; #length] = [#(#bytes),*]; });
                }
                (RegionKind::Frame, _, Some(bytes)) => {
                    let length = Literal::u64_unsuffixed(bytes);
                    frames.extend(quote! { let mut #name = [0u8; #length]; });
                }
                _ => return Err(self.text.rows.unprintable(format!("the size of region `{}` is not known", region.name))),
            }
        }
        Ok((pools, frames))
    }
}

/// Rows by their own texts.
struct PortableRows<'a> {
    request: &'a Request<'a>,
    program: &'a Program,
}

impl PortableRows<'_> {
    /// The distance of a pointer from the start of its region, where a row does nothing but add to another one.
    fn moved_pointer(&self, names: &Names, row: &Row, instruction: &Instruction, moved: ValueId) -> Result<syn::Expr, EmitError> {
        let read: Vec<ValueId> = instruction.reads(self.request.machine).map(|(_, value)| value).collect();
        let nodes = &row.meaning.nodes;
        let adds = matches!(row.meaning.outputs.as_slice(), [(_, output)] if matches!(&nodes[*output].op, Op::Nary(NaryOp::Add, terms)
            if terms.iter().all(|term| matches!(nodes[*term].op, Op::Input(_)))));
        let texts: Vec<&str> = read.iter().filter_map(|value| names.value_text(*value)).collect();
        match (&read[..], &texts[..]) {
            ([pointer, distance], [from, by]) if adds && names.bases.contains_key(pointer) && !names.bases.contains_key(distance) => {
                syn::parse_str(&format!("{from} + {by} as usize")).map_err(|error| self.unprintable(error.to_string()))
            }
            _ => {
                Err(self
                    .unprintable(format!("`{}` makes pointer `{}` of something else than a pointer", row.name, self.program[moved].name)))
            }
        }
    }

    fn unprintable(&self, reason: impl Into<String>) -> EmitError {
        EmitError::Unprintable { form: NAME, function: self.program.name.clone(), reason: reason.into() }
    }
}

impl RowText for PortableRows<'_> {
    fn form(&self) -> &'static str {
        NAME
    }

    fn results_of(&self, row: &Row) -> Vec<usize> {
        row.operands.iter().enumerate().filter(|(_, operand)| operand.written).map(|(number, _)| number).collect()
    }

    fn is_name(&self, row: &Row, instruction: &Instruction) -> bool {
        region_pointer(row, instruction).is_some()
    }

    // A pointer is its distance from the start of its region: a slice of a slice could be moved on only where it is not written through.
    fn type_of(&self, value: ValueId) -> Option<TokenStream> {
        let file = self.program[value].file;
        if pointer_file(self.program) == Some(file) {
            return Some(quote! { usize });
        }
        let file = &self.request.machine[file];
        let bytes = Literal::u32_unsuffixed(file.width_bits / 8);
        Some(match (file.width_bits, file.value_type(1)) {
            (1, _) => quote! { bool },
            (_, kgen_ir::types::Type::Bits { lanes: 1, width }) => {
                let ident = quote::format_ident!("u{}", width);
                quote! { #ident }
            }
            _ => quote! { [u8; #bytes] },
        })
    }

    /// The row's text with the operands in their places.
    fn expression(&self, names: &Names, row: &Row, instruction: &Instruction, _: &[usize]) -> Result<syn::Expr, EmitError> {
        if let Some((_, moved)) = instruction.writes(self.request.machine).find(|(_, value)| names.distances.contains_key(value)) {
            return self.moved_pointer(names, row, instruction, moved);
        }
        let template = row.rust.as_ref().ok_or_else(|| self.unprintable(format!("row `{}` has no Rust text", row.name)))?;
        let mut text = template.clone();
        for (declared, operand) in row.operands.iter().zip(&instruction.operands).filter(|(declared, _)| declared.read) {
            let written = match operand {
                Operand::Value(value) => names.places.get(value).cloned().unwrap_or_default(),
                Operand::Immediate(number) => number.to_string(),
                Operand::Zero => "0".to_owned(),
                Operand::Symbol(region, 0) => names.regions[region.0 as usize].clone(),
                Operand::Block(_) => continue,
                _ => return Err(self.unprintable(format!("operand `{}` of `{}` is no expression", declared.name, row.name))),
            };
            text = text.replace(&format!("{{{}}}", declared.name), &written);
        }
        syn::parse_str(&text).map_err(|error| self.unprintable(format!("`{text}` of row `{}`: {error}", row.name)))
    }
}

/// The file of pointers: that of parameters which are regions.
fn pointer_file(program: &Program) -> Option<FileId> {
    program.parameters.iter().find_map(|parameter| match parameter.kind {
        ProgramParameterKind::Pointer { value, .. } => Some(program[value].file),
        ProgramParameterKind::Scalar { .. } => None,
    })
}

/// For each pointer the text of the region that it points into; `starts` are those that point to the start.
fn pointer_bases(machine: &Machine, program: &Program, starts: &BTreeMap<ValueId, String>) -> BTreeMap<ValueId, String> {
    let Some(file) = pointer_file(program) else { return BTreeMap::new() };
    let is_pointer = |value: &ValueId| program[*value].file == file;
    let mut bases: BTreeMap<ValueId, String> =
        starts.iter().filter(|(value, _)| is_pointer(value)).map(|(value, text)| (*value, text.clone())).collect();
    loop {
        let known = bases.len();
        for carried in program.loops.iter().flat_map(|lap| &lap.carried) {
            if let Some(base) = bases.get(&carried.initial).cloned() {
                bases.insert(carried.current, base.clone());
                bases.insert(carried.last, base);
            }
        }
        for instruction in program.blocks.iter().flat_map(|block| &block.instructions) {
            let base = instruction.reads(machine).find_map(|(_, value)| bases.get(&value).cloned());
            if let Some(base) = base {
                bases.extend(instruction.writes(machine).map(|(_, value)| value).filter(is_pointer).map(|value| (value, base.clone())));
            }
        }
        if bases.len() == known {
            return bases;
        }
    }
}

/// The value and the region where a row does nothing but give a region's address.
fn region_pointer(row: &Row, instruction: &Instruction) -> Option<(ValueId, usize)> {
    let region = instruction.operands.iter().find_map(|operand| match operand {
        Operand::Symbol(region, 0) => Some(region.0 as usize),
        _ => None,
    })?;
    let [(_, output)] = row.meaning.outputs.as_slice() else { return None };
    let written = row.operands.iter().position(|operand| operand.written)?;
    match (&row.meaning.nodes[*output].op, &instruction.operands[written]) {
        (Op::Input(_), Operand::Value(value)) => Some((*value, region)),
        _ => None,
    }
}
