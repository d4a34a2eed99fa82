/* Does every private-key operation of the fixture and compares: main KEY.TXT ANSWERS.TXT. Prints how many were right. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "private_key.h"

static void fail(const char *reason, const char *detail)
{
    fprintf(stderr, "%s: %s\n", reason, detail);
    exit(1);
}

/* The next line `name = digits` that is no comment; false at the end of the file. */
static bool field_if_any(FILE *file, const char *name, uint8_t *bytes, size_t size)
{
    char line[1024];
    do {
        if (fgets(line, sizeof line, file) == NULL)
            return false;
    } while (line[0] == '#' || isspace((unsigned char)line[0]));
    char found[16];
    int start = 0;
    if (sscanf(line, "%15s = %n", found, &start) != 1 || start == 0 || strcmp(found, name) != 0)
        fail("should come here", name);
    if (strspn(line + start, "0123456789abcdef") != 2 * size)
        fail("has another width", name);
    for (size_t i = 0; i < size; i++) {
        unsigned byte;
        sscanf(line + start + 2 * i, "%2x", &byte);
        bytes[i] = (uint8_t)byte;
    }
    return true;
}

static void field(FILE *file, const char *name, uint8_t *bytes, size_t size)
{
    if (!field_if_any(file, name, bytes, size))
        fail("is missing", name);
}

static FILE *opened(const char *path)
{
    FILE *file = fopen(path, "r");
    if (file == NULL)
        fail("cannot be read", path);
    return file;
}

static void read_key(const char *path, struct key_numbers *numbers)
{
    FILE *file = opened(path);
    uint8_t e[3], d[PUBLIC_BYTES];
    field(file, "n", numbers->n, PUBLIC_BYTES);
    field(file, "e", e, sizeof e);
    field(file, "d", d, PUBLIC_BYTES);
    field(file, "p", numbers->p, PRIME_BYTES);
    field(file, "q", numbers->q, PRIME_BYTES);
    field(file, "dp", numbers->dp, PRIME_BYTES);
    field(file, "dq", numbers->dq, PRIME_BYTES);
    field(file, "qinv", numbers->qinv, PRIME_BYTES);
    numbers->e = (uint32_t)e[0] << 16 | (uint32_t)e[1] << 8 | e[2];
    fclose(file);
}

/* Random, and below n since n's top bit is set. */
static void fresh_blind(uint8_t blind[PUBLIC_BYTES])
{
    if (getrandom(blind, PUBLIC_BYTES, 0) != PUBLIC_BYTES)
        fail("no random bytes", "getrandom");
    blind[0] &= 0x7f;
}

static void expect(const struct private_key *key, const uint8_t base[PUBLIC_BYTES], const uint8_t power[PUBLIC_BYTES], const char *name)
{
    uint8_t blind[PUBLIC_BYTES], result[PUBLIC_BYTES];
    fresh_blind(blind);
    if (!private_key_operation(key, base, blind, result))
        fail("the check refused a result", name);
    if (memcmp(result, power, PUBLIC_BYTES) != 0)
        fail("another result", name);
}

int main(int count, char **arguments)
{
    if (count != 3)
        fail("usage", "main KEY.TXT ANSWERS.TXT");
    static struct key_numbers numbers;
    static struct private_key key;
    read_key(arguments[1], &numbers);
    private_key_setup(&key, &numbers);

    FILE *answers = opened(arguments[2]);
    uint8_t base[PUBLIC_BYTES], power[PUBLIC_BYTES];
    field(answers, "encoded", base, sizeof base);
    field(answers, "signature", power, sizeof power);
    expect(&key, base, power, "signature");
    int right = 1;
    while (field_if_any(answers, "base", base, sizeof base)) {
        field(answers, "power", power, sizeof power);
        expect(&key, base, power, "raw operation");
        right++;
    }
    fclose(answers);

    /* One wrong bit in one half of the key: nothing may come out. */
    key.p.exponent[PRIME_BYTES - 1] ^= 4;
    uint8_t blind[PUBLIC_BYTES];
    fresh_blind(blind);
    if (private_key_operation(&key, base, blind, power))
        fail("the check let a wrong result pass", "fault");
    for (int i = 0; i < PUBLIC_BYTES; i++)
        if (power[i] != 0)
            fail("bytes of a wrong result are left", "fault");
    printf("%d right, 1 fault found\n", right);
    return 0;
}
