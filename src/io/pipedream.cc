// Profiles of PipeDream (Narayanan et al., SOSP 2019), graph.txt: one line a layer with its forward
// and backward times and the bytes of its activations and parameters.
//
// A layer becomes up to three ops on one device: `ID/parameter`, `ID` (forward) and `ID/backward`.
// Activations flow along the edges, gradients of the same size against them, and a layer's backward
// op reads its forward's activation, which so stays in memory in between. The file names no device:
// the times are those of any ("*"). Several activation sizes of a layer are summed, as PipeDream's
// planner does, because the file does not say which consumer reads which; and as there, a source
// that is called Input takes no time, and nothing flows back into it.
#include <algorithm>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/text.h"

#include "graph/graph_builder.h"

#include "cost/cost_model.h"

#include "io/readers.h"
#include "io/topological_order.h"

namespace emplace {
namespace {

constexpr std::string_view kSeparator = " -- ";

struct Layer {
  std::string id;
  std::string description;
  Decimal forward_us;
  Decimal backward_us;
  Bytes activation = 0;
  Bytes parameters = 0;
  bool is_input = false;
};

struct Profile {
  std::vector<Layer> layers;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> edges;
};

struct NamedEdge {
  std::size_t line;
  std::string_view from;
  std::string_view to;
};

// Calls `visit` with each piece of `text` between separators.
template <class Visit>
void for_each_piece(std::string_view text, std::string_view separator, Visit&& visit) {
  while (true) {
    const std::size_t end = text.find(separator);
    visit(text.substr(0, end));
    if (end == std::string_view::npos) return;
    text.remove_prefix(end + separator.size());
  }
}

// What a line says of a layer, field by field; errors name the line, the layer and the field.
class LineFields {
 public:
  LineFields(std::size_t line, std::string_view id, std::string_view text)
      : where_(fmt::format("line {}: {}", line, id)), text_(text) {}

  Decimal milliseconds_as_us(std::string_view field) const {
    Decimal number = parse_profile(field, find(field));
    if (number.mantissa != 0) number.exponent += 3;
    return number;
  }

  // A size, or the sum of a list of them: "[4096.0; 1024.0]".
  Bytes bytes(std::string_view field) const {
    std::string_view value = find(field);
    const bool list = value.starts_with('[');
    if (list != value.ends_with(']')) {
      fail_input("{}: {}: '{}': expected [ and ] around a list", where_, field, value);
    }
    if (list) value = value.substr(1, value.size() - 2);
    Bytes sum = 0;
    for_each_piece(value, ";", [&](std::string_view piece) {
      const auto size = round_half_up(parse_profile(field, trim(piece)), 1);
      if (!size || __builtin_add_overflow(sum, *size, &sum)) {
        fail_input("{}: {}: is too large", where_, field);
      }
    });
    return sum;
  }

 private:
  std::string_view find(std::string_view field) const {
    std::optional<std::string_view> found;
    for_each_piece(text_, ",", [&](std::string_view piece) {
      piece = trim(piece);
      if (piece.find('=') == std::string_view::npos) {
        fail_input("{}: '{}': expected FIELD=VALUE between commas, and points in numbers", where_,
                   piece);
      }
      if (piece.size() <= field.size() || piece[field.size()] != '=') return;
      if (piece.starts_with(field)) found = trim(piece.substr(field.size() + 1));
    });
    if (!found) fail_input("{}: {}: is missing", where_, field);
    return *found;
  }

  Decimal parse_profile(std::string_view field, std::string_view value) const {
    const auto number = Decimal::parse(value);
    if (!number || number->negative()) {
      fail_input("{}: {}: '{}': expected a number of 0 or more", where_, field, value);
    }
    return *number;
  }

  std::string where_;
  std::string_view text_;
};

Layer parse_layer(std::size_t line, std::string_view text) {
  const std::size_t id_end = text.find(kSeparator);
  const std::size_t fields = text.rfind(" -- forward_compute_time=");
  if (id_end == 0 || fields == std::string_view::npos) {
    fail_input("line {}: expected 'NODE -- DESCRIPTION -- forward_compute_time=MS, ...'", line);
  }
  Layer layer;
  layer.id = trim(text.substr(0, id_end));
  const std::size_t begin = std::min(id_end + kSeparator.size(), fields);
  layer.description = trim(text.substr(begin, fields - begin));
  std::string_view rest = text.substr(fields + kSeparator.size());
  rest = rest.substr(0, rest.find(kSeparator));  // a stage_id may follow
  const LineFields values(line, layer.id, rest);
  layer.forward_us = values.milliseconds_as_us("forward_compute_time");
  layer.backward_us = values.milliseconds_as_us("backward_compute_time");
  layer.activation = values.bytes("activation_size");
  layer.parameters = values.bytes("parameter_size");
  return layer;
}

NamedEdge parse_edge(std::size_t line, std::string_view text) {
  const std::size_t separator = text.find(kSeparator);
  if (separator == std::string_view::npos) {
    fail_input("line {}: expected an edge, 'NODE -- NODE'", line);
  }
  return {line, trim(text.substr(0, separator)), trim(text.substr(separator + kSeparator.size()))};
}

Profile parse_profile(const std::string& text) {
  Profile profile;
  std::unordered_map<std::string_view, std::uint32_t> index;  // views of `text`
  std::vector<NamedEdge> edges;
  std::size_t line = 0;
  for_each_piece(text, "\n", [&](std::string_view content) {
    ++line;
    const std::string_view trimmed = trim(content);
    if (trimmed.empty()) return;
    if (content[0] == '\t' || content[0] == ' ') {
      edges.push_back(parse_edge(line, trimmed));
      return;
    }
    profile.layers.push_back(parse_layer(line, trimmed));
    const std::string_view id = trim(trimmed.substr(0, trimmed.find(kSeparator)));
    if (!index.try_emplace(id, static_cast<std::uint32_t>(profile.layers.size() - 1)).second) {
      fail_input("line {}: {}: is described twice", line, id);
    }
  });
  if (profile.layers.empty()) fail_input("the profile is empty: it has no nodes");
  const auto find = [&](const NamedEdge& edge, std::string_view id) {
    const auto found = index.find(id);
    if (found == index.end()) {
      fail_input("line {}: edge {} -- {}: there is no node {}", edge.line, edge.from, edge.to, id);
    }
    return found->second;
  };
  for (const NamedEdge& edge : edges) {
    profile.edges.emplace_back(find(edge, edge.from), find(edge, edge.to));
  }
  std::sort(profile.edges.begin(), profile.edges.end());
  profile.edges.erase(std::unique(profile.edges.begin(), profile.edges.end()), profile.edges.end());
  std::vector<bool> is_source(profile.layers.size(), true);
  for (const auto& [from, to] : profile.edges) is_source[to] = false;
  for (std::size_t i = 0; i < profile.layers.size(); ++i) {
    profile.layers[i].is_input = is_source[i] && profile.layers[i].description.starts_with("Input");
  }
  return profile;
}

// "Conv2d" of "Conv2d(64, 96, kernel_size=(3, 3))". A name that emplace gives a meaning, such as
// parameter, would make the op last nothing.
std::string type_of(const Layer& layer) {
  const std::string type(
      trim(std::string_view(layer.description).substr(0, layer.description.find('('))));
  return type.empty() || role_of_type(type) != OpRole::kCompute ? "layer" : type;
}

class ProfileGraph {
 public:
  ProfileGraph(const Profile& profile, const std::string& name)
      : profile_(profile),
        builder_(name, "PipeDream profile"),
        activation_(profile.layers.size()),
        parameters_(profile.layers.size()),
        gradients_(profile.layers.size()) {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> reversed;
    reversed.reserve(profile.edges.size());
    for (const auto& [from, to] : profile.edges) reversed.emplace_back(to, from);
    predecessors_ = Csr<std::uint32_t>::from_pairs(profile.layers.size(), reversed);
  }

  Graph build() && {
    const auto order =
        topological_order(profile_.layers.size(), profile_.edges,
                          [&](std::uint32_t layer) { return profile_.layers[layer].id; });
    for (const std::uint32_t layer : order) add_forward(layer);
    const std::vector<std::uint32_t> backward(order.rbegin(), order.rend());
    for (const std::uint32_t layer : backward) {
      if (!profile_.layers[layer].is_input) add_backward(layer);
    }
    return std::move(builder_).build();
  }

 private:
  void add_forward(std::uint32_t index) {
    const Layer& layer = profile_.layers[index];
    activation_[index] = builder_.add_tensor({.bytes = layer.activation});
    if (layer.is_input) {
      builder_.add_op({.name = layer.id, .type = "input", .outputs = {activation_[index]}});
      return;
    }
    OpSpec op{.name = layer.id,
              .type = type_of(layer),
              .outputs = {activation_[index]},
              .time_us = {{std::string(kAnyDevice), layer.forward_us}},
              .module = layer.id,
              .colocate = layer.id};
    for (const std::uint32_t before : predecessors_[index]) {
      op.inputs.push_back(activation_[before]);
    }
    if (layer.parameters > 0) {
      parameters_[index] = builder_.add_tensor({.bytes = layer.parameters});
      builder_.add_op({.name = layer.id + "/parameter",
                       .type = "parameter",
                       .outputs = {*parameters_[index]},
                       .module = layer.id,
                       .colocate = layer.id});
      op.inputs.push_back(*parameters_[index]);
    }
    builder_.add_op(op);
  }

  void add_backward(std::uint32_t index) {
    const Layer& layer = profile_.layers[index];
    OpSpec op{.name = layer.id + "/backward",
              .type = type_of(layer) + "_backward",
              .inputs = gradients_[index],
              .phase = Phase::kBackward,
              .time_us = {{std::string(kAnyDevice), layer.backward_us}},
              .module = layer.id,
              .colocate = layer.id};
    op.inputs.push_back(activation_[index]);
    if (parameters_[index]) op.inputs.push_back(*parameters_[index]);
    for (const std::uint32_t before : predecessors_[index]) {
      const Layer& source = profile_.layers[before];
      if (source.is_input) continue;
      const TensorId gradient = builder_.add_tensor({.bytes = source.activation});
      op.outputs.push_back(gradient);
      gradients_[before].push_back(gradient);
    }
    builder_.add_op(op);
  }

  const Profile& profile_;
  GraphBuilder builder_;
  Csr<std::uint32_t> predecessors_;
  std::vector<TensorId> activation_;
  std::vector<std::optional<TensorId>> parameters_;
  std::vector<std::vector<TensorId>> gradients_;  // by layer: those that its consumers send back
};

}  // namespace

Graph read_pipedream(const std::string& text, const std::string& name) {
  const Profile profile = parse_profile(text);
  return ProfileGraph(profile, name).build();
}

}  // namespace emplace
