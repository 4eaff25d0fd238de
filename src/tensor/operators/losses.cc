// Cross entropy of scores (or their logarithms of probabilities) [n, classes, ...] against labels
// [n, ...].
#include <algorithm>

#include "tensor/operators/operators.h"
#include "tensor/operators/support.h"

namespace emplace::operators {
namespace {

struct Entropy {
  std::vector<Index> scores, labels;
  Position count = 1;  // labels
};

Shape without_classes(const Shape& scores) {
  Shape labels = scores;
  labels.erase(labels.begin() + 1);
  return labels;
}

// A mean over labels that count, or count more than others, is not known before all are seen.
bool has_plain_mean(const Signature& op, bool weights) {
  return !weights && op.attributes.find("ignore_index") == nullptr;
}

Entropy entropy(Definition& op, const Shape& scores, bool divisible) {
  Entropy result;
  for (std::size_t d = 0; d < scores.size(); ++d) {
    const std::string name = "d" + std::to_string(d);
    const bool cut = divisible && d != 1;
    result.scores.push_back(cut ? op.index(name, scores[d]) : op.whole(name, scores[d]));
    if (d == 1) continue;
    result.labels.push_back(result.scores.back());
    result.count *= scores[d];
  }
  return result;
}

// A part's share of a mean over all labels.
void count_mean(Definition& op, const Entropy& at, bool plain) {
  if (op.attributes().text("reduction", "mean") != "mean" || !plain) return;
  op.localise([count = at.count](Piece& piece) { set_mean_count(piece, count); });
}

}  // namespace

MaybeDescription loss(const Signature& signature) {
  Definition op(signature);
  if (op.num_inputs() < 2 || op.num_outputs() < 1 || op.input(0).size() < 2 ||
      op.input(1) != without_classes(op.input(0))) {
    return std::nullopt;
  }
  const std::string_view how = op.attributes().text("reduction", "mean");
  const bool weights = op.num_inputs() > 2;
  const bool plain = has_plain_mean(signature, weights);
  const Entropy at = entropy(op, op.input(0), how != "mean" || plain);
  tdl::Expression value = f(op.in(0)(at.scores), op.in(1)(at.labels));
  if (weights) value = value + op.in(2)(at.scores[1]);
  if (how == "none") {
    op.out(0)(at.labels) = value;
  } else {
    op.out(0)(std::vector<Index>(op.output(0).size(), Index(0))) = sum(at.labels, value);
  }
  if (op.num_outputs() > 1) op.out(1)(at.scores) = value;
  count_mean(op, at, plain);
  return std::move(op).done();
}

// Labels, perhaps a weight for each class: the sum of what labels count.
MaybeDescription loss_weight(const Signature& signature) {
  Definition op(signature);
  if (op.num_inputs() < 1 || op.num_inputs() > 2 || op.num_outputs() != 1) return std::nullopt;
  std::vector<Index> labels;
  for (std::size_t d = 0; d < op.input(0).size(); ++d) {
    labels.push_back(op.index("d" + std::to_string(d), op.input(0)[d]));
  }
  tdl::Expression value = op.in(0)(labels);
  if (op.num_inputs() > 1) {
    if (op.input(1).size() != 1) return std::nullopt;
    value = f(value, op.in(1)(op.whole("c", op.input(1)[0])));
  }
  op.out(0)(std::vector<Index>(op.output(0).size(), Index(0))) = sum(labels, value);
  return std::move(op).done();
}

// Inputs: the loss's gradient, then scores, labels, weights and logarithms of probabilities, as far
// as the loss has them and needs them.
MaybeDescription loss_grad(const Signature& signature) {
  Definition op(signature);
  if (op.num_inputs() < 2 || op.num_outputs() != 1 || op.output(0).size() < 2) return std::nullopt;
  const Shape& scores = op.output(0);
  const Shape labels = without_classes(scores);
  // Labels come before the classes' weights, which may look like them.
  const auto at_labels =
      std::find(op.signature().inputs.begin() + 1, op.signature().inputs.end(), labels);
  const auto labels_at = static_cast<std::size_t>(at_labels - op.signature().inputs.begin());
  const auto is_weights = [&](std::size_t i) {
    return i > labels_at && op.input(i).size() == 1 && op.input(i)[0] == scores[1];
  };
  bool weights = false;
  for (std::size_t i = 1; i < op.num_inputs(); ++i) weights = weights || is_weights(i);
  const std::string_view how = op.attributes().text("reduction", "mean");
  const bool plain = has_plain_mean(signature, weights);
  const Entropy at = entropy(op, scores, how != "mean" || plain);
  tdl::Expression value = how == "none"
                              ? op.in(0)(at.labels)
                              : op.in(0)(std::vector<Index>(op.input(0).size(), Index(0)));
  for (std::size_t i = 1; i < op.num_inputs(); ++i) {
    if (op.input(i) == scores) {
      value = value + op.in(i)(at.scores);
    } else if (i == labels_at) {
      value = value + op.in(i)(at.labels);
    } else if (is_weights(i)) {
      value = value + op.in(i)(at.scores[1]);
    } else {
      return std::nullopt;
    }
  }
  op.out(0)(at.scores) = value;
  count_mean(op, at, plain);
  return std::move(op).done();
}

}  // namespace emplace::operators
