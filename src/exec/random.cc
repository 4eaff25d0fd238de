#include "exec/random.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "base/error.h"

#include "exec/loops.h"
#include "exec/ranges.h"

namespace emplace::exec {
namespace {

constexpr std::uint64_t kGolden = 0x9E3779B97F4A7C15U;
constexpr std::uint64_t kStepFactor = 0xD1B54A32D192ED03U;
constexpr std::uint64_t kFirstFactor = 0xBF58476D1CE4E5B9U;
constexpr std::uint64_t kSecondFactor = 0x94D049BB133111EBU;

// Of splitmix64.
inline std::uint64_t mix(std::uint64_t z) {
  z = (z ^ (z >> 30)) * kFirstFactor;
  z = (z ^ (z >> 27)) * kSecondFactor;
  return z ^ (z >> 31);
}

std::uint64_t key_of(const Stream& stream) {
  return stream.key + static_cast<std::uint64_t>(stream.step) * kStepFactor;
}

// Elements are drawn by the lower half of their numbers, with a key that is made of the rest.
loops::Key halves_of(std::uint64_t key) {
  const std::uint64_t mixed = mix(key);
  return {static_cast<std::uint32_t>(mixed), static_cast<std::uint32_t>(mixed >> 32)};
}

void draw_run(std::uint64_t key, std::uint64_t first, std::int64_t count, std::uint32_t limit,
              bool* kept) {
  constexpr std::uint64_t kBlock = std::uint64_t{1} << 32;
  while (count > 0) {
    const auto here = std::min(count, static_cast<std::int64_t>(kBlock - first % kBlock));
    loops::draw(halves_of(key + first / kBlock * kGolden), static_cast<std::uint32_t>(first), here,
                limit, kept);
    first += static_cast<std::uint64_t>(here);
    kept += here;
    count -= here;
  }
}

void mask_run(const Tensor& x, const bool* kept, double scale, std::int64_t begin,
              std::int64_t count, Tensor& result) {
  if (x.scalar_type() == torch::kFloat) {
    loops::mask(x.data_ptr<float>() + begin, kept + begin, scale, count,
                result.data_ptr<float>() + begin);
  } else {
    loops::mask(x.data_ptr<double>() + begin, kept + begin, scale, count,
                result.data_ptr<double>() + begin);
  }
}

bool is_plain(const Tensor& x) {
  const bool wide = x.scalar_type() == torch::kFloat || x.scalar_type() == torch::kDouble;
  return wide && x.is_cpu() && !x.requires_grad();
}

// The same arithmetic on tensors, whose shifts keep the sign.
Tensor shifted(const Tensor& z, std::int64_t bits, std::int64_t width) {
  return at::bitwise_right_shift(z, bits).bitwise_and_((std::int64_t{1} << (width - bits)) - 1);
}

Tensor mixed_key(Tensor z) {
  z = z.bitwise_xor(shifted(z, 30, 64)).mul_(static_cast<std::int64_t>(kFirstFactor));
  z = z.bitwise_xor(shifted(z, 27, 64)).mul_(static_cast<std::int64_t>(kSecondFactor));
  return z.bitwise_xor(shifted(z, 31, 64));
}

std::int64_t as_signed(std::uint32_t factor) {
  return static_cast<std::int32_t>(factor);
}

Tensor mixed_numbers(Tensor z, const Tensor& first, const Tensor& second) {
  z.mul_(as_signed(loops::kNumberFactor)).bitwise_xor_(first);
  z.bitwise_xor_(shifted(z, 16, 32)).mul_(as_signed(loops::kUpperFactor)).bitwise_xor_(second);
  return z.bitwise_xor_(shifted(z, 13, 32)).mul_(as_signed(loops::kLowerFactor));
}

}  // namespace

std::uint64_t stream_key(std::uint64_t seed, std::string_view name) {
  std::uint64_t hash = 0xCBF29CE484222325U;  // FNV-1a
  for (const char letter : name) {
    hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001B3U;
  }
  return mix(hash + mix(seed + kGolden));
}

double uniform_at(std::uint64_t key, std::uint64_t number) {
  return static_cast<double>(mix(key + (number + 1) * kGolden) >> 11) * 0x1.0p-53;
}

Chance::Chance(const Call& call, Shape shape, double ratio)
    : shape_(std::move(shape)),
      begin_(call.integers("region_begin")),
      whole_(call.integers("region_shape")) {
  if (begin_.size() != shape_.size()) begin_.assign(shape_.size(), 0);
  if (whole_.size() != shape_.size()) whole_ = shape_;
  last_cut_ = shape_.empty() ? 0 : shape_.size() - 1;
  while (last_cut_ > 0 && shape_[last_cut_] == whole_[last_cut_]) --last_cut_;
  run_ = std::max<std::int64_t>(count_elements(std::span(shape_).subspan(last_cut_)), 1);
  limit_ = static_cast<std::uint32_t>(std::lround(std::min(ratio, 1.0) * 0x1.0p31));
  scale_ = ratio >= 1 ? 0 : 1 / (1 - ratio);
}

template <class Body>
void Chance::for_runs(std::int64_t begin, std::int64_t end, const Body& body) const {
  while (begin < end) {
    // The number in the whole of the element `begin` of the piece.
    std::int64_t rest = begin;
    std::int64_t number = 0;
    std::int64_t stride = 1;
    for (std::size_t i = shape_.size(); i-- > 0;) {
      number += (begin_[i] + rest % shape_[i]) * stride;
      rest /= shape_[i];
      stride *= whole_[i];
    }
    const std::int64_t count = std::min(end - begin, run_ - begin % run_);
    body(static_cast<std::uint64_t>(number), begin, count);
    begin += count;
  }
}

// The lower 32 bits of the elements' numbers.
Tensor Chance::numbers(const torch::Device& device) const {
  const auto options = torch::TensorOptions(torch::kLong).device(device);
  Tensor first = torch::zeros({}, options);  // of every run
  for (std::size_t i = 0; i < last_cut_; ++i) {
    const Tensor along = torch::arange(begin_[i], begin_[i] + shape_[i], options);
    first = first.unsqueeze(-1) * whole_[i] + along;
  }
  if (!shape_.empty()) {
    const std::int64_t inner = count_elements(std::span(whole_).subspan(last_cut_ + 1));
    first = (first * whole_[last_cut_] + begin_[last_cut_]) * inner;
  }
  const Tensor run = torch::arange(run_, options.dtype(torch::kInt));
  return (first.to(torch::kInt).unsqueeze(-1) + run).view(shape_);
}

Tensor Chance::mask_by_tensors(const Stream& stream, const torch::Device& device) const {
  if (count_elements(whole_) > std::int64_t{1} << 32) {
    fail(ErrorKind::kUnsupported, "there is no kernel for more than 2^32 elements there");
  }
  const auto options = torch::TensorOptions(torch::kLong).device(device);
  Tensor key = torch::full({}, static_cast<std::int64_t>(key_of(stream)), options);
  if (stream.clock.defined()) {
    key = stream.clock.to(torch::kLong)
              .mul_(static_cast<std::int64_t>(kStepFactor))
              .add_(static_cast<std::int64_t>(stream.key - kStepFactor));
  }
  key = mixed_key(key);
  const Tensor z = mixed_numbers(numbers(device), key.to(torch::kInt),
                                 at::bitwise_right_shift(key, 32).to(torch::kInt));
  return shifted(z, 1, 32).ge(static_cast<std::int64_t>(limit_));
}

Tensor Chance::mask(const Stream& stream, const torch::Device& device) const {
  if (!device.is_cpu()) return mask_by_tensors(stream, device);
  Tensor result = torch::empty(shape_, torch::kBool);
  auto* kept = result.data_ptr<bool>();
  for_ranges(result, [&](std::int64_t begin, std::int64_t end) {
    for_runs(begin, end, [&](std::uint64_t first, std::int64_t at, std::int64_t count) {
      draw_run(key_of(stream), first, count, limit_, kept + at);
    });
  });
  return result;
}

void Chance::apply(const Stream& stream, const Tensor& x, Tensor& result, Tensor& mask) const {
  if (!is_plain(x)) {
    mask = this->mask(stream, x.device());
    result = masked(x, mask, scale_);
    return;
  }
  const Tensor given = x.contiguous();
  result = torch::empty(shape_, given.options());
  mask = torch::empty(shape_, given.options().dtype(torch::kBool));
  auto* kept = mask.data_ptr<bool>();
  for_ranges(mask, [&](std::int64_t begin, std::int64_t end) {
    for_runs(begin, end, [&](std::uint64_t first, std::int64_t at, std::int64_t count) {
      draw_run(key_of(stream), first, count, limit_, kept + at);
      mask_run(given, kept, scale_, at, count, result);
    });
  });
}

Tensor masked(const Tensor& x, const Tensor& mask, double scale) {
  if (!is_plain(x)) return x * mask.to(x.dtype()) * scale;
  const Tensor given = x.contiguous();
  const Tensor which = mask.contiguous();
  Tensor result = torch::empty(x.sizes(), given.options());
  const auto* kept = which.data_ptr<bool>();
  for_ranges(which, [&](std::int64_t begin, std::int64_t end) {
    mask_run(given, kept, scale, begin, end - begin, result);
  });
  return result;
}

}  // namespace emplace::exec
