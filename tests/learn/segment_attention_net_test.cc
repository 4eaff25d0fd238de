
#include "learn/policies/segment_attention_net.h"

#include <map>

#include <gtest/gtest.h>

#include "learn/encoders/graph_sage.h"
namespace emplace::learn {
namespace {

constexpr AttentionSettings kSmallAttention{
    .width = 8, .heads = 2, .layers = 2, .segment = 4, .superposition = false};
constexpr std::int64_t kInputs = 6;
constexpr std::int64_t kOutputs = 3;

// A network with its parameters by name. They are far from their first values: nothing is near
// zero.
struct Net {
  explicit Net(const AttentionSettings& settings, std::uint64_t seed = 1)
      : rng(seed), attention(parameters, "a", kInputs, kOutputs, settings, rng) {
    const torch::NoGradGuard no_gradients;
    for (const auto& [name, tensor] : parameters.named()) {
      tensor.add_(0.3 * normals(tensor.sizes().vec(), rng));
      named[name] = tensor;
    }
  }
  torch::Tensor input(std::int64_t length) { return normals({length, kInputs}, rng); }

  Rng rng;
  Parameters parameters;
  SegmentAttention attention;
  std::map<std::string, torch::Tensor> named;
};

torch::Tensor norm(const torch::Tensor& x, const torch::Tensor& scale, const torch::Tensor& shift) {
  const torch::Tensor centred = x - x.mean(-1, true);
  return centred / (centred.square().mean(-1, true) + 1e-5).sqrt() * scale + shift;
}

// One head of one element at a time, segment after segment, with a list of memories: as the papers
// write it.
torch::Tensor attended_one_by_one(const Net& net, const AttentionSettings& settings,
                                  const torch::Tensor& x) {
  const auto at = [&](const std::string& name) { return net.named.at("a." + name); };
  const std::int64_t head_width = settings.width / settings.heads;
  std::vector<torch::Tensor> memory(static_cast<std::size_t>(settings.layers));
  std::vector<torch::Tensor> results;
  for (std::int64_t first = 0; first < x.size(0); first += settings.segment) {
    const std::int64_t end = std::min(first + settings.segment, x.size(0));
    torch::Tensor h = torch::matmul(x.slice(0, first, end), at("input.weight")) + at("input.bias");
    for (std::int64_t l = 0; l < settings.layers; ++l) {
      const std::string layer = std::to_string(l) + ".";
      torch::Tensor& remembered = memory[static_cast<std::size_t>(l)];
      const torch::Tensor seen = remembered.defined() ? torch::cat({remembered, h}) : h;
      remembered = h.detach();
      const torch::Tensor query = torch::matmul(h, at(layer + "query.weight"));
      const torch::Tensor both = torch::matmul(seen, at(layer + "key_value.weight"));
      std::vector<torch::Tensor> rows;
      for (std::int64_t i = 0; i < h.size(0); ++i) {
        std::vector<torch::Tensor> heads;
        for (std::int64_t from = 0; from < settings.width; from += head_width) {
          const torch::Tensor q = query[i].slice(0, from, from + head_width);
          const torch::Tensor k = both.slice(1, from, from + head_width);
          const torch::Tensor v =
              both.slice(1, settings.width + from, settings.width + from + head_width);
          const torch::Tensor weights =
              torch::softmax((k * q).sum(1) / std::sqrt(static_cast<double>(head_width)), 0);
          heads.push_back((weights.unsqueeze(1) * v).sum(0));
        }
        rows.push_back(torch::matmul(torch::cat(heads), at(layer + "merge.weight")));
      }
      h = norm(h + torch::stack(rows), at(layer + "after_attention.scale"),
               at(layer + "after_attention.shift"));
      const torch::Tensor inner =
          torch::relu(torch::matmul(h, at(layer + "inner.weight")) + at(layer + "inner.bias"));
      h = norm(h + torch::matmul(inner, at(layer + "outer.weight")) + at(layer + "outer.bias"),
               at(layer + "after_inner.scale"), at(layer + "after_inner.shift"));
    }
    results.push_back(torch::matmul(h, at("output.weight")) + at("output.bias"));
  }
  return torch::cat(results);
}

TEST(SegmentAttention, is_what_a_direct_computation_gives) {
  Net net(kSmallAttention);
  for (const std::int64_t length : {1, 3, 4, 5, 8, 11}) {
    const torch::Tensor x = net.input(length);
    const torch::Tensor got = net.attention(x);
    const torch::Tensor expected = attended_one_by_one(net, kSmallAttention, x);
    EXPECT_TRUE(torch::allclose(got, expected, 1e-4, 1e-5)) << length;
    const torch::Tensor weights = normals({length, kOutputs}, net.rng);
    const auto of = torch::autograd::grad({(got * weights).sum()}, net.parameters.tensors());
    const auto to = torch::autograd::grad({(expected * weights).sum()}, net.parameters.tensors());
    for (std::size_t i = 0; i < of.size(); ++i) {
      EXPECT_TRUE(torch::allclose(of[i], to[i], 1e-3, 1e-4)) << net.parameters.named()[i].first;
    }
  }
}

TEST(SegmentAttention, hears_of_the_segment_before_and_sends_no_gradient_there) {
  Net net(kSmallAttention);
  const torch::Tensor x = net.input(12).requires_grad_(true);
  const torch::Tensor result = net.attention(x);
  const torch::Tensor gradient =
      torch::autograd::grad({result.slice(0, 4, 8).square().sum()}, {x})[0];
  EXPECT_EQ(gradient.slice(0, 0, 4).abs().sum().item<float>(), 0);
  EXPECT_EQ(gradient.slice(0, 8).abs().sum().item<float>(), 0);
  EXPECT_GT(gradient.slice(0, 4, 8).abs().sum().item<float>(), 0);

  const torch::NoGradGuard no_gradients;
  torch::Tensor changed = x.clone();
  changed[0].add_(1);
  const torch::Tensor difference = (net.attention(changed) - result).abs().sum(1);
  for (std::int64_t i = 0; i < 8; ++i) EXPECT_GT(difference[i].item<float>(), 0) << i;
  changed = x.clone();
  changed[11].add_(1);
  const torch::Tensor backwards = (net.attention(changed) - result).abs().sum(1);
  EXPECT_EQ(backwards.slice(0, 0, 8).sum().item<float>(), 0);
}

TEST(SegmentAttention, knows_no_positions) {
  Net net(kSmallAttention);
  const torch::NoGradGuard no_gradients;
  const torch::Tensor x = net.input(11);
  const torch::Tensor order =
      torch::tensor(std::vector<std::int64_t>{2, 0, 3, 1, 7, 4, 6, 5, 10, 8, 9});
  EXPECT_TRUE(torch::allclose(net.attention(x.index_select(0, order)),
                              net.attention(x).index_select(0, order), 1e-4, 1e-5));
  const torch::Tensor across =
      torch::tensor(std::vector<std::int64_t>{4, 1, 2, 3, 0, 5, 6, 7, 8, 9, 10});
  EXPECT_FALSE(torch::allclose(net.attention(x.index_select(0, across)),
                               net.attention(x).index_select(0, across), 1e-4, 1e-5));
}

TEST(SegmentAttention, superposition_conditions_on_the_whole_graph) {
  AttentionSettings settings = kSmallAttention;
  settings.superposition = true;
  Net with(settings);
  const torch::NoGradGuard no_gradients;
  // A change beyond what the first segment can see changes it all the same.
  const torch::Tensor x = with.input(11);
  torch::Tensor changed = x.clone();
  changed[10].add_(1);
  EXPECT_GT((with.attention(changed) - with.attention(x))[0].abs().sum().item<float>(), 0);
  // Without conditioning layers' weights it is the plain network.
  Net without(kSmallAttention);
  for (const auto& [name, tensor] : with.named) {
    if (name.find("condition") != std::string::npos) {
      tensor.zero_();
    } else {
      without.named.at(name).copy_(tensor);
    }
  }
  EXPECT_TRUE(torch::allclose(with.attention(x), without.attention(x), 1e-4, 1e-5));
}

TEST(SegmentAttention, superposition_multiplies_the_input) {
  Rng rng(4);
  Parameters parameters;
  const ConditionedLinear layer(parameters, "l", 5, 3, 2, true, rng);
  const auto at = [&](std::size_t i) { return parameters.tensors()[i]; };  // W, b, C, c
  const torch::Tensor x = normals({7, 5}, rng), graph = normals({2}, rng);
  const torch::Tensor factors = 1 + torch::matmul(graph, at(2)) + at(3);
  EXPECT_TRUE(
      torch::allclose(layer(x, graph), torch::matmul(factors * x, at(0)) + at(1), 1e-4, 1e-5));
  EXPECT_FALSE(torch::allclose(factors, torch::ones({5}), 1e-3, 1e-3));
}

TEST(GraphSage, is_what_its_formula_says) {
  Rng rng(2);
  Parameters parameters;
  Csr<std::uint32_t> lists;
  for (const std::vector<std::uint32_t>& list :
       std::vector<std::vector<std::uint32_t>>{{1, 2}, {0}, {0}, {}}) {
    lists.push_back(list);
  }
  const GraphSage sage(parameters, "s", lists, 3, 5, 2, rng);
  const torch::Tensor x = normals({4, 3}, rng);
  torch::Tensor h = x;
  for (std::size_t l = 0; l < 2; ++l) {
    const std::vector<torch::Tensor> p = parameters.tensors();  // said W b, own W b, pooled W
    const torch::Tensor said = torch::sigmoid(torch::matmul(h, p[5 * l]) + p[5 * l + 1]);
    const torch::Tensor pooled =
        torch::stack({torch::maximum(said[1], said[2]), said[0], said[0], torch::zeros({5})});
    h = torch::relu(
        torch::matmul(torch::cat({h, pooled}, 1), torch::cat({p[5 * l + 2], p[5 * l + 4]}, 0)) +
        p[5 * l + 3]);
  }
  EXPECT_TRUE(torch::allclose(sage(x), h, 1e-4, 1e-5));
}

}  // namespace
}  // namespace emplace::learn
