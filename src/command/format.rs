//! `fmt`: specs in their canonical layout.

use super::{REFUSED, print, read_source};
use crate::messages::Messages;
use crate::options::FormatArgs;
use kgen::output;
use kgen_ir::syntax;
use std::path::Path;

/// Rewrites files in place, prints standard input, or says which files would change; the exit code.
pub fn format(messages: Messages, arguments: &FormatArgs) -> u8 {
    let mut worst = 0;
    let mut changed = Vec::new();
    for path in &arguments.specs {
        let Some(source) = read_source(messages, path) else {
            worst = REFUSED;
            continue;
        };
        let text = match syntax::format(&source.text) {
            Ok(text) => text,
            Err(errors) => {
                messages.diagnostics(&source, &errors);
                worst = REFUSED;
                continue;
            }
        };
        if arguments.check {
            if text != source.text {
                changed.push(source.name.clone());
            }
        } else if path == Path::new("-") {
            print(&text);
        } else if text != source.text
            && let Err(error) = output::replace(path, &text)
        {
            messages.plain("unwritable", &format!("`{}` cannot be written: {error}", path.display()), None);
            worst = REFUSED;
        }
    }
    for name in changed {
        messages.plain("layout", &format!("`{name}` is not in its canonical layout"), Some("`kgen fmt` writes it so"));
        worst = REFUSED;
    }
    worst
}
