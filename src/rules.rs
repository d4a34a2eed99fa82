//! What the rules of messages mean, for `kgen explain`. Sorted by name; a test holds the list against the crates' sources.

/// A rule as messages name it, and what it wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Kebab case, stable over versions.
    pub name: &'static str,
    /// What is wrong when a message names it, why it is a rule, and a way out.
    pub text: &'static str,
}

/// The rule of this name.
pub fn rule(name: &str) -> Option<&'static Rule> {
    RULES.binary_search_by(|rule| rule.name.cmp(name)).ok().map(|index| &RULES[index])
}

macro_rules! rules {
    ($($name:literal: $text:literal,)*) => { &[$(Rule { name: $name, text: $text }),*] };
}

/// All rules, sorted by name.
pub const RULES: &[Rule] = rules! {
    "alias-operand": "An alias in a target file writes an operand that its row does not have, or leaves out one without saying what it is. Every operand of the row must be written in the alias or given by it.",
    "arguments": "The arguments of `--call` cannot be read, or there are more of them than argument registers. `kgen time --help` shows how numbers and buffers are written.",
    "attribute": "An attribute of a parameter (in, out, inout, setup, secret, public, align) contradicts another one or makes no sense there. Keep one of two that contradict; alignments are powers of two.",
    "bad-index": "Something is indexed that has no elements, or the index is not a scalar. Indices are scalars uW; a table of scalars takes a vector of indices, which looks up every lane.",
    "bad-target": "The left side of an assignment is no place that can be written. Assign to a name, or to an element of one: `s[i] = …`.",
    "bad-width": "A conversion between these widths is not possible: `zext` and `sext` widen, slices narrow. Write the conversion that is meant.",
    "byte-order": "Words wider than a byte are made of bytes, and the text does not say in which order. Write `.be32x4` (most significant byte first) or `.le32x4`.",
    "circular-call": "Functions or kernels call each other in a circle. Calls are inlined, so they must come to an end; use `for` or `loop` for repetition.",
    "circular-definition": "A constant is computed from itself. Break the circle: a constant is computed from others.",
    "class-depth": "Classes of rows in a target file are made of classes too many deep. Write the figures where they are used.",
    "code-in-data": "An instruction stands in a section of constants. Put `.text` before it.",
    "cost-file": "The list of calls of `kgen cost` cannot be read, lacks something, has something that is not known, or holds a number that makes no sense. `kgen cost --help` shows a whole file.",
    "data-with-two-labels": "Constants in assembly have two labels before their first byte. Use one name for them.",
    "data-without-label": "Constants in assembly without a label cannot be reached by any instruction. Put a label before them.",
    "directive": "An assembler directive is unknown or its operands are wrong. Reading assembly needs sections, alignment, symbols and constants; what does not matter for execution is passed over.",
    "division-by-zero": "A constant is divided by zero.",
    "duplicate-label": "Two labels of one text have the same name, so a jump would not know where to go. Only numeric labels (`1:`, `1b`, `1f`) may come again.",
    "duplicate-name": "Two things of one scope have the same name. Rename one; a binding inside a body may shadow, a declaration may not.",
    "empty-fold": "A fold over an empty range has no value of known width. Give the range at least one value.",
    "execution": "The code cannot be executed further: an access to memory that no argument owns, a value that depends on undefined bits where it decides something, control that leaves the code, or the budget of steps (`--steps`). The place is the instruction that met it.",
    "form": "The target has no such output form, or the form cannot say what the kernel needs. `kgen targets NAME` lists a target's forms.",
    "immediate-range": "The range of a row's constant in a target file is empty. It is half-open: `LOW..HIGH`.",
    "incomplete-test": "A test leaves out a parameter or a result of its kernel. A known answer gives every input and at least one expected output.",
    "index-out-of-range": "A constant index lies outside of what it indexes. Indices count from 0; ranges and slices are half-open.",
    "instruction-operands": "The mnemonic is known, but its operands are not written as any of its rows has them. The help shows how it is written.",
    "kernels-only": "Loops and maps belong to functions and kernels. The meaning of an instruction is straight: use `for` with a constant range.",
    "lane-overflow": "A lane could leave its width for some input that the preconditions allow, or kgen cannot prove that it does not. Lowering carries an interval for every lane and refuses what it cannot prove; choose a smaller radix or fewer products before carries.",
    "layout": "`kgen fmt --check` found a spec that is not in its canonical layout. `kgen fmt FILE` writes it so; nothing but blanks and line ends changes.",
    "limit": "A limit of the language is exceeded (nesting, sizes, nodes, rounds). Limits exist so that every input ends in bounded time and memory; split the kernel or use a run-time `loop`.",
    "loop-without-effect": "A loop changes nothing that is used after it. Remove it, or use what it computes.",
    "malformed-number": "Digits, prefix or separators of a number are wrong. Numbers are decimal, `0x…` or `0b…`, with `_` between digits.",
    "map-carries": "A round of `map` uses what another one computes, but rounds of a map know nothing of each other. Use `loop`, whose rounds come one after another.",
    "missing-result": "A function or kernel promises a result and its last statement is none. End the body with the value.",
    "never-assigned": "Something declared as written is never assigned. Assign it, or remove it from the declaration.",
    "no-address-file": "The target has no rows that take an address or count from a register, so regions or loops cannot be lowered for it. Give the target file such rows.",
    "no-kernels": "A spec without kernels has nothing to compile. Write one: `kernel NAME(a: u32) -> u32 { … }`.",
    "no-machine": "A target file describes no machine. Start it with `machine NAME \"summary\"`.",
    "no-modulus": "A residue or a Montgomery product does not say by which modulus. Declare a parameter `m: modulus<BITS>` and use `residue<m>`.",
    "no-output-file": "`--verify` and `--depfile` speak of output files, and the output goes to standard output. Name a file or folder with `-o`.",
    "no-row": "No instruction of the target means what lowering needs here, and it cannot be made of others. Add a row with that meaning to the target file, or choose another target.",
    "no-source": "A figure of a machine cites no source. Every figure has `cite \"…\"`, or says `guess`, and reports name the guesses they rest on.",
    "no-timing": "The target has no timing model, so nothing can be timed on it. `kgen targets NAME` shows a target's parameters.",
    "no-value": "An expression that gives no value stands where one is needed, such as a call of a kernel that only writes its parameters.",
    "not-bits": "The operation is for bits (uW, uWxN). Naturals know + - * and slices `low`, `high`; residues know `mont`; arrays are indexed first.",
    "not-constant": "A value that must be known before run time depends on an argument. Ranges of `for`, widths, counts and tables are constants; use `loop` for a run-time count.",
    "not-lowered": "There is no lowering of this on the target yet. The help says how the kernel can be split.",
    "not-text": "The file is not UTF-8 text. Specs, target files and assembly are text.",
    "nothing-to-build": "A build script asks for no spec, for no target, or has no folder to write to. `kgen::Build` needs `.spec(…)` and `.target(…)`; cargo sets OUT_DIR.",
    "number-too-large": "A number does not fit the type that it is used as, or has more digits than any type. Widen the type, or reduce the number.",
    "operand-not-in-text": "The assembly template of a row leaves out an operand that has no fixed register. Write `{NAME}` in the template, or fix the register with `@N`.",
    "operand-read-and-written": "One operand of a row is read and written, so the meaning would not say which value it names. Read the old value through a second operand, tied to the first.",
    "operand-tie": "An operand of a row is tied to something that is no result of its register file.",
    "operand-unused": "The meaning of a row does not use one of its operands. Remove the operand, or use it.",
    "out-of-range": "A number lies outside of what is possible at its place, such as a shift by more than the width or a range that runs backwards.",
    "output-overwrites": "`-o` or `--depfile` names a spec of the same command, or both name one file, so that one would destroy the other. Give each a name of its own.",
    "product-too-large": "The product does not fit the target's registers in any lowering that there is. Choose fewer bits, or another target.",
    "read-before-assignment": "A name is read before anything is assigned to it. Assign first, or declare the parameter as read too (`inout`).",
    "refused": "A later stage refused the kernel: it does not fit the registers, or, by a defect of kgen or of a target file, the checker or the replay found that code and spec differ. Nothing is written in that case.",
    "register-number": "A register's number is outside of its file.",
    "register-tuple": "A row names a tuple of registers of a file without tuples. Add `tuple LENGTH ALIGNMENT` to the file.",
    "register-width": "A register file's width is impossible. Widths run from 1 to 512, in whole bytes past 64.",
    "register-zero": "A row takes register-or-zero of a file that has no register that reads as zero. Add `zero N` to the file.",
    "reserved-name": "The name is a word of the language. Choose another one.",
    "rounds": "A call in a list of `kgen cost` gives the count of a loop that the function does not have, or leaves out the count of one that it has. `rounds = …` belongs to functions with a loop of a run-time count, and to those only.",
    "row-memory": "A row accesses memory more than once. Order and timing need one access per instruction; write two rows.",
    "row-timing": "A row says nothing about its time, or something impossible. Add `on UNIT latency CYCLES`, or a `class`.",
    "rows-only": "Loads, stores and branches as such are for the rows of a machine. Kernels read and write memory through their parameters.",
    "scalar-too-wide": "A scalar parameter does not fit an argument register of the target. Pass it as an array of narrower words.",
    "secret-address": "An address depends on a secret, and the target's memory is cached: time would tell the secret. Read the whole table by `select`, or ask for a table in memory by name.",
    "secret-dependent-time": "A secret flows into an instruction whose time depends on its operands. Compute it by instructions of constant time, or make the parameter public.",
    "secret-loop-count": "The number of rounds of a loop depends on a secret, and time tells it. Use a public bound and select.",
    "slice-type": "A slice `[T]` without a length is only the type of a kernel's parameter. An array has a length: `[T; N]`.",
    "stale": "`kgen emit --verify` found a file on disk that is not what kgen writes today from the spec. Run the same command without `--verify`.",
    "syntax": "The text does not follow the grammar. The message says what may stand here; the crate documentation of kgen-ir is the specification.",
    "tab-indentation": "Target files are indented by spaces: a tab would make depth depend on the editor.",
    "target-number": "A number in a target file is outside of what is possible for it.",
    "target-syntax": "A line of a target file does not have the shape of its entry. The help lists what may start an entry.",
    "target-token": "A character of a target file is no part of its language.",
    "template-fields": "An element of a row template's list has another number of fields than the list's head names.",
    "template-limit": "Row templates expand to more entries than any machine needs. Expand fewer at once.",
    "template-syntax": "A row template is written `for NAME, NAME in FIELD FIELD; …`.",
    "type-mismatch": "Two types must agree and do not. There are no implicit conversions: use zext, sext, slices or views.",
    "unbalanced-bracket": "A bracket is not closed, or closed by another kind.",
    "unknown-character": "The character is no part of the language. Specs are text in ASCII outside of comments and descriptions.",
    "unknown-function": "A list of `kgen cost` calls a function that no kernel of its specs has. A kernel has itself, and its `_setup`, `_import` and `_export` functions, the last two with the size where there are several.",
    "unknown-instruction": "No row of the target has this mnemonic. `kgen explain NAME --target T` shows an instruction that is known.",
    "unknown-kernel": "The spec has no kernel of that name. Names of kernels may hold parameters, so they change with `--param`.",
    "unknown-label": "A jump or `--between` names a label that the text does not have.",
    "unknown-name": "Nothing of that name is in scope. The help suggests the nearest name.",
    "unknown-parameter": "`--param` names a parameter that the spec does not declare by `param NAME = VALUE`.",
    "unknown-target": "There is no embedded target of that name. `kgen targets` lists them; a target file is given by its path.",
    "unknown-topic": "`kgen explain` knows the rules that messages name and, with `--target`, the target's instructions.",
    "unknown-type": "There is no such type. Types are uW, uWxN, nat<W>, modulus<W>, residue<m>, [T; N] and, for parameters, [T].",
    "unreadable": "The file cannot be read; the message holds the system's reason.",
    "untyped-number": "A number stands where nothing says its width. Write `u32(7)`, or give the name a type.",
    "unused-parameter": "A parameter is used by nothing. It is a warning: the interface may want it.",
    "unused-value": "A value is computed and used by nothing. Bind it to a name; only the last statement of a body is its result.",
    "unwritable": "The output cannot be written; the message holds the system's reason. A file that existed is as it was.",
    "view-size": "A view shows the same bytes in other lanes, so both must have the same number of bits, in whole bytes.",
    "width": "A width or number of lanes is outside of the language's limits. Naturals may be wider than lanes: `nat<1024>`.",
    "wrong-argument-count": "A call has another number of arguments than the function has parameters.",
    "wrong-lane-count": "Two vectors must have the same number of lanes and do not.",
};

#[cfg(test)]
mod tests {
    use super::{RULES, rule};
    use std::path::Path;

    /// Rules in the sources: the first literal of every call that makes a message. What stands after a file's tests is not looked at.
    fn rules_in(path: &Path, found: &mut Vec<String>) {
        for entry in std::fs::read_dir(path).expect("sources") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                rules_in(&path, found);
                continue;
            }
            let text = std::fs::read_to_string(&path).expect("a text");
            let code = text.split("#[cfg(test)]").next().unwrap_or_default();
            for maker in ["Diagnostic::error(", "Diagnostic::warning(", ".error(", ".plain("] {
                for (position, _) in code.match_indices(maker) {
                    let rest = code[position + maker.len()..].trim_start();
                    if let Some(name) = rest.strip_prefix('"').and_then(|rest| rest.split('"').next()) {
                        found.push(name.to_owned());
                    }
                }
            }
        }
    }

    #[test]
    fn every_rule_of_the_crates_is_explained() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut found = Vec::new();
        for sources in ["src", "ir/src", "schedulers/src", "emitters/src"] {
            rules_in(&root.join(sources), &mut found);
        }
        found.sort();
        found.dedup();
        assert!(found.len() > 80, "the sources hold {} rules", found.len());
        let missing: Vec<&String> = found.iter().filter(|name| rule(name).is_none()).collect();
        assert!(missing.is_empty(), "without an explanation: {missing:?}");
    }

    #[test]
    fn rules_are_sorted_and_say_something() {
        assert!(RULES.windows(2).all(|pair| pair[0].name < pair[1].name));
        assert!(RULES.iter().all(|rule| rule.text.len() > 20 && rule.text.ends_with('.')));
    }
}
