// Loops that are compiled twice where processors may have AVX2, and chosen when they run.

#pragma once

#if (defined(__GNUC__) || defined(__clang__)) && defined(__x86_64__)
#define GEVAL_DISPATCHES 1
#define GEVAL_INLINE inline __attribute__((always_inline))
#define GEVAL_AVX2 __attribute__((target("avx2")))
#define GEVAL_CHOOSE(FUNCTION) (__builtin_cpu_supports("avx2") ? FUNCTION##_avx2 : FUNCTION##_portable)
#else
#define GEVAL_INLINE inline
#define GEVAL_CHOOSE(FUNCTION) FUNCTION##_portable
#endif
