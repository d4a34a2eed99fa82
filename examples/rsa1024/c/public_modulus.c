#include "public_modulus.h"

#include <string.h>

static void words_of_bytes(const uint8_t bytes[PUBLIC_BYTES], uint32_t words[PUBLIC_WORDS])
{
    for (int i = 0; i < PUBLIC_WORDS; i++) {
        const uint8_t *at = bytes + PUBLIC_BYTES - 4 - 4 * i;
        words[i] = (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
    }
}

static void bytes_of_words(const uint32_t words[PUBLIC_WORDS], uint8_t bytes[PUBLIC_BYTES])
{
    for (int i = 0; i < PUBLIC_BYTES; i++)
        bytes[PUBLIC_BYTES - 1 - i] = (uint8_t)(words[i / 4] >> 8 * (i % 4));
}

/* Subtracts n from words with the given word above them, if the result is not negative. */
static void reduce_once(const struct public_modulus *modulus, uint32_t words[PUBLIC_WORDS], uint32_t above)
{
    uint32_t difference[PUBLIC_WORDS];
    uint32_t borrow = 0;
    for (int i = 0; i < PUBLIC_WORDS; i++) {
        uint64_t step = (uint64_t)words[i] - modulus->words[i] - borrow;
        difference[i] = (uint32_t)step;
        borrow = (uint32_t)(step >> 32) & 1;
    }
    uint32_t keep = 0 - (borrow & ~above & 1);
    for (int i = 0; i < PUBLIC_WORDS; i++)
        words[i] = (words[i] & keep) | (difference[i] & ~keep);
}

/* result = a * b / R mod n, word by word (Koc, Acar, Kaliski 1996, "coarsely integrated operand scanning"). result may be an operand. */
static void montgomery(const struct public_modulus *modulus, const uint32_t a[PUBLIC_WORDS], const uint32_t b[PUBLIC_WORDS], uint32_t result[PUBLIC_WORDS])
{
    uint32_t sum[PUBLIC_WORDS + 2] = {0};
    for (int i = 0; i < PUBLIC_WORDS; i++) {
        uint64_t step = 0;
        for (int j = 0; j < PUBLIC_WORDS; j++) {
            step = (uint64_t)a[j] * b[i] + sum[j] + (step >> 32);
            sum[j] = (uint32_t)step;
        }
        step = (uint64_t)sum[PUBLIC_WORDS] + (step >> 32);
        sum[PUBLIC_WORDS] = (uint32_t)step;
        sum[PUBLIC_WORDS + 1] = (uint32_t)(step >> 32);

        uint32_t multiple = sum[0] * modulus->negative_inverse;
        step = (uint64_t)multiple * modulus->words[0] + sum[0];
        for (int j = 1; j < PUBLIC_WORDS; j++) {
            step = (uint64_t)multiple * modulus->words[j] + sum[j] + (step >> 32);
            sum[j - 1] = (uint32_t)step;
        }
        step = (uint64_t)sum[PUBLIC_WORDS] + (step >> 32);
        sum[PUBLIC_WORDS - 1] = (uint32_t)step;
        sum[PUBLIC_WORDS] = sum[PUBLIC_WORDS + 1] + (uint32_t)(step >> 32);
    }
    reduce_once(modulus, sum, sum[PUBLIC_WORDS]);
    memcpy(result, sum, sizeof(uint32_t) * PUBLIC_WORDS);
}

void public_modulus_setup(struct public_modulus *modulus, const uint8_t n[PUBLIC_BYTES])
{
    words_of_bytes(n, modulus->words);
    /* Newton's iteration doubles the bits that are right; an odd number is its own inverse modulo 8. */
    uint32_t inverse = modulus->words[0];
    for (int i = 0; i < 4; i++)
        inverse *= 2 - modulus->words[0] * inverse;
    modulus->negative_inverse = 0 - inverse;
    uint32_t *square = modulus->radix_squared;
    memset(square, 0, sizeof modulus->radix_squared);
    square[0] = 1;
    for (int i = 0; i < 2 * 8 * PUBLIC_BYTES; i++) {
        uint32_t above = 0;
        for (int j = 0; j < PUBLIC_WORDS; j++) {
            uint32_t next = square[j] >> 31;
            square[j] = square[j] << 1 | above;
            above = next;
        }
        reduce_once(modulus, square, above);
    }
}

void public_multiply(const struct public_modulus *modulus, const uint8_t a[PUBLIC_BYTES], const uint8_t b[PUBLIC_BYTES], uint8_t result[PUBLIC_BYTES])
{
    uint32_t left[PUBLIC_WORDS], right[PUBLIC_WORDS];
    words_of_bytes(a, left);
    words_of_bytes(b, right);
    montgomery(modulus, left, modulus->radix_squared, left);
    montgomery(modulus, left, right, left);
    bytes_of_words(left, result);
}

void public_power(const struct public_modulus *modulus, const uint8_t base[PUBLIC_BYTES], uint32_t exponent, uint8_t result[PUBLIC_BYTES])
{
    uint32_t one[PUBLIC_WORDS] = {1};
    uint32_t square[PUBLIC_WORDS], power[PUBLIC_WORDS];
    words_of_bytes(base, square);
    montgomery(modulus, square, modulus->radix_squared, square);
    montgomery(modulus, one, modulus->radix_squared, power);
    for (; exponent != 0; exponent >>= 1) {
        if (exponent & 1)
            montgomery(modulus, power, square, power);
        montgomery(modulus, square, square, square);
    }
    montgomery(modulus, power, one, power);
    bytes_of_words(power, result);
}
