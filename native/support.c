/* What kernels call besides themselves. Nothing here depends on a C library, so the machine code works with any. */
#include <stddef.h>
#include <stdint.h>
#ifdef __x86_64__
#include <cpuid.h>
#endif

#ifdef _WIN32
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif

/* Mantissa in [0.5, 1) and exponent, as frexp does, for positive normal numbers, 0, infinity and NaN. */
double numba_frexp(double x, int *exponent) {
    union { double number; uint64_t bits; } value = {x};
    int biased = (int)(value.bits >> 52 & 0x7ff);
    *exponent = 0;
    if (biased == 0 || biased == 0x7ff) return x;
    *exponent = biased - 1022;
    value.bits = (value.bits & ~(0x7ffull << 52)) | 1022ull << 52;
    return value.number;
}

#if defined(__linux__) || defined(__wasm__)
typedef uint64_t __attribute__((aligned(1), may_alias)) word;

void *memset(void *to, int byte, size_t size) {
    unsigned char *at = to;
    word pattern = 0x0101010101010101ull * (unsigned char)byte;
    for (; size >= 8; size -= 8, at += 8) *(word *)at = pattern;
    for (; size > 0; size--) *at++ = (unsigned char)byte;
    return to;
}

void *memcpy(void *restrict to, const void *restrict from, size_t size) {
    unsigned char *at = to;
    const unsigned char *source = from;
    for (; size >= 8; size -= 8, at += 8, source += 8) *(word *)at = *(const word *)source;
    for (; size > 0; size--) *at++ = *source++;
    return to;
}

void *memmove(void *to, const void *from, size_t size) {
    unsigned char *at = to;
    const unsigned char *source = from;
    if (at <= source) return memcpy(to, from, size);
    while (size-- > 0) at[size] = source[size];
    return to;
}
#endif

/* The level of an x86-64 processor (its ABI's micro-architecture levels), from 1 to 4; 0 for other processors. */
EXPORT int echelon_level(void) {
#ifdef __x86_64__
    unsigned a, b, c, d, low, high;
    const unsigned v2 = 1u << 0 | 1u << 9 | 1u << 13 | 1u << 19 | 1u << 20 | 1u << 23; /* SSE3 to POPCNT */
    const unsigned v3 = 1u << 12 | 1u << 22 | 1u << 27 | 1u << 28 | 1u << 29; /* FMA, MOVBE, OSXSAVE, AVX, F16C */
    const unsigned v3_more = 1u << 3 | 1u << 5 | 1u << 8; /* BMI1, AVX2, BMI2 */
    const unsigned v4 = 1u << 16 | 1u << 17 | 1u << 28 | 1u << 30 | 1u << 31; /* AVX-512 F, DQ, CD, BW, VL */
    if (!__get_cpuid(1, &a, &b, &c, &d) || (c & v2) != v2) return 1;
    if ((c & v3) != v3) return 2;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    if ((low & 0x6) != 0x6) return 2;
    if (!__get_cpuid(0x80000001, &a, &b, &c, &d) || !(c & 1u << 5)) return 2; /* LZCNT */
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || (b & v3_more) != v3_more) return 2;
    return (b & v4) == v4 && (low & 0xe6) == 0xe6 ? 4 : 3;
#else
    return 0;
#endif
}
