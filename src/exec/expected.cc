// What kernels take for granted of an op. A graph may come from anybody: before anything is
// computed with its numbers, they are held to ranges in which sums and products of a few of them
// neither overflow nor divide by zero, and lists of inputs to what operators have.
#include <array>

#include "base/error.h"
#include "base/limits.h"

#include "exec/native.h"

namespace emplace::exec {
namespace {

constexpr std::int64_t kMostInputs = 1'000'000;  // of one op, and outputs
constexpr std::int64_t kMostExtent = std::int64_t{1} << 31;

struct Allowed {
  std::string_view name;
  std::int64_t least;
  std::int64_t most;
};

// Of attributes that are whole numbers or lists of them.
constexpr std::array kAllowed{
    Allowed{"arrived", 0, kMostInputs},
    Allowed{"begin", 0, limits::kTensorBytes},
    Allowed{"blocksize", 1, 1 << 15},
    Allowed{"count", 0, limits::kTensorBytes},
    Allowed{"dilations", 1, kMostExtent},
    Allowed{"group", 1, kMostExtent},
    Allowed{"groups", 1, kMostExtent},
    Allowed{"input", 0, kMostInputs},
    Allowed{"k", -kMostExtent, kMostExtent},
    Allowed{"kernel_shape", 1, kMostExtent},
    Allowed{"kv_num_heads", 1, kMostExtent},
    Allowed{"mean_count", 0, limits::kTensorBytes},
    Allowed{"num_groups", 1, kMostExtent},
    Allowed{"num_heads", 0, kMostExtent},
    Allowed{"omitted_inputs", 0, kMostInputs},
    Allowed{"omitted_outputs", 0, kMostInputs},
    Allowed{"output_padding", 0, kMostExtent},
    Allowed{"pads", -kMostExtent, kMostExtent},
    Allowed{"q_num_heads", 1, kMostExtent},
    Allowed{"region_begin", 0, limits::kTensorBytes},
    Allowed{"region_shape", 0, limits::kTensorBytes},
    Allowed{"rotary_embedding_dim", 0, kMostExtent},
    Allowed{"row_offset", 0, limits::kTensorBytes},
    Allowed{"row_total", 0, limits::kTensorBytes},
    Allowed{"size", 0, limits::kTensorBytes},
    Allowed{"split", 0, limits::kTensorBytes},
    Allowed{"strides", 1, kMostExtent},
    Allowed{"wanted", 0, kMostInputs},
};

void hold(const Allowed& range, std::int64_t number) {
  if (number >= range.least && number <= range.most) return;
  fail_input("attributes: '{}': {} is not from {} to {}", range.name, number, range.least,
             range.most);
}

}  // namespace

void check_expected(const Site& site) {
  for (const Allowed& range : kAllowed) {
    const AttributeValue* value = site.call.attributes.find(range.name);
    if (value == nullptr) continue;
    if (const auto* number = std::get_if<std::int64_t>(value)) hold(range, *number);
    if (const auto* numbers = std::get_if<Integers>(value)) {
      for (const std::int64_t number : *numbers) hold(range, number);
    }
  }
}

}  // namespace emplace::exec
