#!/usr/bin/env bash
# Makes a new key and everything that depends on it, with OpenSSL alone:
#   key.pem        the private key (PKCS #8), 1024 bits, e = 65537
#   key.txt        its numbers in hexadecimal, for programs without a PEM and DER reader
#   message.txt    what is signed
#   answers.txt    the signature (PKCS #1 v1.5, SHA-256), and raw private-key operations x^d mod n
# tests/fixture.rs holds all of it against the `rsa` crate. Run it only to replace the key.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

openssl genpkey -quiet -algorithm RSA -pkeyopt rsa_keygen_bits:1024 -pkeyopt rsa_keygen_pubexp:65537 -out key.pem

# One field of `openssl rsa -text`: its hexadecimal bytes, without colons, blanks and the leading zero byte.
field() { # name bytes
    openssl rsa -in key.pem -noout -text 2>/dev/null |
        awk -v name="$1:" '/^[a-z]/ { inside = ($0 == name) ; next } inside { gsub(/[ :]/, ""); printf "%s", $0 }' |
        awk -v digits=$((2 * $2)) '{ while (length($0) > digits) { if (substr($0, 1, 2) != "00") exit 1; $0 = substr($0, 3) }
                                     while (length($0) < digits) $0 = "0" $0; print }'
}

{
    echo "# The numbers of key.pem, big-endian, full width. Published: a key for tests and nothing else."
    echo "n = $(field modulus 128)"
    echo "e = 010001"
    echo "d = $(field privateExponent 128)"
    echo "p = $(field prime1 64)"
    echo "q = $(field prime2 64)"
    echo "dp = $(field exponent1 64)"
    echo "dq = $(field exponent2 64)"
    echo "qinv = $(field coefficient 64)"
} > key.txt

# Bytes of a file or of standard input as one line of hexadecimal.
hex() { od -An -v -tx1 | tr -d ' \n'; }
# A line of hexadecimal as bytes.
bytes() { printf '%b' "$(sed 's/../\\x&/g')"; }
# The raw private-key operation on 128 bytes.
raw() { openssl pkeyutl -decrypt -inkey key.pem -pkeyopt rsa_padding_mode:none | hex; }

n=$(sed -n 's/^n = //p' key.txt)
openssl dgst -sha256 -sign key.pem -out "$scratch/signature" message.txt
# EMSA-PKCS1-v1_5 (RFC 8017, 9.2): what the signature is the private-key operation of.
openssl pkeyutl -verifyrecover -inkey key.pem -pkeyopt rsa_padding_mode:none -in "$scratch/signature" -out "$scratch/encoded"
{
    echo "# encoded: the padded digest of message.txt (RFC 8017, 9.2, SHA-256). signature: its private-key operation."
    echo "encoded = $(hex < "$scratch/encoded")"
    echo "signature = $(hex < "$scratch/signature")"
    echo "# base and power: raw private-key operations, power = base^d mod n. The first bases are 0, 1, 2, n - 1, p and q."
    last=${n: -2}
    minus_one=$(printf '%s%02x' "${n:0:254}" $((16#$last - 1)))
    bases=("$(printf '%0256x' 0)" "$(printf '%0256x' 1)" "$(printf '%0256x' 2)" "$minus_one")
    # A multiple of one prime is 0 modulo it: one half of the Chinese remainders vanishes.
    for prime in p q; do
        bases+=("$(printf '%0128d' 0)$(sed -n "s/^$prime = //p" key.txt)")
    done
    for _ in 1 2 3 4; do
        # Below n: the first byte is cleared, and that of n is not zero.
        bases+=("00$(openssl rand -hex 127)")
    done
    for base in "${bases[@]}"; do
        echo "base = $base"
        echo "power = $(bytes <<< "$base" | raw)"
    done
} > answers.txt
