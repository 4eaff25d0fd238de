// The choice of cuts for all tensors and ops of a graph as a strategy-selection problem
// (src/selection): a node for every class of tensors and every class of ops, whose strategies
// are ways to cut them; an edge between an op and a tensor that it touches, with what moving costs.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include <emplace/search.h>

#include "graph/graph.h"

#include "tensor/coarsen.h"
#include "tensor/describe.h"
#include "tensor/plan.h"
#include "tensor/traffic.h"
#include "tensor/ways.h"

#include "selection/selection_problem.h"

namespace emplace {

// The graph with what does not change from one problem to the next.
struct PartitionInput {
  explicit PartitionInput(const Graph& graph, const CoarseningOptions& coarsening = {});
  // The other's graph in other classes.
  PartitionInput(const PartitionInput& other, const CoarseningOptions& coarsening);

  const Graph& graph;
  Descriptions descriptions;
  Classes classes;
  std::vector<TensorId> tensor_of_class;  // the first
  std::vector<OpId> op_of_class;
  std::vector<std::int64_t> tensors_in_class;
  std::vector<std::int64_t> ops_in_class;
  // By class of ops and output: of how many tensors its ops make partial results, if those that are
  // only added to each other are added before they are reduced, as gradients of weights that
  // several steps share are (tensor/lower.h).
  std::vector<std::vector<std::int64_t>> reduced_in_class;
  // By class of tensors: weights that an op without a description changes, which are kept whole.
  std::vector<std::uint8_t> stays_whole;
  CoarseningOptions coarsening;

  tdl::Region whole(TensorId tensor) const;
  std::vector<Shape> shapes(std::span<const TensorId> tensors) const;

 private:
  void find_classes();
  void count_reductions();
};

// Ways to cut, by class.
struct Ways {
  std::vector<std::vector<Cuts>> tensors;
  std::vector<std::vector<Cuts>> ops;
};

// How often partial results are reduced.
enum class Reductions {
  kPerOp,  // by every op that makes some, as Tofu does
  kOnce,   // after those that are only added to each other, as the lowered graph does
};

// Thrown where costs were still being computed when the time for it was over.
struct OutOfTime {};

class PartitionProblem {
 public:
  // Counts what is moved with `traffic`, whose workers are those that the ways cut for. Where there
  // is a limit, ways and costs that are not known when its time is over, or when it is cancelled,
  // are not computed any more (OutOfTime). Without `forward_sums`, ops of the forward pass are not
  // divided by variables that they sum over, where there are others.
  PartitionProblem(const PartitionInput& input, Traffic& traffic,
                   Reductions reductions = Reductions::kPerOp, const Budget* limit = nullptr,
                   bool forward_sums = true);

  // Ways to divide the op so that every worker has a part, and to cut the tensor (ways.h). Never
  // none: rather whole than not at all.
  std::vector<Cuts> ways_of_op(ClassId op, bool spare, const Cuts& prefix = {},
                               std::size_t most = kAllWays);
  std::vector<Cuts> ways_of_tensor(ClassId tensor, bool spare, const Cuts& prefix = {},
                                   std::size_t most = kAllWays) const;
  std::vector<Cuts> ways_of_op_along_one(ClassId op, std::size_t first_level = 0);
  std::vector<Cuts> ways_of_tensor_along_one(ClassId tensor, std::size_t first_level = 0) const;
  std::vector<Cuts> ways_of_op_near(ClassId op, const std::set<Cuts>& known);
  std::vector<Cuts> ways_of_tensor_near(ClassId tensor, const std::set<Cuts>& known) const;

  // What an access costs one op of the class, for every way of the op (rows) and of the tensor
  // (columns); kForbidden where weights or state would be changed elsewhere than they are kept.
  // Weights that are kept by more workers than change them are sent to those then.
  struct Access {
    ClassId op;
    bool write;
    std::size_t position;  // among inputs, or outputs
  };
  std::vector<std::int64_t> table(const Access& access, const std::vector<Cuts>& op_ways,
                                  const std::vector<Cuts>& tensor_ways);
  // One entry of it.
  std::int64_t access_cost(const Access& access, const Cuts& op_cuts, const Cuts& tensor_cuts);
  // All accesses of one op of the class, with each tensor's cuts by its class.
  std::int64_t op_cost(ClassId op, const Cuts& op_cuts, const std::vector<Cuts>& tensors);
  // Of all ops.
  std::int64_t total_cost(const std::vector<Cuts>& ops, const std::vector<Cuts>& tensors);

  // Pieces of an op of the class, by worker; until the next call.
  const std::vector<tdl::Piece>& pieces(ClassId op, const Cuts& cuts);

  using ClassCost = std::function<std::int64_t(ClassId, const Cuts&)>;
  // What memory all tensors of a class take, and when.
  struct Memory {
    ClassCost bytes;
    std::function<SelectionProblem::Interval(ClassId)> alive;
  };
  // `op_cost`: what choices cost beside moving, for one op of a class; may be empty. Tensors come
  // first among the nodes, then ops.
  SelectionProblem build(const Ways& ways, const ClassCost& op_cost = {},
                         const Memory* memory = nullptr);

 private:
  Cuttable cuttable_op(ClassId op);
  Cuttable cuttable_tensor(ClassId tensor) const;
  std::vector<std::int8_t> allowed_variables(ClassId op);
  bool is_valid(ClassId op, const Cuts& cuts);  // whether all pieces are
  void check_time() const;
  // A tensor with certain cuts, and how partial results of it are reduced first, if any are.
  struct Kept {
    Spread spread;
    std::size_t reduced = 0;                           // among what differs
    std::optional<std::int64_t> after = std::nullopt;  // what getting it from there costs
  };
  struct KeptWays {
    std::vector<Kept> ways;
    std::vector<Spread> reduced;
  };
  // Partial results are reduced in parts on these levels.
  KeptWays kept_ways(const Access& access, const std::vector<Cuts>& tensor_ways,
                     LevelSet reduced_on) const;
  // What an update changes: weights, or state, which stays where it is.
  enum class Changed : std::uint8_t { kNothing, kWeight, kState };
  // Of ops of one signature with tensors of one element size.
  using AccessKey = std::tuple<std::uint32_t, bool, std::size_t, Changed, Bytes>;
  using CostKey = std::tuple<AccessKey, Cuts, Cuts>;
  using TableKey = std::tuple<AccessKey, std::vector<Cuts>, std::vector<Cuts>>;
  AccessKey key_of(const Access& access) const;

  TensorId tensor_of(const Access& access) const;
  std::vector<std::int64_t> compute(const Access& access, const std::vector<Cuts>& op_ways,
                                    const std::vector<Cuts>& tensor_ways);
  Spread touched_by(const Access& access, const Cuts& op_cuts);
  void add_row(const Access& access, const Spread& touched, KeptWays& kept,
               std::vector<std::int64_t>& result);
  std::vector<tdl::Region> needed_by(const Access& access, const Cuts& op_cuts);
  Spread made_by(const Access& access, const Cuts& op_cuts);
  Changed changed_by(const Access& access) const;
  std::int64_t cost_to_change(Changed what, const Spread& pieces, const Spread& kept,
                              Bytes element_bytes);
  // How often the class makes the access with such cuts.
  std::int64_t times(const Access& access, const Cuts& op_cuts) const;
  void for_each_access(ClassId op, const std::function<void(const Access&)>& function) const;

  const PartitionInput& input_;
  Traffic& traffic_;
  Reductions reductions_;
  const Budget* limit_;
  bool forward_sums_;
  std::map<std::pair<std::uint32_t, Cuts>, std::vector<tdl::Piece>> pieces_;  // by signature
  std::size_t num_pieces_ = 0;                                                // in there
  std::map<ClassId, std::vector<tdl::Piece>> undescribed_;
  // By signature and phase.
  std::map<std::tuple<std::uint32_t, Phase, bool, Cuts, std::size_t>, std::vector<Cuts>> ways_;
  std::map<CostKey, std::int64_t> costs_;
  std::map<TableKey, std::vector<std::int64_t>> tables_;
};

// The cuts of every tensor and op from those of their classes.
Plan expand(const PartitionInput& input, const Workers& workers, std::string method,
            const std::vector<Cuts>& tensors, const std::vector<Cuts>& ops);

// For tensors that are kept so: the best way to divide every op.
std::vector<Cuts> best_ops(PartitionProblem& problem, const PartitionInput& input,
                           const std::vector<Cuts>& tensors,
                           const std::vector<std::vector<Cuts>>& ways);

}  // namespace emplace
