//! The command among other tools: formatted specs, dependency files, files that are current, completions.

use std::path::Path;
use std::process::{Command, Output, Stdio};

const SMALL: &str = "kernel mix(a: nat<64> secret, b: nat<64> secret) -> nat<128> secret { a * b }\n";
const UNTIDY: &str = "kernel   mix(a:nat<64>   secret,b: nat<64> secret)->nat<128> secret {a*b} // product\n";

fn kgen(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_kgen")).current_dir(folder).args(arguments).stdin(Stdio::null()).output().expect("kgen starts")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn succeed(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(0), "{}", said(output));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn folder_with(text: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("mix.ir"), text).expect("a spec");
    folder
}

#[test]
fn specs_are_laid_out_and_comments_stay() {
    let folder = folder_with(UNTIDY);
    let check = kgen(folder.path(), &["fmt", "--check", "mix.ir"]);
    assert_eq!(check.status.code(), Some(1));
    assert!(said(&check).contains("error[layout]"), "{}", said(&check));
    assert_eq!(std::fs::read_to_string(folder.path().join("mix.ir")).unwrap(), UNTIDY, "--check writes nothing");
    succeed(&kgen(folder.path(), &["fmt", "mix.ir"]));
    let text = std::fs::read_to_string(folder.path().join("mix.ir")).unwrap();
    assert_eq!(text, SMALL.trim_end().to_owned() + " // product\n");
    succeed(&kgen(folder.path(), &["fmt", "--check", "mix.ir"]));
}

#[test]
fn what_cannot_be_parsed_is_not_laid_out() {
    let folder = folder_with("kernel mix( {\n");
    let output = kgen(folder.path(), &["fmt", "mix.ir"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains("error[syntax]"), "{}", said(&output));
    assert_eq!(std::fs::read_to_string(folder.path().join("mix.ir")).unwrap(), "kernel mix( {\n");
}

#[test]
fn a_file_is_verified_against_what_would_be_written() {
    let folder = folder_with(SMALL);
    let emit = ["emit", "--target", "e600", "-o", "out/", "mix.ir"];
    let verify = [&emit[..], &["--verify"]].concat();
    let absent = kgen(folder.path(), &verify);
    assert_eq!(absent.status.code(), Some(1));
    assert!(said(&absent).contains("error[stale]") && said(&absent).contains("out/mix.e600.rs"), "{}", said(&absent));
    assert!(!folder.path().join("out").exists(), "--verify writes nothing");
    succeed(&kgen(folder.path(), &emit));
    succeed(&kgen(folder.path(), &verify));
    let path = folder.path().join("out/mix.e600.rs");
    let changed = std::fs::read_to_string(&path).unwrap() + "\n";
    std::fs::write(&path, &changed).unwrap();
    assert_eq!(kgen(folder.path(), &verify).status.code(), Some(1));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), changed, "--verify writes nothing");
    let nowhere = kgen(folder.path(), &["emit", "--target", "e600", "--verify", "mix.ir"]);
    assert_eq!(nowhere.status.code(), Some(2));
    assert!(said(&nowhere).contains("error[no-output-file]"), "{}", said(&nowhere));
}

#[test]
fn a_dependency_file_names_outputs_and_inputs() {
    let folder = folder_with(SMALL);
    succeed(&kgen(folder.path(), &["emit", "--target", "e600,portable", "-o", "out/", "--depfile", "mix.d", "mix.ir"]));
    let text = std::fs::read_to_string(folder.path().join("mix.d")).unwrap();
    let (outputs, inputs) = text.split_once(": ").expect("a rule");
    assert!(outputs.contains("out/mix.e600.rs") && outputs.contains("out/mix.portable.rs"), "{text}");
    assert!(inputs.starts_with("mix.ir\n"), "{text}");
}

#[test]
fn standard_output_is_one_kind_of_text() {
    let folder = folder_with(SMALL);
    let text = succeed(&kgen(folder.path(), &["emit", "--target", "e600", "--form", "gas", "mix.ir"]));
    assert!(text.contains(".globl mix") && !text.contains("#ifndef"), "assembly with a header for C in it");
    succeed(&kgen(folder.path(), &["emit", "--target", "e600", "--form", "gas", "-o", "out/", "mix.ir"]));
    assert!(folder.path().join("out/mix.h").exists());
}

#[test]
fn shells_get_completions() {
    let folder = folder_with(SMALL);
    for shell in ["bash", "zsh", "fish"] {
        let script = succeed(&kgen(folder.path(), &["completions", shell]));
        assert!(script.contains("kgen") && script.contains("schedule"), "{shell}");
    }
    assert_eq!(kgen(folder.path(), &["completions", "cmd"]).status.code(), Some(2));
}

#[test]
fn no_file_of_a_command_overwrites_another() {
    let folder = folder_with(SMALL);
    for arguments in
        [&["-o", "mix.ir"][..], &["-o", "./mix.ir"], &["-o", "a.rs", "--depfile", "a.rs"], &["-o", "a.rs", "--depfile", "mix.ir"]]
    {
        let output = kgen(folder.path(), &[&["emit", "--target", "e600", "mix.ir"], arguments].concat());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(said(&output).contains("error[output-overwrites]"), "{}", said(&output));
    }
    assert_eq!(std::fs::read_to_string(folder.path().join("mix.ir")).unwrap(), SMALL);
}

#[test]
fn texts_for_the_artifact_cannot_end_their_place() {
    let folder = folder_with(SMALL);
    for arguments in [["--spdx", "x\nfn main() {}"], ["--prefix", "a b;"], ["--prefix", "1a"]] {
        let output = kgen(folder.path(), &[&["emit", "--target", "e600", "mix.ir"], &arguments[..]].concat());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(output.stdout.is_empty());
    }
    succeed(&kgen(
        folder.path(),
        &["emit", "--target", "e600", "--form", "gas", "--prefix", "my_", "--spdx", "MIT OR Apache-2.0", "mix.ir"],
    ));
}
