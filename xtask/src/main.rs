//! `cargo xtask`: the chores of this workspace that need more than cargo.
//!
//! - `cargo xtask setup` installs what the emulator tests need, where it may.
//! - `cargo xtask test` does the same and then runs every test, those under the emulator included.
//! - `cargo xtask powerpc -- COMMAND …` runs a cargo command for 32-bit PowerPC: std is built from
//!   source, programs run under the emulator.
//!
//! The convention that emulator tests follow is described in [`skips`].

mod apt;
mod apt_sources;
mod emulated_cargo;
mod setup;
mod skips;
mod suite;
mod tools;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::{Args, Parser, Subcommand};

/// The command line.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", about)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Install what the emulator tests need (root or passwordless sudo, Debian's apt), and nothing else
    Setup,
    /// Install what is missing, then run every test: host, emulator, and crates compiled for the emulator
    Test(TestArgs),
    /// Run cargo for 32-bit PowerPC under the emulator, e.g. `cargo xtask powerpc -- test -p kgen-generated`
    Powerpc {
        /// The cargo command and its arguments
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
        arguments: Vec<String>,
    },
}

#[derive(Args)]
struct TestArgs {
    /// Use what is installed and install nothing; tests that need more are skipped
    #[arg(long)]
    no_install: bool,
}

fn main() -> ExitCode {
    match run(Cli::parse().command) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> anyhow::Result<ExitCode> {
    let machine = &tools::POWERPC;
    match command {
        Command::Setup => {
            let survey = setup::install_missing(machine);
            setup::print_survey(machine, &survey);
            let complete = survey.missing().is_empty();
            Ok(if complete { ExitCode::SUCCESS } else { ExitCode::FAILURE })
        }
        Command::Test(arguments) => {
            let survey = if arguments.no_install { tools::survey(machine) } else { setup::install_missing(machine) };
            setup::print_survey(machine, &survey);
            suite::run(&workspace_root()?, machine, &survey)
        }
        Command::Powerpc { arguments } => {
            let survey = setup::install_missing(machine);
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            let status =
                emulated_cargo::command(&workspace_root()?, machine, &survey, &arguments)?.status().context("cannot start cargo")?;
            Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
        }
    }
}

/// The folder of the workspace's Cargo.toml: the parent of this crate's own.
fn workspace_root() -> anyhow::Result<PathBuf> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = own.parent().context("this crate has no parent folder")?;
    Ok(root.to_owned())
}
