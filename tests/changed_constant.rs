//! One changed constant of a spec changes the lines that depend on it and no others: neither order, nor registers, nor names, nor numbers of labels.

use std::path::Path;
use std::process::Command;

const DATAFLOW: &str = "kernel mix(a: u32x4 secret align 16, b: u8x16 secret align 16) -> u32x4 secret align 16 {
    t = (a ^ 0x243f6a88) + 0x85a308d3
    u = rotl(t, 7) ^ 0x13198a2e
    v = [i in 0..16: b[(i * 5 + 3) % 16]]
    (u + v.be32x4) ^ 0x03707344
}
";
const TABLE: &str =
    "const WORDS: [u32; 8] = [0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xa4093822, 0x299f31d0, 0x082efa98, 0xec4e6c89]
kernel words(a: u32x4 secret align 16) -> u32x4 secret align 16 { WORDS[a & 7] }
";

fn emitted(folder: &Path, spec: &str, target: &str, form: &str) -> String {
    let path = folder.join("spec.ir");
    std::fs::write(&path, spec).expect("written");
    let output = folder.join("out");
    let path = path.to_str().expect("a path");
    let kgen = Command::new(env!("CARGO_BIN_EXE_kgen"))
        .args(["emit", "--target", target, "--form", form, "-o", &format!("{}/", output.display()), path])
        .output()
        .expect("kgen runs");
    assert!(kgen.status.success(), "{}", String::from_utf8_lossy(&kgen.stderr));
    let mut code = std::fs::read_dir(&output).expect("a folder").map(|entry| entry.expect("an entry").path());
    let code = code.find(|path| path.extension().is_some_and(|extension| extension != "h")).expect("code");
    let text = std::fs::read_to_string(code).expect("text");
    std::fs::remove_dir_all(output).expect("it can be removed");
    text
}

/// Both texts of every line that differs, the spec's hash aside.
fn changed_lines(spec: &str, constant: &str, other: &str, target: &str, form: &str) -> Vec<(String, String)> {
    let folder = tempfile::tempdir().expect("a folder");
    let changed = spec.replace(constant, other);
    assert_ne!(spec, changed);
    let (before, after) = (emitted(folder.path(), spec, target, form), emitted(folder.path(), &changed, target, form));
    assert_eq!(before.lines().count(), after.lines().count(), "lines");
    let pairs = before.lines().zip(after.lines()).filter(|(before, after)| before != after && !before.contains("sha256"));
    pairs.map(|(before, after)| (before.to_owned(), after.to_owned())).collect()
}

#[test]
fn assembly_changes_in_the_constant_alone() {
    for (spec, constant, other, byte) in [
        (DATAFLOW, "0x13198a2e", "0x13198a2f", ("0x2e", "0x2f")),
        (DATAFLOW, "0x85a308d3", "0x85a308d4", ("0xd3", "0xd4")),
        (TABLE, "0x082efa98", "0x082efa97", ("0x98", "0x97")),
    ] {
        let changed = changed_lines(spec, constant, other, "e600", "gas");
        assert_eq!(changed.len(), 1, "{changed:#?}");
        assert_eq!(changed[0].0.replace(byte.0, byte.1), changed[0].1);
    }
}

#[test]
fn portable_rust_changes_in_the_constant_alone() {
    for (spec, constant, other) in
        [(DATAFLOW, "0x13198a2e", "0x13198a2f"), (DATAFLOW, "0x03707344", "0x03707345"), (TABLE, "0x082efa98", "0x082efa97")]
    {
        let changed = changed_lines(spec, constant, other, "portable", "rust-portable");
        assert_eq!(changed.len(), 1, "{changed:#?}");
        let number = |text: &str| u32::from_str_radix(&text[2..], 16).expect("a number").to_string();
        assert_eq!(changed[0].0.replace(&number(constant), &number(other)), changed[0].1);
    }
}
