// What an answer says of its stream: steps in flight, latency, and what that means for training.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "sim/stream_run.h"

#include "run/assessment.h"

namespace emplace {

// After the period, on one line.
std::string describe_in_flight(const ThroughputResult& stream);

// Why there are so many in flight and what they wait for; for a training step, how old the
// parameters are that it computes with. As sentences without a full stop, and as lines of an
// explanation.
std::vector<std::string> stream_sentences(const Assessment& assessment);
std::string explain_stream(const Assessment& assessment);

// The object `stream` of docs/formats.md.
nlohmann::ordered_json stream_json(const Assessment& assessment);

// The stream with its first steps: `most` at most, and no more than are needed to see it fill and
// go on for some periods.
StreamRun first_steps(const Assessment& assessment, int most);

// The devices that work, in the order in which the forward pass of a step comes to them.
std::vector<DeviceId> stages_of(const Problem& problem, const Placement& placement,
                                const Timeline& step);

}  // namespace emplace
