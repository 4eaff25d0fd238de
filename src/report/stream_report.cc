#include "report/stream_report.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/units.h"

#include "sim/stream_run.h"

#include "report/prose.h"

namespace emplace {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kMostTraced = 32;  // steps

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

std::string explain_training(const ThroughputResult& stream) {
  if (stream.in_flight == 1) {
    return wrapped("a training step: one after the other, so each begins with all updates made");
  }
  const int behind = stream.in_flight - 1;
  return wrapped(fmt::format(
             "a training step: each needs the updates of the one before, which a stream does not "
             "wait for: its parameters are up to {} update{} old",
             behind, behind == 1 ? "" : "s")) +
         wrapped(fmt::format(
             "to wait for updates, let the stream be of micro-batches: a model of a small batch, "
             "without its updates, whose gradients add up; a batch of n of them takes about {} and "
             "n - 1 periods, and its update",
             format_time(stream.latency)));
}

}  // namespace

std::string describe_in_flight(const ThroughputResult& stream) {
  if (stream.in_flight == 0) return "per step of a stream";
  if (stream.in_flight == 1) return "per step of a stream, one after the other";
  return fmt::format("per step of a stream, {} in flight, each for {}", stream.in_flight,
                     format_time(stream.latency));
}

std::string explain_stream(const Assessment& assessment) {
  const ThroughputResult& stream = *assessment.throughput;
  std::string text;
  if (stream.in_flight == 0) {
    text += wrapped("nothing is simulated: all that a step writes counts as alive at once");
  } else if (!above_load(stream)) {
    if (stream.in_flight > 1) {
      text += wrapped(
          fmt::format("with fewer than {} steps in flight it would wait", stream.in_flight));
    }
  } else if (stream.memory_limited) {
    text +=
        wrapped(fmt::format("but memory has no room for more steps in flight: with more, it could "
                            "fall to {} at best",
                            format_time(stream.load)));
  } else {
    text +=
        wrapped(fmt::format("but it also waits for what others compute and send: {} a step, "
                            "which more steps in flight do not change",
                            format_time(stream.period - stream.load)));
  }
  if (stream.in_flight > 0 && is_training(assessment.problem().graph())) {
    text += explain_training(stream);
  }
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

std::vector<Timeline> first_steps(const Assessment& assessment) {
  const int in_flight = assessment.throughput->in_flight;
  const ReadyOrder order(assessment.problem(), assessment.schedule);
  return StreamSimulator(assessment.problem(), assessment.placement, order)
      .run(in_flight, std::min(kMostTraced, 2 * in_flight))
      .steps;
}

}  // namespace emplace
