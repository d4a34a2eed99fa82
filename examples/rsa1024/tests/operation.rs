//! The private-key operation from emitted kernels, on a processor (or its emulator) that has their instructions: right, guarded, and of exactly the calls that
//! `cost.toml` sums.

#![cfg(target_arch = "powerpc")]

use kgen_example_rsa1024::calls::Called;
use kgen_example_rsa1024::kernels::Kernels;
use kgen_example_rsa1024::private_key::{Blinding, Fault, PrivateKey};
use kgen_example_rsa1024::{Answers, Key, MODULUS_BYTES};
use num_bigint::BigUint;
use std::collections::BTreeMap;
use std::io::Read;

fn key() -> Key {
    Key::parse(include_str!("../key.txt")).expect("key.txt")
}

fn answers() -> Answers {
    Answers::parse(include_str!("../answers.txt")).expect("answers.txt")
}

fn random() -> [u8; MODULUS_BYTES] {
    let mut bytes = [0; MODULUS_BYTES];
    let read = std::fs::File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes));
    read.expect("random bytes");
    bytes
}

fn bytes(number: &BigUint) -> [u8; MODULUS_BYTES] {
    let digits = number.to_bytes_be();
    let mut bytes = [0; MODULUS_BYTES];
    bytes[MODULUS_BYTES - digits.len()..].copy_from_slice(&digits);
    bytes
}

#[test]
fn every_answer_is_right() {
    let (key, answers) = (key(), answers());
    let mut kernels = Kernels::default();
    let private = PrivateKey::new(&mut kernels, &key);
    let mut blinding = Blinding::new(&mut kernels, &private, random());
    let known = answers.operations.iter().map(|operation| (operation.base, operation.power));
    for (message, power) in known.chain([(answers.encoded, answers.signature)]) {
        assert_eq!(private.operate_unguarded(&mut kernels, &message), power);
        assert_eq!(private.operate(&mut kernels, &mut blinding, &message), Ok(power));
    }
}

#[test]
fn it_is_what_big_integers_say_and_verifies() {
    let key = key();
    let [n, d, e] = [&key.modulus[..], &key.private_exponent, &key.public_exponent].map(BigUint::from_bytes_be);
    let mut kernels = Kernels::default();
    let private = PrivateKey::new(&mut kernels, &key);
    // A fixed sequence, so that a failure comes again.
    let mut message = BigUint::from(3u32);
    let mut blinding = Blinding::new(&mut kernels, &private, random());
    for _ in 0..8 {
        message = (&message * &message * &message + 1u32) << 200u32;
        message = (&message ^ (&message >> 333u32)) % &n;
        let result = private.operate(&mut kernels, &mut blinding, &bytes(&message)).expect("no fault");
        assert_eq!(BigUint::from_bytes_be(&result), message.modpow(&d, &n));
        assert_eq!(BigUint::from_bytes_be(&result).modpow(&e, &n), message);
    }
}

#[test]
fn a_fault_is_found() {
    let mut kernels = Kernels::default();
    let right = PrivateKey::new(&mut kernels, &key());
    let mut blinding = Blinding::new(&mut kernels, &right, random());
    let wrong = PrivateKey::new(&mut kernels, &key()).with_fault();
    assert_eq!(wrong.operate(&mut kernels, &mut blinding, &answers().encoded), Err(Fault));
    assert!(right.operate(&mut kernels, &mut blinding, &answers().encoded).is_ok());
}

/// Calls by name and rounds, as the list says them.
type Listed = BTreeMap<(String, Option<u32>), u64>;

fn counted(calls: BTreeMap<Called, u64>) -> Listed {
    calls.into_iter().map(|((name, rounds), count)| ((name.to_owned(), rounds), count)).collect()
}

/// The list's calls under a heading that are made at this time; all of it where no time is given.
fn listed(list: &toml::Table, heading: &str, when: Option<&str>) -> Listed {
    let mut calls = Listed::new();
    for line in list[heading].as_array().expect("an array") {
        if when.is_some_and(|when| line["when"].as_str() != Some(when)) {
            continue;
        }
        let name = line.get("function").or(line.get("work")).and_then(|name| name.as_str()).expect("a name").to_owned();
        let rounds = line.get("rounds").and_then(|rounds| rounds.as_integer()).map(|rounds| u32::try_from(rounds).expect("rounds"));
        let times = line["times"].as_integer().and_then(|times| u64::try_from(times).ok()).expect("times");
        let tasks = line.get("tasks").and_then(|tasks| tasks.as_array()).map_or(1, Vec::len);
        *calls.entry((name, rounds)).or_default() += times * tasks as u64;
    }
    assert!(!calls.is_empty(), "{heading}, {when:?}");
    calls
}

#[test]
fn the_calls_are_those_that_the_cost_is_summed_from() {
    let list: toml::Table = include_str!("../cost.toml").parse().expect("cost.toml");
    let mut kernels = Kernels::default();
    let private = PrivateKey::new(&mut kernels, &key());
    assert_eq!(counted(kernels.calls.take()), listed(&list, "listed", Some("once for each key")));

    // Whatever the message.
    for message in [[0; MODULUS_BYTES], answers().encoded] {
        private.operate_unguarded(&mut kernels, &message);
        assert_eq!(counted(kernels.calls.take()), listed(&list, "calls", None));
    }
    // Whatever the exponent: that of the inversion is another one.
    let mut blinding = Blinding::new(&mut kernels, &private, random());
    let mut expected = listed(&list, "calls", None);
    expected.append(&mut listed(&list, "listed", Some("once for each blinding pair")));
    assert_eq!(counted(kernels.calls.take()), expected);

    private.operate(&mut kernels, &mut blinding, &answers().encoded).expect("no fault");
    let mut expected = listed(&list, "calls", None);
    expected.append(&mut listed(&list, "listed", Some("each operation")));
    assert_eq!(counted(kernels.calls.take()), expected);
}
