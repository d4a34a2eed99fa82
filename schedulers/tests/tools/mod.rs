//! What a test does when a program that it needs is missing.

use std::io::Write;

/// Whether all these programs are on PATH. Where one is not, this fails if `KGEN_REQUIRE_TOOLS` is 1; otherwise it says so on standard error and in the
/// file that `KGEN_SKIP_LOG` names, and the test is to return.
pub fn available(programs: &[&str]) -> bool {
    let folders: Vec<std::path::PathBuf> = std::env::var_os("PATH").map(|path| std::env::split_paths(&path).collect()).unwrap_or_default();
    let missing: Vec<&str> =
        programs.iter().copied().filter(|program| !folders.iter().any(|folder| folder.join(program).is_file())).collect();
    if missing.is_empty() {
        return true;
    }
    let line = format!("skipped: needs {}", missing.join(", "));
    assert!(std::env::var("KGEN_REQUIRE_TOOLS").as_deref() != Ok("1"), "{line}");
    eprintln!("{line}");
    if let Some(path) = std::env::var_os("KGEN_SKIP_LOG") {
        let log = std::fs::OpenOptions::new().create(true).append(true).open(path);
        log.and_then(|mut log| writeln!(log, "{line}")).expect("the log of skipped tests can be written");
    }
    false
}
