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

/// A form in which they are checked in.
#[derive(Clone, Copy)]
struct CheckedForm {
    form: &'static str,
    /// What is added to the target's name to get the folder's.
    suffix: &'static str,
    /// Of the compiler's intrinsics the compiler makes its own order, so that a search would be for nothing.
    effort: &'static str,
}

const FORMS: [CheckedForm; 2] = [
    CheckedForm { form: "rust-asm", suffix: "", effort: "2" },
    CheckedForm { form: "rust-intrinsics", suffix: "_intrinsics", effort: "0" },
];

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

fn hash(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().fold(String::new(), |mut digits, byte| {
        let _ = write!(digits, "{byte:02x}");
        digits
    })
}

/// The files of a spec's kernels (all where none is named), emitted at this effort, by name.
fn emitted((target, spec): (&str, &str), form: &str, effort: &str, kernels: &[String]) -> Vec<(String, String)> {
    let folder = tempfile::tempdir().expect("a folder");
    let output = format!("{}/", folder.path().display());
    let mut arguments = vec!["emit", "--target", target, "--form", form, "--effort", effort, "-o", &output];
    let kernels = kernels.join(",");
    if !kernels.is_empty() {
        arguments.extend(["--kernel", &kernels]);
    }
    arguments.push(spec);
    kgen(&arguments);
    files(folder.path())
}

/// What the files are: the version that wrote them, and for each the hash of its text and that of the text without search, which tells whether the search has to be done again.
fn manifest(written: &[(String, String, String)]) -> String {
    let mut text = format!("kgen {}\n# sha256 of the file, sha256 of the same at effort 0, file\n", env!("CARGO_PKG_VERSION"));
    for (path, contents, listed) in written {
        let _ = writeln!(text, "{}  {}  {path}", hash(contents), hash(listed));
    }
    text
}

/// Written anew with its search on every run, whatever the hashes say.
const SAMPLE: &str = "mul_128";

/// The files come from the search at effort 2, which takes its time; without it, the same kernel is written in no time. So a file is made again where its text without
/// search is no longer what it was when the file was made, and one file always is.
#[test]
fn the_checked_in_files_are_what_kgen_writes_today() {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("generated").join("src");
    let manifest_path = sources.with_file_name("MANIFEST");
    let bless = std::env::var_os("KGEN_BLESS").is_some_and(|value| value == "1");
    let recorded = std::fs::read_to_string(&manifest_path).unwrap_or_default();
    let mut all = Vec::new();
    for ((target, spec), CheckedForm { form, suffix, effort }) in CHECKED_IN.into_iter().flat_map(|spec| FORMS.map(|form| (spec, form))) {
        let folder = format!("{target}{suffix}");
        let place = sources.join(&folder);
        let listed = emitted((target, spec), form, "0", &[]);
        assert!(!listed.is_empty());
        let on_disk = |name: &str| std::fs::read_to_string(place.join(name)).unwrap_or_default();
        let is_current = |name: &str, text: &str| {
            let line = format!("{}  {}  src/{folder}/{name}", hash(&on_disk(name)), hash(text));
            recorded.lines().any(|recorded| recorded == line)
        };
        let kernel = |name: &str| name.split('.').next().unwrap_or_default().to_owned();
        let again: Vec<String> =
            listed.iter().filter(|(name, text)| kernel(name) == SAMPLE || !is_current(name, text)).map(|(name, _)| kernel(name)).collect();
        let today = if again.is_empty() { Vec::new() } else { emitted((target, spec), form, effort, &again) };
        if bless {
            std::fs::create_dir_all(&place).expect("a folder");
            today.iter().for_each(|(name, text)| std::fs::write(place.join(name), text).expect("it can be written"));
        }
        for (name, new) in &today {
            let old = on_disk(name);
            let line = old.lines().zip(new.lines()).position(|(old, new)| old != new);
            assert!(old == *new, "{name} is not what kgen writes today, first in line {line:?}; KGEN_BLESS=1 writes it anew");
        }
        all.extend(listed.into_iter().map(|(name, listed)| (format!("src/{folder}/{name}"), on_disk(&name), listed)));
    }
    for Joined { target, file, arguments } in JOINED {
        let folder = tempfile::tempdir().expect("a folder");
        let output = folder.path().join(file).display().to_string();
        kgen(&[&["emit", "--target", target, "-o", &output], arguments].concat());
        let today = std::fs::read_to_string(&output).expect("it was written");
        let path = sources.join(target).join(file);
        if bless {
            std::fs::write(&path, &today).expect("it can be written");
        }
        assert!(
            std::fs::read_to_string(&path).is_ok_and(|old| old == today),
            "{file} is not what kgen writes today; KGEN_BLESS=1 writes it anew"
        );
        all.push((format!("src/{target}/{file}"), today.clone(), today));
    }
    let manifest = manifest(&all);
    if bless {
        std::fs::write(&manifest_path, &manifest).expect("it can be written");
    }
    assert_eq!(std::fs::read_to_string(&manifest_path).unwrap_or_default(), manifest, "KGEN_BLESS=1 writes it anew");
    // Nothing lies there that no spec makes any more.
    for ((target, _), CheckedForm { suffix, .. }) in CHECKED_IN.into_iter().flat_map(|spec| FORMS.map(|form| (spec, form))) {
        let folder = format!("{target}{suffix}");
        for (name, _) in files(&sources.join(&folder)) {
            assert!(manifest.contains(&format!("src/{folder}/{name}\n")), "{name} is made from no spec");
        }
    }
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
