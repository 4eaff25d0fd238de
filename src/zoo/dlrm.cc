// Naumov et al. 2019, "Deep Learning Recommendation Model for Personalization and Recommendation
// Systems": numbers go through an MLP, categories through tables of vectors; the dot products of
// every pair of those vectors, with the MLP's output, go through a second MLP to the probability of
// a click. The sizes are those of the open implementation's runs on the two data sets of Criteo
// (bench/dlrm_s_criteo_kaggle.sh and, for MLPerf, bench/run_and_time.sh).
#include <algorithm>
#include <array>

#include "zoo/layers.h"
#include "zoo/model.h"
#include "zoo/models.h"

namespace emplace::zoo {
namespace {

constexpr std::int64_t kNumbers = 13;  // of an example, beside its 26 categories
constexpr std::size_t kTables = 26;

struct DataSet {
  std::array<std::int64_t, kTables> rows;
  std::vector<std::int64_t> bottom;  // widths of the hidden layers
  std::vector<std::int64_t> top;
};

const DataSet& data_set(std::string_view name) {
  static const DataSet kaggle{
      .rows = {1460,  583,  10131227, 2202608, 305, 24,     12517,   633,   3,
               93145, 5683, 8351593,  3194,    27,  14992,  5461306, 10,    5652,
               2173,  4,    7046547,  18,      15,  286181, 105,     142572},
      .bottom = {512, 256, 64},
      .top = {512, 256}};
  // The rows of the 24 days' log with numbers of categories taken modulo 40 million.
  static const DataSet terabyte{
      .rows = {39884406, 39043,    17289,    7420,     20263,  3,     7120, 1543, 63,
               38532951, 2953546,  403346,   10,       2208,   11938, 155,  4,    976,
               14,       39979771, 25641295, 39664984, 585935, 12972, 108,  36},
      .bottom = {512, 256},
      .top = {1024, 1024, 512, 256}};
  return name == "terabyte" ? terabyte : kaggle;
}

struct Dlrm : StepOptions {
  std::string data = "kaggle";
  std::int64_t width = 16;
  std::int64_t lookups = 1;
  std::int64_t max_rows = 40'000'000;

  Dlrm() { batch = 128; }

  static OptionSchema<Dlrm> schema() {
    return step_schema<Dlrm>()
        .choice("data", &Dlrm::data, {"kaggle", "terabyte"},
                "Criteo's data set; decides tables and MLPs.")
        .integer("width", &Dlrm::width, 1, 1 << 14, "Of the tables' vectors.")
        .integer("lookups", &Dlrm::lookups, 1, 1 << 12,
                 "Rows of a table that an example has, and that are added up.")
        .integer("max_rows", &Dlrm::max_rows, 1, 40'000'000, "Of a table; it has no more.");
  }
};

Value mlp(Net& net, std::string_view name, Value x, const std::vector<std::int64_t>& widths) {
  const auto scope = net.scope(name);
  for (std::size_t i = 0; i < widths.size(); ++i) {
    const auto layer = net.scope("layer", static_cast<std::int64_t>(i));
    x = relu(net, linear(net, "linear", x, widths[i]));
  }
  return x;
}

Value look_up(Net& net, std::size_t table, std::int64_t rows, const Dlrm& options) {
  const auto scope = net.scope("table", static_cast<std::int64_t>(table));
  Shape shape{options.batch};
  if (options.lookups > 1) shape.push_back(options.lookups);
  const Value ids = net.input("ids", shape, DType::kInt64);
  const Value weight = net.parameter("weight", {std::min(rows, options.max_rows), options.width});
  const Value vectors = gather(net, weight, ids);
  return options.lookups > 1 ? reduce(net, "ReduceSum", vectors, {1}, false) : vectors;
}

// The first vector, then the dot products of all pairs of different ones.
Value interact(Net& net, const Values& vectors) {
  const auto scope = net.scope("interaction");
  const auto count = static_cast<std::int64_t>(vectors.size());
  const Value& first = vectors.front();
  const Value rows = reshape(net, concat(net, vectors, 1), {first.dim(0), count, first.last()});
  const Value products = matmul(net, rows, transpose(net, rows, {0, 2, 1}));
  std::vector<std::int64_t> below_diagonal;
  for (std::int64_t i = 1; i < count; ++i) {
    for (std::int64_t j = 0; j < i; ++j) below_diagonal.push_back(i * count + j);
  }
  const Value flat = reshape(net, products, {first.dim(0), count * count});
  return concat(net, {first, gather(net, flat, net.constant(below_diagonal), 1)}, 1);
}

// The mean of -(y log p + (1 - y) log(1 - p)).
Value binary_cross_entropy(Net& net, const Value& p, const Value& labels) {
  const auto scope = net.scope("loss");
  const Value one = net.scalar(1);
  const Value clicked = mul(net, labels, unary(net, "Log", p));
  const Value not_clicked = sub(net, one, labels);
  const Value passed = mul(net, not_clicked, unary(net, "Log", sub(net, one, p)));
  const Value each = add(net, clicked, passed);
  return unary(net, "Neg", reduce(net, "ReduceMean", each, {0, 1}, false));
}

void build(Net& net, const Dlrm& options) {
  const DataSet& data = data_set(options.data);
  std::vector<std::int64_t> bottom = data.bottom;
  bottom.push_back(options.width);
  Values vectors{mlp(net, "bottom", net.input("numbers", {options.batch, kNumbers}), bottom)};
  for (std::size_t i = 0; i < kTables; ++i) {
    vectors.push_back(look_up(net, i, data.rows[i], options));
  }
  const Value hidden = mlp(net, "top", interact(net, vectors), data.top);
  const Value p = sigmoid(net, linear(net, "click", hidden, 1));
  binary_cross_entropy(net, p, net.input("clicked", {options.batch, 1}));
}

}  // namespace

std::vector<ModelInfo> dlrm_models() {
  return {model<Dlrm>({.name = "dlrm",
                       .summary = "Recommendation from tables and MLPs, for Criteo Kaggle.",
                       .source = "Naumov et al. 2019; sizes of dlrm_s_criteo_kaggle.sh",
                       .parameters = 540'677'217},
                      build),
          model<Dlrm>({.name = "dlrm-mlperf",
                       .summary = "Recommendation from tables and MLPs, as MLPerf trains it.",
                       .source = "Naumov et al. 2019; MLPerf Training v0.7",
                       .parameters = std::nullopt},
                      build, {{"data", "terabyte"}, {"width", "128"}, {"batch", "2048"}})};
}

}  // namespace emplace::zoo
