// Images of other sizes: Resize and Upsample, axis by axis, to the output's shape; GridSample.
// Where places are is decided by the scales, if the op was given such (the attribute `scales`): the
// output's extent is rounded down.
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

struct Extent {
  std::int64_t from, to;
  double scale;
};

double place_in_input(const Rule& rule, std::int64_t at, const Extent& extent) {
  const auto place = static_cast<double>(at);
  if (rule.coordinates == "asymmetric") return place / extent.scale;
  if (rule.coordinates == "align_corners") {
    return extent.to == 1
               ? 0
               : place * static_cast<double>(extent.from - 1) / static_cast<double>(extent.to - 1);
  }
  if (rule.coordinates == "pytorch_half_pixel" && extent.to == 1) return 0;
  return (place + 0.5) / extent.scale - 0.5;
}

// `simple` is the rounding of opset 10.
std::int64_t nearest(const Rule& rule, double place, const Extent& size) {
  const std::int64_t extent = size.from;
  double at = std::floor(place);
  const bool shrinks = rule.rounding == "simple" && size.scale < 1;
  if (rule.rounding == "ceil" || shrinks) at = std::ceil(place);
  if (rule.rounding == "round_prefer_ceil") at = std::floor(place + 0.5);
  if (rule.rounding == "round_prefer_floor") at = std::ceil(place - 0.5);
  if (!(at > 0)) return 0;  // nor where the scale is 0
  return at < static_cast<double>(extent) ? static_cast<std::int64_t>(at) : extent - 1;
}

Tensor resize_nearest(const Tensor& x, std::int64_t axis, const Extent& extent, const Rule& rule) {
  Integers taken;
  for (std::int64_t at = 0; at < extent.to; ++at) {
    taken.push_back(nearest(rule, place_in_input(rule, at, extent), extent));
  }
  return x.index_select(axis, torch::tensor(taken, torch::kLong).to(x.device()));
}

Tensor resize_linear(const Tensor& x, std::int64_t axis, const Extent& extent, const Rule& rule) {
  const auto [from, to, scale] = extent;
  Integers low;
  Integers high;
  std::vector<double> share;  // of the higher one
  for (std::int64_t at = 0; at < to; ++at) {
    const double wanted = place_in_input(rule, at, extent);
    const double place = wanted > 0 ? std::min(wanted, static_cast<double>(from - 1)) : 0.0;
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

// By axis; none: extents tell.
std::vector<double> scales_of(const Call& call, std::size_t rank) {
  std::vector<double> scales;
  const AttributeValue* given = call.attributes.find("scales");
  if (given == nullptr) return scales;
  if (const auto* reals = std::get_if<std::vector<double>>(given)) scales = *reals;
  if (const auto* whole = std::get_if<Integers>(given)) scales.assign(whole->begin(), whole->end());
  if (scales.size() != rank) {
    fail_input("attributes: 'scales' has {} numbers, expected {}", scales.size(), rank);
  }
  return scales;
}

Tensor resize(const Call& call, const Rule& rule) {
  Tensor result = call.in(0);
  const std::vector<double> scales = scales_of(call, static_cast<std::size_t>(result.dim()));
  for (std::int64_t axis = 0; axis < result.dim(); ++axis) {
    const auto i = static_cast<std::size_t>(axis);
    Extent extent{.from = result.size(axis), .to = call.shape().at(i), .scale = 0};
    extent.scale = scales.empty()
                       ? static_cast<double>(extent.to) / static_cast<double>(extent.from)
                       : scales[i];
    if (extent.to == extent.from && extent.scale == 1) continue;
    if (extent.from == 0) fail_input("resizes what has no elements");
    result = rule.mode == "nearest" ? resize_nearest(result, axis, extent, rule)
                                    : resize_linear(result, axis, extent, rule);
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
