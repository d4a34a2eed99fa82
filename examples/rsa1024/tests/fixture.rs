//! The fixture is what it says it is: `key.txt` holds the numbers of `key.pem`, and the answers are
//! this key's, by oracles that share nothing with OpenSSL, which made them, or with kgen.

#![cfg(not(target_arch = "powerpc"))]

use kgen_example_rsa1024::{Answers, Key, MODULUS_BYTES, PRIME_BYTES};
use num_bigint::BigUint;
use rsa::pkcs1v15::{Signature, VerifyingKey};
use rsa::pkcs8::DecodePrivateKey;
use rsa::sha2::{Digest, Sha256};
use rsa::signature::Verifier;
use rsa::traits::{PrivateKeyParts, PublicKeyParts};

const PEM: &str = include_str!("../key.pem");
const MESSAGE: &[u8] = include_bytes!("../message.txt");

fn key() -> Key {
    Key::parse(include_str!("../key.txt")).expect("key.txt")
}

fn answers() -> Answers {
    Answers::parse(include_str!("../answers.txt")).expect("answers.txt")
}

fn key_of_pem() -> rsa::PrivateKey {
    rsa::PrivateKey::from_pkcs8_pem(PEM).expect("key.pem is a valid private key")
}

fn number(bytes: &[u8]) -> BigUint {
    BigUint::from_bytes_be(bytes)
}

#[test]
fn the_text_holds_the_numbers_of_the_pem_file() {
    let (key, pem) = (key(), key_of_pem());
    assert_eq!(number(&key.modulus), number(&pem.n_bytes()));
    assert_eq!(number(&key.public_exponent), number(&pem.e_bytes()));
    assert_eq!(number(&key.private_exponent), number(&pem.d().to_be_bytes()));
    let primes: Vec<BigUint> = pem.primes().iter().map(|prime| number(&prime.to_be_bytes())).collect();
    assert_eq!([number(&key.prime_p), number(&key.prime_q)], *primes);
}

#[test]
fn the_remainders_belong_to_the_key() {
    let key = key();
    let one = BigUint::from(1u8);
    let (p, q, d) = (number(&key.prime_p), number(&key.prime_q), number(&key.private_exponent));
    assert_eq!(number(&key.modulus).bits(), 8 * MODULUS_BYTES as u64);
    assert_eq!([p.bits(), q.bits()], [8 * PRIME_BYTES as u64; 2]);
    assert_eq!(number(&key.exponent_p), &d % (&p - &one));
    assert_eq!(number(&key.exponent_q), &d % (&q - &one));
    assert_eq!(number(&key.coefficient) * &q % &p, one);
}

#[test]
fn the_signature_is_the_messages() {
    let answers = answers();
    let verifying = VerifyingKey::<Sha256>::new(key_of_pem().to_public_key());
    let signature = Signature::try_from(&answers.signature[..]).expect("a signature");
    verifying.verify(MESSAGE, &signature).expect("the signature verifies");
    assert!(verifying.verify(b"another message", &signature).is_err());
    assert!(answers.encoded.ends_with(&Sha256::digest(MESSAGE)));
}

#[test]
fn every_power_is_the_private_key_operation() {
    let (key, answers) = (key(), answers());
    let (n, d) = (number(&key.modulus), number(&key.private_exponent));
    assert_eq!(number(&answers.encoded).modpow(&d, &n), number(&answers.signature));
    let edges = [BigUint::ZERO, 1u8.into(), 2u8.into(), &n - 1u8, number(&key.prime_p), number(&key.prime_q)];
    let bases: Vec<BigUint> = answers.operations.iter().map(|operation| number(&operation.base)).collect();
    assert!(bases.starts_with(&edges));
    assert!(bases.len() > edges.len(), "there are bases besides the edges");
    for operation in &answers.operations {
        assert_eq!(number(&operation.base).modpow(&d, &n), number(&operation.power));
    }
}
