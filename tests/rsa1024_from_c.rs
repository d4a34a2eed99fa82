//! The RSA-1024 private-key operation of `examples/rsa1024/c`, from kernels that this build emits, on an emulated processor: every answer of the fixture, and a fault that is
//! found.

#[path = "../schedulers/tests/tools/mod.rs"]
mod tools;

use std::path::{Path, PathBuf};
use std::process::Command;

const COMPILER: &str = "powerpc-linux-gnu-gcc";
const EMULATOR: &str = "qemu-ppc";

/// Standard output of a program that must succeed.
fn output(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let mut list: Vec<PathBuf> = entries.filter(|path| path.extension().is_some_and(|found| found == extension)).collect();
    list.sort();
    list
}

#[test]
fn every_answer_is_right_and_a_fault_is_found() {
    if !tools::available(&[COMPILER, EMULATOR]) {
        return;
    }
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR"));
    let example = workspace.join("examples/rsa1024");
    let emitted = Path::new(env!("CARGO_TARGET_TMPDIR")).join("rsa1024_from_c");
    let _ = std::fs::remove_dir_all(&emitted);
    std::fs::create_dir_all(&emitted).expect("a folder for what is emitted");
    let specs = ["mont_mul_512.ir", "rsa_crt_1024.ir"].map(|name| workspace.join("specs").join(name));
    output(
        Command::new(env!("CARGO_BIN_EXE_kgen"))
            .args(["emit", "--target", "e600", "--form", "gas", "--param", "ENTRIES=16", "-o"])
            .arg(&emitted)
            .args(specs),
    );

    let program = emitted.join("rsa1024");
    let options = ["-O2", "-Wall", "-Wextra", "-Werror", "-mcpu=7450", "-maltivec", "-static"];
    let (sources, kernels) = (files(&example.join("c"), "c"), files(&emitted, "s"));
    assert!(!sources.is_empty() && !kernels.is_empty());
    output(Command::new(COMPILER).args(options).arg("-I").arg(&emitted).args(sources).args(kernels).arg("-o").arg(&program));

    let answers = example.join("answers.txt");
    let known = std::fs::read_to_string(&answers).expect("answers.txt").lines().filter(|line| line.starts_with("base = ")).count() + 1;
    let printed = output(Command::new(EMULATOR).args(["-cpu", "7448"]).arg(&program).arg(example.join("key.txt")).arg(&answers));
    assert_eq!(printed.trim(), format!("{known} right, 1 fault found"));
}
