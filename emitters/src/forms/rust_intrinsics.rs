//! Form `rust-intrinsics`: Rust functions over the compiler's intrinsics.
//!
//! The instructions stand in the order of the schedule, one `let` each, but this form only asks: the compiler allocates registers, folds constants and schedules
//! again by its own model of the machine. Who wants what the schedule says takes an assembly form.
//!
//! A row is printed by its own text (an intrinsic), else by its meaning where that is integers only, else as inline assembly of one instruction. Pointers are
//! integers, as the rows see them. A secret that is a single bit or a mask is hidden from the compiler, which would make branches of it.

use super::Form;
use crate::interface::{self, Shape};
use crate::rust_interface::{declare_radix, parameter_name, parameter_type};
use crate::rust_meaning;
use crate::rust_program::{ProgramText, RowText};
use crate::rust_values::{Names, needed_values};
use crate::{Artifact, EmitError, Request, header};
use kgen_ir::body::{Op, UnaryOp};
use kgen_ir::domains::interval::IntervalDomain;
use kgen_ir::evaluate::evaluate;
use kgen_ir::kernel::Direction;
use kgen_ir::types::Type;
use kgen_schedulers::finished::{FinishedFunction, FunctionRole};
use kgen_schedulers::machine::{FileId, Intrinsics, OperandKind, Row};
use kgen_schedulers::program::{Instruction, Operand, Program, ProgramParameterKind, RegionId, RegionKind, ValueId};
use proc_macro2::{Ident, Literal, Span, TokenStream};
use quote::{ToTokens, format_ident, quote};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// The form.
pub(super) struct RustIntrinsics;

const NAME: &str = "rust-intrinsics";

impl Form for RustIntrinsics {
    fn name(&self) -> &'static str {
        NAME
    }

    fn summary(&self) -> &'static str {
        "Rust functions over the compiler's intrinsics, which it schedules again (unstable Rust)"
    }

    fn emit(&self, request: &Request<'_>) -> Result<Vec<Artifact>, EmitError> {
        let kernel = &request.finished.kernel.name;
        let unprintable = |reason: &str| EmitError::Unprintable { form: NAME, function: kernel.clone(), reason: reason.to_owned() };
        let intrinsics = request.machine.intrinsics.as_ref().ok_or_else(|| unprintable("the target file names no intrinsics"))?;
        if request.code.position_independent {
            return Err(unprintable("the compiler decides how constants are addressed; leave `--pic` out and give `-C relocation-model`"));
        }
        let mut text = String::new();
        for line in header::lines(request, NAME) {
            let _ = writeln!(text, "// {line}");
        }
        let _ = writeln!(text, "//\n// The crate that holds this needs unstable Rust: #![feature({})]", intrinsics.gates.join(", "));
        let mut types = BTreeMap::new();
        declare_radix(request, &mut types);
        let mut functions = Vec::new();
        for function in &request.finished.functions {
            functions.push(Printer::new(request, intrinsics, function)?.function(&mut types)?);
        }
        let types = types.into_values();
        let file: syn::File = syn::parse2(quote! { #(#types)* #(#functions)* })
            .map_err(|error| EmitError::Skeleton { form: NAME, reason: error.to_string() })?;
        text.push_str(&prettyplease::unparse(&file));
        Ok(vec![Artifact { file_name: format!("{kernel}.{}.rs", request.machine.name), text }])
    }
}

struct Printer<'a> {
    request: &'a Request<'a>,
    intrinsics: &'a Intrinsics,
    function: &'a FinishedFunction,
    parameters: Vec<Ident>,
    /// Names of the parameters' addresses, where they are pointers.
    addresses: Vec<Option<Ident>>,
    /// The variable that stands for the stack pointer, and for what it points to.
    frame: Option<(Ident, Ident)>,
    text: ProgramText<'a, IntrinsicRows<'a>>,
}

impl<'a> Printer<'a> {
    fn new(request: &'a Request<'a>, intrinsics: &'a Intrinsics, function: &'a FinishedFunction) -> Result<Self, EmitError> {
        let (machine, program) = (request.machine, &function.program);
        let needed = needed_values(machine, program);
        let rows: BTreeSet<_> = program.blocks.iter().flat_map(|block| &block.instructions).map(|instruction| instruction.row).collect();
        let nodes = rows.iter().map(|row| machine[*row].meaning.nodes.len()).max().unwrap_or(0);
        let mut words: Vec<String> = rows.iter().filter_map(|row| machine[*row].rust.clone()).collect();
        words.extend(rust_meaning::reserved_names(nodes));
        words.extend(rust_meaning::HELPERS.iter().map(|(name, _)| (*name).to_owned()));
        words.extend(intrinsics.types.iter().map(|(_, name)| name.clone()));
        words.extend(["hidden", "transmute"].map(str::to_owned));
        words.extend(rows.iter().flat_map(|row| &machine[*row].operands).map(|operand| result_name(&operand.name)));
        let mut names = Names::new(words.iter().map(String::as_str));
        let mut parameters = Vec::new();
        let mut addresses = Vec::new();
        for (parameter, declared) in interface::parameters(function).iter().zip(&program.parameters) {
            let ident = names.claim(&parameter_name(parameter).to_string());
            let (value, place) = match declared.kind {
                ProgramParameterKind::Pointer { value, .. } => (value, Some(names.claim(&format!("{ident}_address")))),
                ProgramParameterKind::Scalar { value, .. } => (value, None),
            };
            names.places.insert(value, place.as_ref().unwrap_or(&ident).to_string());
            parameters.push(ident);
            addresses.push(place);
        }
        let pool = |name: &str| format!("{}_{name}", program.name).to_uppercase();
        names.regions = program
            .regions
            .iter()
            .map(|region| match region.kind {
                RegionKind::Pool => names.claim(&pool(&region.name)).to_string(),
                RegionKind::Parameter { .. } | RegionKind::Frame => String::new(),
            })
            .collect();
        let frame = program.stack_pointer.map(|value| {
            let (frame, address) = (names.claim("frame"), names.claim("frame_address"));
            names.places.insert(value, address.to_string());
            (frame, address)
        });
        let rows = IntrinsicRows { request, intrinsics, program, frame: frame_layout(program) };
        for parameter in &program.parameters {
            if let ProgramParameterKind::Scalar { bits, value } = parameter.kind
                && rust_meaning::storage_bits(bits) != rust_meaning::storage_bits(machine[program[value].file].width_bits)
            {
                // The register's upper bits: a scalar arrives zero extended.
                let (name, ty) = (names.places.get(&value).cloned().unwrap_or_default(), rows.variable_type(program[value].file)?);
                names.places.insert(value, format!("({name} as {ty})"));
            }
        }
        let text = ProgramText::new(request, function, names, needed, rows);
        Ok(Self { request, intrinsics, function, parameters, addresses, frame, text })
    }

    fn function(&mut self, types: &mut BTreeMap<String, TokenStream>) -> Result<TokenStream, EmitError> {
        let program = &self.function.program;
        let word = format_ident!("u{}", self.request.machine.word_bits);
        let interface = interface::parameters(self.function);
        let mut declared = Vec::new();
        let mut pointers = TokenStream::new();
        let mut unknown_size = false;
        let used = |value: ValueId| self.text.needed.contains(&value);
        for (((parameter, ident), address), passed) in interface.iter().zip(&self.parameters).zip(&self.addresses).zip(&program.parameters)
        {
            let ty = parameter_type(self.request, parameter, types);
            declared.push(quote! { #ident: #ty });
            unknown_size |= matches!(parameter.shape, Shape::Region { bytes: None, .. });
            if let (Some(address), ProgramParameterKind::Pointer { value, .. }) = (address, &passed.kind)
                && used(*value)
            {
                let pointer = match (parameter.direction, matches!(parameter.shape, Shape::Region { bytes: None, .. })) {
                    (Direction::In, true) => quote! { #ident.as_ptr() },
                    (_, true) => quote! { #ident.as_mut_ptr() },
                    (Direction::In, false) => quote! { core::ptr::from_ref(#ident) },
                    (_, false) => quote! { core::ptr::from_mut(#ident) },
                };
                pointers.extend(quote! { let #address = #pointer.expose_provenance() as #word; });
            }
        }
        let body = self.text.body()?;
        let used = body.to_string();
        let (pools, frame) = (self.pools()?, self.frame_tokens()?);
        let helpers = self.helpers(&used)?;
        let name = Ident::new(&program.name, Span::call_site());
        let arch = &self.intrinsics.arch;
        let features = &self.intrinsics.features;
        let module: syn::Path = self.parse(&self.intrinsics.module)?;
        let safety = if unknown_size {
            quote! { unsafe }
        } else {
            TokenStream::new()
        };
        let doc = self.documentation(unknown_size);
        Ok(quote! {
            #(#[doc = #doc])*
            #[cfg(target_arch = #arch)]
            #(#[target_feature(enable = #features)])*
            #[inline(never)]
            // Every operand is seen as the type that the intrinsic wants, also where it is that already; offsets of zero are written like all others.
            #[allow(unused_variables, clippy::too_many_arguments, clippy::useless_transmute, clippy::missing_transmute_annotations, clippy::identity_op)]
            pub #safety fn #name(#(#declared),*) {
                #[allow(unused_imports)]
                use #module::*;
                #[allow(unused_imports)]
                use core::mem::transmute;
                #helpers
                #pools
                #frame
                #pointers
                // SAFETY: accesses stay inside of the parameters, the constants and the frame; the function has the features of its intrinsics.
                #[allow(unused_unsafe)]
                unsafe { #body }
            }
        })
    }

    fn documentation(&self, unknown_size: bool) -> Vec<String> {
        let mut doc = vec![match self.function.role {
            FunctionRole::Kernel => format!(
                " `{}` on {}, in an order for its units that the compiler may change.",
                self.function.program.name, self.request.machine.name
            ),
            FunctionRole::Setup => " What depends on setup parameters only: made once, used by many calls.".to_owned(),
            FunctionRole::Import => " Bytes to the layout that the other functions take.".to_owned(),
            FunctionRole::Export => " The layout of the other functions to bytes.".to_owned(),
        }];
        for sentence in interface::conventions(&self.request.finished.kernel, self.function) {
            doc.extend([String::new(), format!(" {sentence}.")]);
        }
        if unknown_size {
            doc.extend([String::new(), " # Safety".to_owned(), " Slices must hold as many elements as the counts say.".to_owned()]);
        }
        doc
    }

    fn parse<T: syn::parse::Parse>(&self, text: &str) -> Result<T, EmitError> {
        syn::parse_str(text).map_err(|error| self.text.rows.unprintable(format!("`{text}`: {error}")))
    }

    /// Functions and macros that the body calls.
    fn helpers(&self, body: &str) -> Result<TokenStream, EmitError> {
        let mut tokens = TokenStream::new();
        let calls = |name: &str| body.split(|character: char| !(character.is_alphanumeric() || character == '_')).any(|word| word == name);
        if calls("hidden") {
            tokens.extend(quote! {
                /// The same value, of which the compiler knows nothing any more: it would make branches of masks.
                macro_rules! hidden {
                    ($class:ident, $value:expr) => {{
                        let mut value = $value;
                        core::arch::asm!("/* {0} */", inout($class) value, options(pure, nomem, nostack, preserves_flags));
                        value
                    }};
                }
            });
        }
        for (name, text) in rust_meaning::HELPERS {
            if calls(name) {
                let item: syn::Item = self.parse(text)?;
                tokens.extend(quote! { #item });
            }
        }
        Ok(tokens)
    }

    fn pools(&self) -> Result<TokenStream, EmitError> {
        let mut tokens = TokenStream::new();
        for (index, region) in self.function.program.regions.iter().enumerate() {
            let (RegionKind::Pool, Some(contents)) = (&region.kind, &region.contents) else { continue };
            let name: Ident = self.parse(&self.text.names.regions[index])?;
            let (length, align) = (Literal::usize_unsuffixed(contents.len()), Literal::u32_unsuffixed(region.align_bytes));
            let bytes = contents.iter().map(|byte| Literal::u8_unsuffixed(*byte));
            let ty = format_ident!("{}", interface::camel(&name.to_string().to_lowercase()));
            tokens.extend(quote! {
                #[repr(C, align(#align))]
                struct #ty([u8; #length]);
                static #name: #ty = #ty([#(#bytes),*]);
            });
        }
        Ok(tokens)
    }

    /// Scratch and spilled values.
    fn frame_tokens(&self) -> Result<TokenStream, EmitError> {
        let Some((frame, address)) = &self.frame else { return Ok(TokenStream::new()) };
        let layout = &self.text.rows.frame;
        let word = format_ident!("u{}", self.request.machine.word_bits);
        let (length, align) = (Literal::u64_unsuffixed(layout.bytes), Literal::u64_unsuffixed(layout.align_bytes));
        Ok(quote! {
            #[repr(C, align(#align))]
            struct Frame([u8; #length]);
            let mut #frame = core::mem::MaybeUninit::<Frame>::uninit();
            let #address = #frame.as_mut_ptr().expose_provenance() as #word;
        })
    }
}

/// The variable that a result of inline assembly is put into.
fn result_name(operand: &str) -> String {
    format!("result_{operand}")
}

/// Where frame regions lie in the function's scratch.
struct FrameLayout {
    offsets: BTreeMap<RegionId, u64>,
    bytes: u64,
    align_bytes: u64,
}

fn frame_layout(program: &Program) -> FrameLayout {
    let mut layout = FrameLayout { offsets: BTreeMap::new(), bytes: 0, align_bytes: 1 };
    for (index, region) in program.regions.iter().enumerate().filter(|(_, region)| region.kind == RegionKind::Frame) {
        let align = u64::from(region.align_bytes.max(1));
        let offset = layout.bytes.next_multiple_of(align);
        layout.offsets.insert(RegionId(index as u32), offset);
        layout.bytes = offset + region.bytes.unwrap_or(0);
        layout.align_bytes = layout.align_bytes.max(align);
    }
    layout
}

/// Rows by their texts, their meanings, or as assembly.
struct IntrinsicRows<'a> {
    request: &'a Request<'a>,
    intrinsics: &'a Intrinsics,
    program: &'a Program,
    frame: FrameLayout,
}

impl IntrinsicRows<'_> {
    fn unprintable(&self, reason: impl Into<String>) -> EmitError {
        EmitError::Unprintable { form: NAME, function: self.program.name.clone(), reason: reason.into() }
    }

    /// The type of variables for registers of a file.
    fn variable_type(&self, file: FileId) -> Result<String, EmitError> {
        let described = &self.request.machine[file];
        let found = match described.value_type(1) {
            Type::Bits { width, lanes: 1 } => rust_meaning::storage_bits(width).map(|bits| format!("u{bits}")),
            ty => self.intrinsics.type_of(&ty.to_string()).map(str::to_owned),
        };
        found.ok_or_else(|| self.unprintable(format!("registers of `{}` have no type of Rust", described.name)))
    }

    /// The text of an operand that is read.
    fn operand(&self, names: &Names, row: &Row, number: usize, operand: &Operand) -> Result<String, EmitError> {
        let declared = &row.operands[number];
        let word = self.request.machine.word_bits;
        let not = |what: &str| self.unprintable(format!("operand `{}` of `{}` is {what}", declared.name, row.name));
        match operand {
            Operand::Value(value) => names.places.get(value).cloned().ok_or_else(|| not("a value without a variable")),
            Operand::Immediate(number) => {
                Ok(if *number < 0 { format!("({number}i{word} as u{word})") } else { format!("{number}u{word}") })
            }
            Operand::FrameOffset(region, offset) => {
                let base = self.frame.offsets.get(region).ok_or_else(|| not("in no frame"))?;
                Ok(format!("{}u{word}", base + offset))
            }
            Operand::Zero => match declared.kind {
                OperandKind::RegisterOrZero(file) => Ok(format!("0{}", self.variable_type(file)?)),
                _ => Err(not("no register or zero")),
            },
            Operand::Symbol(region, offset) => {
                let pool = names.regions.get(region.0 as usize).filter(|name| !name.is_empty()).ok_or_else(|| not("no constant"))?;
                let address = format!("(core::ptr::from_ref(&{pool}).expose_provenance() as u{word})");
                Ok(if *offset == 0 { address } else { format!("{address}.wrapping_add({offset})") })
            }
            // The printer of loops knows where a jump goes.
            Operand::Block(_) => Ok(format!("0u{word}")),
            Operand::Unused => Err(not("not there")),
        }
    }

    /// The row's own text, its operands seen as the types it asks for.
    fn by_text(&self, names: &Names, row: &Row, instruction: &Instruction, template: &str) -> Result<String, EmitError> {
        let mut text = String::new();
        let mut rest = template;
        let mut views = false;
        while let Some((before, (hole, after))) = rest.split_once('{').and_then(|(before, from)| Some((before, from.split_once('}')?))) {
            let (name, view) = hole.split_once('.').map_or((hole, None), |(name, view)| (name, Some(view)));
            text.push_str(before);
            rest = after;
            let number = row.operands.iter().position(|operand| operand.name == name);
            let number = number.ok_or_else(|| self.unprintable(format!("`{name}` is no operand of `{}`", row.name)))?;
            match (&instruction.operands[number], &row.operands[number].kind) {
                // A number of the instruction itself: it has to be a constant in the text too.
                (Operand::Immediate(value), OperandKind::Immediate { .. }) => text.push_str(&value.to_string()),
                (operand, _) => {
                    let operand = self.operand(names, row, number, operand)?;
                    match view {
                        Some(view) => {
                            let ty = self.intrinsics.type_of(view);
                            let ty =
                                ty.ok_or_else(|| self.unprintable(format!("the view `{view}` of `{}` has no type of Rust", row.name)))?;
                            views = true;
                            let _ = write!(text, "transmute::<_, {ty}>({operand})");
                        }
                        None => text.push_str(&operand),
                    }
                }
            }
        }
        text.push_str(rest);
        // What the row sees as other lanes comes back as registers are held.
        let viewed = row.meaning.outputs.iter().any(|(_, node)| matches!(row.meaning.nodes[*node].op, Op::Reinterpret(..)));
        Ok(if views || viewed { format!("transmute({text})") } else { text })
    }

    /// One instruction of inline assembly.
    fn by_assembly(&self, names: &Names, row: &Row, instruction: &Instruction, results: &[usize]) -> Result<String, EmitError> {
        let machine = self.request.machine;
        let mut text = row.assembly.clone().ok_or_else(|| self.unprintable(format!("row `{}` has no text", row.name)))?;
        if row.operands.iter().any(|operand| operand.implicit && operand.tied.is_none()) {
            return Err(self.unprintable(format!(
                "row `{}` has neither a text of Rust nor a meaning in integers, and more operands than its assembly",
                row.name
            )));
        }
        let mut list = String::new();
        let mut declared = String::new();
        for (number, (operand, described)) in instruction.operands.iter().zip(&row.operands).enumerate() {
            let (OperandKind::Register(file) | OperandKind::RegisterOrZero(file)) = described.kind else {
                let Operand::Immediate(value) = operand else {
                    return Err(self.unprintable(format!("operand `{}` of `{}` cannot stand in inline assembly", described.name, row.name)));
                };
                text = text.replace(&format!("{{{}}}", described.name), &value.to_string());
                continue;
            };
            let file_of = &machine[file];
            let base = matches!(described.kind, OperandKind::RegisterOrZero(_)).then_some(file_of.inline_base_class.as_ref()).flatten();
            let class = base.or(file_of.inline_class.as_ref());
            let class =
                class.ok_or_else(|| self.unprintable(format!("registers of `{}` have no class of inline assembly", file_of.name)))?;
            let name = &described.name;
            if described.written {
                let ty = self.variable_type(file)?;
                let _ = write!(declared, "let {}: {ty};", result_name(name));
                let result = result_name(name);
                // The register that a tied operand brings in goes out again.
                let tied = row.operands.iter().position(|other| other.tied == Some(number as u32));
                let early = if described.early_clobber { "out" } else { "lateout" };
                let _ = match tied {
                    Some(old) => {
                        let old = self.operand(names, row, old, &instruction.operands[old])?;
                        write!(list, ", {name} = inout({class}) {old} => {result}")
                    }
                    None => write!(list, ", {name} = {early}({class}) {result}"),
                };
            } else if *operand == Operand::Zero {
                let zero = file_of.text.replace("{n}", &file_of.zero_in_base.unwrap_or(0).to_string());
                text = text.replace(&format!("{{{name}}}"), &zero);
            } else if described.tied.is_none() {
                let _ = write!(list, ", {name} = in({class}) {}", self.operand(names, row, number, operand)?);
            }
        }
        let options = match row.memory() {
            None => "pure, nomem, nostack, preserves_flags",
            Some(memory) if memory.is_store() => "nostack, preserves_flags",
            Some(_) => "pure, readonly, nostack, preserves_flags",
        };
        let given: Vec<String> = results.iter().map(|number| result_name(&row.operands[*number].name)).collect();
        let value = if given.len() == 1 { given[0].clone() } else { format!("({})", given.join(", ")) };
        Ok(format!("{{ {declared} core::arch::asm!(\"{text}\"{list}, options({options})); {value} }}"))
    }

    /// Hides a result whose few possible values the compiler would find out.
    fn hidden(&self, row: &Row, instruction: &Instruction, results: &[usize], text: String) -> String {
        let [result] = results else { return text };
        let Operand::Value(value) = &instruction.operands[*result] else { return text };
        let file = self.program[*value].file;
        match &self.request.machine[file].inline_class {
            Some(class) if self.program[*value].secret && few_values(row, instruction, *result) => {
                // Nothing stands beside a macro's argument.
                let bare = match syn::parse_str(&text) {
                    Ok(syn::Expr::Paren(inner)) => inner.expr.to_token_stream().to_string(),
                    _ => text,
                };
                format!("hidden!({class}, {bare})")
            }
            _ => text,
        }
    }
}

/// Whether a result is a bit or a mask.
fn few_values(row: &Row, instruction: &Instruction, result: usize) -> bool {
    let compares = row.meaning.nodes.iter().any(|(_, node)| match node.op {
        Op::Binary(op, ..) => op.is_comparison(),
        Op::Unary(op, _) => op == UnaryOp::LeadingZeros,
        _ => false,
    });
    if compares {
        return true;
    }
    let mut domain = IntervalDomain::new();
    let read = row.operands.iter().zip(&instruction.operands).filter(|(declared, _)| declared.read);
    let inputs: Vec<_> = read
        .zip(&row.meaning.inputs)
        .map(|((_, operand), port)| match (operand, port.ty.total_bits()) {
            (Operand::Immediate(value), Some(width)) => domain.constant_bits(&kgen_ir::bits::Bits::from_u64(width, *value as u64)),
            _ => domain.unknown(&port.ty),
        })
        .collect();
    let Ok(outcome) = evaluate(&mut domain, &row.meaning, &inputs);
    let output = row.operands[..result].iter().filter(|operand| operand.written).count();
    let width = row.meaning.outputs.get(output).and_then(|(port, _)| port.ty.total_bits());
    let ranges = outcome.outputs.get(output).zip(width).and_then(|(value, width)| value.ranges(width));
    ranges.is_some_and(|ranges| ranges.iter().all(|range| range.high - range.low <= 1))
}

impl RowText for IntrinsicRows<'_> {
    fn form(&self) -> &'static str {
        NAME
    }

    fn type_of(&self, value: ValueId) -> Option<TokenStream> {
        self.variable_type(self.program[value].file).ok().and_then(|name| syn::parse_str::<syn::Type>(&name).ok()).map(|ty| quote! { #ty })
    }

    fn results_of(&self, row: &Row) -> Vec<usize> {
        // An intrinsic gives what the instruction's text names; flags that it sets besides are nobody's.
        let written = row.operands.iter().enumerate().filter(|(_, operand)| operand.written);
        written.filter(|(_, operand)| row.rust.is_none() || !operand.implicit).map(|(number, _)| number).collect()
    }

    fn is_name(&self, _: &Row, _: &Instruction) -> bool {
        false
    }

    fn expression(&self, names: &Names, row: &Row, instruction: &Instruction, results: &[usize]) -> Result<syn::Expr, EmitError> {
        let text = match &row.rust {
            Some(template) => self.by_text(names, row, instruction, template)?,
            None => {
                let read = row.operands.iter().enumerate().filter(|(_, declared)| declared.read);
                let inputs = read.map(|(number, _)| self.operand(names, row, number, &instruction.operands[number]));
                let inputs: Vec<String> = inputs.collect::<Result<_, _>>()?;
                let outputs: Vec<usize> =
                    results.iter().map(|result| row.operands[..*result].iter().filter(|operand| operand.written).count()).collect();
                let secret = instruction.reads(self.request.machine).any(|(_, value)| self.program[value].secret);
                match rust_meaning::expression(&row.meaning, &inputs, &outputs, secret) {
                    Some(text) => text,
                    None => self.by_assembly(names, row, instruction, results)?,
                }
            }
        };
        let text = self.hidden(row, instruction, results, text);
        syn::parse_str(&text).map_err(|error| self.unprintable(format!("`{text}` of row `{}`: {error}", row.name)))
    }
}
