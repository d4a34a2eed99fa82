//! Every message of the front end in one golden text, so that a review reads them as a user would.

use kgen_ir::diagnostic::{Diagnostic, Severity};
use kgen_ir::meaning::{MeaningOperand, elaborate_meaning};
use kgen_ir::parse_unit;
use kgen_ir::source::{Source, Span};
use kgen_ir::types::{ByteOrder, Type};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/messages");

fn place(text: &str, span: Span) -> String {
    let before = &text[..span.start as usize];
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
    let excerpt: String = text[span.range()].chars().take(60).flat_map(char::escape_debug).collect();
    format!("{line}:{column} `{excerpt}`")
}

fn render(text: &str, diagnostics: &[Diagnostic]) -> String {
    let mut out = String::new();
    for diagnostic in diagnostics {
        let severity = if diagnostic.severity == Severity::Error { "error" } else { "warning" };
        let _ = writeln!(out, "{severity}[{}] {}", diagnostic.rule, diagnostic.message);
        let _ = write!(out, "    {}", place(text, diagnostic.span));
        let _ = if diagnostic.at.is_empty() { writeln!(out) } else { writeln!(out, " {}", diagnostic.at) };
        for label in &diagnostic.labels {
            let _ = writeln!(out, "    {} {}", place(text, label.span), label.text);
        }
        if let Some(help) = &diagnostic.help {
            let _ = writeln!(out, "    help: {help}");
        }
    }
    out
}

fn check(name: &str, text: &str, parameters: &[(String, u64)]) -> Vec<Diagnostic> {
    let source = Arc::new(Source { name: name.to_owned(), text: text.to_owned() });
    parse_unit(source, parameters).map_or_else(|errors| errors, |(_, warnings)| warnings)
}

/// Rows: operands `d` (written) and `a` are u8x16, `ra` is u32, `CA` is u1 and both.
const ROWS: &[&str] = &[
    "d = a ^ ra; CA = 0",
    "d.u32x4 = a.u64x2; CA = 0",
    "d = a; store(ra, ra); CA = 0",
    "d = a; CA = 0; branch to a",
    "d = a",
    "d = d; CA = CA",
    "d = a; CA = 0; loop i in 0..4 { CA = 1 }",
    "d = a; CA = 0; map x in a { CA = 1 }",
    "d.u32x3 = a; CA = 0",
    "d = a; CA = ra",
    "dd.u32x4 = a.u32x4; d = a; CA = 0",
    "d = load(a, 16); CA = 0",
];

fn row(text: &str) -> Vec<Diagnostic> {
    let operand = |name: &str, ty, read, written| MeaningOperand { name: name.to_owned(), ty, read, written };
    let operands = [
        operand("d", Type::vector(8, 16), false, true),
        operand("a", Type::vector(8, 16), true, false),
        operand("ra", Type::bits(32), true, false),
        operand("CA", Type::bits(1), true, true),
    ];
    elaborate_meaning(text, 0, &operands, ByteOrder::Big).err().unwrap_or_default()
}

/// Texts that exceed limits, too long to be files.
fn beyond_limits() -> Vec<(&'static str, String)> {
    let kernel = |expression: &str| format!("kernel k(a: u32) -> u32 {{ {expression} }}");
    vec![
        ("nesting", kernel(&format!("{}a{}", "(".repeat(100_000), ")".repeat(100_000)))),
        ("complements", kernel(&format!("{}a", "~".repeat(100_000)))),
        ("name", kernel(&"a".repeat(100_000))),
        ("digits", kernel(&"9".repeat(100_000))),
        ("rounds", kernel("sum(i in 0..4294967296: a)")),
        ("rounds in all", kernel("sum(i in 0..2000: sum(j in 0..2000: i * j)) + a")),
        ("nodes", kernel("s = a\n for i in 0..200000 { s = rotl(s, 1) + 1 }\n s")),
        ("size", " ".repeat((4 << 20) + 1)),
        ("constant", kernel("(1 << 40000) * (1 << 40000) + a")),
        ("depth of calls", {
            let functions: String = (1..100).map(|index| format!("fn f{index}(x: u32) -> u32 {{ f{}(x) + 1 }}\n", index - 1)).collect();
            format!("fn f0(x: u32) -> u32 {{ x }}\n{functions}{}", kernel("f99(a)"))
        }),
        ("slice", "kernel k(s: inout [u8]) { map x in s { x = x + 1 } }\ntest k \"long\" { s = [i in 0..70000: 1] -> [1] }".to_owned()),
        ("calls", {
            let functions: String =
                (1..60).map(|index| format!("fn f{index}(x: u32) -> u32 {{ f{0}(x) ^ f{0}(x + 1) }}\n", index - 1)).collect();
            format!("fn f0(x: u32) -> u32 {{ x }}\n{functions}{}", kernel("f59(a)"))
        }),
        ("needs", {
            let constants: String = (0..400).map(|index| format!("const A{index} = A{}\n", index + 1)).collect();
            format!("{constants}const A400 = 1\n{}", kernel("a"))
        }),
        ("array", "kernel k(a: [[u512; 65536]; 65536]) -> u512 { a[0][0] }".to_owned()),
        ("list", kernel("[i in 0..5000: a][a]")),
        ("shifts", kernel(&format!("1{} + a", " << 60000".repeat(1000)))),
    ]
}

fn golden() -> &'static str {
    static GOLDEN: LazyLock<String> = LazyLock::new(collect);
    &GOLDEN
}

fn collect() -> String {
    let mut out = String::new();
    let mut paths: Vec<PathBuf> = std::fs::read_dir(FOLDER).expect("messages").map(|entry| entry.expect("an entry").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "ir"));
    paths.sort();
    for path in paths {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let text = std::fs::read_to_string(&path).expect("a text");
        let _ = writeln!(out, "== {name}\n{}", render(&text, &check(&name, &text, &[])));
    }
    let text = "param BITS = 512\nkernel k(a: nat<BITS>) -> nat<BITS> { a }";
    let unknown = [("BITZ".to_owned(), 1), ("SIZE".to_owned(), 2)];
    let _ = writeln!(out, "== parameters\n{}", render(text, &check("parameters", text, &unknown)));
    for text in ROWS {
        let _ = writeln!(out, "== row: {text}\n{}", render(text, &row(text)));
    }
    for (name, text) in beyond_limits() {
        let _ = writeln!(out, "== limit: {name}\n{}", render(&text, &check(name, &text, &[])));
    }
    out
}

#[test]
fn messages_read_well() {
    insta::assert_snapshot!("messages", golden());
}

/// Names of rules in the source text: the first literal of every call that makes a message.
fn rules_in(path: &Path, rules: &mut Vec<String>) {
    for entry in std::fs::read_dir(path).expect("sources") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            rules_in(&path, rules);
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("a text");
        for maker in ["Diagnostic::error(", "Diagnostic::warning(", ".error("] {
            for (position, _) in text.match_indices(maker) {
                let rest = text[position + maker.len()..].trim_start();
                if let Some(rule) = rest.strip_prefix('"').and_then(|rest| rest.split('"').next()) {
                    rules.push(rule.to_owned());
                }
            }
        }
    }
}

#[test]
fn every_rule_is_shown() {
    let mut rules = Vec::new();
    rules_in(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src")), &mut rules);
    rules.sort();
    rules.dedup();
    assert!(rules.len() > 30, "{rules:?}");
    let golden = golden();
    let missing: Vec<&String> = rules.iter().filter(|rule| !golden.contains(&format!("[{rule}]"))).collect();
    assert!(missing.is_empty(), "no message shown of {missing:?}");
}

#[test]
fn twelve_mistakes_give_twelve_errors() {
    let text = std::fs::read_to_string(Path::new(FOLDER).join("twelve.ir")).expect("a text");
    let errors = check("twelve.ir", &text, &[]);
    let lines: Vec<usize> = errors.iter().map(|error| text[..error.span.start as usize].matches('\n').count() + 1).collect();
    assert_eq!(lines, (2..=13).collect::<Vec<_>>(), "{}", render(&text, &errors));
}
