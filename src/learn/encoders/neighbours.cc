#include "learn/encoders/neighbours.h"

#include <algorithm>
#include <vector>

namespace emplace::learn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

// Flat lists as the loops read them.
struct Lists {
  Lists(const torch::Tensor& offset_tensor, const torch::Tensor& member_tensor)
      : nodes(offset_tensor.size(0) - 1),
        offsets(offset_tensor.data_ptr<std::int64_t>()),
        members(member_tensor.data_ptr<std::int64_t>()) {}

  std::int64_t nodes;
  const std::int64_t* offsets;
  const std::int64_t* members;
};

// Of [nodes, width] or [batch, nodes, width].
std::int64_t batch_of(const torch::Tensor& x) {
  return x.dim() == 2 ? 1 : x.size(0);
}

void sum_rows(const Lists& lists, const float* weights, std::int64_t width, const float* x,
              float* result) {
  for (std::int64_t node = 0; node < lists.nodes; ++node) {
    float* __restrict row = result + node * width;
    for (std::int64_t e = lists.offsets[node]; e < lists.offsets[node + 1]; ++e) {
      const float* __restrict from = x + lists.members[e] * width;
      const float weight = weights[e];
      for (std::int64_t c = 0; c < width; ++c) row[c] += weight * from[c];
    }
  }
}

torch::Tensor sum_by_loops(const torch::Tensor& x, const torch::Tensor& offsets,
                           const torch::Tensor& members, const torch::Tensor& weights) {
  const torch::Tensor rows = x.contiguous();
  torch::Tensor result = torch::zeros(rows.sizes(), rows.options());
  const Lists lists(offsets, members);
  const std::int64_t width = rows.size(-1);
  for (std::int64_t b = 0; b < batch_of(rows); ++b) {
    const std::int64_t at = b * lists.nodes * width;
    sum_rows(lists, weights.data_ptr<float>(), width, rows.data_ptr<float>() + at,
             result.data_ptr<float>() + at);
  }
  return result;
}

// The gradient of a sum over lists is a sum over the lists turned around.
struct SumByLoops : Function<SumByLoops> {
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& x,
                               const torch::Tensor& offsets, const torch::Tensor& sources,
                               const torch::Tensor& weights, const torch::Tensor& back_offsets,
                               const torch::Tensor& back_targets,
                               const torch::Tensor& back_weights) {
    context->save_for_backward({back_offsets, back_targets, back_weights});
    return sum_by_loops(x, offsets, sources, weights);
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list back = context->get_saved_variables();
    return {sum_by_loops(gradients[0], back[0], back[1], back[2]), {}, {}, {}, {}, {}, {}};
  }
};

// Which source each maximum came from is left in `winners`; -1 where a row has no neighbours.
void max_rows(const Lists& lists, std::int64_t width, const float* x, float* result,
              std::int32_t* winners) {
  for (std::int64_t node = 0; node < lists.nodes; ++node) {
    const std::int64_t first = lists.offsets[node];
    const std::int64_t end = lists.offsets[node + 1];
    if (first == end) continue;
    float* __restrict row = result + node * width;
    std::int32_t* __restrict winner = winners + node * width;
    std::copy_n(x + lists.members[first] * width, width, row);
    std::fill_n(winner, width, static_cast<std::int32_t>(lists.members[first]));
    for (std::int64_t e = first + 1; e < end; ++e) {
      const float* __restrict from = x + lists.members[e] * width;
      const auto source = static_cast<std::int32_t>(lists.members[e]);
      for (std::int64_t c = 0; c < width; ++c) {
        winner[c] = from[c] > row[c] ? source : winner[c];
        row[c] = from[c] > row[c] ? from[c] : row[c];
      }
    }
  }
}

struct MaxByLoops : Function<MaxByLoops> {
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& x,
                               const torch::Tensor& offsets, const torch::Tensor& sources) {
    const torch::Tensor rows = x.contiguous();
    torch::Tensor result = torch::zeros(rows.sizes(), rows.options());
    torch::Tensor winners = torch::full(rows.sizes(), -1, rows.options().dtype(torch::kInt32));
    const Lists lists(offsets, sources);
    const std::int64_t width = rows.size(-1);
    for (std::int64_t b = 0; b < batch_of(rows); ++b) {
      const std::int64_t at = b * lists.nodes * width;
      max_rows(lists, width, rows.data_ptr<float>() + at, result.data_ptr<float>() + at,
               winners.data_ptr<std::int32_t>() + at);
    }
    context->save_for_backward({winners});
    return result;
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const torch::Tensor winners = context->get_saved_variables()[0];
    const torch::Tensor gradient = gradients[0].contiguous();
    torch::Tensor result = torch::zeros(gradient.sizes(), gradient.options());
    const std::int64_t width = gradient.size(-1);
    const std::int64_t plane = gradient.size(-2) * width;
    const float* from = gradient.data_ptr<float>();
    const std::int32_t* winner = winners.data_ptr<std::int32_t>();
    for (std::int64_t b = 0; b < batch_of(gradient); ++b) {
      float* to = result.data_ptr<float>() + b * plane;
      for (std::int64_t i = 0; i < plane; ++i) {
        const std::int32_t source = winner[b * plane + i];
        if (source >= 0) to[source * width + i % width] += from[b * plane + i];
      }
    }
    return {result, {}, {}};
  }
};

// Plain operations, for other devices and other types of numbers.
torch::Tensor sum_by_operations(const torch::Tensor& x, const torch::Tensor& sources,
                                const torch::Tensor& targets, const torch::Tensor& weights) {
  const torch::Tensor messages =
      x.index_select(-2, sources) * weights.to(x.scalar_type()).unsqueeze(-1);
  return torch::zeros(x.sizes(), x.options()).index_add(x.dim() - 2, targets, messages);
}

// By node and column, the source of the first maximum; nodes without neighbours: themselves.
torch::Tensor winners_by_operations(const torch::Tensor& x, const torch::Tensor& sources,
                                    const torch::Tensor& targets) {
  const torch::NoGradGuard no_gradients;
  const torch::Tensor messages = x.detach().index_select(-2, sources);
  const torch::Tensor index = targets.unsqueeze(-1).expand(messages.sizes());
  const torch::Tensor highest = torch::zeros(x.sizes(), x.options())
                                    .scatter_reduce(x.dim() - 2, index, messages, "amax",
                                                    /*include_self=*/false);
  const std::int64_t edges = sources.size(0);
  const torch::Tensor numbers = torch::arange(edges, sources.options()).unsqueeze(-1);
  const torch::Tensor candidates =
      torch::where(messages == highest.index_select(-2, targets), numbers, edges);
  const torch::Tensor first =
      torch::full(x.sizes(), edges, sources.options())
          .scatter_reduce(x.dim() - 2, index, candidates, "amin", /*include_self=*/true);
  const torch::Tensor own = torch::arange(x.size(-2), sources.options()).unsqueeze(-1);
  return torch::where(first < edges, sources.take(first.clamp_max(edges - 1)), own);
}

torch::Tensor max_by_operations(const torch::Tensor& x, const torch::Tensor& offsets,
                                const torch::Tensor& sources, const torch::Tensor& targets) {
  if (sources.size(0) == 0) return torch::zeros(x.sizes(), x.options()) * x;
  const torch::Tensor maxima = x.gather(-2, winners_by_operations(x, sources, targets));
  const torch::Tensor any = offsets.slice(0, 1) > offsets.slice(0, 0, -1);
  return torch::where(any.unsqueeze(-1), maxima, torch::zeros({}, x.options()));
}

bool by_loops(const torch::Tensor& x) {
  return x.device().is_cpu() && x.scalar_type() == torch::kFloat32;
}

torch::Tensor numbers_on(const std::vector<std::int64_t>& values, torch::Device device) {
  return torch::tensor(values, torch::kInt64).to(device);
}

torch::Tensor weights_on(const std::vector<float>& values, torch::Device device) {
  return torch::tensor(values, torch::kFloat32).to(device);
}

}  // namespace

Neighbours::Neighbours(const Csr<std::uint32_t>& lists, const std::vector<float>& weights,
                       torch::Device device) {
  const std::size_t nodes = lists.size();
  const std::size_t edges = lists.total();
  EMPLACE_CHECK(weights.empty() || weights.size() == edges);
  std::vector<std::int64_t> offsets{0}, sources, targets;
  std::vector<std::int64_t> back_offsets(nodes + 1, 0);
  for (std::size_t node = 0; node < nodes; ++node) {
    for (const std::uint32_t source : lists[node]) {
      sources.push_back(source);
      targets.push_back(static_cast<std::int64_t>(node));
      ++back_offsets[source + 1];
    }
    offsets.push_back(static_cast<std::int64_t>(sources.size()));
  }
  const std::vector<float> forward = weights.empty() ? std::vector<float>(edges, 1.0F) : weights;
  for (std::size_t node = 0; node < nodes; ++node) back_offsets[node + 1] += back_offsets[node];
  std::vector<std::int64_t> at(back_offsets.begin(), back_offsets.end() - 1);
  std::vector<std::int64_t> back_targets(edges);
  std::vector<float> back_weights(edges);
  for (std::size_t e = 0; e < edges; ++e) {
    const auto slot = static_cast<std::size_t>(at[static_cast<std::size_t>(sources[e])]++);
    back_targets[slot] = targets[e];
    back_weights[slot] = forward[e];
  }
  offsets_ = numbers_on(offsets, device);
  sources_ = numbers_on(sources, device);
  targets_ = numbers_on(targets, device);
  weights_ = weights_on(forward, device);
  back_offsets_ = numbers_on(back_offsets, device);
  back_targets_ = numbers_on(back_targets, device);
  back_weights_ = weights_on(back_weights, device);
}

torch::Tensor Neighbours::sum(const torch::Tensor& x) const {
  return by_loops(x) ? SumByLoops::apply(x, offsets_, sources_, weights_, back_offsets_,
                                         back_targets_, back_weights_)
                     : sum_by_operations(x, sources_, targets_, weights_);
}

torch::Tensor Neighbours::max(const torch::Tensor& x) const {
  return by_loops(x) ? MaxByLoops::apply(x, offsets_, sources_)
                     : max_by_operations(x, offsets_, sources_, targets_);
}

}  // namespace emplace::learn
