// Reverse-mode differentiation over the graph (Speelpenning 1980; Griewank and Walther 2008): ops
// in reverse order, each turning the gradients of its outputs into those of its inputs.
//
// A plan comes first: which tensors depend on a parameter (forwards), what is differentiated, and
// which ops lie between the two (backwards). Only these get gradient ops, and all operators among
// them that have no rule are reported at once, before anything is built. Invariant: when an op is
// turned back, the gradients of its outputs are complete, since all readers of these come later in
// the topological order. As exact as the operators' rules are. Linear in ops and edges.
#include "graph/training.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/options.h"

#include "graph/gradient_graph.h"
#include "graph/gradients.h"

namespace emplace {
namespace {

struct OptimizerName {
  std::string_view name;
  Optimizer optimizer;
};

constexpr OptimizerName kOptimizers[] = {
    {"sgd", Optimizer::kSgd}, {"momentum", Optimizer::kMomentum}, {"adam", Optimizer::kAdam}};

bool is_floating(DType dtype) {
  switch (dtype) {
    case DType::kFloat8:
    case DType::kFloat16:
    case DType::kBFloat16:
    case DType::kFloat32:
    case DType::kFloat64:
    case DType::kComplex64:
    case DType::kComplex128:
      return true;
    default:
      return false;
  }
}

// What there is to differentiate: which tensors depend on a parameter, and which of the ops between
// these and the losses.
class Plan {
 public:
  explicit Plan(const Graph& graph)
      : graph_(graph),
        rows_(graph.num_ops(), nullptr),
        depends_(graph.num_tensors(), 0),
        on_path_(graph.num_ops(), 0) {
    find_dependent();
    find_losses();
    find_path();
  }

  const std::vector<TensorId>& losses() const { return losses_; }
  bool on_path(OpId op) const { return on_path_[op] != 0; }
  const GradientRow& row(OpId op) const { return *rows_[op]; }
  // By tensor.
  const std::vector<std::uint8_t>& depends_on_parameters() const { return depends_; }

 private:
  // An operator without a rule might pass gradients from any input to any output. An op marked
  // __stop_gradient passes none, as a detached tensor.
  bool passes_from(OpId op, std::size_t input) const {
    if (graph_.attributes(op).integer("__stop_gradient", 0) != 0) return false;
    return rows_[op] == nullptr ||
           (rows_[op]->rule != nullptr && positions::contain(rows_[op]->differentiable, input));
  }
  bool passes_to(OpId op, std::size_t output) const {
    return rows_[op] == nullptr || positions::contain(rows_[op]->passes, output);
  }

  void find_dependent() {
    for (OpId op = 0; op < graph_.num_ops(); ++op) {
      bool reached = graph_.role(op) == OpRole::kParameter;
      if (!graph_.is_source(op)) {
        rows_[op] = find_gradient_row(graph_.type(op));
        const auto inputs = graph_.inputs(op);
        for (std::size_t i = 0; i < inputs.size() && !reached; ++i) {
          reached = depends_[inputs[i]] != 0 && passes_from(op, i);
        }
      }
      if (!reached) continue;
      const auto outputs = graph_.outputs(op);
      for (std::size_t i = 0; i < outputs.size(); ++i) {
        if (!graph_.has_shape(outputs[i])) {
          fail_input(
              "op '{}': its output is known by its bytes alone; expected a shape and a dtype, "
              "which gradients follow from",
              graph_.op_name(op));
        }
        depends_[outputs[i]] = is_floating(graph_.dtype(outputs[i])) && passes_to(op, i) ? 1 : 0;
      }
    }
  }

  // A single number that nothing reads is a loss; without one, whatever is handed out. Outputs that
  // an op has beside its result (a mask, statistics) are not results of the model, nor is a result
  // whose op serves by another output.
  void find_losses() {
    bool any_number = false;
    for (OpId op = 0; op < graph_.num_ops(); ++op) {
      if (graph_.is_source(op) || graph_.outputs(op).empty()) continue;
      const auto outputs = graph_.outputs(op);
      const TensorId result = outputs[0];
      const bool read = std::any_of(outputs.begin(), outputs.end(), [&](TensorId tensor) {
        return !graph_.consumers(tensor).empty();
      });
      if (read || depends_[result] == 0) continue;
      // At batch 1 a model's results may have one element too, but not without a dimension for it.
      const bool number =
          graph_.shape(result).size() <= 1 && count_elements(graph_.shape(result)) == 1;
      if (number && !any_number) losses_.clear();
      any_number = any_number || number;
      if (number == any_number) losses_.push_back(result);
    }
    if (!losses_.empty()) return;
    for (OpId op = 0; op < graph_.num_ops(); ++op) {
      if (graph_.role(op) == OpRole::kParameter) {
        fail_input(
            "graph '{}': there is nothing to train: no output depends on a parameter in a "
            "way that can be differentiated",
            graph_.name());
      }
    }
    fail_input("graph '{}': there is nothing to train: it has no parameters", graph_.name());
  }

  void find_path() {
    std::vector<std::uint8_t> reached(graph_.num_tensors(), 0);
    for (const TensorId loss : losses_) reached[loss] = 1;
    std::map<std::string_view, std::pair<OpId, std::int64_t>> unknown;
    for (OpId op = graph_.num_ops(); op-- > 0;) {
      if (graph_.is_source(op)) continue;
      const auto outputs = graph_.outputs(op);
      const bool needed = std::any_of(outputs.begin(), outputs.end(), [&](TensorId tensor) {
        return reached[tensor] != 0 && depends_[tensor] != 0;
      });
      if (!needed) continue;
      on_path_[op] = 1;
      if (rows_[op] == nullptr) {
        auto& [first, count] = unknown[graph_.type(op)];
        first = op;
        ++count;
      }
      const auto inputs = graph_.inputs(op);
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        if (depends_[inputs[i]] != 0 && passes_from(op, i)) reached[inputs[i]] = 1;
      }
    }
    if (!unknown.empty()) report(unknown);
  }

  [[noreturn]] void report(
      const std::map<std::string_view, std::pair<OpId, std::int64_t>>& unknown) const {
    std::vector<std::string> words;
    for (const auto& [type, ops] : unknown) {
      words.push_back(ops.second == 1 ? fmt::format("{} (op '{}')", type, graph_.op_name(ops.first))
                                      : fmt::format("{} ({} ops, the first is '{}')", type,
                                                    ops.second, graph_.op_name(ops.first)));
    }
    fail(ErrorKind::kUnsupported,
         "graph '{}': there is no gradient rule for: {}; docs/training.md lists the operators that "
         "have one",
         graph_.name(), fmt::join(words, ", "));
  }

  const Graph& graph_;
  std::vector<const GradientRow*> rows_;  // by op; nullptr: none, or a source
  std::vector<std::uint8_t> depends_;     // by tensor
  std::vector<std::uint8_t> on_path_;     // by op
  std::vector<TensorId> losses_;
};

void require_forward(const Graph& graph) {
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    if (graph.phase(op) == Phase::kForward) continue;
    fail_input(
        "op '{}' is of phase {}: the graph is a training step already; expected a forward "
        "pass alone",
        graph.op_name(op), phase_name(graph.phase(op)));
  }
}

// Recurrent ops in one kernel keep their gates. X is [steps, batch, in] (or batch first), R is
// [directions, gates x hidden, hidden].
std::vector<GradientGraph::Reserve> find_reserves(const Graph& graph, const Plan& plan) {
  std::vector<GradientGraph::Reserve> reserves;
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    if (!plan.on_path(op) || plan.row(op).reserve == 0 || graph.inputs(op).size() < 3) continue;
    const auto x = graph.shape(graph.inputs(op)[0]);
    const auto r = graph.shape(graph.inputs(op)[2]);
    if (x.size() < 3 || r.size() < 3) continue;
    reserves.push_back(
        {op, tensor_type({x[0], x[1], r[0], saturating_multiply(plan.row(op).reserve, r[2])},
                         graph.dtype(graph.inputs(op)[0]))});
  }
  return reserves;
}

}  // namespace

std::vector<std::string> optimizer_names() {
  std::vector<std::string> names;
  for (const OptimizerName& entry : kOptimizers) names.emplace_back(entry.name);
  return names;
}

Optimizer parse_optimizer(std::string_view name) {
  for (const OptimizerName& entry : kOptimizers) {
    if (entry.name == name) return entry.optimizer;
  }
  fail_option("there is no optimizer '{}'{}; expected one of: {}", name,
              suggestion(name, optimizer_names()), fmt::join(optimizer_names(), ", "));
}

Graph training_step(const Graph& forward, const TrainingOptions& options) {
  require_forward(forward);
  const Plan plan(forward);
  GradientGraph graph(forward, options, find_reserves(forward, plan));
  for (const TensorId loss : plan.losses()) graph.add_seed(loss);
  for (OpId op = forward.num_ops(); op-- > 0;) {
    if (!plan.on_path(op)) continue;
    OpGradient gradient(graph, plan.row(op), op, plan.depends_on_parameters());
    if (!gradient.gradients().empty()) plan.row(op).rule(gradient);
  }
  for (OpId op = 0; op < forward.num_ops(); ++op) {
    if (forward.role(op) == OpRole::kParameter) graph.add_update(op, options.optimizer);
  }
  return std::move(graph).build();
}

}  // namespace emplace
