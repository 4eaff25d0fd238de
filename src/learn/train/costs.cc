#include "learn/train/costs.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace emplace::learn {

Costs::Costs(const Problem& problem, const CostSettings& settings) : settings_(settings) {
  for (OpId op = 0; op < problem.num_ops(); ++op) {
    serial_seconds_ += static_cast<double>(problem.fastest_duration(op)) * 1e-9;
  }
  impossible_seconds_ = serial_seconds_ * (2 + settings.penalty * problem.num_devices());
  smallest_capacity_ = std::numeric_limits<double>::infinity();
  for (DeviceId device = 0; device < problem.num_devices(); ++device) {
    const auto capacity = static_cast<double>(problem.cluster().device(device).memory);
    if (capacity > 0) smallest_capacity_ = std::min(smallest_capacity_, capacity);
  }
}

double Costs::operator()(const SampleOutcome& outcome) const {
  const double seconds = static_cast<double>(outcome.step) * 1e-9;
  if (outcome.fits()) return scaled(seconds);
  if (settings_.shortage == Shortage::kSignal) return failing();
  if (!outcome.valid) return scaled(impossible_seconds_);
  const double missing = static_cast<double>(outcome.overflow) / smallest_capacity_;
  return scaled(seconds + settings_.penalty * serial_seconds_ * missing);
}

double Costs::failing() const {
  return scaled(settings_.failing_seconds);
}

double Costs::scaled(double seconds) const {
  switch (settings_.scale) {
    case CostScale::kSquareRoot:
      return std::sqrt(seconds);
    case CostScale::kLogarithm:
      return std::log1p(seconds);
    case CostScale::kRelative:
      return serial_seconds_ > 0 ? seconds / serial_seconds_ : seconds;
    case CostScale::kSeconds:
      break;
  }
  return seconds;
}

}  // namespace emplace::learn
