#include "learn/nn/optimizer_parts.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include <fmt/core.h>

namespace emplace::learn {
namespace {

constexpr std::array<const char*, 2> kMoments{"mean", "square"};

std::string moment_name(const std::string& prefix, const char* moment, std::size_t parameter) {
  return fmt::format("{}.{}.{}", prefix, moment, parameter);
}

}  // namespace

void put_part(StateWriter& part, const StateReader& whole, const std::string& prefix,
              const std::vector<std::size_t>& parameters) {
  const bool any = whole.integer(prefix + ".count") > 0;
  part.put(prefix + ".steps", whole.integer(prefix + ".steps"));
  part.put(prefix + ".count", static_cast<std::int64_t>(any ? parameters.size() : 0));
  for (std::size_t i = 0; any && i < parameters.size(); ++i) {
    for (const char* moment : kMoments) {
      part.put(moment_name(prefix, moment, i),
               whole.tensor(moment_name(prefix, moment, parameters[i])));
    }
  }
}

void put_whole(StateWriter& whole, const std::vector<SavedPart>& parts, const std::string& prefix,
               const std::vector<torch::Tensor>& like) {
  std::int64_t steps = 0;
  bool any = false;
  for (const SavedPart& part : parts) {
    steps = std::max(steps, part.state->integer(prefix + ".steps"));
    any = any || part.state->integer(prefix + ".count") > 0;
  }
  whole.put(prefix + ".steps", steps);
  whole.put(prefix + ".count", static_cast<std::int64_t>(any ? like.size() : 0));
  for (const SavedPart& part : parts) {
    const bool moved = part.state->integer(prefix + ".count") > 0;
    for (std::size_t i = 0; any && i < part.parameters->size(); ++i) {
      const std::size_t parameter = (*part.parameters)[i];
      for (const char* moment : kMoments) {
        whole.put(moment_name(prefix, moment, parameter),
                  moved ? part.state->tensor(moment_name(prefix, moment, i))
                        : torch::zeros_like(like[parameter]).detach().cpu());
      }
    }
  }
}

}  // namespace emplace::learn
