//! `kgen cost` as a user calls it: the sum is that of the functions' times, and every mistake in a list has its message.

use serde_json::Value;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kgen"));
    command.current_dir(env!("CARGO_MANIFEST_DIR")).args(arguments);
    command
}

fn printed(output: Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

fn kgen(arguments: &[&str]) -> String {
    printed(command(arguments).output().expect("kgen starts"))
}

fn with_input(arguments: &[&str], input: &str) -> Output {
    let mut child = command(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("kgen starts");
    let _ = child.stdin.take().expect("a pipe").write_all(input.as_bytes());
    child.wait_with_output().expect("kgen ends")
}

/// A list that is summed fast. Read from standard input, its paths are relative to the working folder.
const SMALL: &str = r#"
title = "Two products"
operation = "pair of products"
specs = [{ file = "specs/mul_128.ir" }]

[[calls]]
function = "mul_128_import_128"
times = 3
purpose = "operands"

[[calls]]
function = "mul_128"
times = 5
tasks = ["left", "right"]
purpose = "products"

[[calls]]
function = "mul_128"
times = 1
tasks = ["left"]
purpose = "one more"

[[listed]]
function = "mul_128_export_256"
times = 1
when = "at the end"
purpose = "result"

[[listed]]
work = "something else"
times = 7
when = "at the end"
purpose = "in another language"

[[published]]
what = "another's"
cycles = 100_000
source = "somewhere"

[[processors]]
name = "two cores"
target = "e600"
cores = 2
megahertz = 1000.0
watts = 10.0
published_per_second = 1234.5
source = "somewhere else"

[[processors]]
name = "in order"
target = "mpc7447"
cores = 1
megahertz = 500.0
watts = 5.0
source = "somewhere else"
"#;

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no number"))
}

#[test]
fn the_sum_is_that_of_calls_times_cycles() {
    let costs = json(&printed(with_input(&["cost", "-", "--format", "json"], SMALL)));
    let report = json(&kgen(&["schedule", "--target", "e600,mpc7447", "--form", "json", "specs/mul_128.ir"]));
    for (place, target) in ["e600", "mpc7447"].into_iter().enumerate() {
        let functions = report[place]["functions"].as_array().expect("functions");
        let call = |name: &str| {
            let function = functions.iter().find(|function| function["function"] == *name).expect("the function");
            number(&function["cycles_call"])
        };
        let sum = &costs["targets"][place];
        assert_eq!(sum["target"], *target);
        let (import, product) = (call("mul_128_import_128"), call("mul_128"));
        assert_eq!(number(&sum["cycles"]), 3 * import + 11 * product);
        assert_eq!(number(&sum["cycles_outside_tasks"]), 3 * import);
        let latency = sum["latency"].as_array().expect("latencies");
        let of_cores =
            |cores: u64| latency.iter().find(|latency| number(&latency["cores"]) == cores).map(|latency| number(&latency["cycles"]));
        assert_eq!(of_cores(1), Some(3 * import + 11 * product));
        assert_eq!(of_cores(2), Some(3 * import + 6 * product));
        assert_eq!(number(&sum["listed"][0]["cycles_per_call"]), call("mul_128_export_256"));
        assert_eq!(sum["listed"][1]["cycles_per_call"], Value::Null);
    }
    let cycles = number(&costs["targets"][0]["cycles"]) as f64;
    let both = &costs["processors"][0];
    let near = |value: &Value, expected: f64| {
        let value = value.as_f64().expect("a number");
        assert!((value / expected - 1.0).abs() < 1e-9, "{value} instead of {expected}");
    };
    near(&both["per_second"], 2e9 / cycles);
    near(&both["per_second_per_watt"], 2e8 / cycles);
    near(&both["published_per_second_per_watt"], 123.45);
    near(&costs["published"][0]["ratio"], 1e5 / cycles);
    let latency = number(&costs["targets"][0]["latency"][1]["cycles"]) as f64;
    near(&both["latency_milliseconds"], latency / 1e6);
    near(&both["per_second_one_at_a_time"], 1e9 / latency);
}

#[test]
fn tables_are_the_same_bytes_with_one_thread_and_two() {
    let print = |format: &str, threads: &str| {
        let mut child = command(&["cost", "-", "--format", format])
            .env("RAYON_NUM_THREADS", threads)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("kgen starts");
        child.stdin.take().expect("a pipe").write_all(SMALL.as_bytes()).expect("it reads");
        printed(child.wait_with_output().expect("kgen ends"))
    };
    let text = print("text", "1");
    assert_eq!(text, print("text", "2"));
    for words in
        ["Two products", "One pair of products on e600", "left, right at the same time on 2 cores", "another's", "100 000", "1234.50"]
    {
        assert!(text.contains(words), "no `{words}` in\n{text}");
    }
    assert!(print("markdown", "2").contains("| mul_128 | - | 10 |"));
}

#[test]
fn mistakes_have_messages() {
    let refused = |text: &str, arguments: &[&str], code: i32, words: &[&str]| {
        let output = with_input(&[&["cost", "-"], arguments].concat(), text);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert!(output.stdout.is_empty(), "something was printed");
        for word in words {
            assert!(said.contains(word), "no `{word}` in\n{said}");
        }
    };
    let changed = |from: &str, to: &str| {
        assert!(SMALL.contains(from), "{from}");
        SMALL.replacen(from, to, 1)
    };
    refused("", &[], 1, &["error[cost-file]", "title"]);
    refused("\u{1}\u{2}", &[], 1, &["error[cost-file]", "<stdin>:1:3"]);
    refused(&changed("times = 3", "tims = 3"), &[], 1, &["error[cost-file]", "tims"]);
    refused(&changed("times = 3", "times = 0"), &[], 1, &["`times` is 0"]);
    refused(&changed("times = 3", "times = 3\nrounds = 4"), &[], 1, &["error[rounds]", "no loop"]);
    let misspelt = changed("\"mul_128\"", "\"mul_129\"");
    refused(&misspelt, &[], 1, &["error[unknown-function]", "`mul_129`", "did you mean `mul_128`"]);
    refused(&changed("mul_128_export_256", "mul_128_export_255"), &[], 1, &["error[unknown-function]", "mul_128_export_256"]);
    refused(&changed("specs/mul_128.ir", "specs/no.ir"), &[], 1, &["error[cost-file]", "no.ir", "relative"]);
    refused(&changed("ir\" }", "ir\", parameters = { BITZ = 1 } }"), &[], 1, &["error[unknown-parameter]", "BITZ"]);
    refused(&changed("\"e600\"", "\"e60\""), &[], 2, &["error[unknown-target]", "did you mean `e600`"]);
    refused(SMALL, &["--target", "portable"], 1, &["error[no-timing]", "portable"]);
    refused(SMALL, &["--target", "e600", "-o", "/no/such/folder/x"], 1, &["error[unwritable]"]);
    refused(SMALL, &["--format", "html"], 2, &["html"]);
    let without = &SMALL[..SMALL.find("[[processors]]").expect("processors")];
    refused(without, &[], 2, &["error[unknown-target]", "--target"]);
    let output = command(&["cost", "no-such.toml"]).output().expect("kgen starts");
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("error[unreadable]"));
}

/// The example's list: below its limit, and each call's cycles are what the emitted assembly takes when it is read, executed and timed as anybody's would be.
#[test]
fn the_cost_of_the_example_is_the_time_of_its_assembly() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cost");
    let folder = folder.to_str().expect("a path");
    let costs = json(&kgen(&["cost", "examples/rsa1024/cost.toml", "--target", "e600", "--format", "json"]));
    let target = &costs["targets"][0];
    let calls = target["calls"].as_array().expect("calls");
    let sum: u64 = calls.iter().map(|call| number(&call["calls"]) * number(&call["cycles_per_call"])).sum();
    assert_eq!(number(&target["cycles"]), sum);
    assert!(sum <= 850_000, "{sum} cycles");

    let specs = ["specs/mont_mul_512.ir", "specs/rsa_crt_1024.ir"];
    let emit = ["emit", "--target", "e600", "--form", "gas", "--param", "ENTRIES=16", "-o", folder];
    std::fs::create_dir_all(folder).expect("a folder");
    kgen(&[&emit[..], &specs].concat());
    let cycles = |function: &str| {
        let call = calls.iter().find(|call| call["function"] == *function).expect("a call");
        number(&call["cycles_per_call"])
    };
    let (block, half, whole, table) = ("in buf:992", "in buf:80", "in buf:176", "in buf:1280");
    let cases = [
        ("mont_mul_512", "mont_mul_512", vec![block, half, half, "out buf:80"]),
        ("mont_sqr_512", "mont_sqr_512", vec![block, half, "out buf:80"]),
        ("mont_select_512", "mont_select_512", vec![block, table, "3", "out buf:80"]),
        ("rsa_enter_512", "rsa_enter_512", vec![block, whole, half, half, "out buf:80"]),
        ("rsa_recombine_512", "rsa_recombine_512_export_1024", vec!["out buf:128", whole]),
        ("mont_sqr_n_512", "mont_sqr_n_512", vec![block, half, "4", "out buf:80"]),
        ("rsa_window_512", "rsa_window_512", vec![block, table, "3", half, "4", "out buf:80"]),
    ];
    for (kernel, function, arguments) in cases {
        let call = format!("{function}({})", arguments.join(", "));
        let file = format!("{folder}/{kernel}.e600.s");
        let timed = number(&json(&kgen(&["time", &file, "--target", "e600", "--json", "--call", &call]))["cycles"]);
        let summed = cycles(function);
        // Further rounds are taken to cost what the second one does; everything else is the same simulation.
        let tolerance = if arguments.contains(&"4") { summed / 100 } else { 0 };
        assert!(summed.abs_diff(timed) <= tolerance, "{function}: {summed} cycles summed, {timed} timed");
    }
}
