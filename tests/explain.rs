//! `kgen explain` as a user calls it.

use std::process::{Command, Output};

fn explain(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_kgen")).arg("explain").args(arguments).output().expect("kgen starts")
}

#[test]
fn a_rule_is_explained() {
    let output = explain(&["lane-overflow"]);
    assert!(output.status.success());
    assert!(String::from_utf8_lossy(&output.stdout).starts_with("lane-overflow: A lane"));
}

#[test]
fn an_instruction_is_explained_with_its_source() {
    let output = explain(&["vmsumuhm", "--target", "e600"]);
    assert!(output.status.success());
    insta::assert_snapshot!(String::from_utf8_lossy(&output.stdout));
}

#[test]
fn another_name_of_an_instruction_finds_it() {
    let output = explain(&["li", "--target", "e600"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(String::from_utf8_lossy(&output.stdout).contains("li {"));
}

#[test]
fn an_unknown_topic_is_refused_with_a_suggestion() {
    for (arguments, near) in [(&["lane-overflw"][..], "lane-overflow"), (&["vmsumuhn", "--target", "e600"], "vmsumuh")] {
        let output = explain(arguments);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2));
        assert!(output.stdout.is_empty());
        assert!(said.contains("did you mean") && said.contains(near), "{said}");
    }
    assert_eq!(explain(&["vmsumuhm", "--target", "e700"]).status.code(), Some(2));
}
