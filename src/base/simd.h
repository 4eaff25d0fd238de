// Vector instructions in loops that compilers vectorize: how a function is compiled for several
// processors, and what a compiler must be told.
#pragma once

// Before a function: compiled for newer processors too; which one runs is decided when the program
// is loaded. What it calls must be inlined into it (EMPLACE_ALWAYS_INLINE), and may not use vector
// types, which are taken apart for the oldest processor before the copies are made.
// (Not under the address sanitizer, which is not up by then.)
#if defined(__x86_64__) && !defined(__clang__) && __GNUC__ >= 12 && !defined(__SANITIZE_ADDRESS__)
#define EMPLACE_FOR_EACH_PROCESSOR \
  __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define EMPLACE_FOR_EACH_PROCESSOR
#endif

#if defined(__GNUC__)
#define EMPLACE_ALWAYS_INLINE inline __attribute__((always_inline))
#else
#define EMPLACE_ALWAYS_INLINE inline
#endif

// Before a loop: no pass over it reads what another one writes.
#if defined(__clang__)
#define EMPLACE_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define EMPLACE_INDEPENDENT _Pragma("GCC ivdep")
#else
#define EMPLACE_INDEPENDENT
#endif
