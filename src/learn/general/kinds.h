// General policies by kind.
#pragma once

#include <memory>
#include <string>

#include "base/rng.h"

#include "cost/problem.h"

#include "learn/general/network.h"

namespace emplace::learn {

class GeneralAgent;
using GeneralAgentPtr = std::shared_ptr<GeneralAgent>;

// `kind` is one of general_kinds(), `device` libtorch's. The random numbers are for first weights;
// agents of one kind and network have the same parameters, whatever the problem.
GeneralAgentPtr make_agent(const std::string& kind, const Problem& problem,
                           const GeneralNetwork& network, const std::string& device, Rng& rng);

}  // namespace emplace::learn
