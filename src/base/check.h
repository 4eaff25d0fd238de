// Checks of our own reasoning. A failed check is a bug in emplace, never the user's fault, so it
// throws std::logic_error with the place in the source.
#pragma once

#include <stdexcept>
#include <string>

#define EMPLACE_STRINGIZE_(x) #x
#define EMPLACE_STRINGIZE(x) EMPLACE_STRINGIZE_(x)

#define EMPLACE_CHECK(condition)                                                         \
  do {                                                                                   \
    if (!(condition)) [[unlikely]]                                                       \
      throw std::logic_error("internal error: " #condition " does not hold at " __FILE__ \
                             ":" EMPLACE_STRINGIZE(__LINE__));                           \
  } while (false)

#ifdef NDEBUG
#define EMPLACE_DCHECK(condition) \
  do {                            \
  } while (false)
#else
#define EMPLACE_DCHECK(condition) EMPLACE_CHECK(condition)
#endif
