//! `kgen time` as a user calls it: foreign loops against published figures, our own text against the report.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn kgen(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_kgen")).current_dir(env!("CARGO_MANIFEST_DIR")).args(arguments).output().expect("kgen starts")
}

fn json(arguments: &[&str]) -> serde_json::Value {
    let output = kgen(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn loop_cycles(file: &str, target: &str, limbs: u32) -> u64 {
    let name = Path::new(file).file_stem().and_then(|name| name.to_str()).expect("a name");
    let call = format!("{name}(buf:{}, in buf:{}, {limbs}, 0xdeadbeef)", 4 * limbs, 4 * limbs + 8);
    let value = json(&["time", file, "--target", target, "--call", &call, "--json"]);
    value["cycles"].as_u64().expect("cycles")
}

#[test]
fn limb_loops_take_the_published_cycles() {
    for target in ["mpc7447", "mpc7448"] {
        for (file, published) in [("tests/assembly/mul_1.s", 6.0), ("tests/assembly/addmul_1.s", 9.5)] {
            let found = (loop_cycles(file, target, 256) - loop_cycles(file, target, 128)) as f64 / 128.0;
            assert!((found / published - 1.0).abs() <= 0.03, "{target} {file}: {found:.3} cycles per limb instead of {published}");
        }
    }
}

#[test]
fn emitted_assembly_read_back_takes_what_the_report_says() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = format!("{}/", folder.path().display());
    for target in ["mpc7447", "mpc7448"] {
        let emitted = kgen(&["emit", "--target", target, "--form", "gas", "-o", &output, "specs/mul_128.ir"]);
        assert!(emitted.status.success(), "{}", String::from_utf8_lossy(&emitted.stderr));
        let report = json(&["schedule", "--target", target, "--form", "json", "specs/mul_128.ir"]);
        let file: PathBuf = folder.path().join(format!("mul_128.{target}.s"));
        let file = file.to_str().expect("a path");
        let call = ["time", file, "--target", target, "--call", "mul_128(in buf:32, in buf:32, out buf:48)", "--json"];
        assert_eq!(json(&call)["cycles"], report[0]["cycles_call"], "{target}: the whole call");
        let body = [&call[..], &["--between", ".Lbody_mul_128", ".Lend_mul_128"]].concat();
        assert_eq!(json(&body)["cycles"], report[0]["cycles"], "{target}: the body");
        assert!(json(&body)["instructions"].as_u64() < json(&call)["instructions"].as_u64());
    }
}

#[test]
fn the_table_for_people_says_what_the_json_says() {
    let arguments = ["time", "tests/assembly/mul_1.s", "--target", "e600", "--call", "mul_1(out buf:64, in buf:72, 16, 7)"];
    let value = json(&[&arguments[..], &["--json"]].concat());
    let output = kgen(&arguments);
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(text.contains(&format!("cycles (model)          {}\n", value["cycles"])), "{text}");
    assert!(text.contains("unit IU2"), "{text}");
    // Eight passes of two limbs, each with two multiplies low and two high.
    let unit = value["units"].as_array().expect("units").iter().find(|unit| unit["name"] == "IU2").expect("the multiplier");
    assert!(unit["instructions"].as_u64() >= Some(32), "{unit}");
}

/// A refused call: exit code, and what the message holds.
fn refused(arguments: &[&str], code: i32, words: &[&str]) {
    let output = kgen(&[&["time"], arguments].concat());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
    assert!(output.stdout.is_empty());
    for word in words {
        assert!(said.contains(word), "{arguments:?}: no `{word}` in {said}");
    }
}

#[test]
fn what_cannot_be_timed_is_said() {
    let file = "tests/assembly/mul_1.s";
    let call = |call: &'static str| [file, "--target", "e600", "--call", call];
    refused(&call("mul_2(1)"), 2, &["mul_2", "did you mean `mul_1`"]);
    refused(&call("mul_1(x)"), 2, &["`x`", "buf:BYTES"]);
    refused(&call("mul_1(1,2,3,4,5,6,7,8,9)"), 2, &["9 arguments", "8 argument registers"]);
    refused(&call("mul_1(0x100000000)"), 2, &["does not fit a register of 32 bits"]);
    // The source is two limbs short.
    refused(&call("mul_1(out buf:64, in buf:64, 16, 7)"), 1, &["execution", "mul_1.s:", "lwz"]);
    // Nobody may write what is read only.
    refused(&call("mul_1(in buf:64, in buf:72, 16, 7)"), 1, &["execution", "stwu"]);
    refused(&[&call("mul_1(out buf:64, in buf:72, 16, 7)")[..], &["--steps", "20"]].concat(), 1, &["not finished after 20 steps"]);
    refused(&[&call("mul_1(out buf:64, in buf:72, 16, 7)")[..], &["--between", "mul_1", "end"]].concat(), 2, &["no label `end`"]);
    let folder = tempfile::tempdir().expect("a folder");
    let wrong = folder.path().join("wrong.s");
    std::fs::write(&wrong, "f:\n\tmullw 3,4\n\tfrobnicate 1\n\tblr\n").expect("written");
    refused(
        &[wrong.to_str().expect("a path"), "--target", "e600", "--call", "f"],
        1,
        &["instruction-operands", "unknown-instruction", "wrong.s:3"],
    );
}
