//! The crate `generated/` is what kgen writes today, and so are the reports: a change of schedules is a change of files that a review reads.

use sha2::{Digest, Sha256};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Specs whose kernels are checked in, for each target.
const CHECKED_IN: [(&str, &str); 2] = [("e600", "specs/mul_128.ir"), ("e600", "specs/mont_mul_512.ir")];

/// A file of several specs' kernels, in the target's first form, with what its command is given.
struct Joined {
    target: &'static str,
    file: &'static str,
    arguments: &'static [&'static str],
}

const JOINED: [Joined; 1] = [Joined {
    target: "e600",
    file: "rsa1024.rs",
    arguments: &["--param", "ENTRIES=16", "specs/mont_mul_512.ir", "specs/rsa_crt_1024.ir"],
}];

/// Forms in which they are checked in, and what is added to the target's name to get their folder's.
const FORMS: [(&str, &str); 2] = [("rust-asm", ""), ("rust-intrinsics", "_intrinsics")];

fn kgen(arguments: &[&str]) -> Vec<u8> {
    let output =
        Command::new(env!("CARGO_BIN_EXE_kgen")).current_dir(env!("CARGO_MANIFEST_DIR")).args(arguments).output().expect("kgen starts");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// Files of a folder with their contents, by name.
fn files(folder: &Path) -> Vec<(String, String)> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut files: Vec<(String, String)> = entries
        .map(|entry| {
            let path: PathBuf = entry.expect("an entry").path();
            let name = path.file_name().and_then(|name| name.to_str()).expect("a name").to_owned();
            (name, std::fs::read_to_string(&path).expect("a text"))
        })
        .collect();
    files.sort();
    files
}

/// The version that wrote the files, and the hash of each.
fn manifest(written: &[(String, String)]) -> String {
    let mut text = format!("kgen {}\n", env!("CARGO_PKG_VERSION"));
    for (path, contents) in written {
        let hash = Sha256::digest(contents.as_bytes()).iter().fold(String::new(), |mut digits, byte| {
            let _ = write!(digits, "{byte:02x}");
            digits
        });
        let _ = writeln!(text, "{hash}  {path}");
    }
    text
}

#[test]
fn the_checked_in_files_are_what_kgen_writes_today() {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("generated").join("src");
    let manifest_path = sources.with_file_name("MANIFEST");
    let bless = std::env::var_os("KGEN_BLESS").is_some_and(|value| value == "1");
    let written = tempfile::tempdir().expect("a folder");
    let mut all = Vec::new();
    let mut targets: Vec<&str> = CHECKED_IN.iter().map(|(target, _)| *target).collect();
    targets.dedup();
    for (target, (form, suffix)) in targets.into_iter().flat_map(|target| FORMS.map(|form| (target, form))) {
        let name = format!("{target}{suffix}");
        let folder = written.path().join(&name);
        let output = format!("{}/", folder.display());
        for (_, spec) in CHECKED_IN.iter().filter(|(of, _)| *of == target) {
            kgen(&["emit", "--target", target, "--form", form, "-o", &output, spec]);
        }
        for joined in JOINED.iter().filter(|joined| joined.target == target && suffix.is_empty()) {
            let output = folder.join(joined.file).display().to_string();
            kgen(&[&["emit", "--target", target, "-o", &output], joined.arguments].concat());
        }
        let today = files(&folder);
        assert!(!today.is_empty());
        let place = sources.join(&name);
        if bless {
            std::fs::create_dir_all(&place).expect("a folder");
            for (name, _) in files(&place).iter().filter(|(name, _)| !today.iter().any(|(written, _)| written == name)) {
                std::fs::remove_file(place.join(name)).expect("it can be removed");
            }
            today.iter().for_each(|(name, text)| std::fs::write(place.join(name), text).expect("it can be written"));
        }
        let known = files(&place);
        let names = |list: &[(String, String)]| list.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
        assert_eq!(names(&known), names(&today), "KGEN_BLESS=1 writes them anew");
        for ((name, old), (_, new)) in known.iter().zip(&today) {
            let line = old.lines().zip(new.lines()).position(|(old, new)| old != new);
            assert!(old == new, "{name} is not what kgen writes today, first in line {line:?}; KGEN_BLESS=1 writes it anew");
        }
        all.extend(today.into_iter().map(|(file, text)| (format!("src/{name}/{file}"), text)));
    }
    let manifest = manifest(&all);
    if bless {
        std::fs::write(&manifest_path, &manifest).expect("it can be written");
    }
    assert_eq!(std::fs::read_to_string(&manifest_path).unwrap_or_default(), manifest, "KGEN_BLESS=1 writes it anew");
}

#[test]
fn reports_are_what_they_were() {
    for (target, spec) in CHECKED_IN {
        let report = String::from_utf8(kgen(&["schedule", "--target", target, spec])).expect("text");
        let name = Path::new(spec).file_stem().and_then(|name| name.to_str()).expect("a name");
        insta::assert_snapshot!(format!("report_{name}_{target}"), report);
    }
    let schedule = String::from_utf8(kgen(&["emit", "--target", "e600", "--form", "schedule", "specs/mul_128.ir"])).expect("text");
    insta::assert_snapshot!("schedule_mul_128_e600", schedule);
}
