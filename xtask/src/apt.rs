//! Installing Debian packages without asking, without removing anything, and without hiding
//! what is done.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use indicatif::ProgressBar;

use crate::apt_sources::{Format, entry_for_other_suite, has_suite};
use crate::tools::Version;

/// How long apt waits for another apt to finish, in seconds.
const LOCK_WAIT_SECONDS: u32 = 300;

/// How many lines of a failed command's output are repeated.
const LINES_OF_FAILURE: usize = 15;

/// APT on this machine, with the right to use it.
#[derive(Debug)]
pub struct Apt {
    /// What stands before each command: nothing for root, else sudo.
    prefix: &'static [&'static str],
    /// Debian's name of this release, `bookworm` for 12.
    codename: String,
    /// Where APT keeps its source entries.
    folder: PathBuf,
}

impl Apt {
    /// Finds apt, and root or a sudo that asks for no password.
    ///
    /// # Errors
    /// Says which of them is not there.
    pub fn find() -> anyhow::Result<Apt> {
        which::which("apt-get").ok().context("no apt-get on this machine")?;
        let release = fs::read_to_string("/etc/os-release").context("no /etc/os-release")?;
        let codename = field_of_os_release(&release, "VERSION_CODENAME").context("/etc/os-release has no VERSION_CODENAME")?;
        let prefix: &[&str] = if succeeds("id", &["-u"], |stdout| stdout.trim() == "0") {
            &[]
        } else if succeeds("sudo", &["-n", "true"], |_| true) {
            &["sudo", "-n"]
        } else {
            bail!("neither root nor a sudo without password");
        };
        Ok(Apt { prefix, codename, folder: PathBuf::from("/etc/apt") })
    }

    /// Downloads the lists of packages of all source entries.
    ///
    /// # Errors
    /// Says what apt-get said.
    pub fn update(&self) -> anyhow::Result<()> {
        self.run("updating the lists of packages", &["apt-get", "update"])
    }

    /// Installs `packages`, from `suite` where one is named.
    ///
    /// # Errors
    /// Says what apt-get said; also when a package could only be installed by removing another.
    pub fn install(&self, packages: &[&str], suite: Option<&str>) -> anyhow::Result<()> {
        let lock_wait = format!("DPkg::Lock::Timeout={LOCK_WAIT_SECONDS}");
        let mut arguments = vec!["env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "install"];
        arguments.extend(["--yes", "--no-install-recommends", "--no-remove", "-o", &lock_wait]);
        if let Some(suite) = suite {
            arguments.extend(["-t", suite]);
        }
        arguments.extend(packages);
        self.run(&format!("installing {}", packages.join(" ")), &arguments)
    }

    /// The version of `package` that would be installed from the source entries as they are.
    pub fn candidate(&self, package: &str) -> Option<Version> {
        let output = Command::new("apt-cache").args(["policy", package]).output().ok()?;
        candidate_of_policy(&String::from_utf8_lossy(&output.stdout))
    }

    /// Makes the backports of this release known to APT, unless they are, and names their suite.
    ///
    /// # Errors
    /// There is no entry for this release to derive one from, or it cannot be written.
    pub fn add_backports(&self) -> anyhow::Result<String> {
        let suite = format!("{}-backports", self.codename);
        let lists = source_lists(&self.folder);
        if lists.iter().any(|(text, format)| has_suite(text, *format, &suite)) {
            return Ok(suite);
        }
        let derived = lists.iter().find_map(|(text, format)| {
            let entry = entry_for_other_suite(text, *format, &self.codename, &suite)?;
            Some((entry, *format))
        });
        let (entry, format) = derived.with_context(|| format!("no source entry for {} in {}", self.codename, self.folder.display()))?;
        let name = format!("kgen-{suite}.{}", format.file_ending());
        let path = self.folder.join("sources.list.d").join(name);
        say(&format!("adding {} beside this machine's own entry", path.display()));
        self.write(&path, &entry)?;
        self.update()?;
        Ok(suite)
    }

    fn write(&self, path: &Path, text: &str) -> anyhow::Result<()> {
        let mut child = self.command(&["tee"]).arg(path).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().context("cannot start tee")?;
        let written = child.stdin.take().context("tee has no input")?.write_all(text.as_bytes());
        let status = child.wait().context("tee did not end")?;
        written.with_context(|| format!("cannot write {}", path.display()))?;
        if !status.success() {
            bail!("cannot write {}: {status}", path.display());
        }
        Ok(())
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut words = self.prefix.iter().chain(arguments);
        let mut command = Command::new(words.next().map_or(OsStr::new(""), OsStr::new));
        command.args(words);
        command
    }

    /// Runs a command behind a spinner that shows its last line.
    fn run(&self, what: &str, arguments: &[&str]) -> anyhow::Result<()> {
        let begun = Instant::now();
        let spinner = if std::io::stderr().is_terminal() {
            let spinner = ProgressBar::new_spinner();
            spinner.enable_steady_tick(Duration::from_millis(100));
            spinner
        } else {
            say(what);
            ProgressBar::hidden()
        };
        let result = run_with_last_lines(&mut self.command(arguments), |line| {
            spinner.set_message(format!("{what}: {line}"));
        });
        spinner.finish_and_clear();
        result.with_context(|| format!("{what} failed"))?;
        say(&format!("{what}: done in {} s", begun.elapsed().as_secs()));
        Ok(())
    }
}

/// One line about what is being done, to standard error.
pub fn say(line: &str) {
    eprintln!("xtask: {line}");
}

/// Runs `command` to its end, each line of its output going to `see`; an error repeats the last ones.
fn run_with_last_lines(command: &mut Command, mut see: impl FnMut(&str)) -> anyhow::Result<()> {
    // Both streams into one pipe: apt's own errors belong between the lines that led to them.
    let (reader, writer) = std::io::pipe().context("cannot make a pipe")?;
    let twin = writer.try_clone().context("cannot share a pipe")?;
    command.stdin(Stdio::null()).stdout(writer).stderr(twin);
    let mut child = command.spawn().with_context(|| format!("cannot start {command:?}"))?;
    // The command holds the pipe's writing ends; while it does, reading would never end.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut last = VecDeque::new();
    for line in BufReader::new(reader).split(b'\n') {
        let line = line.context("cannot read its output")?;
        let line = String::from_utf8_lossy(&line).trim_end().to_owned();
        see(&line);
        last.push_back(line);
        if last.len() > LINES_OF_FAILURE {
            last.pop_front();
        }
    }
    let status = child.wait().context("it did not end")?;
    if !status.success() {
        let last: Vec<String> = last.into();
        bail!("{status}\n{}", last.join("\n"));
    }
    Ok(())
}

fn succeeds(program: &str, arguments: &[&str], accept: impl Fn(&str) -> bool) -> bool {
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output();
    output.is_ok_and(|output| output.status.success() && accept(&String::from_utf8_lossy(&output.stdout)))
}

/// Every file of source entries that APT would read, with its text.
fn source_lists(folder: &Path) -> Vec<(String, Format)> {
    let mut paths = vec![folder.join("sources.list")];
    if let Ok(entries) = fs::read_dir(folder.join("sources.list.d")) {
        let mut found: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        found.sort();
        paths.extend(found);
    }
    let format_of = |path: &Path| {
        let ending = path.extension()?;
        [Format::Deb822, Format::OneLine].into_iter().find(|f| ending == f.file_ending())
    };
    paths.iter().filter_map(|path| Some((fs::read_to_string(path).ok()?, format_of(path)?))).collect()
}

/// The value of `name=value` or `name="value"`.
fn field_of_os_release(text: &str, name: &str) -> Option<String> {
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='))?;
    Some(value.trim().trim_matches('"').to_owned())
}

/// The version in the line `Candidate:` of what `apt-cache policy` prints; an epoch is no part of it.
fn candidate_of_policy(text: &str) -> Option<Version> {
    let value = text.lines().find_map(|line| line.trim().strip_prefix("Candidate:"))?;
    let value = value.split_once(':').map_or(value, |(_epoch, version)| version);
    Version::first_in(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_candidate_is_read_without_its_epoch() {
        let policy = "qemu-user:\n  Installed: (none)\n  Candidate: 1:7.2+dfsg-7+deb12u18\n";
        assert_eq!(candidate_of_policy(policy), Some(Version { major: 7, minor: 2 }));
        assert_eq!(candidate_of_policy("rustc-web:\n  Candidate: (none)\n"), None);
        assert_eq!(candidate_of_policy(""), None);
    }

    #[test]
    fn the_release_has_a_codename() {
        let release = "NAME=\"Debian\"\nVERSION_CODENAME=bookworm\nID=debian\n";
        assert_eq!(field_of_os_release(release, "VERSION_CODENAME").as_deref(), Some("bookworm"));
        assert_eq!(field_of_os_release(release, "VERSION"), None);
    }

    #[test]
    fn a_failing_command_tells_its_last_words() {
        let mut seen = Vec::new();
        let mut command = Command::new("sh");
        command.args(["-c", "echo first; echo last >&2; exit 3"]);
        let error = run_with_last_lines(&mut command, |line| seen.push(line.to_owned())).expect_err("exit 3 is a failure");
        assert_eq!(seen, ["first", "last"]);
        assert_eq!(error.to_string(), "exit status: 3\nfirst\nlast");
    }

    #[test]
    fn both_formats_of_source_lists_are_read() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let parts = folder.path().join("sources.list.d");
        fs::create_dir(&parts).expect("a folder");
        fs::write(folder.path().join("sources.list"), "one").expect("a file");
        fs::write(parts.join("a.sources"), "two").expect("a file");
        fs::write(parts.join("b.list.disabled"), "three").expect("a file");
        let expected = [("one".to_owned(), Format::OneLine), ("two".to_owned(), Format::Deb822)];
        assert_eq!(source_lists(folder.path()), expected);
    }
}
