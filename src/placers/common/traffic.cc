#include "placers/common/traffic.h"

namespace emplace {

Traffic::Traffic(const Problem& problem)
    : problem_(&problem),
      tensor_stamp_(problem.graph().num_tensors(), 0),
      device_stamp_(problem.num_devices(), 0) {}

std::span<const Nanoseconds> Traffic::measure(GroupId group, std::span<const DeviceId> devices,
                                              std::span<const DeviceId> device_of_group) {
  const Graph& graph = problem_->graph();
  sums_.assign(devices.size(), 0);
  ++call_;
  for (const OpId op : problem_->group_ops(group)) {
    for (const TensorId tensor : graph.inputs(op)) {
      const GroupId from = problem_->group_of(graph.producer(tensor));
      if (from == group || device_of_group[from] == kNoDevice) continue;
      if (tensor_stamp_[tensor] == call_) continue;
      tensor_stamp_[tensor] = call_;
      add(tensor, device_of_group[from], true, devices);
    }
    for (const TensorId tensor : graph.outputs(op)) {
      ++output_;
      for (const OpId consumer : graph.consumers(tensor)) {
        const DeviceId to = device_of_group[problem_->group_of(consumer)];
        if (to == kNoDevice || device_stamp_[to] == output_) continue;
        device_stamp_[to] = output_;
        add(tensor, to, false, devices);
      }
    }
  }
  return sums_;
}

void Traffic::add(TensorId tensor, DeviceId other, bool arrives,
                  std::span<const DeviceId> devices) {
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (devices[i] == other || sums_[i] == kUnreachable) continue;
    const Nanoseconds time = arrives ? problem_->transfer_time(tensor, other, devices[i])
                                     : problem_->transfer_time(tensor, devices[i], other);
    sums_[i] = time == Problem::kNoLink ? kUnreachable : sums_[i] + time;
  }
}

}  // namespace emplace
