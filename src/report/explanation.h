// What a placement's answer says of itself: what limits it, what is where, what one device would
// do, and, where it does not fit, what is short and what would help.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "sim/critical_chain.h"
#include "sim/device_contents.h"

#include "placer/run.h"

#include "run/assessment.h"
#include "run/batch_search.h"
#include "run/partition.h"
#include "run/sensitivity.h"
#include "run/single_device.h"
#include "run/whole_modules.h"

namespace emplace {

// The best of more than one device that was tried.
struct Split {
  std::string placer;
  Evaluation value;
};

// What a device or a channel has to do in a step.
struct Load {
  std::string name;
  bool is_device = true;
  Nanoseconds time = 0;
};

// A module whose ops or parameters are on more than one device.
struct CutModule {
  std::string name;
  std::vector<DeviceId> devices;
};

struct Explanation {
  CriticalChain chain;
  std::vector<Load> loads;  // the largest first; no channels where devices pay for communication
  Modules modules;
  std::vector<DeviceContents> contents;  // by device
  std::vector<DeviceId> used;            // devices that hold ops
  // The fastest device that all ops may share; and, where it is too small, the fastest that is not.
  std::optional<SingleDevice> fastest_device;
  std::optional<SingleDevice> fitting_device;
  std::optional<Split> best_split;
  std::vector<CutModule> cut;                                // in the order of the forward pass
  std::optional<WholeModules> whole_modules = std::nullopt;  // where they are kept so
  bool could_recompute = false;  // a training step, of which parts could be computed twice
  // What else was looked at, where it was (report/alternatives.h).
  std::optional<WayToRun> in_parts;  // tensors divided among the devices
  std::optional<BatchSearch> batches;
  std::optional<Sensitivities> sensitivities;
};

// Runs no placer: `tried` are the results that the placement was chosen from, and others to compare
// it with. `could_recompute`: whether recomputing activations can still be asked for.
Explanation explain(const Assessment& assessment, const std::vector<RunResult>& tried = {},
                    bool could_recompute = false);

// A screen of plain text.
std::string to_text(const Explanation& explanation, const Assessment& assessment);
// The object `explanation` of docs/formats.md.
nlohmann::ordered_json to_json(const Explanation& explanation, const Assessment& assessment);

}  // namespace emplace
