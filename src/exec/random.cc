#include "exec/random.h"

#include <cmath>

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

EMPLACE_CLONES void draw_run(std::uint64_t key, std::uint64_t first, std::int64_t count,
                             std::uint64_t limit, bool* kept) {
  for (std::int64_t i = 0; i < count; ++i) {
    kept[i] = (mix(key + (first + static_cast<std::uint64_t>(i)) * kGolden) >> 33) >= limit;
  }
}

EMPLACE_CLONES void mask_floats(const float* x, const bool* kept, float scale, std::int64_t count,
                                float* result) {
  for (std::int64_t i = 0; i < count; ++i) result[i] = kept[i] ? x[i] * scale : 0.0F;
}

EMPLACE_CLONES void mask_doubles(const double* x, const bool* kept, double scale,
                                 std::int64_t count, double* result) {
  for (std::int64_t i = 0; i < count; ++i) result[i] = kept[i] ? x[i] * scale : 0.0;
}

void mask_run(const Tensor& x, const bool* kept, double scale, std::int64_t begin,
              std::int64_t count, Tensor& result) {
  if (x.scalar_type() == torch::kFloat) {
    mask_floats(x.data_ptr<float>() + begin, kept + begin, static_cast<float>(scale), count,
                result.data_ptr<float>() + begin);
  } else {
    mask_doubles(x.data_ptr<double>() + begin, kept + begin, scale, count,
                 result.data_ptr<double>() + begin);
  }
}

bool is_plain(const Tensor& x) {
  const bool wide = x.scalar_type() == torch::kFloat || x.scalar_type() == torch::kDouble;
  return wide && x.is_cpu() && !x.requires_grad();
}

// The same arithmetic on tensors; shifts of int64 keep the sign.
Tensor shifted(const Tensor& z, std::int64_t bits) {
  return at::bitwise_right_shift(z, bits).bitwise_and_((std::int64_t{1} << (64 - bits)) - 1);
}

Tensor mixed(Tensor z) {
  z = z.bitwise_xor(shifted(z, 30)).mul_(static_cast<std::int64_t>(kFirstFactor));
  return z.bitwise_xor(shifted(z, 27)).mul_(static_cast<std::int64_t>(kSecondFactor));
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
  for (std::size_t i = shape_.size(); i-- > 0;) {
    run_ *= shape_[i];
    if (shape_[i] != whole_[i]) break;
  }
  run_ = std::max<std::int64_t>(run_, 1);
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

Tensor Chance::numbers(const torch::Device& device) const {
  const auto options = torch::TensorOptions(torch::kLong).device(device);
  Tensor result = torch::zeros({}, options);
  for (std::size_t i = 0; i < shape_.size(); ++i) {
    const Tensor along = torch::arange(begin_[i], begin_[i] + shape_[i], options);
    result = result.unsqueeze(-1) * whole_[i] + along;
  }
  return result;
}

Tensor Chance::mask(const Stream& stream, const torch::Device& device) const {
  if (!device.is_cpu()) {
    Tensor z = numbers(device).mul_(static_cast<std::int64_t>(kGolden));
    if (stream.clock.defined()) {
      const auto before = static_cast<std::int64_t>(stream.key - kStepFactor);
      z.add_(
          stream.clock.to(torch::kLong).mul_(static_cast<std::int64_t>(kStepFactor)).add_(before));
    } else {
      z.add_(static_cast<std::int64_t>(key_of(stream)));
    }
    // The last step of mixing does not reach the bits that are looked at.
    return shifted(mixed(z), 33).ge(static_cast<std::int64_t>(limit_));
  }
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
