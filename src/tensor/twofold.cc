// From every tensor that is cut into equal slices along a dimension the set grows of all tensors
// that must be seen in the same way: those that share the dimension through an op. Dimensions of an
// op are letters, the same for those that run together (a product is yx, xz -> yz); a letter that
// is one of the set's is so in all of the op's tensors. Invariant: whatever the set holds has the
// dimension of `parts` times `extent` elements. Slices are Slices of the tensor itself, or of what
// it is once a Reshape has made the dimension [parts, ...], as vision transformers do. The set ends
// where the parts have a dimension of their own. Where an op is met for which there is no rule, or
// an input of the model, which stays as it is, that set is given up. O(ops) for each set; sets do
// not overlap.
#include "tensor/twofold.h"

#include <algorithm>
#include <utility>

#include "graph/tensor_type.h"

#include "tensor/describe.h"

namespace emplace {
namespace {

constexpr char kUnit = '.';   // a dimension of one that is broadcast
constexpr char kAlone = '1';  // one that runs with no other

// The dimension of more than one element before which there are as many as before `dim`; the rank
// where there is none.
std::size_t dimension_at(std::span<const std::int64_t> from, std::size_t dim,
                         std::span<const std::int64_t> to) {
  const std::int64_t before = count_elements(from.first(dim));
  std::int64_t passed = 1;
  std::size_t at = 0;
  while (at < to.size() && (passed < before || to[at] == 1)) passed *= to[at++];
  return passed == before ? at : to.size();
}

// How a dimension of one shape begins in the other, where it becomes several: as [parts, ...].
std::optional<Twofold> parts_in(std::span<const std::int64_t> from, std::size_t dim,
                                std::span<const std::int64_t> to) {
  const std::size_t first = dimension_at(from, dim, to);
  if (first == to.size() || to[first] >= from[dim]) return std::nullopt;
  std::int64_t passed = to[first];
  for (std::size_t at = first + 1; at < to.size() && passed < from[dim]; ++at) passed *= to[at];
  if (passed != from[dim]) return std::nullopt;
  return Twofold{dim, to[first], from[dim] / to[first]};
}

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

}  // namespace

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

bool is_reshape(std::string_view type) {
  return type == "Reshape" || type == "Flatten" || type == "Squeeze" || type == "Unsqueeze";
}

std::vector<std::int64_t> order_of_transpose(const Graph& graph, OpId op) {
  const auto given = graph.attributes(op).integers("perm");
  std::vector<std::int64_t> order(given.begin(), given.end());
  for (auto d = std::ssize(graph.shape(graph.inputs(op)[0])); given.empty() && d-- > 0;) {
    order.push_back(d);
  }
  return order;
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

namespace {

class Grower {
 public:
  Grower(const Graph& graph, const Descriptions& descriptions)
      : graph_(graph), descriptions_(descriptions) {}

  // False where some op has no rule.
  bool grow(TensorId first, const Twofold& how) {
    set_ = {{first, how}};
    todo_ = {first};
    while (!todo_.empty()) {
      const TensorId tensor = todo_.back();
      todo_.pop_back();
      if (!passes(graph_.producer(tensor), tensor)) return false;
      for (const OpId reader : graph_.consumers(tensor)) {
        if (!passes(reader, tensor)) return false;
      }
    }
    return true;
  }
  // As far as it has grown.
  const TwofoldSet& set() const { return set_; }

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
    if (is_cut_between(op, tensor, how) || joins_parts(op, tensor, how) ||
        has_parts_apart(op, tensor, how)) {
      return true;
    }
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

  // On its other side the parts have a dimension of their own.
  bool has_parts_apart(OpId op, TensorId tensor, const Twofold& how) const {
    if (!is_reshape(graph_.type(op))) return false;
    const TensorId in = graph_.inputs(op)[0];
    const TensorId other = in == tensor ? graph_.outputs(op)[0] : in;
    if (!graph_.has_shape(other)) return false;
    const auto parts = parts_in(graph_.shape(tensor), how.dim, graph_.shape(other));
    return parts && parts->parts == how.parts;
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
    if (type == "Transpose") return letters_of_transpose(op);
    if (is_reshape(type)) return letters_of_reshape(op);
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

  std::optional<Letters> letters_of_transpose(OpId op) const {
    if (descriptions_[op] == nullptr) return std::nullopt;
    const std::string read = alphabet(graph_.shape(graph_.inputs(op)[0]).size());
    std::string written;
    for (const std::int64_t from : order_of_transpose(graph_, op)) {
      written += read[static_cast<std::size_t>(from)];
    }
    return Letters{read, written};
  }

  // Dimensions that both have. A second input says the shape.
  std::optional<Letters> letters_of_reshape(OpId op) const {
    const auto in = graph_.shape(graph_.inputs(op)[0]);
    const auto out = graph_.shape(graph_.outputs(op)[0]);
    Letters letters{std::string(in.size(), kAlone), std::string(out.size(), kAlone)};
    for (std::size_t d = 0; d < in.size(); ++d) {
      const std::size_t same = dimension_at(in, d, out);
      if (in[d] == 1 || same == out.size() || in[d] != out[same]) continue;
      letters[0][d] = letters[1][same] = static_cast<char>('a' + d);
    }
    for (std::size_t i = 1; i < graph_.inputs(op).size(); ++i) {
      letters.insert(letters.end() - 1, std::string(1, kAlone));
    }
    return letters;
  }

  const Graph& graph_;
  const Descriptions& descriptions_;
  TwofoldSet set_;
  std::vector<TensorId> todo_;
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

// Whether the op takes a single element along the dimension of its first input.
bool takes_one(const Graph& graph, OpId op, std::size_t dim) {
  if (const auto range = range_of_slice(graph, op)) {
    return range->axis == dim && range->end - range->start == 1;
  }
  if (graph.type(op) != "Gather" || graph.inputs(op).size() != 2) return false;
  const auto rank = std::ssize(graph.shape(graph.inputs(op)[0]));
  const std::int64_t axis = graph.attributes(op).integer("axis", 0);
  const TensorId place = graph.inputs(op)[1];
  return (axis < 0 ? axis + rank : axis) == static_cast<std::int64_t>(dim) &&
         graph.has_shape(place) && count_elements(graph.shape(place)) == 1;
}

// Where the dimension of the op's input is in what it makes of it in another order or shape; beyond
// the last where it makes something else.
std::size_t dimension_through(const Graph& graph, OpId op, std::size_t dim) {
  const auto shape = graph.shape(graph.inputs(op)[0]);
  const auto after = graph.shape(graph.outputs(op)[0]);
  if (is_reshape(graph.type(op))) return dimension_at(shape, dim, after);
  if (graph.type(op) != "Transpose") return after.size();
  const auto order = order_of_transpose(graph, op);
  return static_cast<std::size_t>(std::ranges::find(order, static_cast<std::int64_t>(dim)) -
                                  order.begin());
}

// Whether somebody takes single elements along the dimension: of the tensor, or of what it is in
// another order or shape.
bool is_told_apart(const Graph& graph, TensorId tensor, std::size_t dimension) {
  constexpr std::size_t kMostViews = 16;  // that are looked through
  std::vector<std::pair<TensorId, std::size_t>> views{{tensor, dimension}};
  for (std::size_t i = 0; i < views.size() && i < kMostViews; ++i) {
    const auto [view, dim] = views[i];
    const auto shape = graph.shape(view);
    for (const OpId reader : graph.consumers(view)) {
      if (graph.outputs(reader).empty() || graph.inputs(reader)[0] != view) continue;
      const TensorId output = graph.outputs(reader)[0];
      if (!graph.has_shape(output)) continue;
      if (takes_one(graph, reader, dim)) return true;
      const std::size_t there = dimension_through(graph, reader, dim);
      const auto after = graph.shape(output);
      if (there < after.size() && after[there] == shape[dim]) views.emplace_back(output, there);
    }
  }
  return false;
}

// Equal slices that get a dimension of their own before they are told apart.
std::optional<Twofold> slices_apart(const Graph& graph, TensorId tensor) {
  const auto shape = graph.shape(tensor);
  for (const OpId reader : graph.consumers(tensor)) {
    if (!is_reshape(graph.type(reader)) || graph.inputs(reader)[0] != tensor) continue;
    const TensorId output = graph.outputs(reader)[0];
    if (!graph.has_shape(output)) continue;
    for (std::size_t dim = 0; dim < shape.size(); ++dim) {
      const auto parts = parts_in(shape, dim, graph.shape(output));
      if (parts && parts->extent > 1 &&
          is_told_apart(graph, output, dimension_at(shape, dim, graph.shape(output)))) {
        return parts;
      }
    }
  }
  return std::nullopt;
}

}  // namespace

TwofoldSet twofold_tensors(const Graph& graph) {
  const Descriptions descriptions(graph);
  Grower grower(graph, descriptions);
  TwofoldSet all;
  TwofoldSet given_up;  // of which others need not be tried
  for (TensorId tensor = 0; tensor < graph.num_tensors(); ++tensor) {
    if (all.contains(tensor) || !graph.has_shape(tensor)) continue;
    auto slices = equal_slices(graph, tensor);
    if (!slices) slices = slices_apart(graph, tensor);
    const auto known = given_up.find(tensor);
    if (!slices || (known != given_up.end() && known->second == *slices)) continue;
    const bool whole = grower.grow(tensor, *slices);
    const TwofoldSet& set = grower.set();
    const bool apart =
        std::ranges::none_of(set, [&](const auto& each) { return all.contains(each.first); });
    const bool has_weights = std::ranges::any_of(set, [&](const auto& each) {
      return graph.role(graph.producer(each.first)) == OpRole::kParameter;
    });
    (whole && apart && has_weights ? all : given_up).insert(set.begin(), set.end());
  }
  return all;
}

}  // namespace emplace
