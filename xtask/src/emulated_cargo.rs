//! Cargo for an emulated machine: std is built from source, the cross compiler links, and cargo
//! runs what it built under the emulator.
//!
//! No prebuilt std for 32-bit PowerPC is needed this way. `-Zbuild-std` is an unstable option of
//! cargo, so the toolchain is told to be its own bootstrap compiler; that opens feature gates only
//! to a crate that asks for them by `#![feature]`, so code without one is still held to stable Rust.

use std::path::Path;
use std::process::Command;

use anyhow::Context;

use crate::tools::{EmulatedMachine, Survey};

/// Variables that cargo or rustup set for their children and that mean another toolchain, or that
/// were meant for code of this machine.
const VARIABLES_OF_THE_HOST: [&str; 8] = [
    "CARGO",
    "CARGO_BUILD_TARGET",
    "CARGO_ENCODED_RUSTFLAGS",
    "CARGO_TARGET_DIR",
    "LD_LIBRARY_PATH",
    "RUSTC",
    "RUSTFLAGS",
    "RUSTUP_TOOLCHAIN",
];

/// A cargo command such as `test -p PACKAGE` for `machine`, ready to be started in the workspace.
///
/// # Errors
/// A tool is missing, or there is no command.
pub fn command(workspace: &Path, machine: &EmulatedMachine, survey: &Survey, arguments: &[&str]) -> anyhow::Result<Command> {
    if let Some(needs) = survey.needs() {
        anyhow::bail!("{} needs {needs}; `cargo xtask setup` installs it where it may", machine.triple);
    }
    let needed = "surveyed above";
    let linker = survey.cross_compiler.as_ref().ok().context(needed)?;
    let (emulator, _) = survey.emulator.as_ref().ok().context(needed)?;
    let rust = survey.rust.as_ref().ok().context(needed)?;
    let (subcommand, arguments) = arguments.split_first().context("no cargo command")?;

    let mut command = Command::new(&rust.cargo);
    command.current_dir(workspace);
    for variable in VARIABLES_OF_THE_HOST {
        command.env_remove(variable);
    }
    command
        .env("RUSTC", &rust.rustc)
        .env("RUSTDOC", &rust.rustdoc)
        .env("RUSTC_BOOTSTRAP", "1")
        .env(variable_of_target(machine, "LINKER"), linker)
        .env(variable_of_target(machine, "RUNNER"), format!("{} -cpu {} -L {}", emulator.display(), machine.processor, machine.sysroot))
        .arg(subcommand)
        .args(["-Zbuild-std=std,panic_abort", "--target", machine.triple])
        // Apart from the host's: another compiler's artifacts, and no waiting for its lock.
        .arg("--target-dir")
        .arg(workspace.join("target").join("emulated"))
        .args(arguments);
    Ok(command)
}

/// Cargo's variable for a setting of a target, as `CARGO_TARGET_POWERPC_UNKNOWN_LINUX_GNU_LINKER`.
fn variable_of_target(machine: &EmulatedMachine, setting: &str) -> String {
    let triple = machine.triple.to_ascii_uppercase().replace('-', "_");
    format!("CARGO_TARGET_{triple}_{setting}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::{Missing, POWERPC, RustWithSources, Tool, Version};

    fn complete_survey() -> Survey {
        Survey {
            cross_compiler: Ok("/x/gcc".into()),
            emulator: Ok(("/x/qemu".into(), Version { major: 10, minor: 0 })),
            rust: Ok(RustWithSources {
                cargo: "/x/cargo".into(),
                rustc: "/x/rustc".into(),
                rustdoc: "/x/rustdoc".into(),
                version: Version { major: 1, minor: 96 },
            }),
        }
    }

    #[test]
    fn the_command_keeps_arguments_of_the_program_last() {
        let arguments = ["test", "-p", "a", "--", "--nocapture"];
        let command = command(Path::new("/w"), &POWERPC, &complete_survey(), &arguments).expect("a complete survey");
        let words: Vec<_> = command.get_args().filter_map(|word| word.to_str()).collect();
        assert_eq!(
            words,
            [
                "test",
                "-Zbuild-std=std,panic_abort",
                "--target",
                "powerpc-unknown-linux-gnu",
                "--target-dir",
                "/w/target/emulated",
                "-p",
                "a",
                "--",
                "--nocapture"
            ]
        );
        let runner = command
            .get_envs()
            .find_map(|(name, value)| (name == "CARGO_TARGET_POWERPC_UNKNOWN_LINUX_GNU_RUNNER").then_some(value?.to_str()?));
        assert_eq!(runner, Some("/x/qemu -cpu 7448 -L /usr/powerpc-linux-gnu"));
    }

    #[test]
    fn a_missing_tool_is_named() {
        let needs = "qemu-ppc 10.0 or newer".to_owned();
        let survey = Survey { emulator: Err(Missing { tool: Tool::Emulator, needs }), ..complete_survey() };
        let error = command(Path::new("/w"), &POWERPC, &survey, &["test"]).expect_err("missing");
        assert_eq!(
            error.to_string(),
            "powerpc-unknown-linux-gnu needs qemu-ppc 10.0 or newer; `cargo xtask setup` installs it where it may"
        );
    }
}
