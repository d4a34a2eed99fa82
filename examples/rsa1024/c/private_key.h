/* The RSA-1024 private-key operation from emitted kernels. */
#ifndef PRIVATE_KEY_H
#define PRIVATE_KEY_H
#include <stdbool.h>
#include <stdint.h>

#include "mont_mul_512.h"
#include "public_modulus.h"
#include "rsa_enter_512.h"
#include "rsa_recombine_512.h"

enum { PRIME_BYTES = PUBLIC_BYTES / 2 };

/* A natural of 512 bits, or a residue modulo a prime, in the kernels' layout. */
struct natural {
    _Alignas(16) uint8_t limbs[MONT_MUL_512_A_BYTES];
};

/* A prime and what is computed from it once. */
struct prime {
    _Alignas(16) uint8_t block[MONT_MUL_512_M_BYTES];
    struct natural enter;               /* R^2: enters Montgomery form */
    struct natural enter_high;          /* R^2 * 2^512, for the upper half of 1024 bits */
    struct natural one;                 /* 1 in Montgomery form */
    uint8_t exponent[PRIME_BYTES];      /* d mod (prime - 1) */
    uint8_t inversion[PRIME_BYTES];     /* prime - 2: x^(prime - 2) = 1/x (Fermat) */
};

struct private_key {
    struct prime p, q;
    struct natural q_number;            /* q */
    struct natural q_inverse;           /* 1/q modulo p, a number */
    struct natural q_inverse_residue;   /* 1/q modulo p, in Montgomery form */
    struct public_modulus n;
    uint32_t e;
};

/* Numbers of RFC 8017, 3.2, big-endian and of full width. */
struct key_numbers {
    uint8_t n[PUBLIC_BYTES], p[PRIME_BYTES], q[PRIME_BYTES], dp[PRIME_BYTES], dq[PRIME_BYTES], qinv[PRIME_BYTES];
    uint32_t e;
};

void private_key_setup(struct private_key *key, const struct key_numbers *numbers);

/*
 * result = message^d mod n, message below n. The operation is done on message * blind^e, so that its time and power say nothing about the message: `blind` is random,
 * below n, fresh for every call. A result leaves only if result^e is the message again: false, and zeros, where it is not (Boneh, DeMillo, Lipton, 1997).
 */
bool private_key_operation(const struct private_key *key, const uint8_t message[PUBLIC_BYTES], const uint8_t blind[PUBLIC_BYTES], uint8_t result[PUBLIC_BYTES]);

#endif
