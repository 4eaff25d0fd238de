#include "tensor/traffic.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace emplace {

Traffic::Traffic(const Workers& workers) : workers_(workers) {}

Traffic::Traffic(const Workers& workers, const Cluster& cluster,
                 const std::vector<DeviceId>& devices)
    : workers_(workers), counts_time_(true), loads_(cluster.num_channels(), 0) {
  for (Worker from = 0; from < workers.count(); ++from) {
    for (Worker to = 0; to < workers.count(); ++to) {
      Link link;
      if (from != to) {
        const auto* found = cluster.link(devices[from], devices[to]);
        if (found == nullptr) {
          fail(ErrorKind::kUnsupported,
               "there is no link from '{}' to '{}', and workers that share tensors need one",
               cluster.device(devices[from]).name, cluster.device(devices[to]).name);
        }
        link.channel = found->channel;
        link.unlimited = found->unlimited;
        link.ns_per_byte = 1e9 / static_cast<double>(found->bandwidth);
        link.ns_per_transfer = static_cast<double>(found->latency + found->hold);
      }
      links_.push_back(link);
    }
  }
}

void Traffic::send(Worker from, Worker to, Bytes bytes) {
  bytes_ += bytes;
  if (!counts_time_) return;
  const Link& link = links_[static_cast<std::size_t>(from) * workers_.count() + to];
  const double time = link.ns_per_transfer + link.ns_per_byte * static_cast<double>(bytes);
  double& load = loads_[link.channel];
  load = link.unlimited ? std::max(load, time) : load + time;
}

std::int64_t Traffic::settle() {
  std::int64_t cost = bytes_;
  if (counts_time_) {
    const auto longest = std::max_element(loads_.begin(), loads_.end());
    cost = longest == loads_.end() ? 0 : static_cast<std::int64_t>(std::llround(*longest));
    std::fill(loads_.begin(), loads_.end(), 0);
  }
  bytes_ = 0;
  return cost;
}

const Traffic::Sources& Traffic::sources_of(const Spread& spread) {
  const auto [at, added] = sources_.try_emplace(spread.roles);
  if (added) {
    const int parts = spread.partial_count(workers_);
    for (int part = 0; part < parts; ++part) {
      std::vector<std::vector<Worker>>& by_worker = at->second.emplace_back();
      for (Worker to = 0; to < workers_.count(); ++to) {
        by_worker.push_back(sources_for(spread.roles, workers_, to, part));
      }
    }
  }
  return at->second;
}

void Traffic::send_all(const std::vector<tdl::Region>& needed, const Spread& kept, int partial,
                       Bytes element_bytes) {
  const auto& sources = sources_of(kept)[static_cast<std::size_t>(partial)];
  for (Worker to = 0; to < workers_.count(); ++to) {
    for (const Worker from : sources[to]) {
      if (from == to) continue;
      const tdl::Position elements = common_volume(kept.regions[from], needed[to]);
      if (elements > 0) send(from, to, elements * element_bytes);
    }
  }
}

std::int64_t Traffic::to_read(const std::vector<tdl::Region>& needed, const Spread& kept,
                              Bytes element_bytes) {
  send_all(needed, kept, 0, element_bytes);
  return settle();
}

std::int64_t Traffic::to_keep(const Spread& made, const Spread& reduced, const Spread& kept,
                              Bytes element_bytes) {
  if (!made.partial()) return to_read(kept.regions, made, element_bytes);
  const int parts = made.partial_count(workers_);
  for (int part = 0; part < parts; ++part) send_all(reduced.regions, made, part, element_bytes);
  const std::int64_t reducing = settle();
  return reducing + to_read(kept.regions, reduced, element_bytes);
}

}  // namespace emplace
