//! Form `gas`: GNU assembly with CFI and local labels around the body, and a C header beside it.

use super::Form;
use crate::assembly::{self, Line};
use crate::interface::{self, Shape};
use crate::{Artifact, EmitError, Request, header};
use kgen_ir::kernel::Direction;
use kgen_schedulers::finished::FinishedFunction;
use serde::Serialize;
use std::fmt::Write;

/// The form.
pub(super) struct Gas;

const NAME: &str = "gas";
const SKELETON: &str = include_str!("../../templates/gas.s.tera");

/// Functions start at a multiple of this, so that a fetch group holds as much of the first instructions as it can.
const FUNCTION_ALIGN_BYTES: u32 = 32;

#[derive(Serialize)]
struct FunctionText {
    symbol: String,
    description: Vec<String>,
    align_bytes: u32,
    lines: Vec<String>,
    data: Vec<ObjectText>,
}

#[derive(Serialize)]
struct ObjectText {
    symbol: String,
    align_bytes: u32,
    rows: Vec<String>,
}

impl Form for Gas {
    fn name(&self) -> &'static str {
        NAME
    }

    fn summary(&self) -> &'static str {
        "GNU assembly with a C header"
    }

    fn emit(&self, request: &Request<'_>) -> Result<Vec<Artifact>, EmitError> {
        let functions =
            request.finished.functions.iter().map(|function| function_text(request, function)).collect::<Result<Vec<_>, _>>()?;
        let mut context = tera::Context::new();
        context.insert("header", &header::lines(request, NAME));
        context.insert("comment", &request.machine.comment);
        context.insert("directives", &request.machine.abi.as_ref().map(|abi| abi.directives.clone()).unwrap_or_default());
        context.insert("functions", &functions);
        let text = render(&context)?;
        let stem = format!("{}{}", request.text.prefix, request.finished.kernel.name);
        Ok(vec![
            Artifact { file_name: format!("{stem}.{}.s", request.machine.name), text },
            Artifact { file_name: format!("{stem}.h"), text: c_header(request) },
        ])
    }
}

fn render(context: &tera::Context) -> Result<String, EmitError> {
    let skeleton = |error: tera::Error| EmitError::Skeleton { form: NAME, reason: error.to_string() };
    let mut engine = tera::Tera::default();
    engine.add_raw_template("gas.s", SKELETON).map_err(skeleton)?;
    engine.render("gas.s", context).map_err(skeleton)
}

fn function_text(request: &Request<'_>, function: &FinishedFunction) -> Result<FunctionText, EmitError> {
    let symbol = |name: &str| format!("{}{name}", request.text.prefix);
    let code = assembly::code_of(NAME, function)?;
    let comment = &request.machine.comment;
    let mut lines = Vec::new();
    for line in assembly::lines(NAME, request, function, |label, _| label.to_owned(), symbol)? {
        match line {
            Line::Label(name) => lines.push(format!("{name}:")),
            Line::Instruction { text, comment: said, frame } => {
                lines.push(if said.is_empty() { format!("\t{text}") } else { format!("\t{text:<32}{comment} {said}") });
                if let Some(bytes) = frame {
                    lines.push(format!("\t.cfi_def_cfa_offset {bytes}"));
                }
            }
        }
    }
    let data = code
        .data
        .iter()
        .map(|object| ObjectText {
            symbol: symbol(&object.symbol),
            align_bytes: object.align_bytes,
            rows: object
                .bytes
                .chunks(16)
                .map(|chunk| chunk.iter().map(|byte| format!("0x{byte:02x}")).collect::<Vec<_>>().join(","))
                .collect(),
        })
        .collect();
    Ok(FunctionText {
        symbol: symbol(&function.program.name),
        description: description(function),
        align_bytes: FUNCTION_ALIGN_BYTES,
        lines,
        data,
    })
}

fn description(function: &FinishedFunction) -> Vec<String> {
    let performance = &function.performance;
    let mut lines = vec![prototype(function, "")];
    if let (Some(body), Some(call)) = (performance.cycles.body, performance.cycles.call) {
        lines.push(format!("{body} cycles in the model without register saves, {call} the whole call"));
    }
    lines
}

fn prototype(function: &FinishedFunction, prefix: &str) -> String {
    let parameters: Vec<String> = interface::parameters(function)
        .iter()
        .map(|parameter| match parameter.shape {
            Shape::Scalar { bits } => format!("uint{}_t {}", bits.next_power_of_two().max(8), parameter.name),
            Shape::Region { .. } if parameter.direction == Direction::In => format!("const void *{}", parameter.name),
            Shape::Region { .. } => format!("void *{}", parameter.name),
        })
        .collect();
    format!("void {prefix}{}({});", function.program.name, parameters.join(", "))
}

fn c_header(request: &Request<'_>) -> String {
    let guard = format!("KGEN_{}{}_H", request.text.prefix, request.finished.kernel.name).to_uppercase();
    let mut text = String::from("/*\n");
    for line in header::lines(request, NAME) {
        let _ = writeln!(text, " * {}", line.replace("*/", "* /"));
    }
    let _ = write!(text, " */\n#ifndef {guard}\n#define {guard}\n#include <stdint.h>\n#ifdef __cplusplus\nextern \"C\" {{\n#endif\n");
    for function in &request.finished.functions {
        let _ = writeln!(text);
        for parameter in interface::parameters(function) {
            let secret = if parameter.secret { "secret" } else { "public" };
            match parameter.shape {
                Shape::Scalar { bits } => {
                    let _ = writeln!(text, "/* {}: {bits} bits, {secret} */", parameter.name);
                }
                Shape::Region { bytes, align_bytes, layout } => {
                    let size = bytes.map_or("as many bytes as the count says".to_owned(), |bytes| format!("{bytes} bytes"));
                    let meaning = interface::layout_text(layout);
                    let _ = writeln!(text, "/* {}: {size}, aligned to {align_bytes}, {secret}; {meaning} */", parameter.name);
                    if let Some(bytes) = bytes {
                        let name = format!("{}{}_{}_BYTES", request.text.prefix, function.program.name, parameter.name).to_uppercase();
                        let _ = writeln!(text, "#define {name} {bytes}");
                    }
                }
            }
        }
        for sentence in interface::conventions(&request.finished.kernel, function) {
            let _ = writeln!(text, "/* {sentence}. */");
        }
        if let Some((radix_bits, _)) = interface::montgomery_text(function) {
            let name = format!("{}{}_R_BITS", request.text.prefix, function.program.name).to_uppercase();
            let _ = writeln!(text, "#define {name} {radix_bits}");
        }
        let _ = writeln!(text, "{}", prototype(function, &request.text.prefix));
    }
    text.push_str("\n#ifdef __cplusplus\n}\n#endif\n#endif\n");
    text
}
