// The kinds of general policies, by name.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/rng.h"

#include "cost/problem.h"

#include "learn/general/network.h"

namespace emplace::learn {

class Pupil;
using PupilPtr = std::shared_ptr<Pupil>;

// gdp, mars, placeto.
const std::vector<std::string>& general_kinds();

// `device` is libtorch's. The random numbers are for first weights; pupils of one kind and network
// have the same parameters, whatever the problem.
PupilPtr make_pupil(const std::string& kind, const Problem& problem, const GeneralNetwork& network,
                    const std::string& device, Rng& rng);

}  // namespace emplace::learn
