# Writes FILE, a source file with the commit of the clone SOURCE, unless it says the same already.
execute_process(COMMAND git -C ${SOURCE} describe --always --dirty --exclude=* --abbrev=7
                OUTPUT_VARIABLE commit ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
if(NOT commit)
  set(commit unknown)
endif()
file(CONFIGURE OUTPUT ${FILE} CONTENT [[#include "reproduce/commit.h"

namespace emplace::bench {

std::string commit() {
  return "@commit@";
}

}  // namespace emplace::bench
]] @ONLY)
