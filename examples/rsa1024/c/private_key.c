#include "private_key.h"

#include <string.h>

#include "mont_select_512.h"
#include "mont_sqr_512.h"
#include "mont_sqr_n_512.h"
#include "rsa_leave_512.h"
#include "rsa_window_512.h"

/* Bits of the exponent that one product takes; the table has an entry for each of their values. */
enum { WINDOW_BITS = 4, ENTRIES = 1 << WINDOW_BITS, EXPONENT_BITS = 8 * PRIME_BYTES };

static void enter(const struct prime *prime, const struct natural *number, struct natural *residue)
{
    mont_mul_512(prime->block, number->limbs, prime->enter.limbs, residue->limbs);
}

static void prime_setup(struct prime *prime, const uint8_t number[PRIME_BYTES], const uint8_t exponent[PRIME_BYTES])
{
    struct natural natural, residue;
    mont_mul_512_import(natural.limbs, number);
    mont_mul_512_setup(prime->block, natural.limbs);
    /* The block starts with R^2; a copy, since a kernel's arguments may not overlap. */
    memcpy(prime->enter.limbs, prime->block, sizeof prime->enter.limbs);

    uint8_t bytes[PRIME_BYTES] = {0};
    bytes[PRIME_BYTES - 1] = 1;
    mont_mul_512_import(natural.limbs, bytes);
    enter(prime, &natural, &prime->one);
    bytes[PRIME_BYTES - 1] = 0;
    bytes[PRIME_BYTES / 2 - 1] = 1;
    mont_mul_512_import(natural.limbs, bytes);
    enter(prime, &natural, &residue);
    mont_sqr_512(prime->block, residue.limbs, natural.limbs);
    enter(prime, &natural, &prime->enter_high);

    memcpy(prime->exponent, exponent, PRIME_BYTES);
    unsigned borrow = 2;
    for (int i = PRIME_BYTES - 1; i >= 0; i--) {
        unsigned step = number[i] - borrow;
        prime->inversion[i] = (uint8_t)step;
        borrow = step >> 8 & 1;
    }
}

void private_key_setup(struct private_key *key, const struct key_numbers *numbers)
{
    prime_setup(&key->p, numbers->p, numbers->dp);
    prime_setup(&key->q, numbers->q, numbers->dq);
    mont_mul_512_import(key->q_number.limbs, numbers->q);
    mont_mul_512_import(key->q_inverse.limbs, numbers->qinv);
    enter(&key->p, &key->q_inverse, &key->q_inverse_residue);
    public_modulus_setup(&key->n, numbers->n);
    key->e = numbers->e;
}

/* The exponent's window from bit `low` on; windows divide bytes. The places are public, the bits are not. */
static uint32_t window(const uint8_t exponent[PRIME_BYTES], int low)
{
    return exponent[PRIME_BYTES - 1 - low / 8] >> low % 8 & (ENTRIES - 1);
}

/* power = base^exponent by fixed windows: the same operations for every exponent, and the table is read whole. */
static void exponentiate(const struct prime *prime, const struct natural *base, const uint8_t exponent[PRIME_BYTES], struct natural *power)
{
    struct natural table[ENTRIES], chosen, running;
    table[0] = prime->one;
    table[1] = *base;
    for (int i = 2; i < ENTRIES; i++) {
        if (i % 2 == 0)
            mont_sqr_512(prime->block, table[i / 2].limbs, table[i].limbs);
        else
            mont_mul_512(prime->block, table[i - 1].limbs, base->limbs, table[i].limbs);
    }
    int low = EXPONENT_BITS - WINDOW_BITS;
    mont_select_512(prime->block, table, window(exponent, low), chosen.limbs);
    mont_sqr_n_512(prime->block, chosen.limbs, WINDOW_BITS, power->limbs);
    while (low > WINDOW_BITS) {
        low -= WINDOW_BITS;
        running = *power;
        rsa_window_512(prime->block, table, window(exponent, low), running.limbs, WINDOW_BITS, power->limbs);
    }
    running = *power;
    mont_select_512(prime->block, table, window(exponent, 0), chosen.limbs);
    mont_mul_512(prime->block, running.limbs, chosen.limbs, power->limbs);
}

/* The number's power modulo one prime, in Montgomery form. `number` has 1024 bits in the kernels' layout. */
static void power_modulo(const struct prime *prime, const void *number, const uint8_t exponent[PRIME_BYTES], struct natural *power)
{
    struct natural base;
    rsa_enter_512(prime->block, number, prime->enter.limbs, prime->enter_high.limbs, base.limbs);
    exponentiate(prime, &base, exponent, power);
}

/* The number below n that is number^exponents[0] modulo p and number^exponents[1] modulo q. */
static void crt_power(const struct private_key *key, const uint8_t number[PUBLIC_BYTES], const uint8_t *const exponents[2], uint8_t result[PUBLIC_BYTES])
{
    _Alignas(16) uint8_t wide[RSA_ENTER_512_C_BYTES];
    _Alignas(16) uint8_t joined[RSA_RECOMBINE_512_RESULT_BYTES];
    struct natural modulo_p, modulo_q, y;
    rsa_enter_512_import_1024(wide, number);
    power_modulo(&key->p, wide, exponents[0], &modulo_p);
    power_modulo(&key->q, wide, exponents[1], &modulo_q);
    rsa_leave_512(key->q.block, modulo_q.limbs, y.limbs);
    rsa_recombine_512(key->p.block, modulo_p.limbs, y.limbs, key->q_number.limbs, key->q_inverse.limbs, key->q_inverse_residue.limbs, joined);
    rsa_recombine_512_export_1024(result, joined);
}

bool private_key_operation(const struct private_key *key, const uint8_t message[PUBLIC_BYTES], const uint8_t blind[PUBLIC_BYTES], uint8_t result[PUBLIC_BYTES])
{
    uint8_t number[PUBLIC_BYTES], blinded[PUBLIC_BYTES], unblind[PUBLIC_BYTES], again[PUBLIC_BYTES];
    public_power(&key->n, blind, key->e, number);
    public_multiply(&key->n, message, number, blinded);
    const uint8_t *const private_exponents[2] = {key->p.exponent, key->q.exponent};
    crt_power(key, blinded, private_exponents, number);
    /* (message * blind^e)^d = message^d * blind. */
    const uint8_t *const inversions[2] = {key->p.inversion, key->q.inversion};
    crt_power(key, blind, inversions, unblind);
    public_multiply(&key->n, number, unblind, result);

    public_power(&key->n, result, key->e, again);
    uint8_t differences = 0;
    for (int i = 0; i < PUBLIC_BYTES; i++)
        differences |= (uint8_t)(again[i] ^ message[i]);
    if (differences != 0)
        memset(result, 0, PUBLIC_BYTES);
    return differences == 0;
}
