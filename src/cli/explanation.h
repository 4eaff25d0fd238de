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

#include "cli/report.h"

namespace emplace::cli {

// Everything on one device.
struct OneDevice {
  DeviceId device = kNoDevice;
  Evaluation value;
  Bytes used = 0;  // of its memory
};

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

struct Explanation {
  CriticalChain chain;
  std::vector<Load> loads;  // the largest first; no channels where devices pay for communication
  Modules modules;
  std::vector<DeviceContents> contents;  // by device
  std::vector<DeviceId> used;            // devices that hold ops
  // The fastest device that all ops may share; and, where it is too small, the fastest that is not.
  std::optional<OneDevice> fastest_device;
  std::optional<OneDevice> fitting_device;
  std::optional<Split> best_split;
  bool could_recompute = false;  // a training step, with --recompute to be had
};

// `tried` are the results that the outcome was chosen from, or none. Where that is one device and
// no split was tried, some are.
Explanation explain(const Outcome& outcome, const ObjectiveArguments& objective,
                    const ProblemArguments& problem, const std::vector<RunResult>& tried = {});

// A screen of plain text.
std::string to_text(const Explanation& explanation, const Outcome& outcome);
// The object `explanation` of docs/formats.md.
nlohmann::ordered_json to_json(const Explanation& explanation, const Outcome& outcome);

}  // namespace emplace::cli
