// What is asked for thousands of times a second is checked by a table; `check_placement`, which
// says what is wrong, sees only what the table refuses, or clusters in which links are missing.
#include "api/group_evaluator.h"

#include "base/error.h"
#include "base/parallel.h"

namespace emplace {

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

void GroupEvaluator::fail_at(std::size_t group, std::int32_t device) const {
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

void GroupEvaluator::expand(std::span<const std::int32_t> devices, Placement& placement) const {
  if (devices.size() != num_groups_) {
    fail_input("expected a device for each of {} groups, not {}", num_groups_, devices.size());
  }
  for (std::size_t group = 0; group < num_groups_; ++group) {
    const std::int32_t device = devices[group];
    const bool known = device >= 0 && static_cast<std::size_t>(device) < num_devices_;
    if (!known || allowed_[group * num_devices_ + static_cast<std::size_t>(device)] == 0) {
      fail_at(group, device);
    }
  }
  const std::vector<GroupId>& group_of = problem().colocation().group_of;
  placement.resize(group_of.size());
  for (std::size_t op = 0; op < group_of.size(); ++op) placement[op] = devices[group_of[op]];
  if (!all_linked_) check_placement(problem(), placement);
}

void GroupEvaluator::evaluate(std::span<const std::int32_t> devices, std::span<StepValue> values,
                              int threads) const {
  if (devices.size() != values.size() * num_groups_) {
    fail_input("expected {} placements of {} groups, not {} numbers", values.size(), num_groups_,
               devices.size());
  }
  // Few enough that the last ones are shared, many enough that handing them out costs nothing.
  constexpr std::size_t kTogether = 16;
  parallel_for((values.size() + kTogether - 1) / kTogether, threads, [&](std::size_t part) {
    Placement placement;
    const std::size_t end = std::min(values.size(), (part + 1) * kTogether);
    for (std::size_t i = part * kTogether; i < end; ++i) {
      with_context(fmt::format("placement {}", i),
                   [&] { expand(devices.subspan(i * num_groups_, num_groups_), placement); });
      const Evaluation value = evaluator_.evaluate(placement);
      values[i] = {value.step, value.overflow};
    }
  });
}

}  // namespace emplace
