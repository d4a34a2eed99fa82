//! `completions`: what a shell needs to complete kgen's words.

use crate::options::Cli;
use clap::CommandFactory;
use clap_complete::Shell;

/// Prints the script of a shell; the exit code.
pub fn completions(shell: Shell) -> u8 {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "kgen", &mut script);
    super::print(&String::from_utf8_lossy(&script))
}
