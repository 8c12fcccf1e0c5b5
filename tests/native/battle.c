/* Plays a whole battle with machine code for another processor: battle IMAGE < JOB. The image is memory at a fixed address,
 * as in battle.mjs. The job is numbers: the address, the address of the flag that the battle is over, and four lists, each
 * after its length: calls (function, words) before the first decision and in every decision, ranges (address, bytes) to clear
 * before and to write to standard output after every decision. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

int32_t ACT_ROWS(const uint64_t *), BEGIN_BATTLE(const uint64_t *), STEP_RANGE(const uint64_t *);
static int32_t (*const functions[])(const uint64_t *) = {ACT_ROWS, BEGIN_BATTLE, STEP_RANGE};

typedef struct { long first, second; } pair;
typedef struct { long count; pair *pairs; } list;

static long number(void) {
    long value;
    if (scanf("%ld", &value) != 1) exit(2);
    return value;
}

static list numbers(void) {
    list made = {number(), NULL};
    made.pairs = malloc((size_t)made.count * sizeof(pair));
    for (long i = 0; i < made.count; i++) made.pairs[i].first = number(), made.pairs[i].second = number();
    return made;
}

static void run(list calls) {
    for (long i = 0; i < calls.count; i++)
        if (functions[calls.pairs[i].first]((const uint64_t *)calls.pairs[i].second) != 0) exit(3);
}

static void put(list ranges) {
    for (long i = 0; i < ranges.count; i++) fwrite((void *)ranges.pairs[i].first, 1, (size_t)ranges.pairs[i].second, stdout);
}

int main(int argc, char **argv) {
    long base = number(), over = number();
    list begin = numbers(), decide = numbers(), clear = numbers(), read = numbers();
    FILE *image = fopen(argv[argc - 1], "rb");
    fseek(image, 0, SEEK_END);
    size_t size = (size_t)ftell(image);
    rewind(image);
    void *memory = mmap((void *)base, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    if (memory != (void *)base || fread(memory, 1, size, image) != size) return 4;
    run(begin);
    put(read);
    while (*(char *)over == 0) {
        for (long i = 0; i < clear.count; i++) memset((void *)clear.pairs[i].first, 0, (size_t)clear.pairs[i].second);
        run(decide);
        put(read);
    }
    return 0;
}
