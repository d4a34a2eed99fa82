//! What a test does when a tool that it needs is not there, and how that is not forgotten.
//!
//! A test that needs a tool looks for the program on PATH. When it is missing
//! - and the variable [`REQUIRE_TOOLS`] is `1`, the test fails;
//! - otherwise it writes `skipped: needs X` to standard error, appends that line to the file that
//!   the variable [`SKIP_LOG`] names, if any, and passes.
//!
//! `cargo xtask test` names such a file and repeats its lines at the end, because cargo shows
//! nothing of what a passing test printed.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

/// The variable that names the file to which skipped tests append a line each.
pub const SKIP_LOG: &str = "KGEN_SKIP_LOG";

/// The variable that, set to `1`, makes a missing tool a failure.
pub const REQUIRE_TOOLS: &str = "KGEN_REQUIRE_TOOLS";

/// Skipped tests, counted by the reason they gave.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Skips {
    count_by_reason: BTreeMap<String, usize>,
}

impl Skips {
    /// Reads a log of one reason a line; a log that was never written holds none.
    pub fn read(log: &Path) -> io::Result<Skips> {
        match fs::read_to_string(log) {
            Ok(text) => Ok(Skips::parse(&text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Skips::default()),
            Err(error) => Err(error),
        }
    }

    fn parse(text: &str) -> Skips {
        let mut skips = Skips::default();
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
            skips.add(line);
        }
        skips
    }

    /// Counts one skipped test, or a whole step, under `reason`.
    pub fn add(&mut self, reason: &str) {
        *self.count_by_reason.entry(reason.to_owned()).or_default() += 1;
    }

    /// How many were skipped in all.
    pub fn total(&self) -> usize {
        self.count_by_reason.values().sum()
    }

    /// The lines of a summary, in the order of the reasons' text.
    pub fn summary(&self) -> Vec<String> {
        self.count_by_reason
            .iter()
            .map(|(reason, count)| match count {
                1 => reason.clone(),
                _ => format!("{reason} ({count} times)"),
            })
            .collect()
    }
}

/// What a test of this crate calls, before it returns, when a tool that it needs is not there.
#[cfg(test)]
pub fn skip_test(needs: &str) {
    use std::io::Write;

    let line = format!("skipped: needs {needs}");
    assert!(std::env::var_os(REQUIRE_TOOLS).is_none_or(|value| value != "1"), "{line}");
    eprintln!("{line}");
    if let Some(log) = std::env::var_os(SKIP_LOG) {
        let mut file = fs::OpenOptions::new().create(true).append(true).open(log).expect("the log of skips");
        writeln!(file, "{line}").expect("the log of skips");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_counted_and_sorted() {
        let mut skips = Skips::parse("skipped: needs b\n\nskipped: needs a\nskipped: needs b\n");
        skips.add("skipped: needs c");
        assert_eq!(skips.total(), 4);
        assert_eq!(skips.summary(), ["skipped: needs a", "skipped: needs b (2 times)", "skipped: needs c"]);
    }

    #[test]
    fn a_log_that_nobody_wrote_holds_nothing() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let skips = Skips::read(&folder.path().join("none")).expect("no error");
        assert_eq!(skips, Skips::default());
    }
}
