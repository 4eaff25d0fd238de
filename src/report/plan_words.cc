// What a level does to the forward pass, by FLOPs of its products. A product with weights is cut
// along a variable of its data and result (examples, or positions of a sequence), of its weights
// and result (columns of the weights) or of both operands alone (rows of the weights, and a sum).
// Names go by what most of the products do: their limits are below.
#include "report/plan_words.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "cost/op_class.h"

#include "report/prose.h"

namespace emplace {
namespace {

constexpr double kNearlyAll = 0.95;
constexpr double kMost = 0.5;
constexpr double kSome = 0.1;  // of the products, to be told

enum Way : std::size_t { kExamples, kColumns, kSums, kHeads, kOther, kWhole, kNumWays };
constexpr std::array<const char*, kNumWays> kWayNames{
    "by examples", "by columns", "by rows with a sum", "by heads", "otherwise", "whole"};

struct LevelStyle {
  std::array<double, kNumWays> products = {};  // FLOPs
  double weights = 0;                          // bytes
  double cut_weights = 0;
  double held_weights = 0;  // of those that are cut
  // Of weights that are not cut, but whose updates are; and of those whose gradients are, too.
  double divided_updates = 0;
  double divided_gradients = 0;
  bool attention_by_heads = false;
  bool vocabulary = false;  // embeddings are cut along it

  double all() const {
    double sum = 0;
    for (const double flops : products) sum += flops;
    return sum;
  }
  double share(Way way) const { return all() > 0 ? products[way] / all() : 0; }
  double held_share() const { return cut_weights > 0 ? held_weights / cut_weights : 0; }
  double weights_share() const { return weights > 0 ? cut_weights / weights : 0; }
};

class StyleReader {
 public:
  StyleReader(const Graph& graph, const Descriptions& descriptions, const Plan& plan)
      : graph_(graph), descriptions_(descriptions), plan_(plan), weight_(graph.num_tensors(), 0) {}

  std::vector<LevelStyle> read() {
    std::vector<LevelStyle> levels(plan_.workers.levels());
    for (OpId op = 0; op < graph_.num_ops(); ++op) {
      find_weights(op);
      for (std::size_t level = 0; level < levels.size(); ++level) add(op, level, levels[level]);
    }
    return levels;
  }

 private:
  // Parameters, and what only views or converts them.
  void find_weights(OpId op) {
    const auto inputs = graph_.inputs(op);
    const bool passes = !graph_.is_source(op) && inputs.size() == 1 &&
                        (graph_.is_view(op) || graph_.type(op) == "Cast") &&
                        weight_[inputs[0]] != 0;
    if (graph_.role(op) != OpRole::kParameter && !passes) return;
    for (const TensorId tensor : graph_.outputs(op)) weight_[tensor] = 1;
  }

  void add(OpId op, std::size_t level, LevelStyle& style) const {
    if (graph_.role(op) == OpRole::kParameter) {
      for (const TensorId tensor : graph_.outputs(op)) {
        const auto bytes = static_cast<double>(graph_.bytes(tensor));
        style.weights += bytes;
        if (plan_.tensors[tensor][level] == kUncut) continue;
        style.cut_weights += bytes;
        if (plan_.holds(tensor)) style.held_weights += bytes;
      }
      return;
    }
    const tdl::Description* description = descriptions_[op];
    if (graph_.phase(op) == Phase::kUpdate) add_update(op, level, style);
    if (graph_.is_source(op) || graph_.phase(op) != Phase::kForward || description == nullptr) {
      return;
    }
    const std::int8_t cut = plan_.ops[op][level];
    const auto inputs = graph_.inputs(op);
    const bool table = graph_.type(op) == "Gather" && weight_[inputs[0]] != 0;
    if (table && cut != kUncut && description->is_reduction(static_cast<tdl::VariableId>(cut))) {
      style.vocabulary = true;
    }
    const bool is_product = description->reads.size() >= 2 && graph_.flops(op).value_or(0) > 0 &&
                            sort_of(op) != Sort::kNone;
    if (!is_product) return;
    const Way way = way_of(op, *description, cut);
    style.products[way] += static_cast<double>(*graph_.flops(op));
    style.attention_by_heads = style.attention_by_heads || way == kHeads;
  }

  void add_update(OpId op, std::size_t level, LevelStyle& style) const {
    if (graph_.is_source(op) || plan_.ops[op][level] == kUncut) return;
    double bytes = 0;
    bool gradient = false;
    for (const TensorId tensor : graph_.inputs(op)) {
      const OpRole role = graph_.role(graph_.producer(tensor));
      const bool cut = plan_.tensors[tensor][level] != kUncut;
      if (role == OpRole::kParameter && !cut) bytes += static_cast<double>(graph_.bytes(tensor));
      gradient = gradient || (role == OpRole::kCompute && cut);
    }
    style.divided_updates += bytes;
    if (gradient) style.divided_gradients += bytes;
  }

  // Of products. Normalisations sum as well, but are none.
  enum class Sort : std::uint8_t { kNone, kMatrices, kAttention, kConvolution };
  Sort sort_of(OpId op) const {
    switch (classify(graph_.type(op), Phase::kForward).op_class) {
      case OpClass::kMatMul:
      case OpClass::kLinear:
      case OpClass::kMatMulGrad:
      case OpClass::kBatchedMatMul:
        return Sort::kMatrices;
      case OpClass::kAttention:
        return Sort::kAttention;
      case OpClass::kConvolution:
      case OpClass::kConvolution1d:
      case OpClass::kPointwise:
      case OpClass::kDepthwise:
        return Sort::kConvolution;
      default:
        return Sort::kNone;
    }
  }

  static bool uses(const tdl::Access& access, tdl::VariableId v) {
    return std::any_of(access.indices.begin(), access.indices.end(),
                       [&](const tdl::Index& index) { return index.uses(v); });
  }

  Way way_of(OpId op, const tdl::Description& description, std::int8_t cut) const {
    if (cut == kUncut) return kWhole;
    const auto v = static_cast<tdl::VariableId>(cut);
    bool in_data = false, in_weights = false, has_weights = false;
    for (const tdl::Access& access : description.reads) {
      const bool weights = weight_[graph_.inputs(op)[access.position]] != 0;
      // A bias is no operand of the product.
      if (weights && access.indices.size() < 2) continue;
      has_weights = has_weights || weights;
      (weights ? in_weights : in_data) |= uses(access, v);
    }
    const tdl::Write& result = description.writes[0];
    const bool written = uses(result, v);
    if (!has_weights) {
      if (!written) return kSums;
      return result.indices[0].uses(v) ? kExamples : cuts_heads(op, result, v) ? kHeads : kOther;
    }
    if (written && in_data && !in_weights) return kExamples;
    if (written && in_weights) return kColumns;
    return in_data && in_weights ? kSums : kOther;
  }

  // Heads are the second dimension of stacked products, and of attention; where queries, keys and
  // values are sequences, the leading part of the last.
  bool cuts_heads(OpId op, const tdl::Write& result, tdl::VariableId v) const {
    const Sort sort = sort_of(op);
    const std::size_t rank = result.indices.size();
    if (rank == 4) return sort != Sort::kConvolution && result.indices[1].uses(v);
    return rank == 3 && sort == Sort::kAttention && result.indices[2].uses(v);
  }

  const Graph& graph_;
  const Descriptions& descriptions_;
  const Plan& plan_;
  std::vector<std::uint8_t> weight_;  // by tensor
};

std::string shares_of(const LevelStyle& style) {
  std::vector<std::string> parts;
  for (std::size_t way = 0; way < kNumWays; ++way) {
    const double share = style.share(static_cast<Way>(way));
    if (share >= kSome) parts.push_back(fmt::format("{} {:.0f} %", kWayNames[way], 100 * share));
  }
  return "products " + join_words(parts);
}

std::string words_of(const LevelStyle& style) {
  if (style.all() == 0) return "no products to tell by";
  const double weights = style.weights_share();
  if (style.share(kWhole) >= kNearlyAll) return "everything whole, in copies";
  if (style.share(kExamples) >= kNearlyAll) {
    const double held = style.held_share();
    if (weights >= kMost && held >= kNearlyAll) {
      return "ZeRO stage 2 (examples divided, weights in parts that are fetched once a step and "
             "kept)";
    }
    if (weights >= kMost) {
      return "FSDP, or ZeRO stage 3 (examples divided, weights in parts that are fetched" +
             (held >= kSome ? fmt::format("; {:.0f} % of them once a step and kept)", 100 * held)
                            : std::string(")"));
    }
    if (style.divided_updates > 0 && style.divided_updates >= kMost * style.weights) {
      const bool gradients = style.divided_gradients >= kMost * style.divided_updates;
      return fmt::format(
          "ZeRO stage {} (examples divided, weights everywhere, {}the optimizer's state in parts)",
          gradients ? 2 : 1, gradients ? "gradients and " : "");
    }
    return weights <= 1 - kNearlyAll
               ? "data parallel"
               : fmt::format("data parallel, with {:.0f} % of the weights in parts", 100 * weights);
  }
  std::string text;
  if (style.share(kColumns) + style.share(kSums) >= kMost) {
    const bool both = style.share(kColumns) >= kSome && style.share(kSums) >= kSome;
    text = both && style.attention_by_heads ? "tensor parallel, as in Megatron: "
                                            : "tensor parallel: ";
  }
  text += shares_of(style);
  if (style.vocabulary) text += "; embeddings by vocabulary";
  return text;
}

}  // namespace

std::string plan_in_words(const Graph& graph, const Descriptions& descriptions, const Plan& plan) {
  const std::vector<LevelStyle> styles = StyleReader(graph, descriptions, plan).read();
  std::vector<std::string> words;
  for (const LevelStyle& style : styles) words.push_back(words_of(style));
  std::string text;
  auto groups = static_cast<int>(plan.workers.count());
  for (std::size_t level = 0; level < words.size();) {
    int among = 1;
    const std::string& now = words[level];
    for (; level < words.size() && words[level] == now; ++level) {
      among *= plan.workers.factor(level);
    }
    groups /= among;
    text += text.empty() ? "Among " : " Within them, among ";
    text += groups > 1 ? fmt::format("{} groups of {}: {}.", among, groups, now)
                       : fmt::format("{} devices: {}.", among, now);
  }
  return text;
}

}  // namespace emplace
