// A sequence-to-sequence network over one segment of a long sequence after the other, as Mars has
// it. Segments hand on the states of the decoder and of the encoder's forward direction, and the
// last device; the backward direction begins anew in each, as its state would come from a segment
// that is not there yet. Gradients go through all segments.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "learn/nn/torch.h"
#include "learn/policies/policy.h"
#include "learn/policies/seq2seq_net.h"

namespace emplace::learn {

struct Segment {
  std::int64_t first = 0;
  std::int64_t size = 0;
};

class SegmentSeq2Seq {
 public:
  // `width` is the network's, which has both directions. Where scoring would keep more bytes than
  // `most_bytes_kept` for gradients, segments are computed again (learn/nn/recompute.h).
  SegmentSeq2Seq(std::int64_t steps, std::int64_t segment, std::int64_t width,
                 double most_bytes_kept);

  // The network for a segment, and all parameters that it is made of. What `at` refers to must live
  // as long as gradients may be asked for.
  struct Network {
    std::function<Seq2Seq(const Segment&)> at;
    std::vector<torch::Tensor> parameters;
  };
  // Inputs [steps, any], mask and uniform as Seq2Seq::sample has them; for scoring, too.
  Samples sample(const Network& network, const torch::Tensor& inputs, const torch::Tensor& mask,
                 const torch::Tensor& uniform) const;
  Scores score(const Network& network, const torch::Tensor& inputs, const torch::Tensor& mask,
               const Samples& samples) const;

 private:
  Seq2SeqState first_state(std::int64_t count, const torch::Tensor& like) const;

  std::vector<Segment> segments_;
  std::int64_t width_;
  double most_bytes_kept_;
};

}  // namespace emplace::learn
