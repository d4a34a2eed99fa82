//! The tools that run another machine's programs here: what they are, whether they are installed,
//! in which version, and whether they do what the tests rest on.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail, ensure};

/// A machine whose programs run here under user-mode emulation.
#[derive(Debug)]
pub struct EmulatedMachine {
    /// Its Rust target.
    pub triple: &'static str,
    /// The C compiler, assembler and linker driver for it.
    pub cross_compiler: &'static str,
    /// Where its C library lives on this machine; programs that are linked dynamically need it to run.
    pub sysroot: &'static str,
    /// The user-mode emulator.
    pub emulator: &'static str,
    /// The first version of the emulator whose vector instructions were compared with the rows' meanings.
    pub emulator_least: Version,
    /// The processor that the emulator must be told to be.
    pub processor: &'static str,
    /// The bit of `AT_HWCAP` that says that the processor has the vector unit.
    pub vector_unit_hwcap_bit: u32,
    /// The first Rust release with everything the emitted code uses on this target.
    pub rust_least: Version,
}

/// 32-bit big-endian PowerPC with AltiVec.
///
/// The emulator's own default processor has no AltiVec, so `processor` is not optional (zlib-ng
/// #1147: a whole test suite ran without ever reaching its vector code). `asm!` is stable on
/// PowerPC since Rust 1.95 (rust-lang/rust #147996). `PPC_FEATURE_HAS_ALTIVEC` is 0x10000000
/// (Linux `arch/powerpc/include/uapi/asm/cputable.h`).
pub const POWERPC: EmulatedMachine = EmulatedMachine {
    triple: "powerpc-unknown-linux-gnu",
    cross_compiler: "powerpc-linux-gnu-gcc",
    sysroot: "/usr/powerpc-linux-gnu",
    emulator: "qemu-ppc",
    emulator_least: Version { major: 10, minor: 0 },
    processor: "7448",
    vector_unit_hwcap_bit: 28,
    rust_least: Version { major: 1, minor: 95 },
};

/// The first two numbers of a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// The first number.
    pub major: u32,
    /// The second number.
    pub minor: u32,
}

impl Version {
    /// The first `N.N` in `text`, as in `rustc 1.95.0 (59807616e 2026-04-14)`.
    pub fn first_in(text: &str) -> Option<Version> {
        text.split(|c: char| !(c.is_ascii_digit() || c == '.')).find_map(|word| {
            let mut numbers = word.split('.');
            let major = numbers.next()?.parse().ok()?;
            let minor = numbers.next()?.parse().ok()?;
            Some(Version { major, minor })
        })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}.{}", self.major, self.minor)
    }
}

/// The kinds of tool; each is installed, and missed, on its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tool {
    /// The C compiler, assembler and linker with their C library.
    CrossCompiler,
    /// The emulator.
    Emulator,
    /// A Rust toolchain with the sources of std, from which std is built for the machine.
    RustWithSources,
}

/// A tool that cannot be used, in the words that a skipped test uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// Which one.
    pub tool: Tool,
    /// What it is that is needed: fits after "needs ".
    pub needs: String,
}

/// A Rust toolchain that comes with the sources of std.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RustWithSources {
    /// Its cargo.
    pub cargo: PathBuf,
    /// Its compiler.
    pub rustc: PathBuf,
    /// Its documentation tool, which runs the tests in documentation.
    pub rustdoc: PathBuf,
    /// The compiler's version.
    pub version: Version,
}

/// What of an emulated machine's tools is installed.
#[derive(Debug)]
pub struct Survey {
    /// The C compiler.
    pub cross_compiler: Result<PathBuf, Missing>,
    /// The emulator and its version.
    pub emulator: Result<(PathBuf, Version), Missing>,
    /// The Rust toolchain.
    pub rust: Result<RustWithSources, Missing>,
}

impl Survey {
    /// The tools that are not there, each once.
    pub fn missing(&self) -> Vec<&Missing> {
        let missing = [self.cross_compiler.as_ref().err(), self.emulator.as_ref().err(), self.rust.as_ref().err()];
        missing.into_iter().flatten().collect()
    }

    /// What is needed and not there, in one phrase that fits after "needs "; `None` when all is there.
    pub fn needs(&self) -> Option<String> {
        let needs: Vec<&str> = self.missing().iter().map(|missing| missing.needs.as_str()).collect();
        (!needs.is_empty()).then(|| needs.join(", "))
    }
}

/// Looks for the tools of `machine`.
pub fn survey(machine: &EmulatedMachine) -> Survey {
    Survey { cross_compiler: find_cross_compiler(machine), emulator: find_emulator(machine), rust: find_rust(machine) }
}

fn find_cross_compiler(machine: &EmulatedMachine) -> Result<PathBuf, Missing> {
    let headers = Path::new(machine.sysroot).join("include/stdio.h");
    match which::which(machine.cross_compiler) {
        Ok(path) if headers.exists() => Ok(path),
        Ok(_) => Err(Missing {
            tool: Tool::CrossCompiler,
            needs: format!("the C library's headers for {} ({})", machine.triple, headers.display()),
        }),
        Err(_) => Err(Missing { tool: Tool::CrossCompiler, needs: machine.cross_compiler.to_owned() }),
    }
}

fn find_emulator(machine: &EmulatedMachine) -> Result<(PathBuf, Version), Missing> {
    let needs =
        |found: String| Missing { tool: Tool::Emulator, needs: format!("{} {} or newer{found}", machine.emulator, machine.emulator_least) };
    let path = which::which(machine.emulator).map_err(|_| needs(String::new()))?;
    let version = version_of(&path).ok_or_else(|| needs(format!(" ({} does not tell its version)", path.display())))?;
    if version < machine.emulator_least {
        return Err(needs(format!(" ({} is {version})", path.display())));
    }
    Ok((path, version))
}

/// The toolchain on PATH if it has the sources (`rustup component add rust-src`), else the one that
/// a distribution installs beside it, which rustup's hides on PATH.
fn find_rust(machine: &EmulatedMachine) -> Result<RustWithSources, Missing> {
    let on_path = which::which("rustc").ok();
    let of_distribution = Some(PathBuf::from("/usr/bin/rustc")).filter(|path| path.exists());
    let mut rejected = String::new();
    for rustc in [on_path, of_distribution].into_iter().flatten() {
        match rust_with_sources(&rustc, machine.rust_least) {
            Ok(rust) => return Ok(rust),
            Err(reason) => rejected = format!("{rejected}; {}: {reason:#}", rustc.display()),
        }
    }
    Err(Missing { tool: Tool::RustWithSources, needs: format!("a Rust {} or newer with the sources of std{rejected}", machine.rust_least) })
}

fn rust_with_sources(rustc: &Path, least: Version) -> anyhow::Result<RustWithSources> {
    let printed = stdout_of(Command::new(rustc).args(["--print", "sysroot"]))?;
    let lock_of_std = Path::new(printed.trim()).join("lib/rustlib/src/rust/library/Cargo.lock");
    ensure!(lock_of_std.exists(), "no {}", lock_of_std.display());
    let version = version_of(rustc).context("does not tell its version")?;
    ensure!(version >= least, "is {version}");
    let beside = |program: &str| -> anyhow::Result<PathBuf> {
        let path = rustc.with_file_name(program);
        ensure!(path.exists(), "no {} beside it", path.display());
        Ok(path)
    };
    Ok(RustWithSources { cargo: beside("cargo")?, rustc: rustc.to_owned(), rustdoc: beside("rustdoc")?, version })
}

fn version_of(program: &Path) -> Option<Version> {
    Version::first_in(&stdout_of(Command::new(program).arg("--version")).ok()?)
}

fn stdout_of(command: &mut Command) -> anyhow::Result<String> {
    let output = command.output().with_context(|| format!("cannot start {command:?}"))?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        bail!("{command:?}: {}: {}", output.status, stderr.trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Compiles a C program with the cross compiler, runs it under the emulator, and holds it to what
/// every emulator test takes for granted: the emulated Linux announces the vector unit.
///
/// # Errors
/// The program cannot be compiled or run, or the bit of `AT_HWCAP` is clear.
pub fn assert_vector_unit(machine: &EmulatedMachine, cross_compiler: &Path, emulator: &Path) -> anyhow::Result<()> {
    let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
    let source = folder.path().join("hwcap.c");
    let program = folder.path().join("hwcap");
    fs::write(&source, include_str!("hwcap.c")).context("cannot write the probe")?;
    stdout_of(Command::new(cross_compiler).arg("-static").arg(&source).arg("-o").arg(&program))?;
    let printed = stdout_of(Command::new(emulator).args(["-cpu", machine.processor]).arg(&program))?;
    let features = u64::from_str_radix(printed.trim(), 16).with_context(|| format!("the probe printed {printed:?}"))?;
    ensure!(
        features >> machine.vector_unit_hwcap_bit & 1 == 1,
        "{} -cpu {} announces no vector unit: AT_HWCAP is {features:#x}, bit {} is clear",
        emulator.display(),
        machine.processor,
        machine.vector_unit_hwcap_bit
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_what_programs_print() {
        let cases = [
            ("rustc 1.95.0 (59807616e 2026-04-14)", Some((1, 95))),
            ("qemu-ppc version 10.0.2 (Debian 1:10.0.2+ds-2)", Some((10, 0))),
            ("powerpc-linux-gnu-gcc (Debian 12.2.0-14) 12.2.0", Some((12, 2))),
            ("no version 7 here.", None),
            ("99999999999999999999.1", None),
        ];
        for (text, expected) in cases {
            let expected = expected.map(|(major, minor)| Version { major, minor });
            assert_eq!(Version::first_in(text), expected, "{text}");
        }
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let machine = EmulatedMachine {
            cross_compiler: "kgen-no-such-compiler",
            emulator: "kgen-no-such-emulator",
            rust_least: Version { major: u32::MAX, minor: 0 },
            ..POWERPC
        };
        let survey = survey(&machine);
        let missing = survey.missing();
        let tools: Vec<Tool> = missing.iter().map(|missing| missing.tool).collect();
        assert_eq!(tools, [Tool::CrossCompiler, Tool::Emulator, Tool::RustWithSources]);
        assert_eq!(missing[0].needs, "kgen-no-such-compiler");
        assert_eq!(missing[1].needs, "kgen-no-such-emulator 10.0 or newer");
    }

    /// The emulator without its `-cpu` has no AltiVec: the probe must notice.
    #[test]
    fn the_probe_sees_a_processor_without_vector_unit() {
        let survey = survey(&POWERPC);
        let (Ok(compiler), Ok((emulator, _))) = (&survey.cross_compiler, &survey.emulator) else {
            let missing = survey.missing();
            crate::skips::skip_test(&missing[0].needs);
            return;
        };
        assert_vector_unit(&POWERPC, compiler, emulator).expect("a 7448 has AltiVec");
        let without = EmulatedMachine { processor: "750", ..POWERPC };
        let error = assert_vector_unit(&without, compiler, emulator).expect_err("a 750 has none");
        assert!(error.to_string().contains("announces no vector unit"), "{error}");
    }
}
