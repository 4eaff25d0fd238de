#include "learn/nn/device.h"

#include <charconv>
#include <optional>
#include <string_view>

#include <torch/cuda.h>

#include "base/error.h"

namespace emplace::learn {
namespace {

// N of cuda:N; nothing where the name is not one.
std::optional<std::size_t> cuda_index(std::string_view name) {
  if (name == "cuda") return 0;
  constexpr std::string_view kPrefix = "cuda:";
  if (!name.starts_with(kPrefix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  std::size_t index = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), index);
  if (error != std::errc() || end != name.data() + name.size()) return std::nullopt;
  return index;
}

}  // namespace

void require_device(const std::string& name) {
  if (name == "cpu") return;
  const auto index = cuda_index(name);
  if (!index) fail_option("device '{}': expected cpu, or a GPU such as cuda:0", name);
  const std::size_t count = torch::cuda::is_available() ? torch::cuda::device_count() : 0;
  if (*index >= count) {
    fail_option("device '{}': there is no such GPU; libtorch sees {}", name,
                count == 0 ? "none here" : fmt::format("{}", count));
  }
}

}  // namespace emplace::learn
