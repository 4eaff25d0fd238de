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

loops::Key halves_of(std::uint64_t mixed) {
  return {static_cast<std::uint32_t>(mixed), static_cast<std::uint32_t>(mixed >> 32)};
}

// Of all ops, so that a GPU is told once a step.
std::uint64_t key_of_step(std::int64_t step) {
  return mix(static_cast<std::uint64_t>(step) * kStepFactor + kGolden);
}

// Elements are drawn by the lower half of their numbers; the upper one is the block.
std::uint64_t key_of_block(const Stream& stream, std::uint64_t block) {
  return mix(stream.key + block * kGolden);
}

void draw_run(const Stream& stream, std::uint64_t first, std::int64_t count, std::uint32_t limit,
              bool* kept) {
  const std::uint64_t step = key_of_step(stream.step);
  constexpr std::uint64_t kBlock = std::uint64_t{1} << 32;
  while (count > 0) {
    const auto here = std::min(count, static_cast<std::int64_t>(kBlock - first % kBlock));
    loops::draw(halves_of(key_of_block(stream, first / kBlock) ^ step),
                static_cast<std::uint32_t>(first), here, limit, kept);
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
Tensor shifted(const Tensor& z, std::int64_t bits) {
  constexpr std::int64_t kWidth = 32;
  return at::bitwise_right_shift(z, bits).bitwise_and_((std::int64_t{1} << (kWidth - bits)) - 1);
}

std::int64_t as_signed(std::uint32_t factor) {
  return static_cast<std::int32_t>(factor);
}

Tensor mixed_numbers(Tensor z, const Tensor& first, const Tensor& second) {
  z.mul_(as_signed(loops::kNumberFactor)).bitwise_xor_(first);
  z.bitwise_xor_(shifted(z, 16)).mul_(as_signed(loops::kUpperFactor)).bitwise_xor_(second);
  return z.bitwise_xor_(shifted(z, 13)).mul_(as_signed(loops::kLowerFactor));
}

// Whose upper 31 bits are not below the limit: unsigned, they are compared by flipping the sign.
Tensor kept_by(Tensor& z, std::uint32_t limit) {
  constexpr std::uint32_t kSign = std::uint32_t{1} << 31;
  if (limit >= kSign) return torch::zeros(z.sizes(), z.options().dtype(torch::kBool));
  return z.bitwise_xor_(as_signed(kSign)).ge(as_signed((limit << 1) ^ kSign));
}

}  // namespace

void set_clock(Clock& clock, std::int64_t step) {
  const loops::Key key = halves_of(key_of_step(step));
  clock.number.fill_(static_cast<double>(step + 1));
  clock.key[0].fill_(as_signed(key.first));
  clock.key[1].fill_(as_signed(key.second));
}

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
  if (shape_ == whole_) return torch::arange(run_, options.dtype(torch::kInt)).view(shape_);
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
  Tensor step = stream.clock.key;
  if (!step.defined()) {
    Clock clock{.number = torch::zeros({}, device),
                .key = torch::zeros({2}, torch::TensorOptions(torch::kInt).device(device))};
    set_clock(clock, stream.step);
    step = clock.key;
  }
  const loops::Key key = halves_of(key_of_block(stream, 0));
  Tensor z = mixed_numbers(numbers(device), step[0].bitwise_xor(as_signed(key.first)),
                           step[1].bitwise_xor(as_signed(key.second)));
  return kept_by(z, limit_);
}

Tensor Chance::mask(const Stream& stream, const torch::Device& device) const {
  if (!device.is_cpu()) return mask_by_tensors(stream, device);
  Tensor result = torch::empty(shape_, torch::kBool);
  auto* kept = result.data_ptr<bool>();
  for_ranges(result, [&](std::int64_t begin, std::int64_t end) {
    for_runs(begin, end, [&](std::uint64_t first, std::int64_t at, std::int64_t count) {
      draw_run(stream, first, count, limit_, kept + at);
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
      draw_run(stream, first, count, limit_, kept + at);
      mask_run(given, kept, scale_, at, count, result);
    });
  });
}

Tensor masked(const Tensor& x, const Tensor& mask, double scale) {
  if (!x.is_cpu()) return at::native_dropout_backward(x, mask, scale);  // one pass
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
