#include "learn/policies/segment_attention_net.h"

#include <algorithm>
#include <cmath>

#include "learn/nn/deadline.h"

namespace emplace::learn {
namespace {

constexpr double kInitialCondition = 0.1;  // bound of the conditioning layer's first weights
constexpr double kNoDifference = 1e-6;
constexpr std::int64_t kInnerFactor = 2;   // the feed-forward layer's width, in widths
constexpr std::int64_t kPieceRows = 1024;  // on a processor, whose caches they fit in

// [segments, keys, width] to [segments * heads, keys, width / heads].
torch::Tensor by_head(const torch::Tensor& x, std::int64_t heads) {
  const std::int64_t segments = x.size(0), length = x.size(1), width = x.size(2);
  return x.view({segments, length, heads, width / heads})
      .transpose(1, 2)
      .reshape({segments * heads, length, width / heads});
}

}  // namespace

ConditionedLinear::ConditionedLinear(Parameters& parameters, const std::string& name,
                                     std::int64_t in, std::int64_t out, std::int64_t condition,
                                     bool with_bias, Rng& rng)
    : linear_(parameters, name, in, out, rng, with_bias) {
  if (condition == 0) return;
  condition_.weight =
      parameters.uniform(name + ".condition.weight", {condition, in},
                         kInitialCondition / std::sqrt(static_cast<double>(condition)), rng);
  condition_.bias = parameters.constant(name + ".condition.bias", {in}, 0);
}

void ConditionedLinear::scale(double factor) {
  const torch::NoGradGuard no_gradients;
  linear_.weight.mul_(factor);
}

void ConditionedLinear::adjust(double factor, const torch::Tensor& shift) {
  const torch::NoGradGuard no_gradients;
  linear_.weight.mul_(factor);
  linear_.bias.mul_(factor).add_(shift);
}

torch::Tensor ConditionedLinear::weight(const torch::Tensor& graph) const {
  if (!condition_.weight.defined()) return linear_.weight;
  return (1 + condition_(graph)).unsqueeze(-1) * linear_.weight;
}

torch::Tensor ConditionedLinear::operator()(const torch::Tensor& x,
                                            const torch::Tensor& graph) const {
  const torch::Tensor product = torch::matmul(x, weight(graph));
  return linear_.bias.defined() ? product + linear_.bias : product;
}

torch::Tensor SegmentAttention::Norm::operator()(const torch::Tensor& x) const {
  return torch::layer_norm(x, {x.size(-1)}, scale, shift);
}

SegmentAttention::SegmentAttention(Parameters& parameters, const std::string& name,
                                   std::int64_t input_width, std::int64_t output_width,
                                   const AttentionSettings& settings, Rng& rng)
    : settings_(settings) {
  const std::int64_t width = settings.width;
  EMPLACE_CHECK(width % settings.heads == 0);
  const std::int64_t condition = settings.superposition ? input_width : 0;
  const auto dense = [&](const std::string& part, std::int64_t in, std::int64_t out, bool bias) {
    return ConditionedLinear(parameters, name + "." + part, in, out, condition, bias, rng);
  };
  const auto norm = [&](const std::string& part) {
    return Norm{parameters.constant(name + "." + part + ".scale", {width}, 1),
                parameters.constant(name + "." + part + ".shift", {width}, 0)};
  };
  input_ = dense("input", input_width, width, true);
  for (std::int64_t i = 0; i < settings.layers; ++i) {
    const std::string at = std::to_string(i) + ".";
    blocks_.push_back({.query = dense(at + "query", width, width, false),
                       .key_value = dense(at + "key_value", width, 2 * width, false),
                       .merge = dense(at + "merge", width, width, false),
                       .inner = dense(at + "inner", width, kInnerFactor * width, true),
                       .outer = dense(at + "outer", kInnerFactor * width, width, true),
                       .after_attention = norm(at + "after_attention"),
                       .after_inner = norm(at + "after_inner")});
    blocks_.back().merge.scale(settings.first_branch);
    blocks_.back().outer.scale(settings.first_branch);
  }
  output_ = dense("output", width, output_width, true);
}

std::vector<SegmentAttention::Piece> SegmentAttention::pieces(std::int64_t length,
                                                              bool on_cpu) const {
  const std::int64_t segment = settings_.segment;
  std::vector<Piece> result{{.rows = std::min(segment, length), .remembers = false}};
  const std::int64_t most = on_cpu ? std::max<std::int64_t>(1, kPieceRows / segment) : length;
  std::int64_t first = result[0].rows;
  while (length - first >= segment) {
    const std::int64_t segments = std::min(most, (length - first) / segment);
    result.push_back({.first = first, .rows = segments * segment, .segments = segments});
    first += segments * segment;
  }
  if (first < length) result.push_back({.first = first, .rows = length - first});
  return result;
}

torch::Tensor SegmentAttention::attend(const Block& block, const torch::Tensor& h,
                                       const torch::Tensor& memory,
                                       const torch::Tensor& graph) const {
  const std::int64_t segments = h.size(0), length = h.size(1), width = h.size(2);
  torch::Tensor key_value = block.key_value(h, graph);
  if (memory.defined()) key_value = torch::cat({block.key_value(memory, graph), key_value}, 1);
  const torch::Tensor query = by_head(block.query(h, graph), settings_.heads);
  const torch::Tensor key = by_head(key_value.slice(2, 0, width), settings_.heads);
  const torch::Tensor value = by_head(key_value.slice(2, width), settings_.heads);
  const double scale = 1 / std::sqrt(static_cast<double>(width / settings_.heads));
  const torch::Tensor scores = torch::bmm(query * scale, key.transpose(1, 2));
  const torch::Tensor seen = torch::bmm(torch::softmax(scores, -1), value);
  return block.merge(seen.view({segments, settings_.heads, length, width / settings_.heads})
                         .transpose(1, 2)
                         .reshape({segments, length, width}),
                     graph);
}

torch::Tensor SegmentAttention::run(const Block& block, const torch::Tensor& h,
                                    const torch::Tensor& memory, const torch::Tensor& graph) const {
  const torch::Tensor seen = block.after_attention(h + attend(block, h, memory, graph));
  const torch::Tensor inner = torch::relu(block.inner(seen, graph));
  return block.after_inner(seen + block.outer(inner, graph));
}

void SegmentAttention::spread_outputs(const torch::Tensor& x, double deviation) {
  const torch::NoGradGuard no_gradients;
  const torch::Tensor outputs = (*this)(x);
  const torch::Tensor mean = outputs.mean(0);
  const double now = (outputs - mean).square().mean().sqrt().item<double>();
  const double factor = now > kNoDifference ? deviation / now : 1;
  output_.adjust(factor, -factor * mean);
}

torch::Tensor SegmentAttention::operator()(const torch::Tensor& x) const {
  const std::int64_t width = settings_.width;
  const std::vector<Piece> parts = pieces(x.size(0), x.device().is_cpu());
  std::vector<std::int64_t> rows;
  for (const Piece& piece : parts) rows.push_back(piece.rows);
  const torch::Tensor graph = x.mean(0);
  torch::Tensor h = input_(x, graph);
  for (const Block& block : blocks_) {
    const std::vector<torch::Tensor> own = h.split_with_sizes(rows);
    const torch::Tensor fixed = h.detach();
    std::vector<torch::Tensor> results;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      check_time();
      const Piece& piece = parts[i];
      torch::Tensor memory;
      if (piece.remembers) {
        const std::int64_t from = piece.first - settings_.segment;
        memory = fixed.slice(0, from, from + piece.segments * settings_.segment)
                     .view({piece.segments, settings_.segment, width});
      }
      const torch::Tensor result = run(
          block, own[i].view({piece.segments, piece.rows / piece.segments, width}), memory, graph);
      results.push_back(result.view({piece.rows, width}));
    }
    h = torch::cat(results);
  }
  return output_(h, graph);
}

}  // namespace emplace::learn
