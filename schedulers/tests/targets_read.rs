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
