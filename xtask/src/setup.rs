//! Installing what the emulator tests need, where that may be done, and saying what is there.

use crate::apt::{Apt, say};
use crate::tools::{self, EmulatedMachine, Survey, Tool};

/// Debian packages that bring a tool.
struct Packages {
    names: &'static [&'static str],
    /// What they are for, in the words of a message.
    purpose: &'static str,
    /// The first of `names` in a lower major version than this would not do; the release's
    /// backports are asked then.
    least_major: Option<u32>,
}

/// What to install for a tool. Nothing here touches rustup's toolchain: Debian's Rust lives in
/// /usr/bin, behind rustup's folder on PATH, and is called by its full path.
fn packages_of(tool: Tool, machine: &EmulatedMachine) -> Packages {
    match tool {
        Tool::CrossCompiler => Packages {
            names: &["gcc-powerpc-linux-gnu", "libc6-dev-powerpc-cross"],
            purpose: "assembles and links emitted kernels for 32-bit PowerPC",
            least_major: None,
        },
        Tool::Emulator => Packages {
            names: &["qemu-user"],
            purpose: "runs programs for 32-bit PowerPC with AltiVec",
            least_major: Some(machine.emulator_least.major),
        },
        Tool::RustWithSources => Packages {
            names: &["rustc-web", "cargo-web", "rust-web-src"],
            purpose: "Debian's Rust with the sources of std, to build emitted Rust for 32-bit PowerPC",
            least_major: None,
        },
    }
}

/// Installs the tools of `machine` that are missing, and surveys again. What cannot be installed
/// stays missing, and standard error says why.
pub fn install_missing(machine: &EmulatedMachine) -> Survey {
    let before = tools::survey(machine);
    let missing: Vec<Tool> = before.missing().iter().map(|missing| missing.tool).collect();
    if missing.is_empty() {
        return before;
    }
    let cargo_before = which::which("cargo").ok();
    let apt = match Apt::find().and_then(|apt| apt.update().map(|()| apt)) {
        Ok(apt) => apt,
        Err(error) => {
            say(&format!("nothing can be installed here: {error:#}"));
            return before;
        }
    };
    for tool in missing {
        let packages = packages_of(tool, machine);
        say(&format!("{}: {}", packages.names.join(" "), packages.purpose));
        if let Err(error) = install(&apt, &packages) {
            say(&format!("{error:#}"));
        }
    }
    let cargo_after = which::which("cargo").ok();
    if cargo_before != cargo_after {
        say(&format!(
            "warning: the cargo on PATH was {cargo_before:?} and is now {cargo_after:?}; \
             put rustup's folder before /usr/bin"
        ));
    }
    tools::survey(machine)
}

fn install(apt: &Apt, packages: &Packages) -> anyhow::Result<()> {
    let too_old = packages.least_major.is_some_and(|least| {
        let candidate = packages.names.first().and_then(|name| apt.candidate(name));
        candidate.is_none_or(|version| version.major < least)
    });
    let suite = if too_old { Some(apt.add_backports()?) } else { None };
    apt.install(packages.names, suite.as_deref())
}

/// Says which tools there are and which there are not, to standard error.
pub fn print_survey(machine: &EmulatedMachine, survey: &Survey) {
    if let Ok(path) = &survey.cross_compiler {
        say(&format!("cross compiler: {}", path.display()));
    }
    if let Ok((path, version)) = &survey.emulator {
        say(&format!("emulator: {} {version}, -cpu {}", path.display(), machine.processor));
    }
    if let Ok(rust) = &survey.rust {
        let rustc = rust.rustc.display();
        say(&format!("std for {}: built from the sources of {rustc} {}", machine.triple, rust.version));
    }
    for missing in survey.missing() {
        say(&format!("not there: {}", missing.needs));
    }
}
