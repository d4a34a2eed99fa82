//! Directives of GNU as: sections and constants are read, what only informs linkers and debuggers is passed over.

use super::expression::{Definitions, expression};
use kgen_ir::types::ByteOrder;

/// The longest constant that `.space` may make; a kernel's tables are far smaller.
const SPACE_LIMIT: i64 = 1 << 24;

/// What a directive means for reading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Directive {
    /// Nothing.
    Ignored,
    /// What follows is code.
    Text,
    /// What follows is data.
    Data,
    /// The next object lies at a multiple of this.
    Align(u32),
    /// Bytes of the current object.
    Bytes(Vec<u8>),
    /// A name for a constant.
    Set(String, i64),
}

/// Directives without a meaning for execution and time.
const IGNORED: [&str; 27] = [
    ".globl",
    ".global",
    ".type",
    ".size",
    ".file",
    ".ident",
    ".machine",
    ".weak",
    ".hidden",
    ".protected",
    ".local",
    ".loc",
    ".abiversion",
    ".gnu_attribute",
    ".cfi_startproc",
    ".cfi_endproc",
    ".cfi_def_cfa_offset",
    ".cfi_def_cfa_register",
    ".cfi_def_cfa",
    ".cfi_offset",
    ".cfi_register",
    ".cfi_restore",
    ".cfi_remember_state",
    ".cfi_restore_state",
    ".cfi_sections",
    ".addrsig",
    ".end",
];

/// The directives that are read.
const READ: [&str; 25] = [
    ".text",
    ".data",
    ".rodata",
    ".section",
    ".previous",
    ".popsection",
    ".pushsection",
    ".align",
    ".p2align",
    ".balign",
    ".byte",
    ".short",
    ".hword",
    ".half",
    ".2byte",
    ".long",
    ".int",
    ".word",
    ".4byte",
    ".quad",
    ".8byte",
    ".space",
    ".zero",
    ".set",
    ".equ",
];

/// Reads a directive: its name and what follows it.
///
/// # Errors
/// What is wrong with it, and a way out.
pub fn directive(name: &str, rest: &str, order: ByteOrder, definitions: &Definitions) -> Result<Directive, (String, Option<String>)> {
    let number = |text: &str| match expression(definitions, text) {
        Some((value, length)) if text[length..].trim().is_empty() => Ok(value),
        _ => Err((format!("`{}` is no constant", text.trim()), Some("addresses as data are not read".to_owned()))),
    };
    let first = rest.split(',').next().unwrap_or("").trim();
    match name {
        ".text" => Ok(Directive::Text),
        ".data" | ".rodata" => Ok(Directive::Data),
        ".section" | ".pushsection" => {
            let code = first.trim_matches('"').starts_with(".text") || rest.contains(",\"ax");
            Ok(if code { Directive::Text } else { Directive::Data })
        }
        ".previous" | ".popsection" => Ok(Directive::Text),
        ".align" | ".p2align" => match u32::try_from(number(first)?) {
            Ok(power) if power < 16 => Ok(Directive::Align(1 << power)),
            _ => Err((format!("an alignment to 2^{first}"), Some("at most 2^15".to_owned()))),
        },
        ".balign" => match u32::try_from(number(first)?) {
            Ok(bytes) if bytes.is_power_of_two() && bytes < 1 << 16 => Ok(Directive::Align(bytes)),
            _ => Err((format!("an alignment to {first} bytes"), Some("a power of two below 65536".to_owned()))),
        },
        ".byte" => values(rest, 1, order, number),
        ".short" | ".hword" | ".half" | ".2byte" => values(rest, 2, order, number),
        ".long" | ".int" | ".word" | ".4byte" => values(rest, 4, order, number),
        ".quad" | ".8byte" => values(rest, 8, order, number),
        ".space" | ".zero" => {
            let length = number(first)?;
            if !(0..=SPACE_LIMIT).contains(&length) {
                return Err((format!("{length} bytes of space"), Some(format!("at most {SPACE_LIMIT}"))));
            }
            let fill = rest.split_once(',').map_or(Ok(0), |(_, fill)| number(fill))?;
            Ok(Directive::Bytes(vec![fill as u8; length as usize]))
        }
        ".set" | ".equ" => {
            let Some((name, value)) = rest.split_once(',') else { return Err(("a name without a value".to_owned(), None)) };
            Ok(Directive::Set(name.trim().to_owned(), number(value)?))
        }
        other if IGNORED.contains(&other) => Ok(Directive::Ignored),
        other => {
            let known: Vec<&str> = READ.iter().chain(&IGNORED).copied().collect();
            let near = crate::target_file::nearest(other, &known).map(|near| format!("did you mean `{near}`?"));
            Err((format!("there is no directive `{other}`"), near))
        }
    }
}

fn values(
    rest: &str,
    bytes: usize,
    order: ByteOrder,
    number: impl Fn(&str) -> Result<i64, (String, Option<String>)>,
) -> Result<Directive, (String, Option<String>)> {
    let mut list = Vec::new();
    for text in rest.split(',') {
        let little = number(text)?.to_le_bytes();
        match order {
            ByteOrder::Little => list.extend(&little[..bytes]),
            ByteOrder::Big => list.extend(little[..bytes].iter().rev()),
        }
    }
    Ok(Directive::Bytes(list))
}
