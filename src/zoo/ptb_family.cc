// Language models of a random recurrent cell, as the search of Pham et al. 2018 ("Efficient Neural
// Architecture Search via Parameter Sharing", ENAS) draws them for Penn Treebank; Addanki et al.
// 2019 (Placeto) place such graphs. The first node of the cell reads the word and the state. Each
// further node picks one before it and an activation f of tanh, relu, identity and sigmoid, and is
//   s + c (f(s W) - s)   with the highway weight c = sigmoid(s V)
// of that node's s. The new state is the mean of the nodes that none picked. Words are 10,000, and
// their vectors are also the weights of the softmax. Equally likely are
//   nodes 4 to 10, sequence 10, 15, 20 or 25, hidden 200, 300, 400, 600 or 800,
//   batch 16, 32, 64 or 128:
// some 900 to 5,500 ops in a training step.
#include <span>
#include <string_view>

#include "zoo/family.h"
#include "zoo/models.h"
#include "zoo/recurrent.h"

namespace emplace::zoo {
namespace {

constexpr std::int64_t kWords = 10'000;

struct Ptb : FamilyOptions {
  std::int64_t nodes = 0;
  std::int64_t hidden = 0;
  std::int64_t sequence = 0;

  static OptionSchema<Ptb> schema() {
    return family_schema<Ptb>()
        .integer("nodes", &Ptb::nodes, 0, 1 << 10, "Nodes of the cell.")
        .integer("hidden", &Ptb::hidden, 0, 1 << 16, "Width of the cell and word vectors.")
        .integer("sequence", &Ptb::sequence, 0, 1 << 13, "Steps that are unrolled.");
  }
};

struct Node {
  std::size_t input = 0;      // the node that it reads; the first reads the word and the state
  std::string_view function;  // empty: the identity
};

std::vector<Node> draw_cell(Rng rng, std::int64_t nodes) {
  static constexpr std::string_view kFunctions[] = {"Tanh", "Relu", "", "Sigmoid"};
  std::vector<Node> cell;
  for (std::size_t i = 0; i < static_cast<std::size_t>(nodes); ++i) {
    const std::size_t input = i == 0 ? 0 : rng.below(i);
    cell.push_back({input, rng.pick<std::string_view>(kFunctions)});
  }
  return cell;
}

class Cell {
 public:
  Cell(Net& net, std::vector<Node> nodes, std::int64_t batch, std::int64_t hidden)
      : nodes_(std::move(nodes)) {
    const auto scope = net.scope("cell");
    std::vector<bool> picked(nodes_.size(), false);
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      const auto node_scope = net.scope("node", static_cast<std::int64_t>(i));
      // Both f's and the highway's weights.
      weights_.push_back(net.parameter("weight", {2 * hidden, i == 0 ? 2 * hidden : hidden}));
      if (i > 0) picked[nodes_[i].input] = true;
    }
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (!picked[i]) loose_ends_.push_back(i);
    }
    state_ = zeros(net, {batch, hidden});
  }

  Value step(Net& net, const Value& x, std::int64_t step) {
    const auto scope = net.scope("cell");
    Values outputs;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      const auto node_scope = net.scope("node", static_cast<std::int64_t>(i));
      const auto step_scope = net.scope("step", step);
      const Value& before = i == 0 ? state_ : outputs[nodes_[i].input];
      const Value read = i == 0 ? concat(net, {x, state_}, 1) : before;
      outputs.push_back(run_node(net, i, read, before));
    }
    const auto step_scope = net.scope("step", step);
    Values ends;
    for (const std::size_t i : loose_ends_) ends.push_back(outputs[i]);
    const Value total = sum(net, ends);
    const auto count = static_cast<double>(ends.size());
    state_ = ends.size() == 1 ? total : scale(net, total, 1 / count);
    return state_;
  }

 private:
  Value run_node(Net& net, std::size_t i, const Value& read, const Value& before) const {
    const Values halves = split_evenly(net, gemm(net, read, weights_[i], std::nullopt), 2, 1);
    const std::string_view function = nodes_[i].function;
    const Value proposed = function.empty() ? halves[0] : unary(net, function, halves[0]);
    const Value highway = sigmoid(net, halves[1]);
    return add(net, before, mul(net, highway, sub(net, proposed, before)));
  }

  std::vector<Node> nodes_;
  Values weights_;
  std::vector<std::size_t> loose_ends_;
  Value state_;
};

void build(Net& net, const Ptb& options) {
  Decisions decisions(options.seed);
  const std::int64_t nodes = decisions.next(options.nodes, {4, 5, 6, 7, 8, 9, 10});
  const std::int64_t sequence = decisions.next(options.sequence, {10, 15, 20, 25});
  const std::int64_t hidden = decisions.next(options.hidden, {200, 300, 400, 600, 800});
  const std::int64_t batch = decisions.next(options.batch, {16, 32, 64, 128});

  const Shape words{batch, sequence};
  const WordVectors vectors(net, "embedding", kWords, hidden,
                            net.input("words", words, DType::kInt64));
  Cell cell(net, draw_cell(decisions.next(), nodes), batch, hidden);
  WordClassifier classifier("softmax", vectors, net.input("next_words", words, DType::kInt64));
  for (std::int64_t t = 0; t < sequence; ++t) {
    classifier.step(net, cell.step(net, vectors.step(net, t), t), t);
  }
  classifier.total(net);
}

}  // namespace

std::vector<ModelInfo> ptb_family() {
  return {model<Ptb>({.name = "ptb",
                      .summary = "Language models of a random recurrent cell.",
                      .source = "Pham et al. 2018 (ENAS); Addanki et al. 2019 (Placeto)"},
                     build)};
}

}  // namespace emplace::zoo
