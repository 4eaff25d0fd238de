// What is asked for thousands of times a second is checked by a table; `check_placement`, which
// says what is wrong, sees only what the table refuses, or clusters in which links are missing.
#include "api/group_evaluator.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/parallel.h"

#include "sim/incremental.h"

namespace emplace {

struct GroupEvaluator::Base {
  // Of moves in one placement; more of them gain little.
  static constexpr std::size_t kMost = 4;
  // Recording a base takes as long as a few evaluations.
  static constexpr std::size_t kFewest = 12;

  explicit Base(std::shared_ptr<const Simulator> whole) : simulator(std::move(whole)) {}

  // Whether a row is close to `other`; how, is in `moves`.
  bool near(Row row, Row other) {
    count = 0;
    for (std::size_t group = 0; group < row.size(); ++group) {
      if (row[group] == other[group]) continue;
      if (count == kMost) return false;
      moves[count++] = {static_cast<GroupId>(group), static_cast<DeviceId>(row[group])};
    }
    return true;
  }

  IncrementalSimulator simulator;
  std::vector<std::int32_t> devices = {};  // by group; empty: there is no base yet
  std::array<Move, kMost> moves = {};
  std::size_t count = 0;
};

GroupEvaluator::GroupEvaluator(Evaluator& evaluator)
    : evaluator_(evaluator),
      num_groups_(evaluator.problem().num_groups()),
      num_devices_(evaluator.problem().num_devices()),
      allowed_(num_groups_ * num_devices_, 0) {
  for (GroupId group = 0; group < num_groups_; ++group) {
    for (const DeviceId device : problem().allowed_devices(group)) {
      allowed_[group * num_devices_ + device] = 1;
    }
  }
  for (DeviceId from = 0; from < num_devices_; ++from) {
    for (DeviceId to = 0; to < num_devices_; ++to) {
      if (from != to && problem().cluster().link(from, to) == nullptr) all_linked_ = false;
    }
  }
}

GroupEvaluator::~GroupEvaluator() = default;

bool GroupEvaluator::allowed(Row row) const {
  bool all = true;
  for (std::size_t group = 0; group < num_groups_; ++group) {
    const auto device = static_cast<std::uint32_t>(row[group]);  // what is negative is large
    all = all && device < num_devices_ && allowed_[group * num_devices_ + device] != 0;
  }
  return all;
}

void GroupEvaluator::fail_in(Row row) const {
  std::size_t group = 0;
  while (row[group] >= 0 && static_cast<std::size_t>(row[group]) < num_devices_ &&
         allowed_[group * num_devices_ + static_cast<std::size_t>(row[group])] != 0) {
    ++group;
  }
  const std::int32_t device = row[group];
  const OpId op = problem().group_ops(group)[0];
  if (device < 0 || static_cast<std::size_t>(device) >= num_devices_) {
    fail_input("op '{}': is placed on device number {}; the cluster has {}",
               problem().graph().op_name(op), device, num_devices_);
  }
  std::vector<std::string_view> allowed;
  for (const DeviceId other : problem().allowed_devices(group)) {
    allowed.push_back(problem().cluster().device(other).name);
  }
  fail_input("op '{}': is placed on '{}', but may only be on {}", problem().graph().op_name(op),
             problem().cluster().device(device).name, fmt::join(allowed, ", "));
}

void GroupEvaluator::fill(Row row, Placement& placement) const {
  const std::vector<GroupId>& group_of = problem().colocation().group_of;
  placement.resize(group_of.size());
  for (std::size_t op = 0; op < group_of.size(); ++op) placement[op] = row[group_of[op]];
}

void GroupEvaluator::expand(Row devices, Placement& placement) const {
  if (devices.size() != num_groups_) {
    fail_input("expected a device for each of {} groups, not {}", num_groups_, devices.size());
  }
  if (!allowed(devices)) fail_in(devices);
  fill(devices, placement);
  if (!all_linked_) check_placement(problem(), placement);
}

std::unique_ptr<GroupEvaluator::Base> GroupEvaluator::base_for(Row rows, std::size_t count) const {
  const bool possible =
      evaluator_.order_is_free() && !evaluator_.measures() && all_linked_ && num_groups_ > 0;
  if (!possible || count < Base::kFewest) return nullptr;
  // What two of three rows say: where each is another placement with a move or two, that one.
  const auto row = [&](std::size_t i) { return rows.subspan(i * num_groups_, num_groups_); };
  const Row first = row(0);
  const Row middle = row(count / 2);
  const Row last = row(count - 1);
  std::vector<std::int32_t> common(num_groups_);
  for (std::size_t group = 0; group < num_groups_; ++group) {
    common[group] = middle[group] == last[group] ? middle[group] : first[group];
  }
  std::unique_ptr<Base> base;
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      base = std::move(idle_.back());
      idle_.pop_back();
    }
  }
  if (!base) base = std::make_unique<Base>(evaluator_.simulator());
  const auto close = [&](Row to) {
    std::size_t found = 0;
    for (std::size_t i = 0; i < count; ++i) found += base->near(row(i), to) ? 1 : 0;
    return found;
  };
  // The base of the last time will do, if the rows are as close to it.
  const std::size_t near = close(common);
  if (near < std::max(Base::kFewest, count / 2)) {
    give_back(std::move(base));
    return nullptr;
  }
  if (base->devices.empty() || close(base->devices) < near) {
    Placement placement;
    fill(common, placement);
    base->devices = std::move(common);
    base->simulator.set_base(placement, {});
  }
  return base;
}

void GroupEvaluator::give_back(std::unique_ptr<Base> base) const {
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(base));
}

void GroupEvaluator::evaluate_part(Row rows, std::size_t first, std::span<StepValue> values) const {
  const auto row = [&](std::size_t i) { return rows.subspan(i * num_groups_, num_groups_); };
  Placement placement;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (all_linked_ && allowed(row(i))) continue;
    with_context(fmt::format("placement {}", first + i), [&] { expand(row(i), placement); });
  }
  std::unique_ptr<Base> base = base_for(rows, values.size());
  std::int64_t incremental = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    Evaluation value;
    if (base && base->near(row(i), base->devices)) {
      value = base->simulator.evaluate(std::span(base->moves).first(base->count));
      ++incremental;
    } else {
      fill(row(i), placement);
      value = evaluator_.evaluate(placement);
    }
    values[i] = {value.step, value.overflow};
  }
  evaluator_.count(incremental);
  if (base) give_back(std::move(base));
}

void GroupEvaluator::evaluate(Row devices, std::span<StepValue> values, int threads) const {
  if (devices.size() != values.size() * num_groups_) {
    fail_input("expected {} placements of {} groups, not {} numbers", values.size(), num_groups_,
               devices.size());
  }
  // Few enough that the last ones are shared, many enough that handing them out, and a base of
  // their own, cost little.
  const std::size_t share = values.size() / (4 * static_cast<std::size_t>(std::max(1, threads)));
  const std::size_t together = std::clamp<std::size_t>(share, 16, 256);
  parallel_for((values.size() + together - 1) / together, threads, [&](std::size_t part) {
    const std::size_t begin = part * together;
    const std::size_t count = std::min(values.size() - begin, together);
    // What is checked must be what is evaluated, even if the caller writes into the rows meanwhile.
    const Row rows = devices.subspan(begin * num_groups_, count * num_groups_);
    const std::vector<std::int32_t> kept(rows.begin(), rows.end());
    evaluate_part(kept, begin, values.subspan(begin, count));
  });
}

}  // namespace emplace
