#include "cluster/gpu_names.h"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "cluster/device_kinds.h"

namespace emplace {
namespace {

// In lower case, at spaces and dashes.
std::vector<std::string> name_words(std::string_view name) {
  std::vector<std::string> words(1);
  for (const char c : name) {
    if (c == ' ' || c == '-' || c == '_') {
      if (!words.back().empty()) words.emplace_back();
    } else {
      words.back() += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    }
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

bool holds(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// How many words of the kind's name the GPU's has; 0 if it is another board. The first may be two
// words of the GPU's ("RTX 4090"); one such as "40gb" is left to the memory.
int agreement(const std::vector<std::string>& kind, const std::vector<std::string>& gpu) {
  bool found = holds(gpu, kind.front());
  for (std::size_t i = 0; i + 1 < gpu.size(); ++i) found |= gpu[i] + gpu[i + 1] == kind.front();
  if (!found) return 0;
  int agreeing = 1;
  for (std::size_t i = 1; i < kind.size(); ++i) {
    if (kind[i].ends_with("gb")) continue;
    if (!holds(gpu, kind[i])) return 0;
    ++agreeing;
  }
  return agreeing;
}

}  // namespace

const DeviceKind* kind_of_gpu(std::string_view name, Bytes memory) {
  const std::vector<std::string> words = name_words(name);
  // Boards that share a number with another, which is not as fast.
  for (const char* other : {"ti", "super", "laptop", "mobile", "mig"}) {
    if (holds(words, other)) return nullptr;
  }
  const DeviceKind* best = nullptr;
  std::pair<int, Bytes> best_value;
  for (const DeviceKind& kind : built_in_device_kinds()) {
    const int agreeing = kind.is_cpu() ? 0 : agreement(name_words(kind.name), words);
    if (agreeing == 0) continue;
    const std::pair value(agreeing, -std::abs(kind.memory - memory));
    if (best == nullptr || value > best_value) {
      best = &kind;
      best_value = value;
    }
  }
  return best;
}

}  // namespace emplace
