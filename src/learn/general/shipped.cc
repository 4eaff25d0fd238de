#include "learn/general/shipped.h"

#include <string_view>

#include "base/error.h"

#include "learn/general/shipped_bytes.h"

namespace emplace::learn {

std::string shipped_policy(const std::string& kind) {
  for (const ShippedPolicy& policy : shipped_policies()) {
    if (policy.kind == kind) return std::string(policy.bytes);
  }
  fail_option("no policy of {} is shipped: train one with `emplace train`", kind);
}

}  // namespace emplace::learn
