//! Form `rust-portable`: safe scalar Rust. One `let` for each instruction by its row's Rust text, loops as loops, regions as byte arrays.

use super::Form;
use crate::interface::{self, Shape};
use crate::rust_interface::parameter_type;
use crate::rust_values::{Names, needed_values};
use crate::{Artifact, EmitError, Request, header};
use kgen_ir::body::Op;
use kgen_schedulers::finished::{FinishedFunction, FunctionRole};
use kgen_schedulers::machine::{ControlKind, Row};
use kgen_schedulers::program::{Instruction, Loop, Operand, Program, ProgramParameterKind, RegionKind, ValueId};
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
        let mut functions = Vec::new();
        for function in &request.finished.functions {
            functions.push(Printer::new(request, function)?.function(&mut types)?);
        }
        let types = types.into_values();
        let file: syn::File = syn::parse2(quote! { #(#types)* #(#functions)* })
            .map_err(|error| EmitError::Skeleton { form: NAME, reason: error.to_string() })?;
        text.push_str(&prettyplease::unparse(&file));
        Ok(vec![Artifact { file_name: format!("{}.{}.rs", request.finished.kernel.name, request.machine.name), text }])
    }
}

struct Printer<'a> {
    request: &'a Request<'a>,
    function: &'a FinishedFunction,
    program: &'a Program,
    parameters: Vec<Ident>,
    names: Names,
    needed: BTreeSet<ValueId>,
}

impl<'a> Printer<'a> {
    fn new(request: &'a Request<'a>, function: &'a FinishedFunction) -> Result<Self, EmitError> {
        let (machine, program) = (request.machine, &function.program);
        let needed = needed_values(machine, program);
        let rows: BTreeSet<_> = program.blocks.iter().flat_map(|block| &block.instructions).map(|instruction| instruction.row).collect();
        let mut names = Names::new(rows.into_iter().filter_map(|row| machine[row].rust.as_deref()));
        // What a pointer points to, since safe Rust calculates with the array itself.
        let mut places: BTreeMap<ValueId, String> = BTreeMap::new();
        let mut parameters = Vec::new();
        for (parameter, declared) in interface::parameters(function).iter().zip(&program.parameters) {
            let ident = names.claim(parameter.name);
            let name = ident.to_string();
            parameters.push(ident);
            match (declared.kind.clone(), &parameter.shape) {
                (ProgramParameterKind::Pointer { value, .. }, Shape::Region { bytes: Some(_), align_bytes: 2.., .. }) => {
                    places.insert(value, format!("{name}.0"));
                }
                (ProgramParameterKind::Pointer { value, .. } | ProgramParameterKind::Scalar { value, .. }, _) => {
                    places.insert(value, name);
                }
            }
        }
        let regions: Vec<String> = program
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
                places.insert(value, regions[region].clone());
            }
        }
        // A carried value is one variable from before the loop to after it.
        let mut same: BTreeMap<ValueId, ValueId> = BTreeMap::new();
        for carried in program.loops.iter().flat_map(|lap| &lap.carried) {
            same.insert(carried.last, carried.current);
        }
        for (index, value) in program.values.iter().enumerate() {
            let id = ValueId(index as u32);
            if !same.contains_key(&id) && !places.contains_key(&id) && needed.contains(&id) {
                let name = names.claim(&value.name).to_string();
                places.insert(id, name);
            }
        }
        for (last, current) in &same {
            if let Some(name) = places.get(current).cloned() {
                places.insert(*last, name);
            }
        }
        names.places = places;
        names.regions = regions;
        Ok(Self { request, function, program, parameters, names, needed })
    }

    fn unprintable(&self, reason: impl Into<String>) -> EmitError {
        EmitError::Unprintable { form: NAME, function: self.program.name.clone(), reason: reason.into() }
    }

    fn ident(&self, value: ValueId) -> Result<Ident, EmitError> {
        let name = self.names.places.get(&value).and_then(|name| syn::parse_str::<Ident>(name).ok());
        name.ok_or_else(|| self.unprintable(format!("`{}` has no variable of its own", self.program[value].name)))
    }

    fn function(&mut self, types: &mut BTreeMap<String, TokenStream>) -> Result<TokenStream, EmitError> {
        let parameters: Vec<TokenStream> = interface::parameters(self.function)
            .iter()
            .zip(&self.parameters)
            .map(|(parameter, ident)| {
                let ty = parameter_type(self.request, parameter, types);
                quote! { #ident: #ty }
            })
            .collect();
        let name = Ident::new(&self.program.name, proc_macro2::Span::call_site());
        let (pools, frames) = self.arrays()?;
        let body = self.blocks(0, self.program.blocks.len(), None)?;
        let doc = match self.function.role {
            FunctionRole::Kernel => format!(" `{name}` in safe Rust."),
            FunctionRole::Setup => " What depends on setup parameters only: made once, used by many calls.".to_owned(),
            FunctionRole::Import => " Big-endian bytes to the layout that the other functions take.".to_owned(),
            FunctionRole::Export => " The layout of the other functions to big-endian bytes.".to_owned(),
        };
        // Offsets and shift counts of zero are written like all others.
        Ok(quote! {
            #pools
            #[doc = #doc]
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
        for (index, region) in self.program.regions.iter().enumerate() {
            let pointers = self.program.blocks.iter().flat_map(|block| &block.instructions);
            let used = pointers
                .filter_map(|instruction| region_pointer(&self.request.machine[instruction.row], instruction))
                .any(|(value, of)| of == index && self.needed.contains(&value));
            let name = &self.names.regions[index];
            if !used || name.is_empty() {
                continue;
            }
            let name: Ident = syn::parse_str(name).map_err(|_| self.unprintable(format!("region `{name}` cannot be named")))?;
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
                _ => return Err(self.unprintable(format!("the size of region `{}` is not known", region.name))),
            }
        }
        Ok((pools, frames))
    }

    /// The blocks `first..end`; `inside` is the loop whose body they are.
    fn blocks(&mut self, first: usize, end: usize, inside: Option<&Loop>) -> Result<TokenStream, EmitError> {
        let program = self.program;
        let mut tokens = TokenStream::new();
        let mut skip: Option<Ident> = None;
        let mut block = first;
        while block < end {
            let starts = |lap: &&Loop| lap.first.0 as usize == block && inside.is_none_or(|outer| outer.first != lap.first);
            if let Some(lap) = program.loops.iter().find(starts) {
                let (declared, looped) = self.lap(lap)?;
                let guarded = match skip.take() {
                    Some(skip) => quote! { if !#skip { #looped } },
                    None => looped,
                };
                tokens.extend(quote! { #declared #guarded });
                block = lap.last.0 as usize + 1;
                continue;
            }
            for instruction in &program.blocks[block].instructions {
                let row = &self.request.machine[instruction.row];
                if row.control.is_none() {
                    tokens.extend(self.statement(row, instruction)?);
                    continue;
                }
                let target = instruction.operands.iter().find_map(|operand| match operand {
                    Operand::Block(target) => Some(target.0 as usize),
                    _ => None,
                });
                let back = inside.is_some_and(|lap| target == Some(lap.first.0 as usize) && lap.last.0 as usize == block);
                let skips = program.loops.iter().any(|lap| lap.first.0 as usize == block + 1 && target == Some(lap.last.0 as usize + 1));
                if back {
                    let again = self.names.claim("again");
                    tokens.extend(self.jump(row, instruction, &again)?);
                    let lap = inside.ok_or_else(|| self.unprintable("a jump back outside of a loop"))?;
                    tokens.extend(self.next_round(lap)?);
                    tokens.extend(quote! { if !#again { break; } });
                } else if skips {
                    let name = self.names.claim("skip");
                    tokens.extend(self.jump(row, instruction, &name)?);
                    skip = Some(name);
                } else {
                    return Err(self.unprintable(format!("`{}` in block {block} is no part of a loop", row.name)));
                }
            }
            block += 1;
        }
        Ok(tokens)
    }

    /// A loop: its variables, and itself.
    fn lap(&mut self, lap: &Loop) -> Result<(TokenStream, TokenStream), EmitError> {
        let mut declared = TokenStream::new();
        for carried in lap.carried.iter().filter(|carried| self.needed.contains(&carried.current)) {
            let (name, initial) = (self.ident(carried.current)?, self.text_of(carried.initial)?);
            let ty = self.type_of(carried.current).map(|ty| quote! { : #ty });
            declared.extend(quote! { let mut #name #ty = #initial; });
        }
        let body = self.blocks(lap.first.0 as usize, lap.last.0 as usize + 1, Some(lap))?;
        Ok((declared, quote! { loop { #body } }))
    }

    /// Carried values move on, all at once where one is another's next.
    fn next_round(&self, lap: &Loop) -> Result<TokenStream, EmitError> {
        let moved: Vec<_> =
            lap.carried.iter().filter(|carried| self.needed.contains(&carried.current) && carried.next != carried.current).collect();
        let names = moved.iter().map(|carried| self.ident(carried.current)).collect::<Result<Vec<_>, _>>()?;
        let next = moved.iter().map(|carried| self.text_of(carried.next)).collect::<Result<Vec<_>, _>>()?;
        let crossed = moved.iter().any(|carried| moved.iter().any(|other| other.current == carried.next));
        Ok(if crossed {
            quote! { (#(#names),*) = (#(#next),*); }
        } else {
            quote! { #(#names = #next;)* }
        })
    }

    fn text_of(&self, value: ValueId) -> Result<syn::Expr, EmitError> {
        let name = self.names.places.get(&value);
        let parsed = name.and_then(|name| syn::parse_str(name).ok());
        parsed.ok_or_else(|| self.unprintable(format!("`{}` has no variable", self.program[value].name)))
    }

    /// The type of a value; `None` for pointers, whose type follows from what they point to.
    fn type_of(&self, value: ValueId) -> Option<TokenStream> {
        let file = self.program[value].file;
        let pointer = |value: ValueId| self.program[value].file == file;
        let is_pointer = self.program.parameters.iter().any(|parameter| match parameter.kind {
            ProgramParameterKind::Pointer { value, .. } => pointer(value),
            ProgramParameterKind::Scalar { .. } => false,
        });
        if is_pointer {
            return None;
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
    fn expression(&self, row: &Row, instruction: &Instruction) -> Result<syn::Expr, EmitError> {
        let template = row.rust.as_ref().ok_or_else(|| self.unprintable(format!("row `{}` has no Rust text", row.name)))?;
        let mut text = template.clone();
        for (declared, operand) in row.operands.iter().zip(&instruction.operands).filter(|(declared, _)| declared.read) {
            let written = match operand {
                Operand::Value(value) => self.names.places.get(value).cloned().unwrap_or_default(),
                Operand::Immediate(number) => number.to_string(),
                Operand::Zero => "0".to_owned(),
                Operand::Symbol(region, 0) => self.names.regions[region.0 as usize].clone(),
                Operand::Block(_) => continue,
                _ => return Err(self.unprintable(format!("operand `{}` of `{}` is no expression", declared.name, row.name))),
            };
            text = text.replace(&format!("{{{}}}", declared.name), &written);
        }
        let mut parsed: syn::Expr =
            syn::parse_str(&text).map_err(|error| self.unprintable(format!("`{text}` of row `{}`: {error}", row.name)))?;
        // The outermost parentheses are for texts inside of others.
        while let syn::Expr::Paren(inner) = parsed {
            parsed = *inner.expr;
        }
        Ok(parsed)
    }

    /// Patterns and types of the results.
    fn results(&self, row: &Row, instruction: &Instruction) -> Result<Vec<(TokenStream, Option<TokenStream>)>, EmitError> {
        let written = row.operands.iter().zip(&instruction.operands).filter(|(declared, _)| declared.written);
        written
            .map(|(declared, operand)| match operand {
                Operand::Value(value) if self.needed.contains(value) => {
                    let name = self.ident(*value)?;
                    Ok((quote! { #name }, self.type_of(*value)))
                }
                Operand::Value(_) | Operand::Unused => Ok((quote! { _ }, Some(quote! { _ }))),
                _ => Err(self.unprintable(format!("result `{}` of `{}` is no value", declared.name, row.name))),
            })
            .collect()
    }

    fn statement(&self, row: &Row, instruction: &Instruction) -> Result<TokenStream, EmitError> {
        let results = self.results(row, instruction)?;
        let used = instruction.writes(self.request.machine).any(|(_, value)| self.needed.contains(&value));
        if region_pointer(row, instruction).is_some() || !(used || results.is_empty()) {
            return Ok(TokenStream::new());
        }
        let expression = self.expression(row, instruction)?;
        Ok(match &results[..] {
            [] => quote! { #expression; },
            [(name, ty)] => {
                let ty = ty.as_ref().map(|ty| quote! { : #ty });
                quote! { let #name #ty = #expression; }
            }
            several => {
                let names = several.iter().map(|(name, _)| name);
                let types = several.iter().map(|(_, ty)| ty.clone().unwrap_or_else(|| quote! { _ }));
                quote! { let (#(#names),*): (#(#types),*) = #expression; }
            }
        })
    }

    /// Results of a jump, and whether it is taken.
    fn jump(&self, row: &Row, instruction: &Instruction, taken: &Ident) -> Result<TokenStream, EmitError> {
        if row.control == Some(ControlKind::Jump) {
            return Ok(quote! { let #taken = true; });
        }
        let expression = self.expression(row, instruction)?;
        let results = self.results(row, instruction)?;
        let names = results.iter().map(|(name, _)| name);
        Ok(if results.is_empty() {
            quote! { let #taken: bool = #expression; }
        } else {
            quote! { let (#(#names,)* #taken) = #expression; }
        })
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
