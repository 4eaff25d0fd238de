// Placements as the simulator on which Placeto was trained (sim/placeto.h) values them, for placers
// that ask for the value of whatever they try.
#pragma once

#include <memory>

#include "sim/simulator.h"

#include "placer/evaluator.h"

namespace emplace {

// Of a problem that placeto_problem() made: the makespan, and what outputs alone lack of each
// device's memory. Ops run in the order in which they become ready, whatever order was chosen.
Evaluator::Measure measured_as_placeto(std::shared_ptr<const Simulator> simulator);

}  // namespace emplace
