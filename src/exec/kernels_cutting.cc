// Slices and pads, and their gradients.
#include <algorithm>

#include "base/error.h"

#include "exec/kernel.h"

namespace emplace::exec {
namespace {

struct Range {
  std::int64_t axis, start, end, step;
};

std::vector<Range> ranges_of(const Call& call, std::int64_t rank) {
  const bool by_attributes = call.given("starts");
  const auto numbers = [&](std::string_view name, std::size_t position) {
    const Tensor input = by_attributes ? Tensor() : call.given_at(position);
    return input.defined() ? integers_of(input) : call.integers(name);
  };
  const Integers starts = numbers("starts", 1);
  const Integers ends = numbers("ends", 2);
  const Integers axes = numbers("axes", 3);
  const Integers steps = numbers("steps", 4);
  std::vector<Range> ranges;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const std::int64_t axis = axes.empty() ? static_cast<std::int64_t>(i) : axes.at(i);
    ranges.push_back(
        {from_front(axis, rank), starts[i], ends.at(i), steps.empty() ? 1 : steps.at(i)});
  }
  return ranges;
}

// Backwards: libtorch cuts forwards alone. Which elements are taken.
Tensor taken_backwards(const Tensor& x, const Range& range) {
  const std::int64_t extent = x.size(range.axis);
  const auto place = [&](std::int64_t at) {
    return std::clamp<std::int64_t>(at < 0 ? at + extent : at, -1, extent - 1);
  };
  Integers taken;
  const std::int64_t end = range.end < -extent ? -1 : place(range.end);
  const std::int64_t step = std::max(range.step, -extent - 1);
  for (std::int64_t at = place(range.start); at > end; at += step) taken.push_back(at);
  return torch::tensor(taken, torch::kLong).to(x.device());
}

Tensor slice(const Call& call) {
  Tensor result = call.in(0);
  for (const Range& range : ranges_of(call, result.dim())) {
    result = range.step < 0 ? result.index_select(range.axis, taken_backwards(result, range))
                            : result.slice(range.axis, range.start, range.end, range.step);
  }
  return result;
}

// From dy: zeros around it.
Tensor slice_gradient(const Call& call) {
  const Tensor& dy = call.in(0);
  const Tensor result = torch::zeros(call.shape(), dy.options());
  Tensor place = result;
  const std::vector<Range> ranges = ranges_of(call, result.dim());
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const Range& range = ranges[i];
    if (range.step < 0) {
      // What follows is cut out of a copy, which then goes back in the other order.
      const Tensor taken = taken_backwards(place, range);
      Tensor part = torch::zeros_like(place.index_select(range.axis, taken));
      Tensor rest = part;
      for (std::size_t j = i + 1; j < ranges.size(); ++j) {
        if (ranges[j].step < 0) {
          fail(ErrorKind::kUnsupported, "there is no kernel for two axes that are cut backwards");
        }
        rest = rest.slice(ranges[j].axis, ranges[j].start, ranges[j].end, ranges[j].step);
      }
      rest.copy_(dy);
      place.index_copy_(range.axis, taken, part);
      return result;
    }
    place = place.slice(range.axis, range.start, range.end, range.step);
  }
  place.copy_(dy);
  return result;
}

// Amounts before and behind, for every axis of x.
struct Padding {
  Integers begin, end;
};

std::int64_t padded_by(std::int64_t amount) {
  constexpr std::int64_t kMost = std::int64_t{1} << 31;
  if (amount < -kMost || amount > kMost) fail_input("pads {} elements", amount);
  return amount;
}

Padding padding_of(const Call& call, std::size_t rank) {
  const Integers amounts = call.numbers("pads", 1);
  const Tensor given = call.given_at(3);
  const Integers axes =
      given.defined() ? integers_of(given) : all_axes_but(static_cast<std::int64_t>(rank), {});
  if (amounts.size() != 2 * axes.size()) {
    fail_input("pads {} ends of {} axes", amounts.size(), axes.size());
  }
  Padding padding{Integers(rank, 0), Integers(rank, 0)};
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const auto axis =
        static_cast<std::size_t>(from_front(axes[i], static_cast<std::int64_t>(rank)));
    padding.begin[axis] = padded_by(amounts[i]);
    padding.end[axis] = padded_by(amounts[i + axes.size()]);
  }
  return padding;
}

Tensor pad_constant(const Call& call, const Padding& padding) {
  double value = call.real("value", 0);
  if (const Tensor given = call.given_at(2); given.defined()) value = given.item<double>();
  Integers pads;
  for (std::size_t i = padding.begin.size(); i-- > 0;) {
    pads.push_back(padding.begin[i]);
    pads.push_back(padding.end[i]);
  }
  return at::constant_pad_nd(call.in(0), pads, value);
}

// Which element stands at a place outside of an axis.
std::int64_t mirrored(std::int64_t at, std::int64_t extent, std::string_view mode) {
  if (extent == 0) fail_input("mirrors what has no elements");
  if (mode == "edge") return std::clamp<std::int64_t>(at, 0, extent - 1);
  if (mode == "wrap") return ((at % extent) + extent) % extent;
  if (extent == 1) return 0;
  const std::int64_t period = 2 * (extent - 1);
  const std::int64_t phase = ((at % period) + period) % period;
  return phase < extent ? phase : period - phase;
}

Tensor pad(const Call& call) {
  const Tensor& x = call.in(0);
  const Padding padding = padding_of(call, static_cast<std::size_t>(x.dim()));
  const std::string_view mode = call.attributes.text("mode", "constant");
  if (mode == "constant") return pad_constant(call, padding);
  Tensor result = x;
  for (std::int64_t axis = 0; axis < x.dim(); ++axis) {
    const auto i = static_cast<std::size_t>(axis);
    if (padding.begin[i] == 0 && padding.end[i] == 0) continue;
    Integers taken;
    for (std::int64_t at = -padding.begin[i]; at < x.size(axis) + padding.end[i]; ++at) {
      taken.push_back(mirrored(at, x.size(axis), mode));
    }
    result = result.index_select(axis, torch::tensor(taken, torch::kLong).to(x.device()));
  }
  return result;
}

// From dy, of zeros around x: they are cut off. Of other modes, elements that stood for several get
// the sum.
Tensor pad_gradient(const Call& call) {
  const std::size_t rank = call.shape().size();
  const Padding padding = padding_of(call, rank);
  const std::string_view mode = call.attributes.text("mode", "constant");
  Tensor result = call.in(0);
  for (std::size_t i = 0; i < rank; ++i) {
    if (padding.begin[i] == 0 && padding.end[i] == 0) continue;
    const auto axis = static_cast<std::int64_t>(i);
    const std::int64_t extent = call.shape()[i];
    Integers pads(2 * (rank - i), 0);
    pads[pads.size() - 2] = -padding.begin[i];
    pads[pads.size() - 1] = -padding.end[i];
    if (mode == "constant") {
      result = at::constant_pad_nd(result, pads, 0);
      continue;
    }
    Integers taken;
    for (std::int64_t at = -padding.begin[i]; at < extent + padding.end[i]; ++at) {
      taken.push_back(mirrored(at, extent, mode));
    }
    Shape shape = shape_of(result);
    shape[i] = extent;
    result = torch::zeros(shape, result.options())
                 .index_add_(axis, torch::tensor(taken, torch::kLong).to(result.device()), result);
  }
  return result;
}

}  // namespace

void add_cutting(KernelTable& table) {
  table["Slice"] = single(slice);
  table["SliceGrad"] = single(slice_gradient);
  table["Pad"] = single(pad);
  table["PadGrad"] = single(pad_gradient);
}

}  // namespace emplace::exec
