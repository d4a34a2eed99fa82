/* Calls emitted functions on arguments with nothing beside them, every saved register poisoned, and compares what they leave. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct registers {
    unsigned char vectors[12][16];
    double floats[18];
    uint32_t general[18];
    uint32_t condition;
    uint32_t stack_pointer, thread_pointer, small_data, vector_save;
} __attribute__((aligned(16)));

extern void call_poisoned(void *function, const uint32_t arguments[8], struct registers *poison, struct registers *found);
extern void breaks_general(void), breaks_vector(void), breaks_float(void), breaks_vector_save(void), breaks_condition(void), breaks_stack_pointer(void), breaks_small_data(void), keeps_all(void);

#define SLOTS 8
#define SLOT_BYTES 16384
#define SAVED_CONDITION 0x00fff000u /* CR2, CR3, CR4 */

static unsigned char arena[SLOTS][SLOT_BYTES] __attribute__((aligned(64)));
static unsigned char before[SLOTS][SLOT_BYTES];
static struct { unsigned start, bytes; } slots[SLOTS];
static unsigned failures, calls, comparisons;

static uint32_t next(void) {
    static uint32_t state = 0x1234567;
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return state;
}

static void fill(void *bytes, unsigned count) {
    for (unsigned i = 0; i < count; i++) ((unsigned char *)bytes)[i] = (unsigned char)(next() >> 11);
}

/* A region of a slot, aligned as promised and no better; filled with the contents, or with anything. */
static void place(int slot, unsigned bytes, unsigned align, const char *contents) {
    unsigned start = 128 + align;
    if (start + bytes + 128 > SLOT_BYTES) {
        printf("a region of %u bytes does not fit a slot\n", bytes);
        exit(2);
    }
    fill(arena[slot], SLOT_BYTES);
    slots[slot].start = start;
    slots[slot].bytes = bytes;
    if (contents) memcpy(arena[slot] + start, contents, bytes);
}

static uint32_t at(int slot) {
    return (uint32_t)(uintptr_t)(arena[slot] + slots[slot].start);
}

static const char *broken(void *function, const uint32_t *arguments) {
    static struct registers poison, found;
    fill(&poison, sizeof poison);
    /* Numbers: a signalling one that is none would change on its way through a register. */
    for (int i = 0; i < 18; i++) poison.floats[i] = (double)next();
    call_poisoned(function, arguments, &poison, &found);
    if (memcmp(poison.vectors, found.vectors, sizeof poison.vectors)) return "v20-v31";
    if (memcmp(poison.floats, found.floats, sizeof poison.floats)) return "f14-f31";
    if (memcmp(poison.general, found.general, sizeof poison.general)) return "r14-r31";
    if ((poison.condition ^ found.condition) & SAVED_CONDITION) return "CR2-CR4";
    if (poison.stack_pointer != found.stack_pointer) return "r1";
    if (poison.thread_pointer != found.thread_pointer) return "r2";
    if (poison.small_data != found.small_data) return "r13";
    if (poison.vector_save != found.vector_save) return "VRSAVE";
    return 0;
}

/* Calls a function that may write the slots of a mask and nothing else. */
static void call_writing(const char *name, void *function, unsigned written, const uint32_t *arguments) {
    memcpy(before, arena, sizeof arena);
    const char *what = broken(function, arguments);
    calls++;
    if (what) {
        failures++;
        printf("%s does not keep %s\n", name, what);
    }
    for (int slot = 0; slot < SLOTS; slot++) {
        for (unsigned i = 0; i < SLOT_BYTES; i++) {
            int inside = (written >> slot & 1) && i - slots[slot].start < slots[slot].bytes;
            if (!inside && arena[slot][i] != before[slot][i]) {
                failures++;
                printf("%s writes byte %d of slot %d, which is not its result\n", name, (int)(i - slots[slot].start), slot);
                break;
            }
        }
    }
}

/* Calls a function that may write one slot and nothing else. */
static inline void call(const char *name, void *function, int written, const uint32_t *arguments) {
    call_writing(name, function, 1u << written, arguments);
}

/* A part of a table: the contents of another slot. */
static inline void copy(int slot, unsigned at, int from) {
    memcpy(arena[slot] + slots[slot].start + at, arena[from] + slots[from].start, slots[from].bytes);
}

/* The slot must hold one of two values: a residue that is zero may be written as its modulus. */
static void expect(const char *name, int slot, const char *value, const char *other) {
    const unsigned char *found = arena[slot] + slots[slot].start;
    comparisons++;
    if (memcmp(found, value, slots[slot].bytes) && memcmp(found, other, slots[slot].bytes)) {
        failures++;
        printf("%s: found ", name);
        for (unsigned i = 0; i < slots[slot].bytes; i++) printf("%02x", found[i]);
        printf(", expected ");
        for (unsigned i = 0; i < slots[slot].bytes; i++) printf("%02x", (unsigned char)value[i]);
        printf("\n");
    }
}

static void require(int good, const char *what) {
    if (!good) {
        failures++;
        printf("the check of registers is wrong: %s\n", what);
    }
}

static void check_the_check(void) {
    static const uint32_t none[8];
    require(broken(breaks_general, none) != 0, "a change of r31 passes");
    require(broken(breaks_vector, none) != 0, "a change of v20 passes");
    require(broken(breaks_float, none) != 0, "a change of f14 passes");
    require(broken(breaks_vector_save, none) != 0, "a change of VRSAVE passes");
    require(broken(breaks_condition, none) != 0, "a change of CR4 passes");
    require(broken(breaks_stack_pointer, none) != 0, "a change of r1 passes");
    require(broken(breaks_small_data, none) != 0, "a change of r13 passes");
    require(broken(keeps_all, none) == 0, "a change of volatile registers is refused");
}

static void cases(void);

int main(void) {
    check_the_check();
    cases();
    printf("%u calls, %u comparisons, %u failures\n", calls, comparisons, failures);
    return failures != 0;
}
