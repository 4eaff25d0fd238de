// A row for each operator: its name, the variables that its levels cut, and its tensors as rows of
// cells, a cell for each dimension, striped into as many parts as the dimension is cut into. Rows
// of a layer that look alike are one row with a count; neighbouring layers with the same rows are
// one layer. O(ops * levels), and the text of every row twice.
#include "report/plan_picture.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "graph/layers.h"

#include "io/xml_text.h"

namespace emplace {
namespace {

constexpr int kRowHeight = 26;
constexpr int kHeading = 34;
constexpr int kCellHeight = 19;
constexpr int kStripes = 13;  // where they begin, below the number
constexpr int kLetter = 6;    // width, about
constexpr int kMargin = 16;
constexpr int kOpWidth = 250;
constexpr int kCutWidth = 150;
constexpr int kMostStripes = 16;

std::string shortened(std::string_view text, std::size_t most) {
  return text.size() <= most ? std::string(text)
                             : "..." + std::string(text.substr(text.size() - most + 3));
}

struct DrawnTensor {
  enum class Kind { kWeight, kActivation, kResult };

  Kind kind = Kind::kActivation;
  std::vector<std::int64_t> shape;
  std::vector<int> parts;  // by dimension
  int copies = 1;          // workers that have the same part

  auto operator<=>(const DrawnTensor&) const = default;
};

struct DrawnOp {
  std::string name;  // without its layer's; not compared
  std::string type;
  std::string cuts;  // "b, b, sum k"
  std::vector<DrawnTensor> tensors;
  int count = 1;

  bool looks_like(const DrawnOp& other) const {
    return type == other.type && cuts == other.cuts && tensors == other.tensors;
  }
};

struct DrawnLayer {
  std::string first;
  std::string last;
  int count = 1;
  std::vector<DrawnOp> ops;

  bool looks_like(const DrawnLayer& other) const {
    return std::ranges::equal(ops, other.ops, [](const DrawnOp& a, const DrawnOp& b) {
      return a.count == b.count && a.looks_like(b);
    });
  }
};

class LayerReader {
 public:
  LayerReader(const Graph& graph, const Descriptions& descriptions, const Plan& plan)
      : graph_(graph), descriptions_(descriptions), plan_(plan) {}

  std::vector<DrawnLayer> read() {
    const Modules modules = infer_modules(graph_);
    const std::vector<std::string> names = layers_of_modules(modules);
    std::vector<DrawnLayer> layers;
    for (OpId op = 0; op < graph_.num_ops(); ++op) {
      if (graph_.is_source(op) || graph_.is_view(op) || graph_.phase(op) != Phase::kForward) {
        continue;
      }
      const std::string& layer = names[modules.of_op[op]];
      auto found = std::find_if(layers.begin(), layers.end(),
                                [&](const DrawnLayer& known) { return known.first == layer; });
      if (found == layers.end()) {
        layers.push_back({.first = layer, .last = layer, .ops = {}});
        found = layers.end() - 1;
      }
      add(read_op(op, layer), found->ops);
    }
    return merged(std::move(layers));
  }

 private:
  static void add(DrawnOp drawn, std::vector<DrawnOp>& ops) {
    const auto alike = std::find_if(ops.begin(), ops.end(),
                                    [&](const DrawnOp& other) { return other.looks_like(drawn); });
    if (alike == ops.end()) {
      ops.push_back(std::move(drawn));
    } else {
      ++alike->count;
    }
  }

  static std::vector<DrawnLayer> merged(std::vector<DrawnLayer> layers) {
    std::vector<DrawnLayer> result;
    for (DrawnLayer& layer : layers) {
      if (!result.empty() && result.back().looks_like(layer)) {
        result.back().last = layer.first;
        ++result.back().count;
      } else {
        result.push_back(std::move(layer));
      }
    }
    return result;
  }

  DrawnOp read_op(OpId op, std::string_view layer) const {
    std::string_view name = graph_.op_name(op);
    if (!layer.empty() && name.starts_with(layer)) name.remove_prefix(layer.size());
    while (!name.empty() && (name[0] == '.' || name[0] == '/')) name.remove_prefix(1);
    DrawnOp drawn{.name = std::string(name.empty() ? graph_.op_name(op) : name),
                  .type = std::string(graph_.type(op)),
                  .cuts = cuts_of(op),
                  .tensors = {}};
    for (const TensorId tensor : graph_.inputs(op)) {
      const OpRole role = graph_.role(graph_.producer(tensor));
      const bool weight = role == OpRole::kParameter || role == OpRole::kBuffer;
      drawn.tensors.push_back(read_tensor(
          tensor, weight ? DrawnTensor::Kind::kWeight : DrawnTensor::Kind::kActivation));
    }
    for (const TensorId tensor : graph_.outputs(op)) {
      drawn.tensors.push_back(read_tensor(tensor, DrawnTensor::Kind::kResult));
    }
    return drawn;
  }

  // By level: the variable, "sum k" where partial results are added up, "all" where nothing is cut.
  std::string cuts_of(OpId op) const {
    const tdl::Description* description = descriptions_[op];
    std::vector<std::string> words;
    for (const std::int8_t cut : plan_.ops[op]) {
      if (cut == kUncut || description == nullptr) {
        words.emplace_back("all");
        continue;
      }
      const auto variable = static_cast<tdl::VariableId>(cut);
      words.push_back((description->is_reduction(variable) ? "sum " : "") +
                      description->variables[static_cast<std::size_t>(cut)].name);
    }
    return fmt::format("{}", fmt::join(words, ", "));
  }

  DrawnTensor read_tensor(TensorId tensor, DrawnTensor::Kind kind) const {
    const auto shape = graph_.shape(tensor);
    DrawnTensor drawn{.kind = kind,
                      .shape = {shape.begin(), shape.end()},
                      .parts = std::vector<int>(shape.size(), 1)};
    const Cuts& cuts = plan_.tensors[tensor];
    for (std::size_t level = 0; level < cuts.size(); ++level) {
      const auto dimension = static_cast<std::size_t>(cuts[level]);
      if (cuts[level] == kUncut || dimension >= shape.size()) {
        drawn.copies *= plan_.workers.factor(level);
      } else {
        drawn.parts[dimension] *= plan_.workers.factor(level);
      }
    }
    return drawn;
  }

  const Graph& graph_;
  const Descriptions& descriptions_;
  const Plan& plan_;
};

class Picture {
 public:
  explicit Picture(const Plan& plan) : plan_(plan) {}

  std::string draw(const std::vector<DrawnLayer>& layers) {
    legend();
    for (const DrawnLayer& layer : layers) {
      if (!layer.ops.empty()) draw(layer);
    }
    return fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} "
        "{1}\" font-family=\"sans-serif\" font-size=\"11\">\n"
        "<style>.cell{{stroke:#555;stroke-width:1}}.cut{{stroke:#b00;stroke-width:1.2}}"
        ".weight{{fill:#fde2b8}}.activation{{fill:#cfe3f7}}.result{{fill:#d5efd0}}"
        ".copy{{fill:#777}}</style>\n"
        "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n{2}</svg>\n",
        width_ + kMargin, y_ + kMargin, body_);
  }

 private:
  void text(int x, int y, std::string_view words, std::string_view style = "") {
    body_ += fmt::format("<text x=\"{}\" y=\"{}\"{}>{}</text>\n", x, y, style, xml_escaped(words));
    width_ = std::max(width_, x + kLetter * static_cast<int>(words.size()));
  }

  void legend() {
    text(kMargin, y_ + 4,
         fmt::format("{}: {} workers, as {}", plan_.method, plan_.workers.count(),
                     fmt::join(plan_.workers.factors(), " x ")),
         " font-size=\"14\" font-weight=\"bold\"");
    y_ += kRowHeight;
    int x = kMargin;
    for (const auto& [kind, words] :
         {std::pair("weight", "weights"), std::pair("activation", "read"),
          std::pair("result", "made")}) {
      body_ +=
          fmt::format("<rect x=\"{}\" y=\"{}\" width=\"14\" height=\"12\" class=\"cell {}\"/>\n", x,
                      y_ - 10, kind);
      text(x + 20, y_, words);
      x += 90;
    }
    text(x, y_,
         "a cell is a dimension; red lines cut it into parts; xN: N workers have the same part");
    y_ += kRowHeight;
  }

  void draw(const DrawnLayer& layer) {
    std::string title = layer.first.empty() ? "(no module)" : layer.first;
    if (layer.count > 1) title += fmt::format(" to {} ({} alike)", layer.last, layer.count);
    y_ += kHeading - kRowHeight;
    text(kMargin, y_, title, " font-size=\"13\" font-weight=\"bold\"");
    y_ += kRowHeight;
    for (const DrawnOp& op : layer.ops) draw(op);
  }

  void draw(const DrawnOp& op) {
    constexpr std::size_t kMostLetters = 38;
    std::string name = op.name == op.type ? op.type : fmt::format("{} {}", op.type, op.name);
    name = shortened(name, kMostLetters);
    if (op.count > 1) name += fmt::format(" x{}", op.count);
    text(kMargin + 10, y_, name);
    text(kMargin + kOpWidth, y_, op.cuts);
    int x = kMargin + kOpWidth + kCutWidth;
    for (const DrawnTensor& tensor : op.tensors) x = draw(tensor, x) + 14;
    y_ += kRowHeight;
  }

  int draw(const DrawnTensor& tensor, int x) {
    const char* kind = tensor.kind == DrawnTensor::Kind::kWeight       ? "weight"
                       : tensor.kind == DrawnTensor::Kind::kActivation ? "activation"
                                                                       : "result";
    if (tensor.kind == DrawnTensor::Kind::kResult) {
      text(x - 4, y_, "->");
      x += 14;
    }
    if (tensor.shape.empty()) x = draw_cell("1", 1, kind, x);
    for (std::size_t d = 0; d < tensor.shape.size(); ++d) {
      x = draw_cell(fmt::format("{}", tensor.shape[d]), tensor.parts[d], kind, x);
    }
    if (tensor.copies > 1) {
      const std::string copies = fmt::format("x{}", tensor.copies);
      text(x + 3, y_, copies, " class=\"copy\"");
      x += 3 + kLetter * static_cast<int>(copies.size());
    }
    return x;
  }

  int draw_cell(const std::string& extent, int parts, const char* kind, int x) {
    const int stripes = std::min(parts, kMostStripes);
    const int width =
        std::max(kLetter * static_cast<int>(extent.size()) + 10, stripes > 1 ? 7 * stripes : 0);
    const int top = y_ - 10;
    body_ += fmt::format(
        "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" class=\"cell {}\"><title>{}{}</title>"
        "</rect>\n",
        x, top, width, kCellHeight, kind, extent,
        parts > 1 ? fmt::format(" in {} parts", parts) : "");
    for (int i = 1; i < stripes; ++i) {
      const int at = x + width * i / stripes;
      body_ += fmt::format("<line x1=\"{0}\" y1=\"{1}\" x2=\"{0}\" y2=\"{2}\" class=\"cut\"/>\n",
                           at, top + kStripes, top + kCellHeight);
    }
    text(x + (width - kLetter * static_cast<int>(extent.size())) / 2, y_, extent);
    width_ = std::max(width_, x + width);
    return x + width;
  }

  const Plan& plan_;
  std::string body_;
  int width_ = 900;
  int y_ = 24;
};

}  // namespace

std::string plan_picture(const Graph& graph, const Descriptions& descriptions, const Plan& plan) {
  return Picture(plan).draw(LayerReader(graph, descriptions, plan).read());
}

}  // namespace emplace
