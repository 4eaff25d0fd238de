// Attention over a long sequence in segments, after Transformer-XL (Dai et al. 2019) as GDP uses
// it: an element looks at its own segment, in both directions, and at the one before, through which
// no gradient goes. There are no positions: elements are known by what they are. Linear in the
// length.
//
// A block: h' = norm(h + attend(h)), h'' = norm(h' + W2 relu(W1 h')). With superposition, the input
// of every dense layer is first multiplied by 1 + c(g), where g describes the whole graph and c is
// one learned layer (near 0 at first).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "learn/nn/module.h"
#include "learn/nn/torch.h"

namespace emplace::learn {

struct AttentionSettings {
  std::int64_t width = 128;
  std::int64_t heads = 4;  // divides the width
  std::int64_t layers = 2;
  std::int64_t segment = 128;
  bool superposition = true;
  // The first weights of what blocks add are multiplied by this, lest whoever shares a segment
  // begins on one device.
  double first_branch = 0.1;
};

// A dense layer whose input may be multiplied by what the graph asks for.
class ConditionedLinear {
 public:
  ConditionedLinear() = default;
  // `condition` is the width of g; 0: none.
  ConditionedLinear(Parameters& parameters, const std::string& name, std::int64_t in,
                    std::int64_t out, std::int64_t condition, bool with_bias, Rng& rng);

  // Before training: multiplies the weights; also the bias, and adds to it.
  void scale(double factor);
  void adjust(double factor, const torch::Tensor& shift);
  // The weights for a graph: the factors of the input are factors of the rows.
  torch::Tensor weight(const torch::Tensor& graph) const;
  torch::Tensor operator()(const torch::Tensor& x, const torch::Tensor& graph) const;

 private:
  Linear linear_;
  Linear condition_;
};

class SegmentAttention {
 public:
  SegmentAttention(Parameters& parameters, const std::string& name, std::int64_t input_width,
                   std::int64_t output_width, const AttentionSettings& settings, Rng& rng);

  // [length, input_width] to [length, output_width]; the mean of the input describes the graph.
  torch::Tensor operator()(const torch::Tensor& x) const;

  // Changes the last layer so that the outputs for x have mean 0 each, and together this standard
  // deviation; a mean of 0 alone where they do not differ at all.
  void spread_outputs(const torch::Tensor& x, double deviation);

 private:
  struct Norm {
    torch::Tensor scale, shift;
    torch::Tensor operator()(const torch::Tensor& x) const;
  };
  struct Block {
    ConditionedLinear query, key_value, merge, inner, outer;
    Norm after_attention, after_inner;
  };

  // Rows of consecutive segments that are computed together.
  struct Piece {
    std::int64_t first = 0;
    std::int64_t rows = 0;
    std::int64_t segments = 1;
    bool remembers = true;  // all but the first segment
  };
  std::vector<Piece> pieces(std::int64_t length, bool on_cpu) const;
  // h is [segments, rows, width], memory likewise, or undefined.
  torch::Tensor attend(const Block& block, const torch::Tensor& h, const torch::Tensor& memory,
                       const torch::Tensor& graph) const;
  torch::Tensor run(const Block& block, const torch::Tensor& h, const torch::Tensor& memory,
                    const torch::Tensor& graph) const;

  AttentionSettings settings_;
  ConditionedLinear input_, output_;
  std::vector<Block> blocks_;
};

}  // namespace emplace::learn
