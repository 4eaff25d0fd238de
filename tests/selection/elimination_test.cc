// Elimination against trying everything, with and without variables that must be fixed.
#include "selection/elimination.h"

#include <gtest/gtest.h>

#include "base/rng.h"

namespace emplace {
namespace {

struct Model {
  std::vector<std::int32_t> sizes;
  std::vector<std::vector<double>> costs;
  std::vector<EliminationOrder::Pair> pairs;
  std::vector<std::vector<double>> tables;

  double value(const std::vector<std::int32_t>& values) const {
    double sum = 0;
    for (std::size_t v = 0; v < sizes.size(); ++v) sum += costs[v][values[v]];
    for (std::size_t p = 0; p < pairs.size(); ++p) {
      sum += tables[p][values[pairs[p].a] * sizes[pairs[p].b] + values[pairs[p].b]];
    }
    return sum;
  }
};

Model random_model(Rng& rng) {
  Model model;
  const int count = 2 + static_cast<int>(rng.below(6));
  const auto fill = [&](std::size_t entries) {
    std::vector<double> result(entries);
    for (double& cost : result) cost = static_cast<double>(rng.below(50));
    return result;
  };
  for (int v = 0; v < count; ++v) {
    model.sizes.push_back(1 + static_cast<std::int32_t>(rng.below(4)));
    model.costs.push_back(fill(model.sizes.back()));
  }
  for (int a = 0; a < count; ++a) {
    for (int b = 0; b < count; ++b) {
      if (a == b || !rng.chance(0.4)) continue;
      if (b < a && rng.chance(0.7)) continue;  // pairs that occur twice, now and then
      model.pairs.push_back({a, b});
      model.tables.push_back(fill(static_cast<std::size_t>(model.sizes[a]) * model.sizes[b]));
    }
  }
  return model;
}

// The least value with some variables held where they are.
double least(const Model& model, const EliminationOrder& order,
             const std::vector<std::int32_t>& held) {
  double best = 1e18;
  std::vector<std::int32_t> values(model.sizes.size(), 0);
  while (true) {
    bool keeps = true;
    for (const std::int32_t v : order.fixed()) keeps &= values[v] == held[v];
    if (keeps) best = std::min(best, model.value(values));
    std::size_t i = 0;
    while (i < values.size() && ++values[i] == model.sizes[i]) values[i++] = 0;
    if (i == values.size()) return best;
  }
}

template <class Value>
void expect_least(const Model& model, double cap, Rng& rng) {
  EliminationOrder order;
  std::vector<double> protection;
  for (std::size_t v = 0; v < model.sizes.size(); ++v) protection.push_back(rng.uniform());
  order.find(model.sizes, model.pairs, {.table = cap}, protection);
  std::vector<std::vector<Value>> costs;
  std::vector<std::vector<Value>> tables;
  std::vector<const Value*> unary;
  std::vector<typename Elimination<Value>::Term> terms;
  for (const auto& cost : model.costs) costs.emplace_back(cost.begin(), cost.end());
  for (const auto& cost : costs) unary.push_back(cost.data());
  for (const auto& table : model.tables) tables.emplace_back(table.begin(), table.end());
  for (std::size_t p = 0; p < tables.size(); ++p) {
    terms.push_back({model.pairs[p].a, model.pairs[p].b, tables[p].data()});
  }
  std::vector<std::int32_t> values;
  for (const std::int32_t size : model.sizes) {
    values.push_back(static_cast<std::int32_t>(rng.below(size)));
  }
  const std::vector<std::int32_t> held = values;
  Elimination<Value> elimination;
  const auto sum = elimination.solve(order, model.sizes, unary, terms, values);
  EXPECT_EQ(static_cast<double>(sum), model.value(values));
  EXPECT_EQ(static_cast<double>(sum), least(model, order, held));
  for (const std::int32_t v : order.fixed()) EXPECT_EQ(values[v], held[v]);
}

TEST(Elimination, finds_the_least_sum) {
  for (int seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    const Model model = random_model(rng);
    expect_least<double>(model, 1e9, rng);
    expect_least<std::int64_t>(model, 1e9, rng);
  }
}

TEST(Elimination, fixes_what_the_cap_does_not_allow) {
  for (int seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    const Model model = random_model(rng);
    expect_least<double>(model, 6, rng);
    expect_least<std::int64_t>(model, 12, rng);
  }
}

TEST(Elimination, takes_more_messages_at_one_variable_than_64) {
  Model model;
  model.sizes.assign(101, 3);
  Rng rng(1);
  for (int v = 0; v < 101; ++v) {
    model.costs.push_back({1.0 * static_cast<double>(v % 5), 2, 3});
    if (v == 0) continue;
    model.pairs.push_back({v, 0});
    std::vector<double> table(9);
    for (double& cost : table) cost = static_cast<double>(rng.below(9));
    model.tables.push_back(table);
  }
  EliminationOrder order;
  order.find(model.sizes, model.pairs, {}, std::vector<double>(101, 0.0));
  EXPECT_TRUE(order.fixed().empty());
  std::vector<const double*> unary;
  for (const auto& cost : model.costs) unary.push_back(cost.data());
  std::vector<Elimination<double>::Term> terms;
  for (std::size_t p = 0; p < model.pairs.size(); ++p) {
    terms.push_back({model.pairs[p].a, model.pairs[p].b, model.tables[p].data()});
  }
  std::vector<std::int32_t> values(101, 0);
  Elimination<double> elimination;
  const double sum = elimination.solve(order, model.sizes, unary, terms, values);
  EXPECT_EQ(sum, model.value(values));
}

}  // namespace
}  // namespace emplace
