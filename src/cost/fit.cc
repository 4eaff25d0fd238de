// Fits cost curves by coordinate descent with a step for each parameter (after Hooke and Jeeves
// 1961).
//
// Ops that ask for the same work are merged into samples first. Each parameter is a positive number
// that is multiplied or divided by its step; the step grows after a success and shrinks when both
// directions fail, and the search ends when all steps are small. Invariant: predictions_ and
// predicted_totals_ are those of the current parameters, so a trial costs only the samples of the
// parameter's class or graph. Every accepted step lowers the objective. The objective has kinks,
// and the result is optimal along the axes, up to the last step, and no more. At most 200 rounds of
// two trials for each parameter.
//
// NLopt 2.7 on the captured graphs: L-BFGS, the best with gradients, is as fast but stops at kinks
// (objective 0.4 and 3 % higher, left-out error 9.2 instead of 8.6 %); SBPLX takes 40 times as
// long.
#include "cost/fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "base/error.h"

#include "cost/cost_model.h"

namespace emplace {
namespace {

constexpr double kTotalWeight = 2;   // of a graph's total, against 1 for its ops
constexpr double kPrior = 2e-3;      // pull of a parameter towards its start
constexpr double kHostPrior = 1e-1;  // pull of a graph's host factor towards 1
constexpr double kOutlier = 0.7;     // logarithmic errors beyond it count linearly
constexpr int kMostRounds = 200;
constexpr double kNudge = 1.01;
constexpr double kFirstStep = 1.4;
constexpr double kLargestStep = 2;
constexpr double kLastStep = 1.003;

// Ops of one graph that ask for the same work.
struct Sample {
  std::uint32_t graph = 0;
  OpWork work;
  double peak = 0;
  double count = 0;
  double time_us = 0;   // of all together
  double log_time = 0;  // mean logarithm of one's
  double weight = 0;    // share of the graph's time
};

double squared(double x) {
  return x * x;
}

// To as many digits as mean anything, so that files stay readable.
double rounded(double value) {
  constexpr int kDigits = 4;
  if (value <= 0) return value;
  const double scale = std::pow(10.0, kDigits - 1 - std::floor(std::log10(value)));
  return std::round(value * scale) / scale;
}

double op_loss(double log_error) {
  const double size = std::abs(log_error);
  return size < kOutlier ? squared(size) : kOutlier * (2 * size - kOutlier);
}

auto key_of(const OpWork& work) {
  return std::make_tuple(work.op_class, work.dtype, work.pieces, work.flops, work.bytes,
                         work.channels, work.depth, work.tiles, work.unaligned);
}

// Calls `visit(work, microseconds)` for every op that was measured and takes time.
void for_each_measured(const Graph& graph, std::string_view device,
                       const std::function<void(const OpWork&, double)>& visit) {
  WorkReader reader(graph);
  const auto name = graph.strings().find(device);
  if (!name) return;
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    if (graph.is_source(op) || graph.is_view(op)) continue;
    for (const MeasuredTime& time : graph.measured_times(op)) {
      if (time.device != *name || time.microseconds.mantissa <= 0) continue;
      visit(reader.work(op), time.microseconds.to_double());
    }
  }
}

// Bounds within which a fit looks, narrower than what files may say.
struct Range {
  double low;
  double high;
};

Range fit_range(double CostCurve::*field) {
  if (field == &CostCurve::launches) return {0.3, 20};
  if (field == &CostCurve::ramp_us) return {0.2, 200};
  if (field == &CostCurve::half_depth) return {5, 20000};
  if (field == &CostCurve::half_tiles) return {1, 2000};
  if (field == &CostCurve::unaligned) return {0.1, 1};
  if (field == &CostCurve::lane_bandwidth) return {1e8, 1e12};
  return {0.003, 1};  // shares of peaks
}

class Fit {
 public:
  Fit(std::span<const Graph* const> graphs, std::string_view device, const DeviceKind& start)
      : kind_(start), hosts_(graphs.size(), 1), totals_(graphs.size(), 0) {
    for (std::uint32_t i = 0; i < graphs.size(); ++i) read(*graphs[i], i, device);
    if (samples_.empty()) fail_input("no op has a measured time for '{}'", device);
    // By class, so that a change of one curve touches one run of samples.
    std::stable_sort(samples_.begin(), samples_.end(), [](const Sample& a, const Sample& b) {
      return a.work.op_class < b.work.op_class;
    });
    for (std::uint32_t i = 0; i < samples_.size(); ++i) {
      of_class_[static_cast<std::size_t>(samples_[i].work.op_class)].push_back(i);
    }
    of_graph_.resize(graphs.size());
    for (std::uint32_t i = 0; i < samples_.size(); ++i) of_graph_[samples_[i].graph].push_back(i);
    predictions_.resize(samples_.size());
    trial_.resize(samples_.size());
    predicted_totals_.assign(graphs.size(), 0);
    for (std::uint32_t i = 0; i < samples_.size(); ++i) {
      predictions_[i] = predict(samples_[i], hosts_[samples_[i].graph]);
      predicted_totals_[samples_[i].graph] += predictions_[i] * samples_[i].count;
    }
  }

  DeviceKind run() {
    collect_parameters();
    for (int round = 0; round < kMostRounds; ++round) {
      bool moving = false;
      for (Parameter& parameter : parameters_) moving |= improve(parameter);
      if (!moving) break;
    }
    choose_launch();
    normalize();
    return kind_;
  }

 private:
  struct Parameter {
    double* value;
    double start;
    Range range;
    double prior;
    const std::vector<std::uint32_t>* samples;
    double step = kFirstStep;
  };

  void read(const Graph& graph, std::uint32_t index, std::string_view device) {
    std::map<decltype(key_of(OpWork{})), Sample> merged;
    for_each_measured(graph, device, [&](const OpWork& work, double time_us) {
      Sample& sample = merged[key_of(work)];
      sample.graph = index;
      sample.work = work;
      sample.count += 1;
      sample.time_us += time_us;
      sample.log_time += std::log(time_us);
      totals_[index] += time_us;
    });
    for (auto& [key, sample] : merged) {
      sample.peak = peak_flops(kind_, sample.work.dtype, sample.work.op_class);
      sample.log_time /= sample.count;
      sample.weight = sample.time_us / totals_[index];
      samples_.push_back(sample);
    }
  }

  double predict(const Sample& sample, double host) const {
    return curve_time_us(sample.work, kind_.curves[sample.work.op_class], sample.peak,
                         kind_.memory_bandwidth, kind_.launch_us * host);
  }

  void collect_parameters() {
    for (std::size_t i = 0; i < kNumOpClasses; ++i) {
      if (of_class_[i].empty()) continue;
      const auto op_class = static_cast<OpClass>(i);
      for (const CurveField& field : curve_fields()) {
        // Training captures are of float32, which says nothing of narrower types.
        if (field.value == &CostCurve::compute_16bit) continue;
        if (!uses_field(op_class, field.value)) continue;
        double& value = kind_.curves[op_class].*field.value;
        const Range range = fit_range(field.value);
        value = std::clamp(value, range.low, range.high);
        parameters_.push_back({&value, value, range, kPrior, &of_class_[i]});
      }
    }
    for (std::size_t i = 0; i < hosts_.size(); ++i) {
      if (of_graph_[i].empty()) continue;
      parameters_.push_back({&hosts_[i], 1, {0.2, 5}, kHostPrior, &of_graph_[i]});
    }
    // Clamping may have moved a curve.
    for (std::uint32_t i = 0; i < samples_.size(); ++i) {
      const double now = predict(samples_[i], hosts_[samples_[i].graph]);
      predicted_totals_[samples_[i].graph] += (now - predictions_[i]) * samples_[i].count;
      predictions_[i] = now;
    }
  }

  // Tries a step up and a step down. False once steps are as small as they get.
  bool improve(Parameter& parameter) {
    if (parameter.step <= kLastStep) return false;
    for (const double factor : {parameter.step, 1 / parameter.step}) {
      if (!try_value(parameter, *parameter.value * factor)) continue;
      parameter.step = std::min(kLargestStep, parameter.step * std::sqrt(parameter.step));
      return true;
    }
    parameter.step = std::sqrt(parameter.step);
    return true;
  }

  bool try_value(Parameter& parameter, double value) {
    value = std::clamp(value, parameter.range.low, parameter.range.high);
    const double before = *parameter.value;
    if (value == before) return false;
    const auto pull = [&](double x) {
      return parameter.prior * squared(std::log(x / parameter.start));
    };
    *parameter.value = value;
    trial_totals_ = predicted_totals_;
    double change = pull(value) - pull(before);
    for (const std::uint32_t i : *parameter.samples) {
      const Sample& sample = samples_[i];
      trial_[i] = predict(sample, hosts_[sample.graph]);
      trial_totals_[sample.graph] += (trial_[i] - predictions_[i]) * sample.count;
      change += sample.weight * (op_loss(std::log(trial_[i]) - sample.log_time) -
                                 op_loss(std::log(predictions_[i]) - sample.log_time));
    }
    for (std::size_t g = 0; g < totals_.size(); ++g) {
      if (trial_totals_[g] == predicted_totals_[g]) continue;
      change += kTotalWeight * (squared(std::log(trial_totals_[g] / totals_[g])) -
                                squared(std::log(predicted_totals_[g] / totals_[g])));
    }
    if (change >= 0) {
      *parameter.value = before;
      return false;
    }
    for (const std::uint32_t i : *parameter.samples) predictions_[i] = trial_[i];
    predicted_totals_ = trial_totals_;
    return true;
  }

  // The launch time whose relative error is the same for a fast and for a slow host, so that it is
  // as small as it can be for both. Extremes that carry little of the evidence are passed over.
  void choose_launch() {
    constexpr double kExtreme = 0.1;
    std::vector<std::pair<double, double>> hosts;  // factor, time that depends on it
    double evidence = 0;
    for (std::size_t g = 0; g < hosts_.size(); ++g) {
      double bound = 0;
      for (const std::uint32_t i : of_graph_[g]) {
        const double slower = predict(samples_[i], hosts_[g] * kNudge);
        if (slower > predictions_[i]) bound += samples_[i].weight;
      }
      if (bound > 0) hosts.emplace_back(hosts_[g], bound);
      evidence += bound;
    }
    if (hosts.empty()) return;
    std::sort(hosts.begin(), hosts.end());
    double low = 0;
    double high = 0;
    double passed = 0;
    for (const auto& [factor, weight] : hosts) {
      passed += weight;
      if (low == 0 && passed >= kExtreme * evidence) low = factor;
      if (high == 0 && passed >= (1 - kExtreme) * evidence) high = factor;
    }
    kind_.launch_us *= 2 * low * high / (low + high);
  }

  // launch_us is what a plain elementwise kernel costs; other classes are multiples of it. Classes
  // that were not seen keep theirs.
  void normalize() {
    const bool seen = !of_class_[static_cast<std::size_t>(OpClass::kElementwise)].empty();
    const double plain = seen ? kind_.curves[OpClass::kElementwise].launches : 1;
    kind_.launch_us = rounded(kind_.launch_us * plain);
    for (std::size_t i = 0; i < kNumOpClasses; ++i) {
      if (of_class_[i].empty()) continue;
      CostCurve& curve = kind_.curves[static_cast<OpClass>(i)];
      curve.launches /= plain;
      for (const CurveField& field : curve_fields()) {
        double& value = curve.*field.value;
        if (uses_field(static_cast<OpClass>(i), field.value)) {
          value = std::clamp(rounded(value), field.low, field.high);
        }
      }
    }
  }

  DeviceKind kind_;
  std::vector<double> hosts_;   // by graph: how slow its host was
  std::vector<double> totals_;  // by graph, measured
  std::vector<Sample> samples_;
  std::array<std::vector<std::uint32_t>, kNumOpClasses> of_class_;
  std::vector<std::vector<std::uint32_t>> of_graph_;
  std::vector<double> predictions_;  // of one op, by sample
  std::vector<double> trial_;
  std::vector<double> predicted_totals_;
  std::vector<double> trial_totals_;
  std::vector<Parameter> parameters_;
};

void add_op(FitError& error, const OpWork& work, double time_us, const DeviceKind& kind) {
  const double fitted = work_time_us(work, kind);
  error.ops += 1;
  error.measured_us += time_us;
  error.fitted_us += fitted;
  error.op_error += std::abs(fitted - time_us);  // a sum until all are in
}

void finish(FitError& error) {
  if (error.measured_us > 0) error.op_error /= error.measured_us;
}

}  // namespace

std::vector<std::string> measured_devices(std::span<const Graph* const> graphs) {
  std::set<std::string> names;
  for (const Graph* graph : graphs) {
    for (OpId op = 0; op < graph->num_ops(); ++op) {
      for (const MeasuredTime& time : graph->measured_times(op)) {
        names.emplace(graph->strings().get(time.device));
      }
    }
  }
  return {names.begin(), names.end()};
}

DeviceKind fit_curves(std::span<const Graph* const> graphs, std::string_view device,
                      const DeviceKind& start) {
  return Fit(graphs, device, start).run();
}

DeviceKind unknown_kind(std::span<const Graph* const> graphs, std::string_view device,
                        std::string name) {
  constexpr double kReached = 0.8;  // of its peaks, by the best op that was measured
  double flops = 0;
  double bandwidth = 0;
  double shortest = 0;
  for (const Graph* graph : graphs) {
    for_each_measured(*graph, device, [&](const OpWork& work, double time_us) {
      flops = std::max(flops, work.flops / time_us * 1e6);
      if (work.op_class == OpClass::kElementwise) {
        bandwidth = std::max(bandwidth, work.bytes / time_us * 1e6);
        shortest = shortest == 0 ? time_us : std::min(shortest, time_us);
      }
    });
  }
  if (flops <= 0 || bandwidth <= 0) {
    fail_input(
        "the graphs have no timed matrix product or no timed elementwise op for '{}', from which "
        "to estimate the device's peaks; expected them, or a known kind to start from",
        device);
  }
  DeviceKind kind;
  kind.name = std::move(name);
  kind.peak_flops["float32"] = flops / kReached;
  kind.memory_bandwidth = std::round(bandwidth / kReached);
  kind.memory = kUnlimited;
  kind.launch_us = shortest;
  kind.curves = typical_curves();
  return kind;
}

FitError graph_error(const Graph& graph, std::string_view device, const DeviceKind& kind) {
  FitError error{.name = graph.name()};
  for_each_measured(graph, device, [&](const OpWork& work, double time_us) {
    add_op(error, work, time_us, kind);
  });
  finish(error);
  return error;
}

std::vector<FitError> class_errors(std::span<const Graph* const> graphs, std::string_view device,
                                   const DeviceKind& kind) {
  std::array<FitError, kNumOpClasses> by_class;
  for (const Graph* graph : graphs) {
    for_each_measured(*graph, device, [&](const OpWork& work, double time_us) {
      add_op(by_class[static_cast<std::size_t>(work.op_class)], work, time_us, kind);
    });
  }
  std::vector<FitError> errors;
  for (std::size_t i = 0; i < kNumOpClasses; ++i) {
    if (by_class[i].ops == 0) continue;
    by_class[i].name = op_class_name(static_cast<OpClass>(i));
    finish(by_class[i]);
    errors.push_back(by_class[i]);
  }
  return errors;
}

std::vector<FitError> leave_one_out(std::span<const Graph* const> graphs, std::string_view device,
                                    const DeviceKind& start) {
  std::vector<FitError> errors;
  for (std::size_t i = 0; i < graphs.size(); ++i) {
    std::vector<const Graph*> others(graphs.begin(), graphs.end());
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    errors.push_back(graph_error(*graphs[i], device, fit_curves(others, device, start)));
  }
  return errors;
}

}  // namespace emplace
