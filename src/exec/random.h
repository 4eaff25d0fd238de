// Random numbers that follow from where they are used: from the seed, the op, the step and the
// number of the element in the whole tensor. So they depend neither on the order of execution nor
// on how an op is divided, and a gradient draws again what its forward op drew.
#pragma once

#include "exec/kernel.h"

namespace emplace::exec {

// Which elements are kept. Of a piece (attributes region_begin, region_shape) those of its region.
class Chance {
 public:
  Chance(const Call& call, Shape shape, double ratio);

  double scale() const { return scale_; }  // of what is kept
  // Bool, of the shape.
  Tensor mask(const Stream& stream, const torch::Device& device) const;
  // The same by tensor operations, for any device.
  Tensor mask_by_tensors(const Stream& stream, const torch::Device& device) const;
  // x where it is kept, scaled, and the mask, in one pass over memory; on CPUs, without gradients.
  void apply(const Stream& stream, const Tensor& x, Tensor& result, Tensor& mask) const;

 private:
  Tensor numbers(const torch::Device& device) const;
  // Calls body(first number, local begin, count) for runs of consecutive numbers.
  template <class Body>
  void for_runs(std::int64_t begin, std::int64_t end, const Body& body) const;

  Shape shape_;
  Shape begin_;
  Shape whole_;
  std::size_t last_cut_ = 0;  // the last dimension that is cut, or the first
  std::int64_t run_ = 1;      // elements of it and those behind it, which lie together
  std::uint32_t limit_ = 0;
  double scale_ = 1;
};

// x without the elements that the mask leaves out, times the scale.
Tensor masked(const Tensor& x, const Tensor& mask, double scale);

// Sets the clock's tensors, wherever they are.
void set_clock(Clock& clock, std::int64_t step);

// Of the op's stream, which stands for the seed and a name.
std::uint64_t stream_key(std::uint64_t seed, std::string_view name);

// Uniform in [0, 1), of a stream's element.
double uniform_at(std::uint64_t key, std::uint64_t number);

}  // namespace emplace::exec
