/* Arithmetic modulo the public modulus n, in plain C: for blinding and for the check of results, which thereby share nothing with the kernels that they guard. */
#ifndef PUBLIC_MODULUS_H
#define PUBLIC_MODULUS_H
#include <stdint.h>

enum { PUBLIC_BYTES = 128, PUBLIC_WORDS = PUBLIC_BYTES / 4 };

struct public_modulus {
    uint32_t words[PUBLIC_WORDS];           /* n, least significant first */
    uint32_t radix_squared[PUBLIC_WORDS];   /* R^2 mod n, R = 2^1024 */
    uint32_t negative_inverse;              /* -1/n mod 2^32 */
};

/* n odd, big-endian. */
void public_modulus_setup(struct public_modulus *modulus, const uint8_t n[PUBLIC_BYTES]);

/* result = a * b mod n; numbers below n, big-endian; time does not depend on values. */
void public_multiply(const struct public_modulus *modulus, const uint8_t a[PUBLIC_BYTES], const uint8_t b[PUBLIC_BYTES], uint8_t result[PUBLIC_BYTES]);

/* result = base^exponent mod n; time depends on the exponent, which is public. */
void public_power(const struct public_modulus *modulus, const uint8_t base[PUBLIC_BYTES], uint32_t exponent, uint8_t result[PUBLIC_BYTES]);

#endif
