// Post's policy: for every unit a softmax over devices of its own, uniform at first (Gao, Chen, Li,
// NeurIPS 2018).
#pragma once

#include <string>

#include "learn/parts.h"
#include "learn/units/unit_graph.h"

namespace emplace::learn {

PolicyPtr table_policy(UnitGraph units, const std::string& device);

}  // namespace emplace::learn
