//! `cargo xtask test`: every test of the workspace, and a summary that hides no skipped one.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use anyhow::Context;

use crate::emulated_cargo;
use crate::skips::{REQUIRE_TOOLS, SKIP_LOG, Skips};
use crate::tools::{self, EmulatedMachine, Survey};

/// The packages whose tests also run compiled for the emulated machine, as their users would.
/// Each must build there with its dependencies for tests.
const EMULATED_PACKAGES: [&str; 2] = ["kgen-generated", "kgen-example-rsa1024"];

/// Features of theirs that only the emulated machine's compiler can build, which is told to be unstable.
const EMULATED_FEATURES: &str = "kgen-generated/intrinsics";

/// Where the log of skipped tests is kept, from the workspace.
const SKIP_LOG_FILE: &str = "target/skipped-tests.log";

/// How many tests passed and failed; those marked `#[ignore]` count as skipped.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Counts {
    passed: usize,
    failed: usize,
    ignored: usize,
}

impl Counts {
    fn add(&mut self, other: Counts) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.ignored += other.ignored;
    }

    /// Reads a line such as `test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; …`.
    fn of_result_line(line: &str) -> Option<Counts> {
        let (_verdict, numbers) = line.trim().strip_prefix("test result: ")?.split_once(". ")?;
        let count_of = |word: &str| numbers.split("; ").find_map(|part| part.strip_suffix(word)?.trim().parse().ok());
        Some(Counts { passed: count_of("passed")?, failed: count_of("failed")?, ignored: count_of("ignored")? })
    }
}

/// Where continuous integration runs, a test that was skipped for want of a tool is a failure.
fn in_continuous_integration() -> bool {
    std::env::var("CI").is_ok_and(|value| value == "true" || value == "1")
}

/// Runs everything and prints the summary.
///
/// # Errors
/// Cargo cannot be started, or the log of skipped tests cannot be kept.
pub fn run(workspace: &Path, machine: &EmulatedMachine, survey: &Survey) -> anyhow::Result<ExitCode> {
    let strict = in_continuous_integration();
    let log = workspace.join(SKIP_LOG_FILE);
    if let Some(folder) = log.parent() {
        std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    }
    if log.exists() {
        std::fs::remove_file(&log).with_context(|| format!("cannot empty {}", log.display()))?;
    }
    let mut counts = Counts::default();
    let mut failures = Vec::new();

    if let (Ok(compiler), Ok((emulator, _))) = (&survey.cross_compiler, &survey.emulator) {
        tools::assert_vector_unit(machine, compiler, emulator)?;
    }

    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut on_host = Command::new(cargo);
    on_host.current_dir(workspace).args(["test", "--workspace", "--no-fail-fast"]);
    if !step("tests on this machine", prepare(&mut on_host, &log, strict), &mut counts, &mut std::io::stdout())? {
        failures.push("tests on this machine".to_owned());
    }

    let name = format!("tests of {} for {}", EMULATED_PACKAGES.join(", "), machine.triple);
    let mut skipped_step = None;
    if let Some(needs) = survey.needs() {
        skipped_step = Some(format!("skipped: needs {needs}: {name}"));
    } else {
        let mut arguments = vec!["test", "--no-fail-fast"];
        arguments.extend(EMULATED_PACKAGES.iter().flat_map(|package| ["-p", package]));
        arguments.extend(["--features", EMULATED_FEATURES]);
        let mut emulated = emulated_cargo::command(workspace, machine, survey, &arguments)?;
        if !step(&name, prepare(&mut emulated, &log, strict), &mut counts, &mut std::io::stdout())? {
            failures.push(name);
        }
    }

    let mut skips = Skips::read(&log).with_context(|| format!("cannot read {}", log.display()))?;
    let skipped_tests = skips.total();
    skipped_step.iter().for_each(|reason| skips.add(reason));
    for line in skips.summary() {
        println!("{line}");
    }
    for failure in &failures {
        println!("failed: {failure}");
    }
    if strict && skips.total() > 0 {
        println!("failed: nothing may be skipped where CI=true");
    }
    // A test that skipped itself has passed for cargo; here it counts once, among the skipped.
    println!(
        "tests: {} passed, {} failed, {} skipped",
        counts.passed.saturating_sub(skipped_tests),
        counts.failed,
        counts.ignored + skips.total()
    );
    let good = failures.is_empty() && counts.failed == 0 && !(strict && skips.total() > 0);
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn prepare<'a>(command: &'a mut Command, log: &Path, strict: bool) -> &'a mut Command {
    command.env(SKIP_LOG, log);
    if strict {
        command.env(REQUIRE_TOOLS, "1");
    }
    command
}

/// Runs one `cargo test`, its output passed on to `out` and its results counted. Whether it succeeded.
fn step(name: &str, command: &mut Command, counts: &mut Counts, out: &mut impl Write) -> anyhow::Result<bool> {
    writeln!(out, "== {name}").context("cannot print")?;
    let mut child = command.stdout(Stdio::piped()).spawn().with_context(|| format!("cannot start {command:?}"))?;
    let stdout = child.stdout.take().context("cargo has no output")?;
    for line in BufReader::new(stdout).split(b'\n') {
        let line = line.context("cannot read cargo's output")?;
        out.write_all(&line).and_then(|()| out.write_all(b"\n")).context("cannot print")?;
        if let Some(result) = Counts::of_result_line(&String::from_utf8_lossy(&line)) {
            counts.add(result);
        }
    }
    Ok(child.wait().context("cargo did not end")?.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn result_lines_are_counted() {
        let line = "test result: FAILED. 31 passed; 2 failed; 4 ignored; 0 measured; 7 filtered out; finished in 0.03s";
        let expected = Counts { passed: 31, failed: 2, ignored: 4 };
        assert_eq!(Counts::of_result_line(line), Some(expected));
        let mut counts = Counts { passed: 1, failed: 1, ignored: 1 };
        counts.add(expected);
        assert_eq!(counts, Counts { passed: 32, failed: 3, ignored: 5 });
        for line in ["", "test a ... ok", "test result: ok.", "test result: ok. x passed; "] {
            assert_eq!(Counts::of_result_line(line), None, "{line}");
        }
    }

    #[test]
    fn a_step_counts_what_its_command_prints_and_tells_its_end() {
        let mut counts = Counts::default();
        let mut out = Vec::new();
        let mut command = Command::new("sh");
        command.args(["-c", "echo 'test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured'; exit 1"]);
        let succeeded = step("a step", &mut command, &mut counts, &mut out).expect("sh can be started");
        assert!(!succeeded);
        assert!(String::from_utf8_lossy(&out).starts_with("== a step\ntest result: ok. 2 passed;"));
        assert_eq!(counts, Counts { passed: 2, failed: 0, ignored: 0 });
    }
}
