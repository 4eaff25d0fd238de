// Costs are sums over accesses (an op and one tensor that it reads or writes), and an access
// depends on the cuts of these two only: so the choice of cuts is a selection problem with a node
// for each op and tensor and an edge for each access. Invariant: for cuts of all classes, the cost
// of the selection problem is that of moving, by `Traffic`, of the whole graph, plus what the
// caller adds. Exact with respect to that; the time of the lowered graph is another matter
// (evaluate.h).
//
// Classes (coarsen.h) are decided together and so counted once, times their number of ops; for
// partial results that are added before they are reduced (Reductions::kOnce), times the number of
// sums. The sum of partial results of different classes counts as if each were reduced. A table
// has an entry for each way to cut the op and each way to cut the tensor: what every worker needs
// of the tensor against what it has, or what it makes against what it is to keep, partial results
// reduced first. Weights are updated in place, so an update whose piece is not kept where it runs
// is forbidden; what it changed is sent to others that keep it. Tables are shared by all ops of one
// signature with tensors of one element size, as they depend on nothing else.
//
// O(ways of op * ways of tensor * workers) for each different table, which is most of the work.
// After Tofu (Wang, Huang, Li, EuroSys 2019) and Alpa's tables (Zheng et al., OSDI 2022).
#include "tensor/partition_problem.h"

#include <algorithm>
#include <limits>
#include <tuple>

#include "base/check.h"

namespace emplace {
namespace {

constexpr std::uint32_t kNone = ~std::uint32_t{0};

// That are kept at once, of all workers: about 200 MB.
constexpr std::size_t kMostPieces = 200'000;

Bytes element_bytes(const Graph& graph, TensorId tensor) {
  return std::max<Bytes>(tensor_bytes(Shape{1}, graph.dtype(tensor)), 1);
}

}  // namespace

PartitionInput::PartitionInput(const Graph& the_graph, const CoarseningOptions& how)
    : graph(the_graph), descriptions(graph), coarsening(how) {
  find_classes();
}

PartitionInput::PartitionInput(const PartitionInput& other, const CoarseningOptions& how)
    : graph(other.graph), descriptions(other.descriptions), coarsening(how) {
  find_classes();
}

void PartitionInput::find_classes() {
  classes = coarsen(graph, descriptions, coarsening);
  tensor_of_class.assign(classes.num_tensors, kNone);
  op_of_class.assign(classes.num_ops, kNone);
  tensors_in_class.assign(classes.num_tensors, 0);
  ops_in_class.assign(classes.num_ops, 0);
  for (TensorId tensor = graph.num_tensors(); tensor-- > 0;) {
    tensor_of_class[classes.of_tensor[tensor]] = tensor;
    ++tensors_in_class[classes.of_tensor[tensor]];
  }
  stays_whole.assign(classes.num_tensors, 0);
  for (OpId op = graph.num_ops(); op-- > 0;) {
    op_of_class[classes.of_op[op]] = op;
    ++ops_in_class[classes.of_op[op]];
    if (graph.phase(op) != Phase::kUpdate || descriptions[op] != nullptr) continue;
    for (const TensorId tensor : graph.inputs(op)) {
      const OpRole role = graph.role(graph.producer(tensor));
      if (role == OpRole::kParameter || role == OpRole::kBuffer) {
        stays_whole[classes.of_tensor[tensor]] = 1;
      }
    }
  }
  count_reductions();
}

// The same class and output means the same cuts, and so partial results that can be added.
void PartitionInput::count_reductions() {
  using Made = std::pair<ClassId, std::size_t>;
  std::vector<std::optional<Made>> made(graph.num_tensors());  // of partial results, by whom
  const auto sum_of = [&](OpId op) -> std::optional<Made> {
    const auto inputs = graph.inputs(op);
    if ((graph.type(op) != "Add" && graph.type(op) != "Sum") || inputs.size() < 2) return {};
    for (const TensorId tensor : inputs) {
      if (!made[tensor] || made[tensor] != made[inputs[0]] || graph.consumers(tensor).size() != 1 ||
          !std::ranges::equal(graph.shape(tensor), graph.shape(graph.outputs(op)[0])) ||
          std::count(inputs.begin(), inputs.end(), tensor) != 1) {
        return {};
      }
    }
    return made[inputs[0]];
  };
  reduced_in_class.resize(classes.num_ops);
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    const ClassId of = classes.of_op[op];
    const auto outputs = graph.outputs(op);
    reduced_in_class[of].resize(outputs.size());
    if (graph.is_source(op) || descriptions[op] == nullptr) continue;
    if (const auto sum = sum_of(op)) {
      made[outputs[0]] = sum;
      reduced_in_class[sum->first][sum->second] -= std::ssize(graph.inputs(op)) - 1;
      continue;
    }
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      ++reduced_in_class[of][i];
      if (descriptions[op]->writes[i].reducer == tdl::Reducer::kSum) made[outputs[i]] = {of, i};
    }
  }
}

tdl::Region PartitionInput::whole(TensorId tensor) const {
  const auto shape = graph.shape(tensor);
  return tdl::region_of({shape.begin(), shape.end()});
}

std::vector<Shape> PartitionInput::shapes(std::span<const TensorId> tensors) const {
  std::vector<Shape> result;
  for (const TensorId tensor : tensors) {
    const auto shape = graph.shape(tensor);
    result.emplace_back(shape.begin(), shape.end());
  }
  return result;
}

PartitionProblem::PartitionProblem(const PartitionInput& input, Traffic& traffic,
                                   Reductions reductions, const Budget* limit, bool forward_sums)
    : input_(input),
      traffic_(traffic),
      reductions_(reductions),
      limit_(limit),
      forward_sums_(forward_sums) {}

void PartitionProblem::check_time() const {
  if (limit_ != nullptr && limit_->spent(0)) throw OutOfTime{};
}

Cuttable PartitionProblem::cuttable_tensor(ClassId tensor) const {
  const TensorId first = input_.tensor_of_class[tensor];
  tdl::Region whole = input_.whole(first);
  const bool shaped = input_.graph.has_shape(first) && input_.stays_whole[tensor] == 0;
  auto allowed = shaped ? all_dimensions(whole.size()) : std::vector<std::int8_t>{};
  return {std::move(whole), std::move(allowed), traffic_.workers()};
}

std::vector<std::int8_t> PartitionProblem::allowed_variables(ClassId op) {
  const OpId first = input_.op_of_class[op];
  const tdl::Description& description = *input_.descriptions[first];
  const std::vector<std::int8_t> all = variables_to_cut(description);
  if (forward_sums_ || input_.graph.phase(first) != Phase::kForward) return all;
  Cuttable others{variables_of(description), all, traffic_.workers(),
                  [&](const Cuts& cuts) { return is_valid(op, cuts); }};
  std::erase_if(others.allowed, [&](std::int8_t variable) {
    return description.is_reduction(static_cast<tdl::VariableId>(variable));
  });
  // A loss is a sum over examples and has no other way.
  return ways_to_cut(others, /*spare=*/true, {}, 2).size() > 1 ? others.allowed : all;
}

// Of one that is described.
Cuttable PartitionProblem::cuttable_op(ClassId op) {
  const tdl::Description& description = *input_.descriptions[input_.op_of_class[op]];
  return {variables_of(description), allowed_variables(op), traffic_.workers(),
          [this, op](const Cuts& cuts) { return is_valid(op, cuts); }};
}

bool PartitionProblem::is_valid(ClassId op, const Cuts& cuts) {
  check_time();
  const std::vector<tdl::Piece>& all = pieces(op, cuts);
  return std::all_of(all.begin(), all.end(), [](const tdl::Piece& piece) { return piece.valid; });
}

std::vector<Cuts> PartitionProblem::ways_of_tensor(ClassId tensor, bool spare, const Cuts& prefix,
                                                   std::size_t most) const {
  return ways_to_cut(cuttable_tensor(tensor), spare, prefix, most);
}

std::vector<Cuts> PartitionProblem::ways_of_tensor_along_one(ClassId tensor,
                                                             std::size_t first_level) const {
  return ways_along_one(cuttable_tensor(tensor), first_level);
}

std::vector<Cuts> PartitionProblem::ways_of_tensor_near(ClassId tensor,
                                                        const std::set<Cuts>& known) const {
  return ways_near(cuttable_tensor(tensor), known);
}

std::vector<Cuts> PartitionProblem::ways_of_op(ClassId op, bool spare, const Cuts& prefix,
                                               std::size_t most) {
  const OpId first = input_.op_of_class[op];
  if (input_.descriptions[first] == nullptr) return {Cuts(traffic_.workers().levels(), kUncut)};
  check_time();
  const std::tuple key(input_.descriptions.signature(first), input_.graph.phase(first), spare,
                       prefix, most);
  if (const auto known = ways_.find(key); known != ways_.end()) return known->second;
  std::vector<Cuts> ways = ways_to_cut(cuttable_op(op), spare, prefix, most);
  if (ways.empty()) {
    Cuts cuts = prefix;
    cuts.resize(traffic_.workers().levels(), kUncut);
    ways.push_back(std::move(cuts));
  }
  return ways_[key] = std::move(ways);
}

std::vector<Cuts> PartitionProblem::ways_of_op_along_one(ClassId op, std::size_t first_level) {
  if (input_.descriptions[input_.op_of_class[op]] == nullptr) {
    return {Cuts(traffic_.workers().levels(), kUncut)};
  }
  return ways_along_one(cuttable_op(op), first_level);
}

std::vector<Cuts> PartitionProblem::ways_of_op_near(ClassId op, const std::set<Cuts>& known) {
  if (input_.descriptions[input_.op_of_class[op]] == nullptr) {
    return {Cuts(traffic_.workers().levels(), kUncut)};
  }
  return ways_near(cuttable_op(op), known);
}

const std::vector<tdl::Piece>& PartitionProblem::pieces(ClassId op, const Cuts& cuts) {
  const OpId first = input_.op_of_class[op];
  const Graph& graph = input_.graph;
  const tdl::Description* description = input_.descriptions[first];
  if (description == nullptr) {
    std::vector<tdl::Piece>& result = undescribed_[op];
    if (!result.empty()) return result;
    tdl::Piece piece;
    for (const TensorId tensor : graph.inputs(first)) piece.inputs.push_back(input_.whole(tensor));
    for (const TensorId tensor : graph.outputs(first)) {
      piece.outputs.push_back(input_.whole(tensor));
    }
    piece.reads.assign(piece.inputs.size(), 1);
    result.assign(traffic_.workers().count(), piece);
    return result;
  }
  if (num_pieces_ > kMostPieces) {
    pieces_.clear();
    num_pieces_ = 0;
  }
  const auto [at, added] = pieces_.try_emplace({input_.descriptions.signature(first), cuts});
  if (!added) return at->second;
  num_pieces_ += traffic_.workers().count();
  const auto inputs = input_.shapes(graph.inputs(first));
  const auto outputs = input_.shapes(graph.outputs(first));
  const tdl::Region variables = variables_of(*description);
  for (Worker worker = 0; worker < traffic_.workers().count(); ++worker) {
    at->second.push_back(piece_of(*description,
                                  part_of(variables, cuts, traffic_.workers(), worker), inputs,
                                  outputs, graph.attributes(first)));
  }
  return at->second;
}

TensorId PartitionProblem::tensor_of(const Access& access) const {
  const OpId first = input_.op_of_class[access.op];
  return access.write ? input_.graph.outputs(first)[access.position]
                      : input_.graph.inputs(first)[access.position];
}

PartitionProblem::Changed PartitionProblem::changed_by(const Access& access) const {
  if (access.write) return Changed::kNothing;
  if (input_.graph.phase(input_.op_of_class[access.op]) != Phase::kUpdate) return Changed::kNothing;
  const OpRole role = input_.graph.role(input_.graph.producer(tensor_of(access)));
  return role == OpRole::kParameter ? Changed::kWeight
         : role == OpRole::kBuffer  ? Changed::kState
                                    : Changed::kNothing;
}

// Weights are changed in place, so an update works where they and its state are kept. Whoever keeps
// more of a weight than it changes is sent the rest.
std::int64_t PartitionProblem::cost_to_change(Changed what, const Spread& pieces,
                                              const Spread& kept, Bytes element_bytes) {
  if (pieces.regions == kept.regions) return 0;
  if (what == Changed::kState) return kForbidden;
  for (Worker worker = 0; worker < pieces.regions.size(); ++worker) {
    if (!contains(kept.regions[worker], pieces.regions[worker])) return kForbidden;
  }
  return traffic_.to_read(kept.regions, pieces, element_bytes);
}

std::vector<tdl::Region> PartitionProblem::needed_by(const Access& access, const Cuts& op_cuts) {
  const std::size_t rank = input_.graph.shape(tensor_of(access)).size();
  std::vector<tdl::Region> needed;
  for (const tdl::Piece& piece : pieces(access.op, op_cuts)) {
    needed.push_back(piece.reads[access.position] != 0 ? piece.inputs[access.position]
                                                       : tdl::Region(rank, tdl::Interval{}));
  }
  return needed;
}

Spread PartitionProblem::made_by(const Access& access, const Cuts& op_cuts) {
  const tdl::Description* description = input_.descriptions[input_.op_of_class[access.op]];
  Spread made;
  for (const tdl::Piece& piece : pieces(access.op, op_cuts)) {
    made.regions.push_back(piece.outputs[access.position]);
  }
  for (const std::int8_t cut : op_cuts) {
    made.roles.push_back(description == nullptr ? LevelRole::kSame
                                                : role_of_cut(*description, access.position, cut));
  }
  return made;
}

PartitionProblem::KeptWays PartitionProblem::kept_ways(const Access& access,
                                                       const std::vector<Cuts>& tensor_ways,
                                                       LevelSet reduced_on) const {
  const tdl::Region whole = input_.whole(tensor_of(access));
  const Workers& workers = traffic_.workers();
  KeptWays kept;
  std::map<Cuts, std::size_t> reduced;
  for (const Cuts& cuts : tensor_ways) {
    kept.ways.push_back({spread_of(whole, cuts, workers)});
    if (!access.write) continue;
    const auto [at, added] = reduced.try_emplace(
        cuts_for_reduction(whole, cuts, workers, reduced_on), kept.reduced.size());
    if (added) kept.reduced.push_back(spread_of(whole, at->first, workers));
    kept.ways.back().reduced = at->second;
  }
  return kept;
}

// What the op's pieces make, or need, of the tensor; all that the costs of its ways depend on.
Spread PartitionProblem::touched_by(const Access& access, const Cuts& op_cuts) {
  if (access.write) return made_by(access, op_cuts);
  Spread needed{needed_by(access, op_cuts), {}};
  if (changed_by(access) != Changed::kNothing) needed.roles = roles_without_sums(op_cuts);
  return needed;
}

void PartitionProblem::add_row(const Access& access, const Spread& touched, KeptWays& kept,
                               std::vector<std::int64_t>& result) {
  const Bytes bytes = element_bytes(input_.graph, tensor_of(access));
  const Changed changed = changed_by(access);
  const bool partial = access.write && touched.partial();
  std::vector<std::optional<std::int64_t>> reducing(partial ? kept.reduced.size() : 0);
  for (Kept& as : kept.ways) {
    if (partial) {
      auto& first = reducing[as.reduced];
      const Spread& reduced = kept.reduced[as.reduced];
      if (!first) first = traffic_.to_reduce(touched, reduced, bytes);
      if (!as.after) as.after = traffic_.to_read(as.spread.regions, reduced, bytes);
      result.push_back(*first + *as.after);
    } else if (access.write) {
      result.push_back(traffic_.to_read(as.spread.regions, touched, bytes));
    } else if (changed == Changed::kNothing) {
      result.push_back(traffic_.to_read(touched.regions, as.spread, bytes));
    } else {
      result.push_back(cost_to_change(changed, touched, as.spread, bytes));
    }
  }
}

// Ways of the op that differ elsewhere share their rows.
std::vector<std::int64_t> PartitionProblem::compute(const Access& access,
                                                    const std::vector<Cuts>& op_ways,
                                                    const std::vector<Cuts>& tensor_ways) {
  std::map<LevelSet, KeptWays> kept;
  std::vector<std::pair<Spread, std::size_t>> known;  // with their rows
  std::vector<std::int64_t> result;
  result.reserve(op_ways.size() * tensor_ways.size());
  for (const Cuts& cuts : op_ways) {
    check_time();
    Spread touched = touched_by(access, cuts);
    const auto found = std::find_if(known.begin(), known.end(),
                                    [&](const auto& each) { return each.first == touched; });
    if (found == known.end()) {
      known.emplace_back(std::move(touched), result.size());
      const Spread& row = known.back().first;
      const bool partial = access.write && row.partial();
      const LevelSet among = partial ? traffic_.levels_to_reduce(row) : LevelSet{0};
      const auto [at, first] = kept.try_emplace(among);
      if (first) at->second = kept_ways(access, tensor_ways, among);
      add_row(access, row, at->second, result);
      continue;
    }
    for (std::size_t i = 0; i < tensor_ways.size(); ++i) {
      result.push_back(result[found->second + i]);
    }
  }
  return result;
}

PartitionProblem::AccessKey PartitionProblem::key_of(const Access& access) const {
  return {input_.descriptions.signature(input_.op_of_class[access.op]), access.write,
          access.position, changed_by(access), element_bytes(input_.graph, tensor_of(access))};
}

// Ops of one signature with tensors of one size cost the same; updates differ from others by what
// is forbidden.
std::vector<std::int64_t> PartitionProblem::table(const Access& access,
                                                  const std::vector<Cuts>& op_ways,
                                                  const std::vector<Cuts>& tensor_ways) {
  const TensorId tensor = tensor_of(access);
  if (!input_.graph.has_shape(tensor)) {
    return std::vector<std::int64_t>(op_ways.size() * tensor_ways.size(), 0);
  }
  const std::uint32_t signature = input_.descriptions.signature(input_.op_of_class[access.op]);
  if (signature == 0) return compute(access, op_ways, tensor_ways);
  const auto [at, added] = tables_.try_emplace(TableKey{key_of(access), op_ways, tensor_ways});
  if (added) at->second = compute(access, op_ways, tensor_ways);
  return at->second;
}

std::int64_t PartitionProblem::access_cost(const Access& access, const Cuts& op_cuts,
                                           const Cuts& tensor_cuts) {
  const TensorId tensor = tensor_of(access);
  if (!input_.graph.has_shape(tensor)) return 0;
  const std::uint32_t signature = input_.descriptions.signature(input_.op_of_class[access.op]);
  if (signature == 0) return compute(access, {op_cuts}, {tensor_cuts})[0];
  const auto [at, added] = costs_.try_emplace(CostKey{key_of(access), op_cuts, tensor_cuts});
  if (added) at->second = compute(access, {op_cuts}, {tensor_cuts})[0];
  return at->second;
}

std::int64_t PartitionProblem::times(const Access& access, const Cuts& op_cuts) const {
  const std::int64_t ops = input_.ops_in_class[access.op];
  const tdl::Description* description = input_.descriptions[input_.op_of_class[access.op]];
  if (reductions_ == Reductions::kPerOp || !access.write || description == nullptr) return ops;
  const bool partial = std::any_of(op_cuts.begin(), op_cuts.end(), [&](std::int8_t cut) {
    return role_of_cut(*description, access.position, cut) == LevelRole::kPartial;
  });
  return partial ? input_.reduced_in_class[access.op][access.position] : ops;
}

void PartitionProblem::for_each_access(ClassId op,
                                       const std::function<void(const Access&)>& function) const {
  const OpId first = input_.op_of_class[op];
  if (input_.graph.is_source(first)) return;
  for (std::size_t i = 0; i < input_.graph.inputs(first).size(); ++i) function({op, false, i});
  for (std::size_t i = 0; i < input_.graph.outputs(first).size(); ++i) function({op, true, i});
}

std::int64_t PartitionProblem::op_cost(ClassId op, const Cuts& op_cuts,
                                       const std::vector<Cuts>& tensors) {
  std::int64_t sum = 0;
  for_each_access(op, [&](const Access& access) {
    const Cuts& kept = tensors[input_.classes.of_tensor[tensor_of(access)]];
    sum = add_costs(sum, access_cost(access, op_cuts, kept));
  });
  return sum;
}

std::int64_t PartitionProblem::total_cost(const std::vector<Cuts>& ops,
                                          const std::vector<Cuts>& tensors) {
  std::int64_t sum = 0;
  for (ClassId op = 0; op < input_.classes.num_ops; ++op) {
    for_each_access(op, [&](const Access& access) {
      const Cuts& kept = tensors[input_.classes.of_tensor[tensor_of(access)]];
      const std::int64_t cost = access_cost(access, ops[op], kept);
      sum = cost >= kForbidden ? kForbidden : add_costs(sum, cost * times(access, ops[op]));
    });
  }
  return sum;
}

SelectionProblem PartitionProblem::build(const Ways& ways, const ClassCost& op_cost,
                                         const Memory* memory) {
  SelectionProblem problem;
  std::vector<std::int64_t> costs;
  std::vector<std::int64_t> usages;
  const Classes& classes = input_.classes;
  for (ClassId tensor = 0; tensor < classes.num_tensors; ++tensor) {
    check_time();
    costs.assign(ways.tensors[tensor].size(), 0);
    usages.assign(costs.size(), 0);
    for (std::size_t i = 0; memory != nullptr && i < costs.size(); ++i) {
      usages[i] = memory->bytes(tensor, ways.tensors[tensor][i]);
    }
    problem.add_node(costs, usages,
                     memory != nullptr ? memory->alive(tensor) : SelectionProblem::Interval{});
  }
  for (ClassId op = 0; op < classes.num_ops; ++op) {
    check_time();
    costs.assign(ways.ops[op].size(), 0);
    for (std::size_t i = 0; op_cost && i < costs.size(); ++i) {
      costs[i] = op_cost(op, ways.ops[op][i]) * input_.ops_in_class[op];
    }
    problem.add_node(costs);
  }
  const auto add_edge = [&](const Access& access) {
    check_time();
    const ClassId other = classes.of_tensor[tensor_of(access)];
    const std::vector<Cuts>& op_ways = ways.ops[access.op];
    std::vector<std::int64_t> entries = table(access, op_ways, ways.tensors[other]);
    bool any = false;
    auto entry = entries.begin();
    for (const Cuts& cuts : op_ways) {
      const std::int64_t count = times(access, cuts);
      for (std::size_t i = 0; i < ways.tensors[other].size(); ++i, ++entry) {
        any = any || *entry != 0;
        if (*entry < kForbidden) *entry *= count;
      }
    }
    if (!any) return;
    problem.add_edge(static_cast<std::int32_t>(classes.num_tensors + access.op),
                     static_cast<std::int32_t>(other), entries);
  };
  for (ClassId op = 0; op < classes.num_ops; ++op) for_each_access(op, add_edge);
  return problem;
}

Plan expand(const PartitionInput& input, const Workers& workers, std::string method,
            const std::vector<Cuts>& tensors, const std::vector<Cuts>& ops) {
  Plan plan{.method = std::move(method), .workers = workers, .tensors = {}, .ops = {}};
  for (const ClassId of : input.classes.of_tensor) plan.tensors.push_back(tensors[of]);
  for (const ClassId of : input.classes.of_op) plan.ops.push_back(ops[of]);
  return plan;
}

std::vector<Cuts> best_ops(PartitionProblem& problem, const PartitionInput& input,
                           const std::vector<Cuts>& tensors,
                           const std::vector<std::vector<Cuts>>& ways) {
  std::vector<Cuts> result;
  for (ClassId op = 0; op < input.classes.num_ops; ++op) {
    const auto better = [&](const Cuts& a, const Cuts& b) {
      return problem.op_cost(op, a, tensors) < problem.op_cost(op, b, tensors);
    };
    result.push_back(*std::min_element(ways[op].begin(), ways[op].end(), better));
  }
  return result;
}

}  // namespace emplace
