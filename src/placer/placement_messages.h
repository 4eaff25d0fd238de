// Placements and their values as bytes between ranks that know the same problem.
#pragma once

#include "cost/problem.h"

#include "sim/placement.h"

#include "placer/evaluator.h"

#include "dist/wire.h"

namespace emplace {

// A byte for each op, two on clusters of more than 255 devices.
void put_placement(dist::Writer& writer, const Placement& placement, const Problem& problem);
void put(dist::Writer& writer, const Evaluation& value);

// Throw an Error when it cannot be one of this problem.
// Whether or not it lacks a link.
Placement take_sample(dist::Reader& reader, const Problem& problem);
Placement take_placement(dist::Reader& reader, const Problem& problem);
Evaluation take_value(dist::Reader& reader);

}  // namespace emplace
