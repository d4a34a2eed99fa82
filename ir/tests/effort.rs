//! Bad input of the largest size is answered in good time: the front end is near-linear, whatever it reads.

use kgen_ir::limits;
use kgen_ir::parse_unit;
use kgen_ir::source::Source;
use std::sync::Arc;

fn diagnostics(text: String) -> usize {
    let source = Arc::new(Source { name: String::new(), text });
    parse_unit(source, &[]).map_or_else(|errors| errors.len(), |(_, warnings)| warnings.len())
}

fn repeated(piece: &str) -> String {
    piece.repeat(limits::SOURCE_BYTES / 8 / piece.len())
}

/// Each of these would take minutes where any stage is quadratic; the test runner would stop it.
#[test]
fn garbage_is_refused_without_a_hang() {
    for piece in [
        "a a\n",
        "(",
        ")",
        "kernel ",
        "\u{1} x\n",
        "fn f(x: u8) -> u8 { x = = }\n",
        "{ a b }\n",
        "[a, ",
        "x + ",
        "\"",
        "u8x16 . ",
        "test k \"\" { -> }\n",
    ] {
        let count = diagnostics(repeated(piece));
        assert!((1..=3 * limits::ERRORS).contains(&count), "{piece:?}: {count}");
    }
}

#[test]
fn long_chains_of_calls_and_big_tables_are_read() {
    let functions: String = (0..20_000).map(|index| format!("fn f{index}(x: u8) -> u8 {{ f{}(x) }}\n", index + 1)).collect();
    assert!(diagnostics(format!("{functions}fn f20000(x: u8) -> u8 {{ x }}\nkernel k(x: u8) -> u8 {{ f0(x) }}")) >= 1);
    let table: Vec<String> = (0..65_536).map(|index| index.to_string()).collect();
    assert_eq!(diagnostics(format!("const T: [u16; 65536] = [{}]\nkernel k(x: u16) -> u16 {{ T[x] }}", table.join(", "))), 0);
}
