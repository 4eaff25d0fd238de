#include "learn/encoders/message_passing.h"

#include <algorithm>
#include <utility>

namespace emplace::learn {
namespace {

constexpr std::array<const char*, Relations::kKinds> kPoolNames{"ancestors", "descendants",
                                                                "parallel"};

// Calls `visit` with every node that a path of one or more edges leads to.
template <class Visit>
void for_each_reached(const Csr<std::uint32_t>& successors, std::uint32_t from, Visit visit) {
  std::vector<bool> seen(successors.size(), false);
  std::vector<std::uint32_t> open{from};
  while (!open.empty()) {
    const std::uint32_t node = open.back();
    open.pop_back();
    for (const std::uint32_t next : successors[node]) {
      if (seen[next]) continue;
      seen[next] = true;
      visit(next);
      open.push_back(next);
    }
  }
}

// By edge.
std::vector<float> edge_weights(const Csr<std::uint32_t>& lists, Aggregate aggregate) {
  std::size_t hearers = 0;
  for (std::size_t node = 0; node < lists.size(); ++node) hearers += lists[node].empty() ? 0 : 1;
  std::vector<float> weights;
  for (std::size_t node = 0; node < lists.size(); ++node) {
    const auto own = static_cast<float>(lists[node].size());
    const float mean = static_cast<float>(lists.total()) / static_cast<float>(hearers);
    weights.insert(weights.end(), lists[node].size(),
                   1 / (aggregate == Aggregate::kMean ? own : mean));
  }
  return weights;
}

torch::Tensor has_neighbours(const Csr<std::uint32_t>& lists, torch::Device device) {
  torch::Tensor heard =
      torch::zeros({static_cast<std::int64_t>(lists.size()), 1, 1}, torch::kFloat32);
  for (std::size_t node = 0; node < lists.size(); ++node) {
    heard.data_ptr<float>()[node] = lists[node].empty() ? 0 : 1;
  }
  return heard.to(device);
}

}  // namespace

FeedForward::FeedForward(Parameters& parameters, const std::string& name,
                         const std::vector<std::int64_t>& widths, bool relu_after, Rng& rng)
    : relu_after_(relu_after) {
  for (std::size_t i = 0; i + 1 < widths.size(); ++i) {
    layers_.emplace_back(parameters, name + "." + std::to_string(i), widths[i], widths[i + 1], rng);
  }
}

torch::Tensor FeedForward::operator()(torch::Tensor rows) const {
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    rows = layers_[i](rows);
    if (relu_after_ || i + 1 < layers_.size()) rows = torch::relu(rows);
  }
  return rows;
}

Relations::Relations(const Csr<std::uint32_t>& successors, torch::Device device) {
  const auto nodes = static_cast<std::uint32_t>(successors.size());
  for (torch::Tensor& related : related_) related = torch::zeros({nodes, nodes}, torch::kUInt8);
  std::uint8_t* ancestors = related_[kAncestors].data_ptr<std::uint8_t>();
  std::uint8_t* descendants = related_[kDescendants].data_ptr<std::uint8_t>();
  for (std::uint32_t node = 0; node < nodes; ++node) {
    for_each_reached(successors, node, [&](std::uint32_t reached) {
      if (reached == node) return;
      descendants[static_cast<std::size_t>(node) * nodes + reached] = 1;
      ancestors[static_cast<std::size_t>(reached) * nodes + node] = 1;
    });
  }
  related_[kParallel] = ((related_[kAncestors] + related_[kDescendants]) == 0).to(torch::kUInt8);
  related_[kParallel].fill_diagonal_(0);
  for (torch::Tensor& related : related_) related = related.to(device);
}

torch::Tensor Relations::of(Kind kind, const torch::Tensor& nodes) const {
  return related_[kind].index_select(0, nodes).to(torch::kFloat32);
}

MessagePassing::MessagePassing(Parameters& parameters, const Csr<std::uint32_t>& predecessors,
                               const Csr<std::uint32_t>& successors, std::int64_t features,
                               std::int64_t choices, const MessagePassingSettings& settings,
                               Rng& rng)
    : settings_(settings),
      embed_(parameters, "embed", {features, features, features, features}, false, rng),
      forward_(direction(parameters, "forward", predecessors, features, rng)),
      backward_(direction(parameters, "backward", successors, features, rng)),
      relations_(successors, parameters.device()) {
  const std::int64_t d = features;
  if (settings.pools) {
    for (std::size_t kind = 0; kind < pools_.size(); ++kind) {
      const std::string name = kPoolNames[kind];
      pools_[kind].before = {parameters, name + ".before", {2 * d, 2 * d, 2 * d}, true, rng};
      pools_[kind].after = {parameters, name + ".after", {2 * d, 2 * d, 2 * d}, true, rng};
    }
  }
  const std::int64_t known = settings.pools ? 8 * d : 2 * d;
  classify_ = {parameters, "classify", {known, 16 * d, 8 * d, choices}, false, rng};
}

MessagePassing::Direction MessagePassing::direction(Parameters& parameters, const std::string& name,
                                                    const Csr<std::uint32_t>& neighbours,
                                                    std::int64_t width, Rng& rng) const {
  FeedForward before;
  FeedForward after;
  if (settings_.rounds > 0) {
    before = {parameters, name + ".before", {width, width, width}, true, rng};
    after = {parameters, name + ".after", {width, width, width}, true, rng};
  }
  return direction(neighbours, std::move(before), std::move(after), parameters.device());
}

MessagePassing::Direction MessagePassing::direction(const Csr<std::uint32_t>& neighbours,
                                                    FeedForward before, FeedForward after,
                                                    torch::Device device) const {
  const std::vector<float> weights = settings_.aggregate == Aggregate::kSum
                                         ? std::vector<float>{}
                                         : edge_weights(neighbours, settings_.aggregate);
  return {.neighbours = Neighbours(neighbours, weights, device),
          .heard = has_neighbours(neighbours, device),
          .before = std::move(before),
          .after = std::move(after)};
}

MessagePassing MessagePassing::on(const Csr<std::uint32_t>& predecessors,
                                  const Csr<std::uint32_t>& successors) const {
  const torch::Device device = forward_.heard.device();
  MessagePassing result = *this;
  result.forward_ = direction(predecessors, forward_.before, forward_.after, device);
  result.backward_ = direction(successors, backward_.before, backward_.after, device);
  result.relations_ = Relations(successors, device);
  return result;
}

torch::Tensor MessagePassing::pass(const Direction& direction,
                                   const torch::Tensor& embedded) const {
  const std::int64_t width = embedded.size(2);
  torch::Tensor x = embedded;
  for (std::int64_t round = 0; round < settings_.rounds; ++round) {
    const torch::Tensor sent = direction.before(x.reshape({-1, width}));
    const torch::Tensor heard = direction.neighbours.sum(sent.view(embedded.sizes()));
    const torch::Tensor understood = direction.after(heard.view({-1, width}));
    x = torch::addcmul(embedded, understood.view(embedded.sizes()), direction.heard);
  }
  return x;
}

torch::Tensor MessagePassing::encode(const torch::Tensor& features) const {
  // Nodes before samples, as sums over neighbours want it.
  const torch::Tensor by_node = features.transpose(0, 1);
  const torch::Tensor embedded =
      embed_(by_node.reshape({-1, features.size(2)})).view(by_node.sizes());
  return torch::cat({pass(forward_, embedded), pass(backward_, embedded)}, 2)
      .transpose(0, 1)
      .contiguous();
}

torch::Tensor MessagePassing::pool(std::size_t kind, const torch::Tensor& encoded,
                                   const torch::Tensor& current) const {
  const torch::Tensor rows =
      pools_[kind].before(encoded.view({-1, encoded.size(2)})).view(encoded.sizes());
  torch::Tensor members = relations_.of(static_cast<Relations::Kind>(kind), current);
  if (settings_.aggregate == Aggregate::kMean)
    members = members / members.sum(1, true).clamp_min(1);
  const torch::Tensor sum = torch::bmm(members.unsqueeze(1), rows).squeeze(1);
  return pools_[kind].after(sum);
}

torch::Tensor MessagePassing::operator()(const torch::Tensor& features,
                                         const torch::Tensor& current) const {
  const torch::Tensor encoded = encode(features);
  const std::int64_t width = encoded.size(2);
  const torch::Tensor at = current.view({-1, 1, 1}).expand({-1, 1, width});
  std::vector<torch::Tensor> known{encoded.gather(1, at).squeeze(1)};
  for (std::size_t kind = 0; settings_.pools && kind < pools_.size(); ++kind) {
    known.push_back(pool(kind, encoded, current));
  }
  const torch::Tensor logits = classify_(torch::cat(known, 1));
  return settings_.logit_bound > 0 ? settings_.logit_bound * torch::tanh(logits) : logits;
}

}  // namespace emplace::learn
