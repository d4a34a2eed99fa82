//! The entry `intrinsics`: how the compiler of Rust knows the machine's instructions.

use super::cursor::Cursor;
use super::lines::Entry;
use crate::machine::Intrinsics;
use kgen_ir::diagnostic::Diagnostic;

const ATTRIBUTES: [&str; 4] = ["arch", "features", "gates", "cite"];

/// Reads the entry and the `type` lines below it.
pub fn section(entry: &Entry, errors: &mut Vec<Diagnostic>) -> Option<Intrinsics> {
    let mut read = head(&mut Cursor::new(&entry.line, errors))?;
    for child in &entry.children {
        let mut cursor = Cursor::new(&child.line, errors);
        while !cursor.at_end() {
            if !cursor.take_word("type") {
                cursor.expected::<()>("`type`");
                break;
            }
            let (Some(view), Some(name)) = (cursor.word("a view, as `u16x8`"), cursor.text("a type of Rust in quotes")) else { break };
            if read.type_of(&view).is_some() {
                let span = cursor.last_span();
                cursor.errors.push(Diagnostic::error("duplicate-name", span, format!("there are two types for the view `{view}`")));
            }
            read.types.push((view, name));
        }
    }
    Some(read)
}

fn head(cursor: &mut Cursor<'_>) -> Option<Intrinsics> {
    cursor.next();
    let module = cursor.text("a module of Rust in quotes")?;
    let mut read =
        Intrinsics { module, arch: String::new(), features: Vec::new(), gates: Vec::new(), types: Vec::new(), cite: String::new() };
    while !cursor.at_end() {
        match cursor.word("an attribute of intrinsics")?.as_str() {
            "arch" => read.arch = cursor.text("what `target_arch` says")?,
            "features" => read.features = cursor.texts("a target feature")?,
            "gates" => read.gates = cursor.texts("a gate of unstable Rust")?,
            "cite" => read.cite = cursor.text("a source in quotes")?,
            other => {
                cursor.unknown("attribute of intrinsics", other, &ATTRIBUTES);
                return None;
            }
        }
    }
    Some(read)
}
