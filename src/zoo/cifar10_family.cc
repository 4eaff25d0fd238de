// Image classifiers of random cells, as the micro search space of Pham et al. 2018 ("Efficient
// Neural Architecture Search via Parameter Sharing", ENAS) draws them for CIFAR-10; Addanki et al.
// 2019 (Placeto) place such graphs. Each node of a cell picks two before it (or of the two cells
// before) and for each one of: identity, separable 3x3 or 5x5 convolution, 3x3 average or maximum
// pooling; it adds up the two results. What no node picked is joined to the cell's output. All
// normal cells are alike, and the two reduction cells between the three stages, which halve the
// image and double the filters. Equally likely are
//   cells 1 to 4 (normal cells of a stage), nodes 4 to 7, filters 16, 20, 24, 32 or 36,
//   batch 32, 64, 128 or 256:
// some 500 to 6,500 ops in a training step.
#include "base/error.h"

#include "zoo/family.h"
#include "zoo/image_model.h"
#include "zoo/layers.h"
#include "zoo/models.h"

namespace emplace::zoo {
namespace {

constexpr std::int64_t kImage = 32;
constexpr std::int64_t kClasses = 10;
constexpr int kStages = 3;

struct Cifar10 : FamilyOptions {
  std::int64_t cells = 0;
  std::int64_t nodes = 0;
  std::int64_t filters = 0;

  static OptionSchema<Cifar10> schema() {
    return family_schema<Cifar10>()
        .integer("cells", &Cifar10::cells, 0, 1 << 10, "Normal cells in each of three stages.")
        .integer("nodes", &Cifar10::nodes, 0, 1 << 10, "Nodes of a cell.")
        .integer("filters", &Cifar10::filters, 0, 1 << 14, "Channels of the first stage; even.");
  }
};

enum class CellOperation { kIdentity, kSeparable3, kSeparable5, kAveragePool, kMaxPool };

struct Branch {
  std::size_t input = 0;  // 0 and 1: the cells before; 2 and on: nodes
  CellOperation operation = CellOperation::kIdentity;
};

struct Node {
  Branch left;
  Branch right;
};

std::vector<Node> draw_cell(Rng rng, std::int64_t nodes) {
  static constexpr CellOperation kOperations[] = {
      CellOperation::kIdentity, CellOperation::kSeparable3, CellOperation::kSeparable5,
      CellOperation::kAveragePool, CellOperation::kMaxPool};
  const auto draw = [&](std::size_t before) {
    const std::size_t input = rng.below(before);
    return Branch{input, rng.pick<CellOperation>(kOperations)};
  };
  std::vector<Node> cell;
  for (std::size_t i = 0; i < static_cast<std::size_t>(nodes); ++i) {
    const Branch left = draw(i + 2);
    cell.push_back({left, draw(i + 2)});
  }
  return cell;
}

// Half the size: every other pixel through one convolution, those beside them through another.
Value reduce_size(Net& net, std::string_view name, const Value& x, std::int64_t filters) {
  const auto scope = net.scope(name);
  const Value active = relu(net, x);
  const Value shifted = slice(net, slice(net, active, 2, 1, active.dim(2)), 3, 1, active.dim(3));
  const ConvShape every_other{.kernel = {1}, .stride = {2}};
  const Value even = conv_layer(net, "conv_1", active, filters / 2, every_other);
  const Value odd = conv_layer(net, "conv_2", shifted, filters - filters / 2, every_other);
  return batch_norm(net, "bn", concat(net, {even, odd}, 1));
}

// Depthwise, then pointwise; all of it twice.
Value separable(Net& net, Value x, std::int64_t kernel, std::int64_t stride) {
  const std::int64_t filters = x.dim(1);
  for (std::int64_t i = 0; i < 2; ++i) {
    const auto scope = net.scope("separable", i);
    const ConvShape depthwise = same(kernel, i == 0 ? stride : 1, filters);
    const Value spread = conv_layer(net, "depthwise", relu(net, x), filters, depthwise);
    x = batch_norm(net, "bn", conv_layer(net, "pointwise", spread, filters, same(1)));
  }
  return x;
}

Value run_branch(Net& net, std::string_view name, const Value& x, CellOperation operation,
                 std::int64_t stride) {
  const auto scope = net.scope(name);
  switch (operation) {
    case CellOperation::kIdentity:
      return stride == 1 ? x : reduce_size(net, "reduce", x, x.dim(1));
    case CellOperation::kSeparable3:
      return separable(net, x, 3, stride);
    case CellOperation::kSeparable5:
      return separable(net, x, 5, stride);
    case CellOperation::kAveragePool:
      return average_pool(net, x, same(3, stride));
    case CellOperation::kMaxPool:
      return max_pool(net, x, same(3, stride));
  }
  return x;
}

// To the size and filters that the cell works with.
Value calibrate(Net& net, std::string_view name, const Value& x, std::int64_t size,
                std::int64_t filters) {
  if (x.dim(2) != size) return reduce_size(net, name, x, filters);
  return x.dim(1) == filters ? x : relu_conv_bn(net, name, x, filters);
}

Value run_cell(Net& net, const std::vector<Node>& cell, const Value& before_last, const Value& last,
               std::int64_t filters, bool reduction) {
  Values states{calibrate(net, "input_0", before_last, last.dim(2), filters),
                calibrate(net, "input_1", last, last.dim(2), filters)};
  std::vector<bool> picked(cell.size() + 2, false);
  for (std::size_t i = 0; i < cell.size(); ++i) {
    const auto scope = net.scope("node", static_cast<std::int64_t>(i));
    const auto run = [&](std::string_view name, const Branch& branch) {
      picked[branch.input] = true;
      const std::int64_t stride = reduction && branch.input < 2 ? 2 : 1;
      return run_branch(net, name, states[branch.input], branch.operation, stride);
    };
    const Value left = run("left", cell[i].left);
    const Value right = run("right", cell[i].right);
    states.push_back(add(net, left, right));
  }
  Values loose_ends;
  for (std::size_t i = 0; i < states.size(); ++i) {
    if (picked[i]) continue;
    const std::int64_t size = states.back().dim(2);
    loose_ends.push_back(
        calibrate(net, fmt::format("output_{}", i), states[i], size, states[i].dim(1)));
  }
  return concat(net, loose_ends, 1);
}

void build(Net& net, const Cifar10& options) {
  if (options.filters % 2 != 0) {
    fail_option("filters: {} is odd; expected an even number, half for each path of a reduction",
                options.filters);
  }
  Decisions decisions(options.seed);
  const std::int64_t cells = decisions.next(options.cells, {1, 2, 3, 4});
  const std::int64_t nodes = decisions.next(options.nodes, {4, 5, 6, 7});
  std::int64_t filters = decisions.next(options.filters, {16, 20, 24, 32, 36});
  const std::int64_t batch = decisions.next(options.batch, {32, 64, 128, 256});
  const std::vector<Node> normal = draw_cell(decisions.next(), nodes);
  const std::vector<Node> reduction = draw_cell(decisions.next(), nodes);

  const Value images = net.input("images", {batch, 3, kImage, kImage});
  Value last =
      batch_norm(net, "stem.bn", conv_layer(net, "stem.conv", images, 3 * filters, same(3)));
  Value before_last = last;
  std::int64_t index = 0;
  const auto next_cell = [&](const std::vector<Node>& cell, bool reduces) {
    const auto scope = net.scope("cell", index++);
    const Value output = run_cell(net, cell, before_last, last, filters, reduces);
    before_last = last;
    last = output;
  };
  for (int stage = 0; stage < kStages; ++stage) {
    if (stage > 0) {
      filters *= 2;
      next_cell(reduction, true);
    }
    for (std::int64_t i = 0; i < cells; ++i) next_cell(normal, false);
  }
  const Value pooled = global_average_pool(net, relu(net, last));
  const Value logits = linear(net, "classifier", dropout(net, pooled, 0.1), kClasses);
  classification_loss(net, logits, net.input("labels", {batch}, DType::kInt64));
}

}  // namespace

std::vector<ModelInfo> cifar10_family() {
  return {model<Cifar10>({.name = "cifar10",
                          .summary = "Convolutional networks of random cells, on 32x32 images.",
                          .source = "Pham et al. 2018 (ENAS); Addanki et al. 2019 (Placeto)"},
                         build)};
}

}  // namespace emplace::zoo
