// Loops that are compiled for newer processors as well. Sanitizers do not bear how the code is
// chosen.
#pragma once

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define EMPLACE_CLONES __attribute__((target_clones("avx2", "default")))
#else
#define EMPLACE_CLONES
#endif
