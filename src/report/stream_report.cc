#include "report/stream_report.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/units.h"

#include "report/prose.h"

namespace emplace {
namespace {

using Json = nlohmann::ordered_json;

bool is_training(const Graph& graph) {
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    if (graph.phase(op) != Phase::kForward) return true;
  }
  return false;
}

// By more than a hundredth.
bool above_load(const ThroughputResult& stream) {
  return 100 * (stream.period - stream.load) > stream.load;
}

void explain_training(const ThroughputResult& stream, std::vector<std::string>& said) {
  if (stream.in_flight == 1) {
    said.push_back("a training step: one after the other, so each begins with all updates made");
    return;
  }
  const int behind = stream.in_flight - 1;
  said.push_back(fmt::format(
      "a training step: each needs the updates of the one before, which a stream does not wait "
      "for: its parameters are up to {} update{} old",
      behind, behind == 1 ? "" : "s"));
  said.push_back(fmt::format(
      "to wait for updates, let the stream be of micro-batches: a model of a small batch, without "
      "its updates, whose gradients add up; a batch of n of them takes about {} and n - 1 periods, "
      "and its update",
      format_time(stream.latency)));
}

}  // namespace

std::string describe_in_flight(const ThroughputResult& stream) {
  if (stream.in_flight == 0) return "per step of a stream";
  if (stream.in_flight == 1) return "per step of a stream, one after the other";
  return fmt::format("per step of a stream, {} in flight, each for {}", stream.in_flight,
                     format_time(stream.latency));
}

std::vector<std::string> stream_sentences(const Assessment& assessment) {
  const ThroughputResult& stream = *assessment.throughput;
  std::vector<std::string> said;
  if (stream.in_flight == 0) {
    said.push_back("nothing is simulated: all that a step writes counts as alive at once");
  } else if (!above_load(stream)) {
    if (stream.in_flight > 1) {
      said.push_back(
          fmt::format("with fewer than {} steps in flight it would wait", stream.in_flight));
    }
  } else if (stream.memory_limited) {
    said.push_back(fmt::format(
        "but memory has no room for more steps in flight: with more, it could fall to {} at best",
        format_time(stream.load)));
  } else {
    said.push_back(fmt::format(
        "but it also waits for what others compute and send: {} a step, which more steps in flight "
        "do not change",
        format_time(stream.period - stream.load)));
  }
  if (stream.in_flight > 0 && is_training(assessment.problem().graph())) {
    explain_training(stream, said);
  }
  return said;
}

std::string explain_stream(const Assessment& assessment) {
  std::string text;
  for (const std::string& sentence : stream_sentences(assessment)) text += wrapped(sentence);
  return text;
}

Json stream_json(const Assessment& assessment) {
  const ThroughputResult& stream = *assessment.throughput;
  if (stream.in_flight == 0) return {{"simulated", false}};
  Json json{{"simulated", true},
            {"in_flight", stream.in_flight},
            {"latency_ns", stream.latency},
            {"load_ns", stream.load},
            {"memory_limited", stream.memory_limited}};
  if (is_training(assessment.problem().graph())) json["updates_behind"] = stream.in_flight - 1;
  return json;
}

StreamRun first_steps(const Assessment& assessment, int most) {
  constexpr int kPeriodsShown = 4;  // at least, where there is room
  const int in_flight = assessment.throughput->in_flight;
  const ReadyOrder order(assessment.problem(), assessment.schedule);
  return StreamSimulator(assessment.problem(), assessment.placement, order)
      .run(in_flight, std::clamp(2 * in_flight + kPeriodsShown, 1, most));
}

std::vector<DeviceId> stages_of(const Problem& problem, const Placement& placement,
                                const Timeline& step) {
  // A device's work lies where its mean is; devices without forward ops come last.
  struct Share {
    double forward = 0;
    double forward_work = 0;
    double all = 0;
    double work = 0;
  };
  std::vector<Share> shares(problem.num_devices());
  for (OpId op = 0; op < problem.num_ops(); ++op) {
    const OpSpan& span = step.ops[op];
    const auto length = static_cast<double>(span.finish - span.start);
    const double moment = length * static_cast<double>(span.start + span.finish) / 2;
    Share& share = shares[placement[op]];
    share.work += length;
    share.all += moment;
    if (problem.graph().phase(op) != Phase::kForward) continue;
    share.forward_work += length;
    share.forward += moment;
  }
  std::vector<DeviceId> order;
  for (DeviceId device = 0; device < problem.num_devices(); ++device) {
    if (shares[device].work > 0) order.push_back(device);
  }
  const auto place = [&](DeviceId device) {
    const Share& share = shares[device];
    const bool forward = share.forward_work > 0;
    return std::pair(!forward,
                     forward ? share.forward / share.forward_work : share.all / share.work);
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](DeviceId a, DeviceId b) { return place(a) < place(b); });
  return order;
}

}  // namespace emplace
