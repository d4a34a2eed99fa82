//! Dependency files as Make and Ninja read them: which outputs to make again when which inputs change.

use std::path::{Path, PathBuf};

/// One rule: all outputs depend on all inputs. One call of kgen writes all its outputs, so that a build system need not know more.
pub fn text(outputs: &[PathBuf], inputs: &[PathBuf]) -> String {
    let words = |paths: &[PathBuf]| paths.iter().map(|path| escaped(path)).collect::<Vec<_>>().join(" \\\n  ");
    let mut text = format!("{}: {}\n", words(outputs), words(inputs));
    // Without a rule of its own, an input that was deleted would stop Make instead of having its outputs made again.
    for input in inputs {
        text.push_str(&format!("\n{}:\n", escaped(input)));
    }
    text
}

/// A path with the characters escaped that mean something in dependency files: Make and Ninja agree on these.
fn escaped(path: &Path) -> String {
    let mut text = String::new();
    for character in path.to_string_lossy().chars() {
        match character {
            ' ' | '#' | '\\' => text.extend(['\\', character]),
            '$' => text.push_str("$$"),
            _ => text.push(character),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    #[test]
    fn outputs_stand_before_inputs_and_spaces_are_escaped() {
        let paths = |names: &[&str]| names.iter().map(PathBuf::from).collect::<Vec<_>>();
        let text = super::text(&paths(&["out/a b.s", "out/c.h"]), &paths(&["specs/x.ir"]));
        assert_eq!(text, "out/a\\ b.s \\\n  out/c.h: specs/x.ir\n\nspecs/x.ir:\n");
    }
}
