//! Every embedded target file is read without a mistake, and broken ones are refused with all their mistakes.

use kgen_ir::source::Source;
use kgen_schedulers::target_file;

fn message(source: &Source, errors: &[kgen_ir::diagnostic::Diagnostic]) -> String {
    let lines = errors.iter().map(|error| {
        let line = source.text[..error.span.start as usize].matches('\n').count() + 1;
        let text = source.text.get(error.span.range()).unwrap_or("");
        format!("{}:{line}: {}: {} [{text}] {}\n", source.name, error.rule, error.message, error.help.as_deref().unwrap_or(""))
    });
    lines.collect()
}

#[test]
fn embedded_targets_and_variants_are_read() {
    let mut count = 0;
    for source in target_file::embedded() {
        for (name, _) in target_file::names(&source) {
            let machine = target_file::read(&source, Some(&name)).unwrap_or_else(|errors| panic!("{}", message(&source, &errors)));
            assert_eq!(machine.name, name);
            assert!(!machine.rows.is_empty(), "{name} has no rows");
            count += 1;
        }
    }
    assert!(count >= 4);
}

/// A target file with one mistake of each kind: what is said, and about which words.
#[test]
fn every_mistake_is_named_at_its_place() {
    let text = "\
machine broken \"x\"
    order sideways
    forms gas
parameter latency_a one \"a word\" cite \"x\"
parameter unsourced 1
file r width 32 count 4 reserved 7 cite \"x\"
file r width 32 count 4 cite \"x\"
unit U queue Q cite \"x\"
unit V cite \"x\"
hazard latencies must
class plain on V latency 1 cite \"x\"
for s, T in a u8; b
    instr add{s} d:r a:r class plain
        d = a
instr one d:r a:s class plain
    d = a
instr two d:r a:r class plane
    d = a
instr three d:r a:r b:r class plain
    d = a + c
    asm \"three {d},{a},{b}\"
instr four d:r class plain
    d = d + 1
instr five d:r a:r on V latency latency_a cite \"x\"
    d = a
instr six d:r a:r on V cite \"x\"
    d = a
instr seven d:r a:r class plain
    d = a
    asm \"seven {d}\"
variant other \"y\"
    parameter latency_b 2
";
    let source = Source { name: "broken.target".to_owned(), text: text.to_owned() };
    let errors = target_file::read(&source, Some("others")).expect_err("it is refused");
    let found: Vec<(&str, &str)> = errors.iter().map(|error| (error.rule, &text[error.span.range()])).collect();
    let expected = [
        ("unknown-name", ""),
        ("unknown-name", "sideways"),
        ("no-source", "parameter unsourced 1"),
        ("register-number", "r"),
        ("duplicate-name", "\"x\""),
        ("unknown-name", "Q"),
        ("unknown-name", "latencies"),
        ("template-fields", "for s, T in a u8; b"),
        ("unknown-name", "s"),
        ("unknown-name", "plane"),
        ("operand-unused", "three"),
        ("unknown-name", "c"),
        ("operand-read-and-written", "four"),
        ("target-number", "latency_a"),
        ("row-timing", "six"),
        ("operand-not-in-text", "seven"),
        ("unknown-name", "parameter latency_b 2"),
    ];
    assert_eq!(found, expected, "{}", message(&source, &errors));
    let help = |rule: &str, word: &str| {
        let found = errors.iter().find(|error| error.rule == rule && &text[error.span.range()] == word);
        found.and_then(|error| error.help.clone()).unwrap_or_default()
    };
    assert_eq!(help("unknown-name", "plane"), "did you mean `plain`?");
    assert_eq!(help("unknown-name", ""), "did you mean `other`?");
}

#[test]
fn any_text_is_answered() {
    for text in
        ["", "machine", "machine x", "\u{0}\u{ff}", "for", "for a in", "for a in b; c d\n  instr", "  \t machine x \"y\"", "instr a b:c"]
    {
        let source = Source { name: "bad".to_owned(), text: text.to_owned() };
        assert!(target_file::read(&source, None).is_err(), "{text:?}");
    }
}

#[test]
fn spans_lead_back_through_templates() {
    let text = "machine m \"x\"\nfile r width 32 count 4 cite \"x\"\nfor op, sign in add +; xor ^\n    instr {op} d:r a:r b:r\n        d = a {sign} b\n";
    let source = Source { name: "m.target".to_owned(), text: text.to_owned() };
    let machine = target_file::read(&source, None).unwrap_or_else(|errors| panic!("{}", message(&source, &errors)));
    for (name, word) in [("add", "{op}"), ("xor", "{op}")] {
        let row = &machine[machine.row_named(name).expect("the template makes it")];
        assert_eq!(&text[row.span.range()], word);
        let (_, node) = row.meaning.nodes.iter().next_back().expect("a meaning");
        assert_eq!(&text[node.span.range()], "a {sign} b");
    }
}
