#include "tensor/methods/common/layer_pairs.h"

#include <algorithm>
#include <set>
#include <span>
#include <utility>

namespace emplace {
namespace {

struct Touched {
  TensorId tensor;  // of the forward op, where it is one of those or a gradient of one
  const std::vector<tdl::Index>* indices;
};

class LayerTensors {
 public:
  LayerTensors(const PartitionInput& input, OpId forward) : input_(input), forward_(forward) {}

  std::vector<Touched> touched_by(OpId op) const {
    const tdl::Description& description = *input_.descriptions[op];
    std::vector<Touched> result;
    for (const tdl::Access& read : description.reads) {
      result.push_back({meant(input_.graph.inputs(op)[read.position], true), &read.indices});
    }
    for (const tdl::Write& write : description.writes) {
      result.push_back({meant(input_.graph.outputs(op)[write.position], false), &write.indices});
    }
    return result;
  }

 private:
  // What a gradient op reads beside the layer's own tensors is the gradient of its result, which
  // may be known as that of what was computed from it, element by element.
  TensorId meant(TensorId tensor, bool is_read) const {
    const Graph& graph = input_.graph;
    const TensorId of = input_.classes.differentiated[tensor].value_or(tensor);
    const auto inputs = graph.inputs(forward_);
    const auto outputs = graph.outputs(forward_);
    const auto is_among = [&](std::span<const TensorId> own) {
      return std::find(own.begin(), own.end(), of) != own.end();
    };
    if (is_among(inputs) || is_among(outputs)) return of;
    if (!is_read || graph.phase(graph.producer(tensor)) != Phase::kBackward) return of;
    const auto alike = std::find_if(outputs.begin(), outputs.end(), [&](TensorId output) {
      return std::ranges::equal(graph.shape(output), graph.shape(tensor));
    });
    return alike == outputs.end() ? of : *alike;
  }

  const PartitionInput& input_;
  OpId forward_;
};

// The variable of `others` that indexes what the variable does.
std::int8_t counterpart(tdl::VariableId variable, const std::vector<Touched>& own,
                        const std::vector<Touched>& others,
                        const std::vector<std::int8_t>& candidates) {
  for (const Touched& mine : own) {
    for (const Touched& other : others) {
      if (mine.tensor != other.tensor || mine.indices->size() != other.indices->size()) continue;
      for (std::size_t d = 0; d < mine.indices->size(); ++d) {
        if (!(*mine.indices)[d].uses(variable)) continue;
        for (const std::int8_t candidate : candidates) {
          if ((*other.indices)[d].uses(static_cast<tdl::VariableId>(candidate))) return candidate;
        }
      }
    }
  }
  return kUncut;
}

}  // namespace

std::vector<LayerPair> layer_pairs(const PartitionInput& input) {
  std::vector<LayerPair> result;
  std::set<std::pair<ClassId, ClassId>> seen;
  const Graph& graph = input.graph;
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    const auto forward = input.classes.forward_of[op];
    if (!forward || input.descriptions[op] == nullptr) continue;
    if (input.descriptions[*forward] == nullptr) continue;
    const std::pair pair(input.classes.of_op[*forward], input.classes.of_op[op]);
    if (pair.first == pair.second || !seen.insert(pair).second) continue;
    const LayerTensors layer(input, *forward);
    const auto own = layer.touched_by(*forward);
    const auto others = layer.touched_by(op);
    const auto candidates = variables_to_cut(*input.descriptions[op]);
    LayerPair added{pair.first, pair.second, {}};
    const std::size_t variables = input.descriptions[*forward]->variables.size();
    for (std::size_t v = 0; v < variables; ++v) {
      added.counterparts.push_back(
          counterpart(static_cast<tdl::VariableId>(v), own, others, candidates));
    }
    result.push_back(std::move(added));
  }
  return result;
}

std::vector<std::int64_t> unlike_costs(const LayerPair& pair, const std::vector<Cuts>& forward,
                                       const std::vector<Cuts>& backward) {
  const auto is_alike = [&](const Cuts& a, const Cuts& b) {
    for (std::size_t level = 0; level < a.size(); ++level) {
      const std::int8_t wanted =
          a[level] == kUncut ? kUncut : pair.counterparts[static_cast<std::size_t>(a[level])];
      const bool free = a[level] != kUncut && wanted == kUncut;
      if (!free && b[level] != wanted) return false;
    }
    return true;
  };
  std::vector<std::int64_t> costs;
  for (const Cuts& a : forward) {
    const auto begin = static_cast<std::ptrdiff_t>(costs.size());
    for (const Cuts& b : backward) costs.push_back(is_alike(a, b) ? 0 : kForbidden);
    const auto row = costs.begin() + begin;
    if (std::find(row, costs.end(), 0) == costs.end()) std::fill(row, costs.end(), 0);
  }
  return costs;
}

void forbid_unlike(const std::vector<LayerPair>& pairs, const PartitionInput& input,
                   const Ways& ways, SelectionProblem& problem) {
  for (const LayerPair& pair : pairs) {
    const auto node = [&](ClassId op) {
      return static_cast<std::int32_t>(input.classes.num_tensors + op);
    };
    problem.add_edge(node(pair.forward), node(pair.backward),
                     unlike_costs(pair, ways.ops[pair.forward], ways.ops[pair.backward]));
  }
}

}  // namespace emplace
