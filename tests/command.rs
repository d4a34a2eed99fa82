//! The command as a compiler's user meets it: what it writes where, exit codes, and a clear message for every kind of bad input.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// A spec that is compiled fast.
const SMALL: &str = "kernel mix(a: nat<64> secret, b: nat<64> secret) -> nat<128> secret { a * b }\n";

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kgen"));
    command.current_dir(env!("CARGO_MANIFEST_DIR")).args(arguments).env_remove("NO_COLOR");
    command
}

fn kgen(arguments: &[&str]) -> Output {
    command(arguments).stdin(Stdio::null()).output().expect("kgen starts")
}

fn with_input(arguments: &[&str], input: &[u8]) -> Output {
    let mut child = command(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("kgen starts");
    // A command that refuses its arguments may end before it has read anything.
    let _ = child.stdin.take().expect("a pipe").write_all(input);
    child.wait_with_output().expect("kgen ends")
}

fn said(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("messages are text")
}

fn printed(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(0), "{}", said(output));
    String::from_utf8(output.stdout.clone()).expect("artifacts are text")
}

/// The input must be refused with this code, by this rule, and nothing printed.
fn refused(output: &Output, code: i32, rule: &str, words: &[&str]) {
    let text = said(output);
    assert_eq!(output.status.code(), Some(code), "{text}");
    assert!(output.stdout.is_empty(), "something was printed");
    assert!(text.contains(&format!("error[{rule}]")), "no error[{rule}] in:\n{text}");
    for word in words {
        assert!(text.contains(word), "no `{word}` in:\n{text}");
    }
    assert!(!text.contains("panicked"), "{text}");
    assert!(!text.contains('\u{1b}'), "colours where no terminal is");
}

fn check_text(text: &[u8], code: i32, rule: &str, words: &[&str]) {
    refused(&with_input(&["check", "--target", "e600", "-"], text), code, rule, words);
}

#[test]
fn an_empty_file_is_refused() {
    check_text(b"", 1, "no-kernels", &["the file is empty", "<stdin>"]);
    check_text(b"\n\n   // nothing\n", 1, "no-kernels", &["kernel NAME"]);
}

#[test]
fn a_spec_without_kernels_is_refused() {
    check_text(b"const A = 1\nfn f(x: u32) -> u32 { x }\n", 1, "no-kernels", &["<stdin>"]);
}

#[test]
fn binary_garbage_is_refused() {
    let garbage: Vec<u8> = (0..100_000u32).map(|index| (index.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    check_text(&garbage, 1, "not-text", &["is not UTF-8 text"]);
    let text: Vec<u8> = garbage.iter().map(|byte| byte & 0x7f).collect();
    let output = with_input(&["check", "--target", "e600", "-"], &text);
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains("error["));
    // However much is wrong, the messages end.
    assert!(said(&output).lines().count() < 500, "{} lines of messages", said(&output).lines().count());
    assert!(said(&output).contains("more about `<stdin>`"));
    check_text(&[0u8; 4096], 1, "unknown-character", &["binary file"]);
}

#[test]
fn deep_nesting_is_refused() {
    let depth = 100_000;
    let brackets = format!("kernel k(a: u32) -> u32 {{ {}a{} }}\n", "(".repeat(depth), ")".repeat(depth));
    check_text(brackets.as_bytes(), 1, "limit", &["brackets are open here"]);
    let open = format!("kernel k(a: u32) -> u32 {{ {}", "(".repeat(depth));
    check_text(open.as_bytes(), 1, "limit", &[]);
    let complements = format!("kernel k(a: u32) -> u32 {{ {}a }}\n", "~".repeat(depth));
    check_text(complements.as_bytes(), 1, "limit", &[]);
}

#[test]
fn unknown_names_are_refused_with_suggestions() {
    refused(&kgen(&["check", "--target", "e60", "specs/mul_128.ir"]), 2, "unknown-target", &["`e60`", "did you mean `e600`"]);
    let kernel = kgen(&["check", "--target", "e600", "--kernel", "mul_129", "specs/mul_128.ir"]);
    refused(&kernel, 2, "unknown-kernel", &["`mul_129`", "did you mean `mul_128`"]);
    let form = kgen(&["emit", "--target", "e600", "--form", "gass", "specs/mul_128.ir"]);
    refused(&form, 2, "form", &["no form `gass`", "rust-asm, rust-intrinsics, gas"]);
    refused(&kgen(&["check", "--target", "no/such.target", "specs/mul_128.ir"]), 1, "unreadable", &["no/such.target"]);
    refused(&kgen(&["check", "--target", "e600", "no-such.ir"]), 1, "unreadable", &["no-such.ir"]);
}

#[test]
fn an_unknown_parameter_is_refused_without_an_excerpt() {
    let output = kgen(&["check", "--target", "e600", "--param", "BITZ=1024", "specs/mont_mul_512.ir"]);
    refused(&output, 1, "unknown-parameter", &["BITZ", "mont_mul_512.ir"]);
    assert!(!said(&output).contains("Montgomery multiplication for RSA"), "an excerpt of the first line:\n{}", said(&output));
}

#[test]
fn wrong_lane_counts_are_refused() {
    check_text(b"kernel k(a: u8x16, b: u16x8) -> u8x16 { a ^ b }\n", 1, "type-mismatch", &["u8x16", "u16x8"]);
    check_text(b"kernel k(a: u8x16, b: u8x8) -> u8x16 { a ^ b }\n", 1, "type-mismatch", &["u8x8", "<stdin>:1:"]);
}

#[test]
fn a_natural_too_large_is_refused() {
    check_text(b"kernel k(a: nat<1000000>) -> nat<1000000> { a }\n", 1, "out-of-range", &["1000000", "65536"]);
    // It can be written down, but no lowering holds it in registers.
    let output = kgen(&["check", "--target", "e600", "--param", "BITS=65536", "--kernel", "mont_mul_65536", "specs/mont_mul_512.ir"]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(said(&output).contains("error["));
}

#[test]
fn functions_that_call_each_other_in_a_circle_are_refused() {
    let circle = b"fn f(x: u32) -> u32 { g(x) }\nfn g(x: u32) -> u32 { f(x) }\nkernel k(a: u32) -> u32 { f(a) }\n";
    check_text(circle, 1, "circular-call", &["f \u{2192} g \u{2192} f"]);
    check_text(b"kernel k(a: u32) -> u32 { k(a) }\n", 1, "circular-call", &["k \u{2192} k"]);
}

#[test]
fn usage_errors_have_code_two() {
    for arguments in [
        &["emit"][..],
        &["emit", "specs/mul_128.ir"],
        &["emit", "--target", "e600"],
        &["frobnicate"],
        &["emit", "--target", "e600", "--effort", "3", "specs/mul_128.ir"],
        &["emit", "--target", "e600", "--param", "BITS", "specs/mul_128.ir"],
        &["emit", "--target", "e600", "--param", "BITS=x", "specs/mul_128.ir"],
        &["emit", "--target", "e600", "--interleave", "0", "specs/mul_128.ir"],
        &["time", "specs/mul_128.ir", "--target", "e600"],
    ] {
        let output = kgen(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", said(&output));
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn help_and_version_have_code_zero_and_examples() {
    for topic in ["emit", "schedule", "check", "time", "cost", "explain"] {
        let help = printed(&kgen(&[topic, "--help"]));
        assert!(help.contains("Example") && help.contains("kgen "), "{topic}: {help}");
    }
    assert!(printed(&kgen(&["--help"])).contains("Exit codes: 0 done, 1 the input was refused, 2 wrong usage."));
    assert!(printed(&kgen(&["--version"])).contains(env!("CARGO_PKG_VERSION")));
}

#[test]
fn an_output_that_cannot_be_written_is_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let missing = folder.path().join("no").join("such.s");
    let missing = missing.to_str().expect("a path");
    refused(&with_input(&["emit", "--target", "e600", "-o", missing, "-"], SMALL.as_bytes()), 1, "unwritable", &[missing]);
    // A file where a folder should be.
    let file = folder.path().join("file");
    std::fs::write(&file, "old").expect("written");
    let below = format!("{}/", file.display());
    refused(&with_input(&["emit", "--target", "e600", "-o", &below, "-"], SMALL.as_bytes()), 1, "unwritable", &["file"]);
    assert_eq!(std::fs::read_to_string(&file).expect("it is there"), "old");
}

#[test]
fn an_existing_output_stays_whole_where_the_input_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("out.rs");
    let name = path.to_str().expect("a path");
    std::fs::write(&path, "what was there").expect("written");
    let wrong = "kernel k(a: u32) -> u32 { b }\n";
    refused(&with_input(&["emit", "--target", "e600", "-o", name, "-"], wrong.as_bytes()), 1, "unknown-name", &["`b`"]);
    // One good spec does not make up for a wrong one.
    let spec = folder.path().join("wrong.ir");
    std::fs::write(&spec, wrong).expect("written");
    let both = kgen(&["emit", "--target", "e600", "-o", name, "specs/mul_128.ir", spec.to_str().expect("a path")]);
    refused(&both, 1, "unknown-name", &["wrong.ir"]);
    assert_eq!(std::fs::read_to_string(&path).expect("it is there"), "what was there");
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 2, "something was left behind");
    let good = with_input(&["emit", "--target", "e600", "-o", name, "-"], SMALL.as_bytes());
    assert_eq!(good.status.code(), Some(0), "{}", said(&good));
    assert!(good.stdout.is_empty());
    assert!(std::fs::read_to_string(&path).expect("it is there").contains("pub unsafe fn mix("));
}

#[test]
fn standard_input_is_a_spec() {
    let text = printed(&with_input(&["emit", "--target", "e600", "--form", "gas", "-"], SMALL.as_bytes()));
    assert!(text.contains("mix:\n"), "{text}");
    assert!(text.contains("Spec: <stdin>, sha256"), "{text}");
}

#[test]
fn messages_for_programs_are_a_json_object_a_line() {
    let output = with_input(&["check", "--target", "e600", "--message-format", "json", "-"], b"kernel k(a: u32) -> u32 { b ^ c }\n");
    assert_eq!(output.status.code(), Some(1));
    let lines: Vec<serde_json::Value> = said(&output).lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(lines.len(), 2, "all errors come at once");
    assert_eq!(lines[0]["severity"], "error");
    assert_eq!(lines[0]["rule"], "unknown-name");
    assert_eq!(lines[0]["place"]["line"], 1);
    assert_eq!(lines[0]["place"]["column"], 27);
    let output = kgen(&["check", "--target", "e60", "--message-format", "json", "specs/mul_128.ir"]);
    let line: serde_json::Value = serde_json::from_str(said(&output).trim_end()).expect("one line");
    assert_eq!((&line["rule"], &line["place"]), (&"unknown-target".into(), &serde_json::Value::Null));
}

#[test]
fn colours_are_for_terminals_or_who_asks() {
    let wrong = b"kernel k(a: u32) -> u32 { b }\n";
    let asked = with_input(&["check", "--target", "e600", "--color", "always", "-"], wrong);
    assert!(said(&asked).contains('\u{1b}'));
}

/// Writes everything of two specs to a folder; names and contents of what is there then.
fn into_folder(folder: &Path, threads: &str) -> Vec<(String, Vec<u8>)> {
    let specs = Path::new(env!("CARGO_MANIFEST_DIR")).join("specs");
    for name in ["mul_128.ir", "mont_mul_512.ir"] {
        std::fs::copy(specs.join(name), folder.join(name)).expect("copied");
    }
    for form in ["gas", "rust-asm", "json", "report"] {
        let output = Command::new(env!("CARGO_BIN_EXE_kgen"))
            .current_dir(folder)
            .env("RAYON_NUM_THREADS", threads)
            .args(["emit", "--target", "e600,mpc7447", "--form", form, "--kernel", "mul_128", "-o", "out/", "mul_128.ir"])
            .output()
            .expect("kgen starts");
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    }
    let output = Command::new(env!("CARGO_BIN_EXE_kgen"))
        .current_dir(folder)
        .env("RAYON_NUM_THREADS", threads)
        .args(["emit", "--target", "e600", "-k", "mont_mul_512,mont_sqr_n_512", "-o", "out/", "mont_mul_512.ir"])
        .output()
        .expect("kgen starts");
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let mut files: Vec<(String, Vec<u8>)> = std::fs::read_dir(folder.join("out"))
        .expect("the folder was made")
        .map(|entry| {
            let entry = entry.expect("an entry");
            (entry.file_name().into_string().expect("a name"), std::fs::read(entry.path()).expect("read"))
        })
        .collect();
    files.sort();
    files
}

#[test]
fn two_runs_in_two_folders_give_the_same_bytes() {
    let (first, second) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let (one, two) = (into_folder(first.path(), "1"), into_folder(second.path(), "2"));
    let names: Vec<&str> = one.iter().map(|(name, _)| name.as_str()).collect();
    for name in ["mul_128.e600.s", "mul_128.h", "mul_128.e600.rs", "mul_128.mpc7447.rs", "mont_mul_512.e600.rs", "mont_sqr_n_512.e600.rs"] {
        assert!(names.contains(&name), "no {name} among {names:?}");
    }
    assert!(one.iter().all(|(_, text)| !text.is_empty()));
    assert_eq!(names, two.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>());
    for ((name, one), (_, two)) in one.iter().zip(&two) {
        assert!(one == two, "{name} differs between two runs");
    }
}

#[test]
fn several_specs_and_targets_go_to_one_text_in_order() {
    let text = printed(&kgen(&["schedule", "--target", "e600,mpc7447", "--form", "json", "specs/mul_128.ir"]));
    let list: serde_json::Value = serde_json::from_str(&text).expect("one array");
    let places: Vec<_> = list.as_array().expect("an array").iter().map(|entry| (&entry["kernel"], &entry["target"])).collect();
    assert_eq!(places, [(&"mul_128".into(), &"e600".into()), (&"mul_128".into(), &"mpc7447".into())]);
}

/// Names in a folder, in order.
fn names_in(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("the folder was made");
    let mut names: Vec<String> = entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("a name")).collect();
    names.sort();
    names
}

#[test]
fn several_specs_and_standard_input_go_to_a_folder_with_a_file_for_each_kernel_and_target() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = format!("{}/new/", folder.path().display());
    let arguments = ["emit", "--target", "e600,portable", "-o", &output, "specs/mul_128.ir", "-"];
    let run = with_input(&arguments, SMALL.as_bytes());
    assert_eq!(run.status.code(), Some(0), "{}", said(&run));
    assert!(run.stdout.is_empty());
    let names = names_in(&folder.path().join("new"));
    assert_eq!(names, ["mix.e600.rs", "mix.portable.rs", "mul_128.e600.rs", "mul_128.portable.rs"]);
}

#[test]
fn parameters_choose_the_member_and_interleave_makes_copies() {
    let list = |arguments: &[&str]| -> serde_json::Value {
        let common = ["schedule", "--target", "e600", "--form", "json"];
        serde_json::from_str(&printed(&kgen(&[&common[..], arguments].concat()))).expect("JSON")
    };
    let small = list(&["--param", "BITS=256", "--kernel", "mont_mul_256", "specs/mont_mul_512.ir"]);
    assert_eq!(small.as_array().map(Vec::len), Some(1));
    assert_eq!(small[0]["kernel"], "mont_mul_256");
    let unknown = kgen(&["schedule", "--target", "e600", "--param", "BITS=256", "--kernel", "mont_mul_512", "specs/mont_mul_512.ir"]);
    refused(&unknown, 2, "unknown-kernel", &["mont_mul_512", "mont_mul_256"]);
    let (one, two) = (list(&["specs/mul_128.ir"]), list(&["--interleave", "2", "specs/mul_128.ir"]));
    let cycles = |list: &serde_json::Value, name: &str| list[0][name].as_f64().unwrap_or_else(|| panic!("no {name} in {list}"));
    assert_eq!(cycles(&one, "cycles"), cycles(&one, "cycles_per_copy"));
    assert_eq!(cycles(&two, "cycles"), 2.0 * cycles(&two, "cycles_per_copy"));
    assert!(cycles(&two, "cycles_per_copy") < cycles(&one, "cycles_per_copy"), "two copies hide each other's latency");
    let text = printed(&kgen(&["emit", "--target", "e600", "--form", "gas", "--interleave", "2", "specs/mul_128.ir"]));
    assert!(text.contains(".globl mul_128_x2") && text.contains("--interleave 2"));
}

#[test]
fn a_form_without_known_answers_refuses_to_print_them() {
    let emit = |form: &str| kgen(&["emit", "--target", "e600", "--form", form, "--with-tests", "specs/mul_128.ir"]);
    for form in ["rust-asm", "rust-intrinsics", "gas", "json"] {
        refused(&emit(form), 2, "form", &[form, "--with-tests"]);
    }
}

#[test]
fn position_independent_code_has_no_absolute_addresses() {
    let gas = |more: &[&str]| printed(&kgen(&[&["emit", "--target", "e600", "--form", "gas", "specs/mul_128.ir"], more].concat()));
    let (absolute, relative) = (gas(&[]), gas(&["--pic"]));
    assert!(absolute.contains("\tlis ") && !absolute.contains("mflr"));
    assert!(!relative.contains("\tlis ") && relative.contains(".Lpool_mul_128-.L1_mul_128@ha"));
    let intrinsics = kgen(&["emit", "--target", "e600", "--form", "rust-intrinsics", "--pic", "specs/mul_128.ir"]);
    refused(&intrinsics, 2, "form", &["relocation-model"]);
}

#[test]
fn reports_name_only_the_guessed_instructions_that_a_kernel_uses() {
    let guesses = |arguments: &[&str]| -> Vec<String> {
        let text = printed(&kgen(&[&["schedule", "--target", "e600"], arguments].concat()));
        text.lines().filter_map(|line| line.strip_prefix("rests on a guess")).map(|guess| guess.trim().to_owned()).collect()
    };
    let product = guesses(&["specs/mul_128.ir"]);
    assert!(product.iter().any(|guess| guess == "viq_window"), "{product:?}");
    assert!(!product.iter().any(|guess| guess.contains("vcmp")), "{product:?}");
    let select = guesses(&["--kernel", "mont_select_512", "specs/mont_mul_512.ir"]);
    assert!(select.iter().any(|guess| guess == "latency of vcmpequw"), "{select:?}");
    assert!(!select.iter().any(|guess| guess.contains("vcmpgt")), "{select:?}");
}

#[test]
fn targets_are_listed_and_shown() {
    let list = printed(&kgen(&["targets"]));
    for name in ["e600", "mpc7447", "mpc7448"] {
        assert!(list.lines().any(|line| line.starts_with(name)), "{list}");
    }
    assert!(printed(&kgen(&["targets", "e600"])).contains("unit VIU2"));
}
