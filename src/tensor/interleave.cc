// From every tensor that is cut into equal slices along a dimension the set grows of all tensors
// that must be seen in the same way: those that share the dimension through an op. Dimensions of an
// op are letters, the same for those that run together (a product is yx, xz -> yz); a letter that
// is one of the set's is so in all of the op's tensors. Invariant: whatever the set holds has the
// dimension of `parts` times `extent` elements. Where an op is met for which there is no rule, or
// an input of the model, which stays as it is, that set is given up. O(ops) for each set; sets do
// not overlap.
#include "tensor/interleave.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "graph/copy.h"
#include "graph/fan_in.h"
#include "graph/graph_builder.h"
#include "graph/tensor_type.h"

#include "tensor/describe.h"

namespace emplace {
namespace {

constexpr char kUnit = '.';   // a dimension of one that is broadcast
constexpr char kAlone = '1';  // one that runs with no other

struct Twofold {
  std::size_t dim = 0;  // that becomes two
  std::int64_t parts = 0;
  std::int64_t extent = 0;
};

using TwofoldSet = std::map<TensorId, Twofold>;

Shape shape_in(const Graph& graph, TensorId tensor) {
  return {graph.shape(tensor).begin(), graph.shape(tensor).end()};
}

Shape twofold_shape(Shape shape, const Twofold& of) {
  shape[of.dim] = of.extent;
  shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(of.dim), of.parts);
  return shape;
}

// The only axis and range of a Slice with steps of one.
struct OneRange {
  std::size_t axis = 0;
  std::int64_t start = 0;
  std::int64_t end = 0;
};

std::optional<OneRange> range_of_slice(const Graph& graph, OpId op) {
  if (graph.type(op) != "Slice" || graph.inputs(op).size() != 1) return std::nullopt;
  const Attributes& attributes = graph.attributes(op);
  const auto axes = attributes.integers("axes");
  const auto starts = attributes.integers("starts");
  const auto steps = attributes.integers("steps");
  if (axes.size() != 1 || starts.size() != 1 || (!steps.empty() && steps[0] != 1) || axes[0] < 0) {
    return std::nullopt;
  }
  const auto axis = static_cast<std::size_t>(axes[0]);
  const auto in = graph.shape(graph.inputs(op)[0]);
  const auto out = graph.shape(graph.outputs(op)[0]);
  if (axis >= in.size() || out.size() != in.size() || starts[0] < 0) return std::nullopt;
  return OneRange{axis, starts[0], starts[0] + out[axis]};
}

// By input, then by output: a letter for each dimension.
using Letters = std::vector<std::string>;

std::string alphabet(std::size_t count) {
  std::string letters;
  for (std::size_t i = 0; i < count; ++i) letters += static_cast<char>('a' + i);
  return letters;
}

std::optional<Letters> letters_of_gemm(const Graph& graph, OpId op) {
  const Attributes& attributes = graph.attributes(op);
  if (attributes.real("beta", 1) != 1) return std::nullopt;
  Letters letters{attributes.integer("transA", 0) != 0 ? "xy" : "yx",
                  attributes.integer("transB", 0) != 0 ? "zx" : "xz"};
  if (graph.inputs(op).size() > 2) {
    const auto bias = graph.shape(graph.inputs(op)[2]);
    if (bias.size() != 1 || bias[0] != graph.shape(graph.outputs(op)[0])[1]) return std::nullopt;
    letters.emplace_back("z");
  }
  letters.emplace_back("yz");
  return letters;
}

// Y = X W, where X may be many matrices and W is one; its gradient by X is the same. The gradient
// by W has dY and X.
std::optional<Letters> letters_of_product(const Graph& graph, OpId op) {
  const std::string_view type = graph.type(op);
  const auto inputs = graph.inputs(op);
  const Attributes& attributes = graph.attributes(op);
  if (inputs.size() < 2 || attributes.real("alpha", 1) != 1) return std::nullopt;
  if (type == "Gemm") return letters_of_gemm(graph, op);
  if (type != "MatMul" && type != "MatMulWeightGrad") return std::nullopt;
  const bool gradient = type == "MatMulWeightGrad";
  const TensorId y = gradient ? inputs[0] : graph.outputs(op)[0];
  const TensorId x = gradient ? inputs[1] : inputs[0];
  const TensorId w = gradient ? graph.outputs(op)[0] : inputs[1];
  const std::size_t rank = graph.shape(x).size();
  if (rank < 2 || graph.shape(y).size() != rank || graph.shape(w).size() != 2) return std::nullopt;
  const std::string lead = alphabet(rank - 2);
  const std::string of_x = lead + (attributes.integer("transA", 0) != 0 ? "xy" : "yx");
  const std::string of_w = attributes.integer("transB", 0) != 0 ? "zx" : "xz";
  return gradient ? Letters{lead + "yz", of_x, of_w} : Letters{of_x, of_w, lead + "yz"};
}

class Grower {
 public:
  Grower(const Graph& graph, const Descriptions& descriptions)
      : graph_(graph), descriptions_(descriptions) {}

  // Nothing where some op has no rule.
  std::optional<TwofoldSet> grow(TensorId first, const Twofold& how) {
    set_ = {{first, how}};
    todo_ = {first};
    while (!todo_.empty()) {
      const TensorId tensor = todo_.back();
      todo_.pop_back();
      if (!passes(graph_.producer(tensor), tensor)) return std::nullopt;
      for (const OpId reader : graph_.consumers(tensor)) {
        if (!passes(reader, tensor)) return std::nullopt;
      }
    }
    return std::move(set_);
  }

 private:
  bool add(TensorId tensor, std::size_t dim, const Twofold& like) {
    if (!graph_.has_shape(tensor) || dim >= graph_.shape(tensor).size() ||
        graph_.shape(tensor)[dim] != like.parts * like.extent) {
      return false;
    }
    const auto [at, added] = set_.try_emplace(tensor, Twofold{dim, like.parts, like.extent});
    if (added) todo_.push_back(tensor);
    return at->second.dim == dim;
  }

  // Whether what the op reads and writes can be seen so; adds what then must be.
  bool passes(OpId op, TensorId tensor) {
    const Twofold how = set_.at(tensor);
    const OpRole role = graph_.role(op);
    if (graph_.is_source(op)) return role == OpRole::kParameter || role == OpRole::kBuffer;
    if (is_cut_between(op, tensor, how) || joins_parts(op, tensor, how)) return true;
    const auto letters = letters_of(op);
    return letters && spreads(op, tensor, how, *letters);
  }

  // A slice of one of the parts.
  bool is_cut_between(OpId op, TensorId tensor, const Twofold& how) const {
    const auto range = range_of_slice(graph_, op);
    return range && graph_.inputs(op)[0] == tensor && range->axis == how.dim &&
           range->start % how.extent == 0 && range->end - range->start == how.extent;
  }

  bool joins_parts(OpId op, TensorId tensor, const Twofold& how) const {
    if (graph_.type(op) != "Concat" || graph_.outputs(op)[0] != tensor ||
        graph_.attributes(op).integer("axis", 0) != static_cast<std::int64_t>(how.dim) ||
        std::ssize(graph_.inputs(op)) != how.parts) {
      return false;
    }
    return std::ranges::all_of(graph_.inputs(op), [&](TensorId part) {
      return graph_.shape(part)[how.dim] == how.extent;
    });
  }

  bool spreads(OpId op, TensorId tensor, const Twofold& how, const Letters& letters) {
    std::vector<TensorId> all(graph_.inputs(op).begin(), graph_.inputs(op).end());
    all.insert(all.end(), graph_.outputs(op).begin(), graph_.outputs(op).end());
    char letter = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all[i] == tensor) letter = letters[i][how.dim];
    }
    if (letter == 0 || letter == kUnit || letter == kAlone) return false;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const std::size_t at = letters[i].find(letter);
      if (at == std::string::npos) {
        // What is broadcast along the dimension would need one more.
        if (letters[i].find(kUnit) != std::string::npos) return false;
        continue;
      }
      if (letters[i].rfind(letter) != at || !add(all[i], at, how)) return false;
    }
    return true;
  }

  std::optional<Letters> letters_of(OpId op) const {
    const std::string_view type = graph_.type(op);
    if (auto letters = letters_of_product(graph_, op)) return letters;
    if (type == "ReduceSum") return letters_of_sum(op);
    if (type == "Slice" || type == "Concat") return letters_but_axis(op);
    if (type == "Reshape") return letters_of_reshape(op);
    if (descriptions_[op] != nullptr && descriptions_[op]->is_elementwise()) {
      return letters_of_elements(op);
    }
    return std::nullopt;
  }

  // Dimensions are counted from the last.
  std::optional<Letters> letters_of_elements(OpId op) const {
    const auto outputs = graph_.outputs(op);
    const auto inputs = graph_.inputs(op);
    const auto full = graph_.shape(outputs.empty() ? inputs[0] : outputs[0]);
    const std::string all = alphabet(full.size());
    Letters letters;
    for (const auto& tensors : {inputs, outputs}) {
      for (const TensorId tensor : tensors) {
        const auto shape = graph_.shape(tensor);
        if (shape.size() > full.size()) return std::nullopt;
        std::string own = all.substr(full.size() - shape.size());
        for (std::size_t d = 0; d < shape.size(); ++d) {
          if (shape[d] != full[d + full.size() - shape.size()]) own[d] = kUnit;
        }
        letters.push_back(std::move(own));
      }
    }
    return letters;
  }

  std::optional<Letters> letters_of_sum(OpId op) const {
    if (graph_.inputs(op).size() != 1) return std::nullopt;
    const auto axes = graph_.attributes(op).integers("axes");
    const std::string all = alphabet(graph_.shape(graph_.inputs(op)[0]).size());
    const bool keeps = graph_.attributes(op).integer("keepdims", 1) != 0;
    std::string left;
    for (std::size_t d = 0; d < all.size(); ++d) {
      const bool summed = std::ranges::count(axes, static_cast<std::int64_t>(d)) > 0;
      if (!summed) left += all[d];
      if (summed && keeps) left += kAlone;
    }
    if (axes.empty() || left.size() != graph_.shape(graph_.outputs(op)[0]).size()) {
      return std::nullopt;
    }
    std::string read = all;
    for (const std::int64_t axis : axes) {
      if (axis < 0) return std::nullopt;
      read[static_cast<std::size_t>(axis)] = kAlone;
    }
    return Letters{read, left};
  }

  // All dimensions but the one along which it cuts or joins.
  std::optional<Letters> letters_but_axis(OpId op) const {
    const auto inputs = graph_.inputs(op);
    const std::size_t rank = graph_.shape(graph_.outputs(op)[0]).size();
    std::size_t axis = 0;
    if (graph_.type(op) == "Slice") {
      const auto range = range_of_slice(graph_, op);
      if (!range) return std::nullopt;
      axis = range->axis;
    } else {
      const std::int64_t given = graph_.attributes(op).integer("axis", 0);
      if (given < 0 || given >= static_cast<std::int64_t>(rank)) return std::nullopt;
      axis = static_cast<std::size_t>(given);
    }
    std::string all = alphabet(rank);
    all[axis] = kAlone;
    return Letters(inputs.size() + 1, all);
  }

  // The last dimension alone, where both have it. A second input says the shape.
  std::optional<Letters> letters_of_reshape(OpId op) const {
    const auto in = graph_.shape(graph_.inputs(op)[0]);
    const auto out = graph_.shape(graph_.outputs(op)[0]);
    if (in.empty() || out.empty() || in.back() != out.back()) return std::nullopt;
    Letters letters{std::string(in.size(), kAlone), std::string(out.size(), kAlone)};
    letters[0].back() = letters[1].back() = 'a';
    if (graph_.inputs(op).size() > 1) letters.insert(letters.begin() + 1, std::string(1, kAlone));
    return letters;
  }

  const Graph& graph_;
  const Descriptions& descriptions_;
  TwofoldSet set_;
  std::vector<TensorId> todo_;
};

// The graph with the tensors of the set in their new shapes.
class Rewriter {
 public:
  Rewriter(const Graph& graph, const TwofoldSet& set)
      : graph_(graph), set_(set), builder_(graph.name(), graph.source()) {}

  Graph run() && {
    for (TensorId tensor = 0; tensor < graph_.num_tensors(); ++tensor) {
      TensorSpec spec = spec_of_tensor(graph_, tensor);
      if (const Twofold* of = find(tensor)) spec.shape = twofold_shape(spec.shape, *of);
      builder_.add_tensor(spec);
    }
    for (OpId op = 0; op < graph_.num_ops(); ++op) rewrite(op);
    return std::move(builder_).build();
  }

 private:
  const Twofold* find(TensorId tensor) const {
    const auto found = set_.find(tensor);
    return found == set_.end() ? nullptr : &found->second;
  }

  OpSpec copy_of(OpId op) const {
    OpSpec spec = spec_of_op(graph_, op);
    spec.inputs.assign(graph_.inputs(op).begin(), graph_.inputs(op).end());
    spec.outputs.assign(graph_.outputs(op).begin(), graph_.outputs(op).end());
    for (const OpId before : graph_.after(op)) spec.after.emplace_back(graph_.op_name(before));
    return spec;
  }

  std::string free_name(std::string name) const {
    while (graph_.find_op(name) || builder_.has_op(name)) name += '+';
    return name;
  }

  // A view of the op at hand, which makes `output`.
  void add_view(const OpSpec& of, std::string_view suffix, TensorId input, TensorId output) {
    builder_.add_op({.name = free_name(fmt::format("{}/{}", of.name, suffix)),
                     .type = "Reshape",
                     .inputs = {input},
                     .outputs = {output},
                     .phase = of.phase,
                     .view = true,
                     .module = of.module});
  }

  TensorId add_tensor(Shape shape, TensorId like) {
    return builder_.add_tensor({.shape = std::move(shape), .dtype = graph_.dtype(like)});
  }

  void rewrite(OpId op) {
    OpSpec spec = copy_of(op);
    const auto inputs = graph_.inputs(op);
    const auto outputs = graph_.outputs(op);
    const bool reads =
        std::ranges::any_of(inputs, [&](TensorId tensor) { return find(tensor) != nullptr; });
    const bool writes =
        std::ranges::any_of(outputs, [&](TensorId tensor) { return find(tensor) != nullptr; });
    if (writes && graph_.role(op) == OpRole::kParameter) keep_fan_in(spec);
    if (reads || writes) {
      if (const auto letters = letters_of_product(graph_, op)) {
        return rewrite_product(std::move(spec), *letters);
      }
    }
    if (spec.type == "Slice" && reads) return rewrite_slice(op, std::move(spec));
    if (spec.type == "Concat" && writes) return rewrite_concat(std::move(spec));
    if (spec.type == "ReduceSum" && reads) shift_axes(spec, "axes", *find(inputs[0]));
    builder_.add_op(spec);
  }

  // It begins as it would in its old shape.
  void keep_fan_in(OpSpec& spec) const {
    const TensorId tensor = spec.outputs[0];
    const Shape shape = shape_in(graph_, tensor);
    const std::int64_t width =
        shape.size() < 2 ? 0 : fan_in(graph_, first_reader(graph_, tensor), shape);
    spec.attributes.set(kFanInAttribute, width);
  }

  static std::int64_t shifted(std::int64_t axis, const Twofold& of) {
    return axis > static_cast<std::int64_t>(of.dim) ? axis + 1 : axis;
  }

  static void shift_axes(OpSpec& spec, std::string_view name, const Twofold& of) {
    std::vector<std::int64_t> axes;
    for (const std::int64_t axis : spec.attributes.integers(name))
      axes.push_back(shifted(axis, of));
    spec.attributes.set(std::string(name), std::move(axes));
  }

  // The letter of the dimension that is two becomes two letters.
  std::string letters_of(TensorId tensor, std::string letters) const {
    if (const Twofold* of = find(tensor)) letters.insert(of->dim, 1, 'p');
    return letters;
  }

  void rewrite_product(OpSpec spec, const Letters& letters) {
    const TensorId output = spec.outputs[0];
    const std::string equation =
        fmt::format("{},{}->{}", letters_of(spec.inputs[0], letters[0]),
                    letters_of(spec.inputs[1], letters[1]), letters_of(output, letters.back()));
    spec.type = "Einsum";
    spec.attributes = {{"equation", equation}};
    if (spec.inputs.size() == 2) {
      builder_.add_op(spec);
      return;
    }
    const TensorId bias = spec.inputs[2];
    spec.inputs.pop_back();
    Shape shape = shape_in(graph_, output);
    if (const Twofold* of = find(output)) shape = twofold_shape(std::move(shape), *of);
    spec.outputs = {add_tensor(std::move(shape), output)};
    builder_.add_op(spec);
    builder_.add_op({.name = free_name(spec.name + "/bias"),
                     .type = "Add",
                     .inputs = {spec.outputs[0], bias},
                     .outputs = {output},
                     .phase = spec.phase,
                     .module = spec.module});
  }

  void rewrite_slice(OpId op, OpSpec spec) {
    const Twofold& of = *find(spec.inputs[0]);
    const OneRange range = *range_of_slice(graph_, op);
    if (range.axis != of.dim) {
      shift_axes(spec, "axes", of);
      builder_.add_op(spec);
      return;
    }
    const TensorId output = spec.outputs[0];
    Shape shape = shape_in(graph_, output);
    shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(of.dim), 1);
    const std::int64_t part = range.start / of.extent;
    spec.attributes.set("starts", std::vector<std::int64_t>{part});
    spec.attributes.set("ends", std::vector<std::int64_t>{part + 1});
    spec.outputs = {add_tensor(std::move(shape), output)};
    builder_.add_op(spec);
    add_view(spec, "part", spec.outputs[0], output);
  }

  void rewrite_concat(OpSpec spec) {
    const Twofold& of = *find(spec.outputs[0]);
    const std::int64_t axis = spec.attributes.integer("axis", 0);
    if (axis != static_cast<std::int64_t>(of.dim)) {
      spec.attributes.set("axis", shifted(axis, of));
      builder_.add_op(spec);
      return;
    }
    for (std::size_t i = 0; i < spec.inputs.size(); ++i) {
      Shape shape = shape_in(graph_, spec.inputs[i]);
      shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(of.dim), 1);
      const TensorId part = add_tensor(std::move(shape), spec.inputs[i]);
      add_view(spec, std::to_string(i), spec.inputs[i], part);
      spec.inputs[i] = part;
    }
    builder_.add_op(spec);
  }

  const Graph& graph_;
  const TwofoldSet& set_;
  GraphBuilder builder_;
};

// Equal slices along one dimension, of which there are several that cover it.
std::optional<Twofold> equal_slices(const Graph& graph, TensorId tensor) {
  std::optional<Twofold> found;
  std::int64_t covered = 0;
  for (const OpId reader : graph.consumers(tensor)) {
    const auto range = range_of_slice(graph, reader);
    if (!range) continue;
    const std::int64_t extent = range->end - range->start;
    const std::int64_t whole = graph.shape(tensor)[range->axis];
    if (extent < 1 || whole % extent != 0 || whole == extent) continue;
    if (!found) found = Twofold{range->axis, whole / extent, extent};
    if (found->dim == range->axis && found->extent == extent) covered += extent;
  }
  if (!found || found->extent < 2 || covered != found->parts * found->extent) return std::nullopt;
  return found;
}

}  // namespace

Graph interleave(const Graph& graph) {
  const Descriptions descriptions(graph);
  Grower grower(graph, descriptions);
  TwofoldSet all;
  for (TensorId tensor = 0; tensor < graph.num_tensors(); ++tensor) {
    if (all.contains(tensor) || !graph.has_shape(tensor)) continue;
    const auto slices = equal_slices(graph, tensor);
    if (!slices) continue;
    const auto set = grower.grow(tensor, *slices);
    if (!set) continue;
    const bool apart =
        std::ranges::none_of(*set, [&](const auto& each) { return all.contains(each.first); });
    const bool has_weights = std::ranges::any_of(*set, [&](const auto& each) {
      return graph.role(graph.producer(each.first)) == OpRole::kParameter;
    });
    if (apart && has_weights) all.insert(set->begin(), set->end());
  }
  return all.empty() ? graph : Rewriter(graph, all).run();
}

}  // namespace emplace
