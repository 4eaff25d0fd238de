// What an answer says of its stream: steps in flight, latency, and what that means for training.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "run/assessment.h"

namespace emplace {

// After the period, on one line.
std::string describe_in_flight(const ThroughputResult& stream);

// Why there are so many in flight and what they wait for; for a training step, how old the
// parameters are that it computes with. As lines of an explanation.
std::string explain_stream(const Assessment& assessment);

// The object `stream` of docs/formats.md.
nlohmann::ordered_json stream_json(const Assessment& assessment);

// The first steps of the stream, for a trace: until it is full, and some more.
std::vector<Timeline> first_steps(const Assessment& assessment);

}  // namespace emplace
