//! Reads target files: one text file per machine, the only place that knows it.
//!
//! # The format
//!
//! Lines, nested by indentation; `//` starts a comment; the order of entries is free.
//!
//! ```text
//! machine NAME "summary"                      settings below it, one a line:
//!     order big|little   memory cached|banked|flat   word BITS   instruction_bytes N   instruction_cache BYTES
//!     misalign_boundary BYTES   comment "#"   parallel "||"   forms NAME, NAME
//! parameter NAME VALUE "meaning" [guess] cite "…"       VALUE is a number or a word; wherever a NUMBER is asked for below, a parameter's name may stand
//! variant NAME "summary"                      another machine of this file; below it `parameter NAME VALUE [cite "…"]` overrides
//! file NAME width BITS count N|unlimited [scalar] [sticky] [text "v{n}"] [reads "%v{n}"] [reserved LIST] [saved LIST] [zero N]
//!     [inline_reserved LIST] [inline_name "v{n}"] [inline_class "vreg"] [inline_base_class "reg_nonzero"] [tuple LENGTH ALIGNMENT] [renames NUMBER] [branch_delay NUMBER] [side N] cite "…"
//! queue NAME entries NUMBER dispatch NUMBER issue NUMBER window NUMBER out_of_order NUMBER cite "…"
//! unit NAME [queue NAME] [copies NUMBER] [stations NUMBER] [finish NUMBER] [dispatch NUMBER] [in_flight NUMBER] [oldest NUMBER] [side N] cite "…"
//! hazard KIND must|cost [limit NUMBER] cite "…"
//! class NAME ATTRIBUTES                       figures that many rows share
//! instr NAME OPERANDS ATTRIBUTES              meaning, and more attributes, on the lines below it
//! abi arguments FILE LIST stack N align BYTES header BYTES cite "…"
//!     entry|exit once|always "line"…  ·  entry|exit saved FILE "line"…  ·  directive "line"…
//! intrinsics "core::arch::x" arch "x" features "f", "g" gates "h" cite "…"      the instructions as functions of Rust
//!     type VIEW "vector_type"                 what a view of a register is there
//! for A, B in x y; z w                        the lines below once per row, with {A} and {B} replaced
//! ```
//!
//! An operand is `NAME:KIND`. KIND is a register file (`v`; `r|0` for register-or-zero; `r*4` for a tuple; `cr@6` for that register only,
//! never written in the text; `r=d` for the register of result `d`, read; `r!` for a result written before the others are read), a constant's range
//! (`-16..16`, `0..64/4`), `label` or `symbol`. What an operand is used for follows from the meaning: assigned is written, named is read.
//! Operands that the text does not hold are implicit.
//!
//! ATTRIBUTES: `on UNIT [| UNIT]` (a unit or a parameter that names one), `latency NUMBER`, `of OPERAND NUMBER` (another latency for one result),
//! `throughput NUMBER`, `short OPERAND LATENCY THROUGHPUT` (when that operand fits 16 bits), `serialized`, `oldest`, `timing constant|operands`,
//! `control jump|conditional|counted|return|call_next`, `bytes N`, `class NAME`, `guess`, `cite "…"`, `asm "template"`,
//! `alias "template" [OPERAND=NUMBER|OPERAND]…` (read, never printed), `rust "template"`.
mod cursor;
mod intrinsics;
mod lines;
mod mapped;
mod operands;
mod rows;
mod sections;

use crate::machine::Machine;
use kgen_ir::diagnostic::Diagnostic;
use kgen_ir::source::Source;

pub use cursor::nearest;

/// The target files that are part of the program: (file name, text), by name.
const EMBEDDED: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/embedded_targets.rs"));

/// The target files that are part of the program.
pub fn embedded() -> impl Iterator<Item = Source> {
    EMBEDDED.iter().map(|(name, text)| Source { name: (*name).to_owned(), text: (*text).to_owned() })
}

/// Name and summary of the machine of a target file, then of its variants. Empty for a text that is no target file.
pub fn names(source: &Source) -> Vec<(String, String)> {
    sections::names(&source.text)
}

/// The embedded target file that holds the machine or variant of this name.
pub fn embedded_source(name: &str) -> Option<Source> {
    embedded().find(|source| names(source).iter().any(|(known, _)| known == name))
}

/// An embedded machine or variant.
///
/// # Errors
/// That there is none of this name, with the nearest; or the mistakes of its file.
pub fn embedded_machine(name: &str) -> Result<Machine, (Source, Vec<Diagnostic>)> {
    match embedded_source(name) {
        Some(source) => read(&source, Some(name)).map_err(|errors| (source, errors)),
        None => {
            let known: Vec<String> = embedded().flat_map(|source| names(&source)).map(|(name, _)| name).collect();
            let known: Vec<&str> = known.iter().map(String::as_str).collect();
            let source = Source { name: "--target".to_owned(), text: name.to_owned() };
            let span = kgen_ir::source::Span::new(0..name.len());
            Err((source, vec![cursor::unknown_name(span, "target", name, &known)]))
        }
    }
}

/// Reads the machine of a target file, or the variant of it that is called `name`.
///
/// # Errors
/// Every mistake of the file at its place.
pub fn read(source: &Source, name: Option<&str>) -> Result<Machine, Vec<Diagnostic>> {
    let mut errors = Vec::new();
    let entries = lines::entries(&source.text, &mut errors);
    let mut machine = sections::machine(&entries, name, &mut errors);
    if let Some((machine, classes)) = &mut machine {
        rows::rows(&entries, machine, classes, &mut errors);
    }
    match machine {
        Some((machine, _)) if errors.is_empty() => Ok(machine),
        _ => {
            errors.sort_by_key(|error| (error.span, error.rule));
            Err(errors)
        }
    }
}
