// emplace.partition/1 in: what a file says of how tensors are cut, by name.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "graph/graph.h"

namespace emplace {

struct SavedPartition {
  // By level: the dimension that is cut, or nothing where all groups have the same.
  using Split = std::vector<std::optional<int>>;
  struct Tensor {
    std::vector<std::int64_t> shape = {};
    Split split = {};
    bool held = false;  // what is fetched of it is kept for the rest of the step
  };
  struct Op {
    std::string type = {};
    // By level: the variable that is divided, "sum k" where partial results are added up.
    std::vector<std::optional<std::string>> strategy = {};
  };

  std::string graph = {};
  std::string cluster = {};
  std::string method = {};
  std::vector<int> factors = {};                         // groups, by level
  std::vector<std::string> devices = {};                 // by worker
  std::unordered_map<std::string, Tensor> tensors = {};  // "op", or "op:1" of an op with several
  std::unordered_map<std::string, Op> ops = {};

  // Nothing where the file does not have it.
  const Tensor* find_tensor(const std::string& name) const;
  const Op* find_op(const std::string& name) const;
};

// Whether the text is such a file, rather than another.
bool is_partition_json(const std::string& text);

// Throws an Error that names the tensor or op and what was expected.
SavedPartition read_partition_json(const std::string& text);

// Tensors of which a partition says more than fits into the model's own shapes.
struct LostCuts {
  std::vector<std::string> sources = {};  // weights and inputs that are whole on some level
  std::vector<std::string> inside = {};   // other tensors that are, or of which nothing is left
};

// Puts what the partition says of tensors into the model's own shapes: plans tell gates and the
// like apart that lie side by side in one dimension of the model. Cuts of each of them are lost,
// and so are those that give whole ones to groups unevenly. Throws an Error where the partition is
// another model's: a weight or input has another shape, or is not in it.
LostCuts fit_partition(SavedPartition& partition, const Graph& graph);

}  // namespace emplace
