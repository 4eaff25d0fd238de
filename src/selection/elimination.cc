#include "selection/elimination.h"

#include <algorithm>

#include "base/check.h"

#include "selection/kernels.h"

namespace emplace {
namespace {

constexpr std::size_t kBlock = std::size_t{1} << 16;

}  // namespace

template <class Value>
Value* Elimination<Value>::allocate(std::size_t count) {
  while (arena_block_ < arena_.size() && arena_used_ + count > arena_[arena_block_].size()) {
    ++arena_block_;
    arena_used_ = 0;
  }
  if (arena_block_ == arena_.size()) arena_.emplace_back(std::max(count, kBlock));
  Value* result = arena_[arena_block_].data() + arena_used_;
  arena_used_ += count;
  return result;
}

template <class Value>
void Elimination<Value>::attach(Factor factor) {
  if (factor.scope.size() == 1) {
    auto& own = own_[factor.scope.front()];
    add_into(own.data(), factor.table, own.size());
    return;
  }
  auto& bucket = buckets_[factor.scope.back()];
  for (Factor& there : bucket) {
    if (there.scope != factor.scope) continue;
    std::size_t count = 1;
    for (const std::int32_t v : factor.scope) count *= sizes_[v];
    Value* sum = allocate(count);
    std::copy_n(there.table, count, sum);
    add_into(sum, factor.table, count);
    there.table = sum;
    return;
  }
  bucket.push_back(std::move(factor));
}

template <class Value>
void Elimination<Value>::prepare(const EliminationOrder& order, std::span<const Value* const> unary,
                                 std::span<const Term> terms,
                                 std::span<const std::int32_t> values) {
  const std::size_t count = sizes_.size();
  own_.resize(count);
  buckets_.resize(count);
  arena_block_ = 0;
  arena_used_ = 0;
  total_ = 0;
  for (std::size_t v = 0; v < count; ++v) {
    own_[v].assign(unary[v], unary[v] + sizes_[v]);
    buckets_[v].clear();
  }
  for (const Term& term : terms) {
    const std::size_t rows = sizes_[term.a];
    const std::size_t columns = sizes_[term.b];
    const bool a_fixed = order.is_fixed(term.a);
    const bool b_fixed = order.is_fixed(term.b);
    if (a_fixed && b_fixed) {
      total_ += term.table[values[term.a] * columns + values[term.b]];
    } else if (a_fixed) {
      add_into(own_[term.b].data(), term.table + values[term.a] * columns, columns);
    } else if (b_fixed) {
      for (std::size_t i = 0; i < rows; ++i) {
        own_[term.a][i] = limited_sum(own_[term.a][i], term.table[i * columns + values[term.b]]);
      }
    } else if (order.position(term.b) < order.position(term.a)) {
      attach({{term.a, term.b}, term.table});
    } else if (term.turned != nullptr) {
      attach({{term.b, term.a}, term.turned});
    } else {
      Value* turned = allocate(rows * columns);
      for (std::size_t i = 0; i < rows; ++i) {
        for (std::size_t j = 0; j < columns; ++j)
          turned[j * rows + i] = term.table[i * columns + j];
      }
      attach({{term.b, term.a}, turned});
    }
  }
}

// One loop for each neighbour, the innermost over the one that goes first. The partial sums of a
// level hold all factors whose scope is settled there.
template <class Value>
struct Elimination<Value>::Level {
  std::size_t size = 0;
  std::size_t digit = 0;
  std::vector<Value> sum;
  struct Use {
    const Value* table;
    std::size_t row;                                           // in the table, of the digits so far
    std::vector<std::pair<std::size_t, std::size_t>> strides;  // (level, rows that a step skips)
  };
  std::vector<Use> uses;
};

template <class Value>
void Elimination<Value>::eliminate(std::int32_t variable, std::span<const std::int32_t> scope) {
  const std::size_t width = sizes_[variable];
  if (scope.empty()) {
    total_ = limited_sum(total_, *std::min_element(own_[variable].begin(), own_[variable].end()));
    return;
  }
  std::vector<Level> levels(scope.size());
  std::size_t entries = 1;
  for (std::size_t l = 0; l < scope.size(); ++l) {
    levels[l].size = sizes_[scope[l]];
    levels[l].sum.resize(width);
    entries *= levels[l].size;
  }
  for (const Factor& factor : buckets_[variable]) {
    typename Level::Use use{factor.table, 0, {}};
    std::size_t stride = width;
    std::size_t last = 0;
    for (std::size_t k = factor.scope.size() - 1; k-- > 0;) {
      const auto at = std::find(scope.begin(), scope.end(), factor.scope[k]) - scope.begin();
      use.strides.emplace_back(at, stride);
      last = std::max<std::size_t>(last, at);
      stride *= levels[at].size;
    }
    levels[last].uses.push_back(std::move(use));
  }
  Value* out = allocate(entries);
  const auto refresh = [&](std::size_t l) {
    const Value* before = l == 0 ? own_[variable].data() : levels[l - 1].sum.data();
    Value* sum = levels[l].sum.data();
    bool first = true;
    for (const auto& use : levels[l].uses) {
      std::size_t row = 0;
      for (const auto& [at, stride] : use.strides) row += levels[at].digit * stride;
      if (first) {
        add_to(sum, before, use.table + row, width);
      } else {
        add_into(sum, use.table + row, width);
      }
      first = false;
    }
    if (first) std::copy_n(before, width, sum);
  };
  const std::size_t deepest = scope.size() - 1;
  std::size_t from = 0;
  for (std::size_t entry = 0; entry < entries; ++entry) {
    for (std::size_t l = from; l <= deepest; ++l) refresh(l);
    out[entry] = least(levels[deepest].sum.data(), width);
    from = deepest;
    while (++levels[from].digit == levels[from].size && from > 0) levels[from--].digit = 0;
  }
  attach({{scope.begin(), scope.end()}, out});
}

template <class Value>
void Elimination<Value>::choose(std::int32_t variable, std::vector<std::int32_t>& values) const {
  std::vector<Value> sum = own_[variable];
  for (const Factor& factor : buckets_[variable]) {
    std::size_t row = 0;
    for (std::size_t k = 0; k + 1 < factor.scope.size(); ++k) {
      row = row * sizes_[factor.scope[k]] + values[factor.scope[k]];
    }
    add_into(sum.data(), factor.table + row * sum.size(), sum.size());
  }
  values[variable] =
      static_cast<std::int32_t>(std::min_element(sum.begin(), sum.end()) - sum.begin());
}

template <class Value>
std::optional<Value> Elimination<Value>::solve(const EliminationOrder& order,
                                               std::span<const std::int32_t> sizes,
                                               std::span<const Value* const> unary,
                                               std::span<const Term> terms,
                                               std::vector<std::int32_t>& values,
                                               const std::function<bool()>& stop) {
  sizes_ = sizes;
  prepare(order, unary, terms, values);
  for (const std::int32_t v : order.fixed()) total_ = limited_sum(total_, own_[v][values[v]]);
  for (const std::int32_t v : order.order()) {
    if (stop && stop()) return std::nullopt;
    eliminate(v, order.scope(v));
  }
  const auto& sequence = order.order();
  for (std::size_t k = sequence.size(); k-- > 0;) choose(sequence[k], values);
  return total_;
}

template class Elimination<double>;
template class Elimination<std::int64_t>;

}  // namespace emplace
