//! Form `rust-asm`: a function around one block of inline assembly: exact registers, exact clobbers; what the schedule says is what runs.
//!
//! The block saves and restores every register that the calling convention wants kept, since a compiler without the vector feature would not.

use super::Form;
use crate::assembly::{self, Line};
use crate::interface::{self, Shape};
use crate::rust_interface::{self, declare_radix, documentation, parameter_name, parameter_type};
use crate::{Artifact, EmitError, Request, header};
use kgen_ir::kernel::Direction;
use kgen_schedulers::code::{Code, CodeOperand};
use kgen_schedulers::finished::FinishedFunction;
use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// The form.
pub(super) struct RustAsm;

const NAME: &str = "rust-asm";

/// Numeric labels start here: 0 and 1 may be read as binary numbers by some assemblers.
const FIRST_LABEL: usize = 2;

impl Form for RustAsm {
    fn name(&self) -> &'static str {
        NAME
    }

    fn summary(&self) -> &'static str {
        "Rust functions around one block of inline assembly each"
    }

    fn emit(&self, request: &Request<'_>) -> Result<Vec<Artifact>, EmitError> {
        let mut text = String::new();
        for line in header::lines(request, NAME) {
            let _ = writeln!(text, "// {line}");
        }
        let mut types = BTreeMap::new();
        declare_radix(request, &mut types);
        let mut functions = Vec::new();
        let mut blocks = Vec::new();
        for function in &request.finished.functions {
            functions.push(function_tokens(request, function, &mut types, blocks.len())?);
            blocks.push(asm_block(request, function)?);
        }
        let types = types.into_values();
        let file: syn::File = syn::parse2(quote! { #(#types)* #(#functions)* })
            .map_err(|error| EmitError::Skeleton { form: NAME, reason: error.to_string() })?;
        let mut body = prettyplease::unparse(&file);
        // The blocks are set in by hand: a pretty printer would put a thousand lines into one.
        for (number, block) in blocks.iter().enumerate() {
            body = body.replace(&format!("{}!();", placeholder(number)), block);
        }
        text.push_str(&body);
        Ok(vec![Artifact { file_name: format!("{}.{}.rs", request.finished.kernel.name, request.machine.name), text }])
    }

    fn join(&self, texts: &[&str]) -> String {
        rust_interface::join(texts)
    }
}

fn placeholder(number: usize) -> Ident {
    format_ident!("kgen_block_{}", number)
}

fn pool_name(function: &FinishedFunction) -> Ident {
    Ident::new(&format!("{}_POOL", function.program.name.to_uppercase()), Span::call_site())
}

fn function_tokens(
    request: &Request<'_>,
    function: &FinishedFunction,
    types: &mut BTreeMap<String, TokenStream>,
    number: usize,
) -> Result<TokenStream, EmitError> {
    let code = assembly::code_of(NAME, function)?;
    let name = Ident::new(&function.program.name, Span::call_site());
    let block = placeholder(number);
    let parameters: Vec<TokenStream> = interface::parameters(function)
        .iter()
        .map(|parameter| {
            let (ident, ty) = (parameter_name(parameter), parameter_type(request, parameter, types));
            quote! { #ident: #ty }
        })
        .collect();
    let pool = code.data.first().map(|object| {
        let (ident, length) = (pool_name(function), object.bytes.len());
        let bytes = object.bytes.iter().map(|byte| proc_macro2::Literal::u8_unsuffixed(*byte));
        let align = proc_macro2::Literal::u32_unsuffixed(object.align_bytes);
        let aligned = format_ident!("{}Pool", interface::camel(&function.program.name));
        quote! {
            #[repr(C, align(#align))]
            struct #aligned([u8; #length]);
            static #ident: #aligned = #aligned([#(#bytes),*]);
        }
    });
    let mut doc = documentation(request, function);
    doc.push(String::new());
    doc.push(" # Safety".to_owned());
    doc.push(format!(" The processor must have the instructions of {}.", request.machine.name));
    Ok(quote! {
        #pool
        #(#[doc = #doc])*
        #[inline(never)]
        pub unsafe fn #name(#(#parameters),*) {
            unsafe { #block!(); }
        }
    })
}

fn asm_block(request: &Request<'_>, function: &FinishedFunction) -> Result<String, EmitError> {
    let code = assembly::code_of(NAME, function)?;
    let unprintable =
        |reason: &str| EmitError::Unprintable { form: NAME, function: function.program.name.clone(), reason: reason.to_owned() };
    let last = code.instructions.len().checked_sub(1).ok_or_else(|| unprintable("it is empty"))?;
    if !assembly::returns(request, code, last) || (0..last).any(|index| assembly::returns(request, code, index)) {
        return Err(unprintable("inline assembly must fall out of its end, so the only return must stand last"));
    }
    let number = |name: &str| code.labels.iter().position(|(label, _)| label == name).map_or(0, |index| index + FIRST_LABEL);
    let used: BTreeSet<&str> = code
        .instructions
        .iter()
        .flat_map(|instruction| &instruction.operands)
        .filter_map(|operand| match operand {
            CodeOperand::Label(name) => Some(name.as_str()),
            _ => None,
        })
        .collect();
    let written = assembly::lines(
        NAME,
        request,
        function,
        |label, backward| format!("{}{}", number(label), if backward { "b" } else { "f" }),
        |_| "{pool}".to_owned(),
    )?;
    let mut text = String::from("core::arch::asm!(\n");
    let mut instructions = 0;
    for line in written {
        match line {
            Line::Label(name) if used.contains(name.as_str()) => {
                let _ = writeln!(text, "            \"{}:\",", number(&name));
            }
            Line::Label(_) => {}
            Line::Instruction { text: line, comment, .. } => {
                instructions += 1;
                if instructions > last {
                    break;
                }
                let said = if comment.is_empty() { String::new() } else { format!(" // {comment}") };
                let _ = writeln!(text, "            {}", format!("{:<40}{said}", format!("\"{line}\",")).trim_end());
            }
        }
    }
    for operand in operands(request, function, code)? {
        let _ = writeln!(text, "            {operand},");
    }
    text.push_str("        );");
    Ok(text)
}

/// Arguments in their registers, constants by symbol, and every register that the block changes and does not restore.
fn operands(request: &Request<'_>, function: &FinishedFunction, code: &Code) -> Result<Vec<String>, EmitError> {
    let machine = request.machine;
    let Some(abi) = &machine.abi else {
        return Err(EmitError::Unprintable {
            form: NAME,
            function: function.program.name.clone(),
            reason: "the target has no calling convention".to_owned(),
        });
    };
    let mut list = Vec::new();
    let mut mentioned = BTreeSet::new();
    for (parameter, register) in interface::parameters(function).iter().zip(&abi.arguments) {
        let file = &machine[abi.integer_file];
        let place = file.inline_name.as_deref().unwrap_or("{n}").replace("{n}", &register.to_string());
        let value = match parameter.shape {
            Shape::Scalar { .. } => parameter_name(parameter).to_string(),
            Shape::Region { .. } if parameter.direction == Direction::In => format!("core::ptr::from_ref({})", parameter_name(parameter)),
            Shape::Region { .. } => format!("core::ptr::from_mut({})", parameter_name(parameter)),
        };
        list.push(format!("inlateout(\"{place}\") {value} => _"));
        mentioned.insert(place);
    }
    if !code.data.is_empty() {
        list.push(format!("pool = sym {}", pool_name(function)));
    }
    let mut clobbers = BTreeSet::new();
    for instruction in &code.instructions {
        let row = &machine[instruction.row];
        let mut explicit = instruction.operands.iter();
        for declared in &row.operands {
            let operand = if declared.implicit { None } else { explicit.next() };
            if !declared.written {
                continue;
            }
            let (file, register) = match (operand, &declared.kind) {
                (Some(CodeOperand::Register(file, register)), _) => (*file, *register),
                (None, kgen_schedulers::machine::OperandKind::Register(file)) => (*file, declared.fixed_register.unwrap_or(0)),
                _ => continue,
            };
            let kept = machine[file].saved.contains(&register) || (file == abi.integer_file && register == abi.stack_pointer);
            if let (Some(name), false) = (&machine[file].inline_name, kept) {
                clobbers.insert((file, register, name.replace("{n}", &register.to_string())));
            }
        }
    }
    list.extend(clobbers.into_iter().filter(|(_, _, name)| !mentioned.contains(name)).map(|(_, _, name)| format!("out(\"{name}\") _")));
    Ok(list)
}
