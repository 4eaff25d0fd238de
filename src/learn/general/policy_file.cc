#include "learn/general/policy_file.h"

#include <algorithm>

#include "base/error.h"
#include "base/limits.h"

#include "learn/nn/module.h"

namespace emplace::learn {
namespace {

constexpr const char* kWhat = "policy";
// Of what parameters mean: changes with the columns of features and the parts of networks.
constexpr std::int64_t kVersion = 1;

}  // namespace

PolicyFile::PolicyFile(std::string_view bytes, const std::string& file_name)
    : state_(bytes, file_name, kWhat) {
  const std::int64_t version = state_.integer("version");
  if (version != kVersion) {
    fail_input("{}: a policy for version {} of the features; expected version {}: train it again",
               file_name, version, kVersion);
  }
  kind_ = state_.text("kind");
  network_ = {.width = state_.integer("width"),
              .layers = state_.integer("layers"),
              .superposition = state_.integer("superposition") != 0};
  if (network_.width < 2 || network_.width % 2 != 0 || network_.layers < 0) {
    fail_input("{}: a network of width {} and {} layers; expected an even width", file_name,
               network_.width, network_.layers);
  }
  // Before a network of that size is made: every policy has a square matrix, and every layer some.
  const bool small =
      network_.width <= limits::kPolicyWidth && network_.layers <= limits::kPolicyLayers;
  const auto least = static_cast<std::size_t>(network_.width) *
                     static_cast<std::size_t>(std::max(network_.width, network_.layers));
  if (!small || least * sizeof(float) > bytes.size()) {
    fail_input(
        "{}: a network of width {} and {} layers, which {} bytes cannot hold; expected at most "
        "width {} and {} layers",
        file_name, network_.width, network_.layers, bytes.size(), limits::kPolicyWidth,
        limits::kPolicyLayers);
  }
}

void PolicyFile::load_into(Parameters& parameters) const {
  for (const auto& [name, tensor] : parameters.named()) state_.load(name, tensor);
}

std::string policy_bytes(const std::string& kind, const GeneralNetwork& network,
                         const Parameters& parameters, const std::string& card) {
  StateWriter state;
  state.put("version", kVersion);
  state.put("kind", kind);
  state.put("width", network.width);
  state.put("layers", network.layers);
  state.put("superposition", std::int64_t{network.superposition ? 1 : 0});
  state.put("card", card);
  for (const auto& [name, tensor] : parameters.named()) state.put(name, tensor);
  return state.bytes(kWhat);
}

}  // namespace emplace::learn
