// Images of other sizes: Resize and Upsample, axis by axis, to the output's shape; GridSample.
#include <algorithm>
#include <cmath>

#include "base/error.h"

#include "exec/kernel.h"

namespace emplace::exec {
namespace {

struct Rule {
  std::string_view mode;         // nearest or linear
  std::string_view coordinates;  // how places in the output become places in the input
  std::string_view rounding;     // of places, to the nearest element
};

double place_in_input(const Rule& rule, std::int64_t at, std::int64_t from, std::int64_t to) {
  const double scale = static_cast<double>(to) / static_cast<double>(from);
  const auto place = static_cast<double>(at);
  if (rule.coordinates == "asymmetric") return place / scale;
  if (rule.coordinates == "align_corners") {
    return to == 1 ? 0 : place * static_cast<double>(from - 1) / static_cast<double>(to - 1);
  }
  if (rule.coordinates == "pytorch_half_pixel" && to == 1) return 0;
  return (place + 0.5) / scale - 0.5;
}

std::int64_t nearest(const Rule& rule, double place, std::int64_t extent) {
  double at = std::floor(place);
  if (rule.rounding == "ceil") at = std::ceil(place);
  if (rule.rounding == "round_prefer_ceil") at = std::floor(place + 0.5);
  if (rule.rounding == "round_prefer_floor") at = std::ceil(place - 0.5);
  return std::clamp<std::int64_t>(static_cast<std::int64_t>(at), 0, extent - 1);
}

Tensor resize_nearest(const Tensor& x, std::int64_t axis, std::int64_t to, const Rule& rule) {
  const std::int64_t from = x.size(axis);
  Integers taken;
  for (std::int64_t at = 0; at < to; ++at) {
    taken.push_back(nearest(rule, place_in_input(rule, at, from, to), from));
  }
  return x.index_select(axis, torch::tensor(taken, torch::kLong).to(x.device()));
}

Tensor resize_linear(const Tensor& x, std::int64_t axis, std::int64_t to, const Rule& rule) {
  const std::int64_t from = x.size(axis);
  Integers low;
  Integers high;
  std::vector<double> share;  // of the higher one
  for (std::int64_t at = 0; at < to; ++at) {
    const double place =
        std::clamp(place_in_input(rule, at, from, to), 0.0, static_cast<double>(from - 1));
    low.push_back(static_cast<std::int64_t>(std::floor(place)));
    high.push_back(std::min(low.back() + 1, from - 1));
    share.push_back(place - std::floor(place));
  }
  Shape along(static_cast<std::size_t>(x.dim()), 1);
  along[static_cast<std::size_t>(axis)] = to;
  const Tensor weight = torch::tensor(share, torch::kDouble).to(x.options()).reshape(along);
  return x.index_select(axis, torch::tensor(low, torch::kLong).to(x.device())) * (1 - weight) +
         x.index_select(axis, torch::tensor(high, torch::kLong).to(x.device())) * weight;
}

Tensor resize(const Call& call, const Rule& rule) {
  Tensor result = call.in(0);
  for (std::int64_t axis = 0; axis < result.dim(); ++axis) {
    const std::int64_t to = call.shape().at(static_cast<std::size_t>(axis));
    if (to == result.size(axis)) continue;
    if (rule.mode == "nearest") {
      result = resize_nearest(result, axis, to, rule);
    } else if (rule.mode == "linear" || rule.mode == "bilinear") {
      result = resize_linear(result, axis, to, rule);
    } else {
      fail(ErrorKind::kUnsupported, "attributes: there is no kernel for mode '{}'", rule.mode);
    }
  }
  return result;
}

// X [n, c, h, w], and where in it each element of the output is read.
Tensor grid_sample(const Call& call) {
  const std::string_view mode = call.attributes.text("mode", "linear");
  const std::string_view padding = call.attributes.text("padding_mode", "zeros");
  const int interpolation = mode == "nearest" ? 1 : mode == "cubic" || mode == "bicubic" ? 2 : 0;
  const int outside = padding == "border" ? 1 : padding == "reflection" ? 2 : 0;
  return at::grid_sampler(call.in(0), call.in(1), interpolation, outside,
                          call.integer("align_corners", 0) != 0);
}

}  // namespace

void add_resizing(KernelTable& table) {
  table["Resize"] = single([](const Call& call) {
    return resize(call, {call.attributes.text("mode", "nearest"),
                         call.attributes.text("coordinate_transformation_mode", "half_pixel"),
                         call.attributes.text("nearest_mode", "round_prefer_floor")});
  });
  table["GridSample"] = single(grid_sample);
  table["Upsample"] = single([](const Call& call) {
    return resize(call, {call.attributes.text("mode", "nearest"), "asymmetric", "floor"});
  });
}

}  // namespace emplace::exec
