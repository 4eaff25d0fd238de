// Memory for placers that build a placement group by group and cannot simulate at every step.
//
// What a group occupies depends on when its tensors die. The estimate is what it holds for the
// whole step plus a share of the tensors that it writes; the share is the one that makes the
// estimate of everything on one device equal to the simulated peak there. `fit_memory` closes the
// remaining gap: it offers ever smaller parts of the capacities until the simulated placement fits.
#pragma once

#include <functional>
#include <vector>

#include "placer/placer.h"

namespace emplace {

class MemoryModel {
 public:
  // Costs one evaluation: of everything on one device, or, where no device may hold every group, of
  // as much as possible on one. Without links between those devices all writes count in full.
  MemoryModel(const Problem& problem, Evaluator& evaluator);

  Bytes need(GroupId group) const { return need_[group]; }

 private:
  std::vector<Bytes> need_;
};

// What is left on each device while a placement grows.
class MemoryLedger {
 public:
  MemoryLedger(const Problem& problem, const MemoryModel& model, double capacity_share);

  bool fits(GroupId group, DeviceId device) const {
    return model_->need(group) <= capacity_[device] - used_[device];
  }
  void add(GroupId group, DeviceId device) { used_[device] += model_->need(group); }
  Bytes need(GroupId group) const { return model_->need(group); }
  Bytes used(DeviceId device) const { return used_[device]; }
  Bytes left(DeviceId device) const { return capacity_[device] - used_[device]; }
  Bytes capacity(DeviceId device) const { return capacity_[device]; }

  // The allowed device with the most room: where to put what fits nowhere.
  DeviceId roomiest(const Problem& problem, GroupId group) const;

 private:
  const MemoryModel* model_;
  std::vector<Bytes> capacity_;
  std::vector<Bytes> used_;
};

// Evaluates the result and adds a note that names the devices that are too small, if any.
void note_shortage(const Problem& problem, Evaluator& evaluator, PlaceResult& result);

// Calls `construct` with 100 % of the capacities, then with less and less while the result does not
// fit, and returns the best (Evaluation's order). Adds a note when none fits. The budget is asked
// between tries. Throws check_placement's Error where `construct` returns an invalid placement,
// which happens when no link joins the devices that the ops are restricted to.
PlaceResult fit_memory(const Problem& problem, Evaluator& evaluator, const Budget& budget,
                       const std::function<PlaceResult(MemoryLedger&)>& construct);

}  // namespace emplace
