#include "io/trace_json.h"

#include <algorithm>
#include <span>
#include <unordered_map>
#include <vector>

#include <fmt/format.h>

#include "io/json_quote.h"

namespace emplace {
namespace {

// The processes of one timeline; those of the next follow.
constexpr int kDevicesProcess = 1;
constexpr int kChannelsProcess = 2;

// Microseconds with the nanoseconds behind the point.
std::string trace_microseconds(Nanoseconds time) {
  return fmt::format("{}.{:03}", time / 1000, time % 1000);
}

class TraceWriter {
 public:
  TraceWriter(const Problem& problem, const Placement& placement)
      : problem_(problem), graph_(problem.graph()), placement_(placement) {}

  // `name`: of the whole, where there are several.
  void write(std::span<const Timeline> steps, bool name_steps, const std::string& name = {}) {
    steps_ = steps;
    find_lanes();
    name_tracks(name.empty() ? "" : ", " + name);
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      if (name_steps) step_ = fmt::format(R"("step":{},)", i);
      for (OpId op = 0; op < graph_.num_ops(); ++op) write_op(op, steps_[i].ops[op]);
      for (const Transfer& transfer : steps_[i].transfers) {
        if (!transfer.shared) write_transfer(transfer);
      }
    }
    first_process_ += kChannelsProcess;
  }

  std::string take() && {
    return "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[" + events_ + "\n]}\n";
  }

 private:
  void add(const std::string& event) { events_ += (events_.empty() ? "\n" : ",\n") + event; }

  void name_track(std::string_view kind, int process, std::uint32_t track, std::string_view name) {
    add(fmt::format(R"({{"ph":"M","name":"{}","pid":{},"tid":{},"args":{{"name":{}}}}})", kind,
                    first_process_ + process, track, json_quoted(name)));
  }

  // What an unlimited channel carries at once is on several tracks: the channel's, and others that
  // are numbered on from the channels.
  void find_lanes() {
    const Cluster& cluster = problem_.cluster();
    std::vector<const Transfer*> passing;
    for (const Timeline& step : steps_) {
      for (const Transfer& transfer : step.transfers) {
        if (transfer.finish > transfer.start && cluster.is_unlimited(transfer.channel)) {
          passing.push_back(&transfer);
        }
      }
    }
    std::stable_sort(passing.begin(), passing.end(),
                     [](const Transfer* a, const Transfer* b) { return a->start < b->start; });
    lanes_.assign(cluster.num_channels(), {});
    track_of_.clear();
    std::uint32_t next_track = cluster.num_channels();
    for (const Transfer* transfer : passing) {
      auto& lanes = lanes_[transfer->channel];
      auto lane = std::find_if(lanes.begin(), lanes.end(),
                               [&](const Lane& one) { return one.busy_until <= transfer->start; });
      if (lane == lanes.end()) {
        const bool first = lanes.empty();
        lanes.push_back({.track = first ? std::uint32_t{transfer->channel} : next_track++});
        lane = lanes.end() - 1;
      }
      lane->busy_until = transfer->finish;
      track_of_[transfer] = lane->track;
    }
  }

  void name_tracks(const std::string& suffix) {
    const Cluster& cluster = problem_.cluster();
    name_track("process_name", kDevicesProcess, 0, "devices" + suffix);
    name_track("process_name", kChannelsProcess, 0, "channels" + suffix);
    for (DeviceId device = 0; device < cluster.num_devices(); ++device) {
      name_track("thread_name", kDevicesProcess, device, cluster.device(device).name);
    }
    std::vector<bool> used(cluster.num_channels(), false);
    for (const Timeline& step : steps_) {
      for (const Transfer& transfer : step.transfers) {
        if (transfer.finish > transfer.start) used[transfer.channel] = true;
      }
    }
    for (ChannelId channel = 0; channel < cluster.num_channels(); ++channel) {
      if (!used[channel]) continue;
      name_track("thread_name", kChannelsProcess, channel, cluster.channel_name(channel));
      for (std::size_t i = 1; i < lanes_[channel].size(); ++i) {
        name_track("thread_name", kChannelsProcess, lanes_[channel][i].track,
                   fmt::format("{} {}", cluster.channel_name(channel), i + 1));
      }
    }
  }

  void write_op(OpId op, const OpSpan& span) {
    if (span.finish == span.start) return;  // what takes no time has no place on a track
    add(fmt::format(
        R"({{"ph":"X","name":{},"cat":"{}","pid":{},"tid":{},"ts":{},"dur":{},"args":{{{}"op":{},"module":{}}}}})",
        json_quoted(graph_.type(op)), phase_name(graph_.phase(op)),
        first_process_ + kDevicesProcess, placement_[op], trace_microseconds(span.start),
        trace_microseconds(span.finish - span.start), step_, json_quoted(graph_.op_name(op)),
        json_quoted(graph_.module(op))));
  }

  void write_transfer(const Transfer& transfer) {
    if (transfer.finish == transfer.start) return;
    const Cluster& cluster = problem_.cluster();
    const auto lane = track_of_.find(&transfer);
    const std::uint32_t track =
        lane == track_of_.end() ? std::uint32_t{transfer.channel} : lane->second;
    add(fmt::format(
        R"({{"ph":"X","name":{},"cat":"transfer","pid":{},"tid":{},"ts":{},"dur":{},"args":{{{}"from":{},"to":{},"bytes":{},"queued_us":{}}}}})",
        json_quoted(graph_.op_name(graph_.producer(transfer.tensor))),
        first_process_ + kChannelsProcess, track, trace_microseconds(transfer.start),
        trace_microseconds(transfer.finish - transfer.start), step_,
        json_quoted(cluster.device(transfer.from).name),
        json_quoted(cluster.device(transfer.to).name), graph_.bytes(transfer.tensor),
        trace_microseconds(transfer.queued)));
  }

  const Problem& problem_;
  const Graph& graph_;
  const Placement& placement_;
  std::span<const Timeline> steps_;  // being written
  int first_process_ = 0;
  std::string step_;  // of what is being written
  struct Lane {
    std::uint32_t track = 0;
    Nanoseconds busy_until = 0;
  };
  std::vector<std::vector<Lane>> lanes_;  // by channel
  std::unordered_map<const Transfer*, std::uint32_t> track_of_;
  std::string events_;
};

}  // namespace

std::string write_trace_json(const Problem& problem, const Placement& placement,
                             const Timeline& timeline) {
  TraceWriter writer(problem, placement);
  writer.write({&timeline, 1}, false);
  return std::move(writer).take();
}

std::string write_trace_json(const Problem& problem, const Placement& placement,
                             const std::vector<Timeline>& steps) {
  TraceWriter writer(problem, placement);
  writer.write(steps, true);
  return std::move(writer).take();
}

std::string write_trace_json(const Problem& problem, const Placement& placement,
                             const NamedTimeline& first, const NamedTimeline& second) {
  TraceWriter writer(problem, placement);
  for (const NamedTimeline* each : {&first, &second}) {
    writer.write({&each->timeline, 1}, false, each->name);
  }
  return std::move(writer).take();
}

}  // namespace emplace
