#include "run/profile.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "base/error.h"
#include "base/limits.h"
#include "base/rng.h"

#include "cluster/runs_on.h"
#include "graph/copy.h"
#include "graph/graph_builder.h"

#include "run/contention.h"
#include "run/link_classes.h"
#include "run/transfer_costs.h"

namespace emplace {
namespace {

void copy_op(const Graph& graph, OpId op, TensorId first_tensor, const std::string& suffix,
             GraphBuilder& builder) {
  OpSpec spec = spec_of_op(graph, op);
  spec.name += suffix;
  if (!spec.colocate.empty()) spec.colocate += suffix;
  for (const TensorId tensor : graph.inputs(op)) spec.inputs.push_back(first_tensor + tensor);
  for (const TensorId tensor : graph.outputs(op)) spec.outputs.push_back(first_tensor + tensor);
  for (const OpId before : graph.after(op)) {
    spec.after.push_back(std::string(graph.op_name(before)) + suffix);
  }
  builder.add_op(spec);
}

// The graph several times over, without anything between the copies.
std::shared_ptr<const Graph> copies_of(const Graph& graph, DeviceId count) {
  GraphBuilder builder(graph.name());
  for (DeviceId copy = 0; copy < count; ++copy) {
    const TensorId first = builder.num_tensors();
    for (TensorId tensor = 0; tensor < graph.num_tensors(); ++tensor) {
      builder.add_tensor(spec_of_tensor(graph, tensor));
    }
    for (OpId op = 0; op < graph.num_ops(); ++op) {
      copy_op(graph, op, first, fmt::format("@{}", copy), builder);
    }
  }
  return std::make_shared<const Graph>(std::move(builder).build());
}

using NamedTimes = std::pair<std::string, const std::vector<Nanoseconds>*>;

// In place of whatever the graph had of temporary memory, and of times under those names.
std::shared_ptr<const Graph> with_measured(const Graph& graph, const std::vector<NamedTimes>& times,
                                           const std::vector<Bytes>& temporary) {
  return std::make_shared<const Graph>(changed_copy(graph, [&](OpId op, OpSpec& spec) {
    if (graph.is_source(op) || graph.is_view(op)) return;
    spec.temp_bytes = temporary[op];
    for (const NamedTimes& named : times) {
      const std::string& name = named.first;
      std::erase_if(spec.time_us, [&](const auto& time) {
        return time.first == name || time.first == busy_name(name);
      });
      spec.time_us.emplace_back(name, Decimal{(*named.second)[op], -3});
    }
  }));
}

Nanoseconds sum_of(const std::vector<Nanoseconds>& times) {
  Nanoseconds sum = 0;
  for (const Nanoseconds time : times) sum += time;
  return sum;
}

// By op, over phases.
template <class Pick>
std::vector<Nanoseconds> medians_over(const std::vector<ProfilePhase>& phases, std::size_t count,
                                      const Pick& pick) {
  std::vector<Nanoseconds> result(count);
  std::vector<Nanoseconds> values;
  for (std::size_t i = 0; i < count; ++i) {
    values.clear();
    for (const ProfilePhase& phase : phases) values.push_back(pick(phase)[i]);
    result[i] = spread_of(values).median;
  }
  return result;
}

[[noreturn]] void fail_interrupted() {
  fail(ErrorKind::kSystem, "interrupted");
}

void check_count(const char* field, std::size_t count, std::size_t expected) {
  if (count != expected) fail_input("{}: has {} entries; expected {}", field, count, expected);
}

void check_range(const char* field, const std::vector<std::int64_t>& values, std::int64_t most) {
  for (const std::int64_t value : values) {
    if (value < 0 || value > most) {
      fail_input("{}: has {}; expected a number from 0 to {}", field, value, most);
    }
  }
}

// Groups of ops that must be together go to any device: what is sent, is sent as in a real step.
// After as many turns as there are devices, each op was on each.
Placement scattered(const Graph& graph, const Cluster& cluster, int seed, DeviceId turn) {
  Rng rng(static_cast<std::uint64_t>(seed));
  const Colocation colocation = find_colocation(graph);
  Placement placement(graph.num_ops(), 0);
  for (GroupId group = 0; group < colocation.num_groups(); ++group) {
    const auto drawn = static_cast<DeviceId>(rng.below(cluster.num_devices()));
    const auto device = static_cast<DeviceId>((drawn + turn) % cluster.num_devices());
    for (const OpId op : colocation.ops[group]) placement[op] = device;
  }
  return placement;
}

}  // namespace

Profiler::Profiler(std::shared_ptr<const Graph> graph, std::shared_ptr<const Cluster> cluster,
                   ProfileSettings settings)
    : graph_(std::move(graph)), cluster_(std::move(cluster)), settings_(settings) {
  std::set<std::string> seen;
  for (DeviceId id = 0; id < cluster_->num_devices(); ++id) {
    const std::string& kind = cluster_->device(id).kind;
    if (seen.insert(kind).second) kinds_.emplace_back(kind, id);
  }
  for (OpId op = 0; op < graph_->num_ops(); ++op) {
    num_timed_ += graph_->is_source(op) || graph_->is_view(op) ? 0 : 1;
  }
}

void Profiler::check(const std::vector<ProfilePhase>& phases) const {
  const auto num_ops = static_cast<std::size_t>(graph_->num_ops());
  // So that sums over all ops do not overflow.
  const Nanoseconds most = std::numeric_limits<Nanoseconds>::max() / 2 /
                           static_cast<Nanoseconds>(std::max<std::size_t>(1, num_ops));
  for (std::size_t i = 0; i < phases.size(); ++i) {
    with_context(fmt::format("phase {}", i + 1), [&] {
      const ProfilePhase& phase = phases[i];
      check_range("reference_ns", {phase.reference}, most);
      check_count("kinds", phase.kinds.size(), kinds_.size());
      for (const ProfilePhase::Kind& kind : phase.kinds) {
        check_range("step_ns", {kind.step}, most);
        check_count("ops_ns", kind.ops.size(), num_ops);
        check_range("ops_ns", kind.ops, most);
        check_count("temporary_bytes", kind.temporary.size(), num_ops);
        check_range("temporary_bytes", kind.temporary, limits::kTensorBytes);
        if (!kind.busy_ops.empty()) check_count("busy_ops_ns", kind.busy_ops.size(), num_ops);
        check_range("busy_ops_ns", kind.busy_ops, most);
      }
      check_count("links", phase.links.size(), cluster_->spec().links.size());
      for (const auto& samples : phase.links) {
        for (const LinkSample& sample : samples) {
          check_range("links", {sample.bytes}, limits::kTensorBytes);
          check_range("links", {sample.time}, most);
        }
      }
    });
  }
}

int Profiler::steps_of_phase() const {
  const bool several = cluster_->num_devices() > 1;
  auto runs = static_cast<int>(kinds_.size());
  for (const auto& [kind, device] : kinds_) runs += is_gpu(cluster_->device(device)) ? 1 : 0;
  if (several && settings_.busy && !has_gpu()) ++runs;
  if (several && worth_scattering()) runs += static_cast<int>(turns());
  return runs * (settings_.measure.warm_up + settings_.measure.steps);
}

void ProfileProgress::begin_phase(int number) {
  phase = number;
  steps = 0;
}

void ProfileProgress::begin_proposal(int number) {
  proposal = number;
  steps = 0;
}

std::string Profiler::describe(const ProfileProgress& progress) const {
  if (progress.phase == settings_.phases) {
    return fmt::format("for the links: proposal {} of at most {}, {} steps",
                       progress.proposal.load(), settings_.proposals, progress.steps.load());
  }
  return fmt::format("phase {} of {}: step {} of {}", progress.phase.load() + 1, settings_.phases,
                     progress.steps.load(), steps_of_phase());
}

Measurement Profiler::measure_or_throw(Laboratory& laboratory,
                                       const std::shared_ptr<const Graph>& graph,
                                       const Placement& placement, const std::string& what) const {
  Measurement measured = laboratory.measure(graph, placement, {}, settings_.measure);
  if (measured.interrupted) fail_interrupted();
  if (measured.failure) fail(ErrorKind::kSystem, "{}: {}", what, measured.failure->text);
  return measured;
}

ProfilePhase Profiler::measure(Laboratory& laboratory, int phase) const {
  ProfilePhase found;
  for (const auto& [kind, device] : kinds_) {
    Measurement alone =
        measure_or_throw(laboratory, graph_, Placement(graph_->num_ops(), device),
                         fmt::format("the step on '{}'", cluster_->device(device).name));
    if (is_gpu(cluster_->device(device))) measure_gpu_ops(laboratory, device, alone);
    found.kinds.push_back({.step = alone.step().median,
                           .ops = std::move(alone.op_times),
                           .temporary = std::move(alone.temporary)});
  }
  if (cluster_->num_devices() > 1) {
    if (settings_.busy && !has_gpu()) measure_busy(laboratory, found);
    found.links = measure_links(laboratory);
    if (worth_scattering()) measure_scattered(laboratory, phase, found);
  }
  found.links.resize(cluster_->spec().links.size());
  const std::optional<Nanoseconds> reference = laboratory.reference_step();
  if (!reference) fail_interrupted();
  found.reference = *reference;
  return found;
}

// Ops of a GPU, launched one by one with events between them, take their shares of the step in
// which they are launched together.
void Profiler::measure_gpu_ops(Laboratory& laboratory, DeviceId device, Measurement& step) const {
  MeasureSettings settings = settings_.measure;
  settings.gpu_launch = exec::GpuLaunch::kTimed;
  settings.warm_up = std::max(settings.warm_up, 2);  // the first two steps have no times
  Measurement timed =
      laboratory.measure(graph_, Placement(graph_->num_ops(), device), {}, settings);
  if (timed.failure) fail(ErrorKind::kSystem, "timing ops: {}", timed.failure->text);
  const auto sum = static_cast<double>(std::max<Nanoseconds>(1, sum_of(timed.op_times)));
  const double scale = static_cast<double>(step.step().median) / sum;
  for (OpId op = 0; op < graph_->num_ops(); ++op) {
    step.op_times[op] = std::llround(static_cast<double>(timed.op_times[op]) * scale);
  }
  step.temporary = std::move(timed.temporary);
}

void Profiler::measure_busy(Laboratory& laboratory, ProfilePhase& phase) const {
  const auto all = copies_of(*graph_, cluster_->num_devices());
  Placement placement(all->num_ops());
  for (OpId op = 0; op < all->num_ops(); ++op) {
    placement[op] = static_cast<DeviceId>(op / graph_->num_ops());
  }
  const Measurement busy =
      measure_or_throw(laboratory, all, placement, "a step on every device at once");
  for (std::size_t i = 0; i < kinds_.size(); ++i) {
    const auto begin =
        busy.op_times.begin() + static_cast<std::ptrdiff_t>(kinds_[i].second) * graph_->num_ops();
    phase.kinds[i].busy_ops.assign(begin, begin + graph_->num_ops());
  }
}

// What is sent within steps is measured for links. With a GPU, every op is executed on every device
// in turn.
void Profiler::measure_scattered(Laboratory& laboratory, int seed, ProfilePhase& phase) const {
  if (has_gpu()) {
    for (ProfilePhase::Kind& kind : phase.kinds) kind.busy_ops = kind.ops;
  }
  for (DeviceId turn = 0; turn < turns(); ++turn) {
    const Placement placement = scattered(*graph_, *cluster_, seed, turn);
    const Measurement step =
        measure_or_throw(laboratory, graph_, placement, "a step on all devices");
    add_sent(step, phase.links);
    for (std::size_t i = 0; has_gpu() && i < kinds_.size(); ++i) {
      for (OpId op = 0; op < graph_->num_ops(); ++op) {
        const bool here = placement[op] == kinds_[i].second && step.op_times[op] > 0;
        if (here) phase.kinds[i].busy_ops[op] = step.op_times[op];
      }
    }
  }
}

bool Profiler::has_gpu() const {
  return std::any_of(kinds_.begin(), kinds_.end(),
                     [&](const auto& kind) { return is_gpu(cluster_->device(kind.second)); });
}

// Links that are slowed down are what they say, and scattered steps over them take minutes.
bool Profiler::worth_scattering() const {
  const auto& links = cluster_->spec().links;
  const bool some =
      std::any_of(links.begin(), links.end(), [](const LinkRule& rule) { return !rule.throttled; });
  return some && cluster_->fully_linked();
}

DeviceId Profiler::turns() const {
  return has_gpu() ? cluster_->num_devices() : DeviceId{1};
}

void Profiler::learn_transfers(Laboratory& laboratory, Profile& profile,
                               const std::function<void(int)>& proposed) const {
  // Each placement is executed several times over.
  MeasureSettings settings = settings_.measure;
  settings.warm_up = std::min(settings.warm_up, 4);
  settings.steps = (settings.steps + 1) / 2;
  const auto execute = [&](const Problem& problem, const Placement& placement,
                           const Schedule& schedule) -> std::optional<Nanoseconds> {
    const Measurement step = laboratory.measure(
        graph_, placement, order_of(problem, placement, schedule, false), settings);
    if (step.interrupted) fail_interrupted();
    if (step.failure) return std::nullopt;
    return step.step().median;
  };
  const auto slower = [&] {
    const std::optional<Nanoseconds> reference = laboratory.reference_step();
    if (!reference) fail_interrupted();
    return static_cast<double>(*reference) /
           static_cast<double>(std::max<Nanoseconds>(1, profile.reference));
  };
  learn_transfer_costs(
      execute, {.rounds = settings_.proposals, .proposed = proposed, .slower = slower}, profile);
}

std::vector<std::vector<LinkSample>> Profiler::measure_links(Laboratory& laboratory) const {
  std::vector<std::vector<LinkSample>> samples(cluster_->spec().links.size());
  constexpr Bytes kSmallest = 4096;
  constexpr Bytes kLargest = Bytes{16} << 20;
  constexpr int kRepeats = 3;
  for (std::size_t rule = 0; rule < samples.size(); ++rule) {
    if (cluster_->spec().links[rule].throttled) continue;
    for (DeviceId from = 0; from < cluster_->num_devices() && samples[rule].empty(); ++from) {
      for (DeviceId to = 0; to < cluster_->num_devices() && samples[rule].empty(); ++to) {
        if (from == to || cluster_->link(from, to) == nullptr ||
            rule_of_link(cluster_->spec(), from, to) != rule)
          continue;
        for (Bytes bytes = kSmallest; bytes <= kLargest; bytes *= 4) {
          for (int i = 0; i < kRepeats; ++i) {
            samples[rule].push_back({bytes, laboratory.send(from, to, bytes)});
          }
        }
      }
    }
  }
  return samples;
}

void Profiler::add_sent(const Measurement& measurement,
                        std::vector<std::vector<LinkSample>>& links) const {
  for (std::size_t i = 0; i < measurement.transfers.size(); ++i) {
    const exec::Transfer& sent = measurement.transfers[i];
    const std::size_t rule = rule_of_link(cluster_->spec(), sent.from, sent.to);
    if (cluster_->spec().links[rule].throttled) continue;
    // What a GPU sends also waits for the op that makes it.
    if (is_gpu(cluster_->device(sent.from))) continue;
    links[rule].push_back({sent.bytes, measurement.transfer_times[i], /*within_step=*/true});
  }
}

KindProfile Profiler::combine_kind(std::size_t kind, const std::vector<ProfilePhase>& phases,
                                   std::vector<Nanoseconds>& alone,
                                   std::vector<Nanoseconds>& busy) const {
  KindProfile profile{.kind = kinds_[kind].first,
                      .device = cluster_->device(kinds_[kind].second).name};
  alone = medians_over(
      phases, graph_->num_ops(), [&](const ProfilePhase& phase) -> const auto& {
        return phase.kinds[kind].ops;
      });
  std::vector<Nanoseconds> steps;
  std::vector<Nanoseconds> gaps;
  for (const ProfilePhase& phase : phases) {
    const ProfilePhase::Kind& found = phase.kinds[kind];
    steps.push_back(found.step);
    gaps.push_back(std::max<Nanoseconds>(0, found.step - sum_of(found.ops)) /
                   std::max<std::int64_t>(1, num_timed_));
  }
  profile.step = spread_of(steps);
  profile.gap = spread_of(gaps).median;
  profile.ops = sum_of(alone);
  const bool has_busy = std::all_of(phases.begin(), phases.end(), [&](const ProfilePhase& phase) {
    return !phase.kinds[kind].busy_ops.empty();
  });
  if (!has_busy) return profile;
  busy = medians_over(
      phases, graph_->num_ops(), [&](const ProfilePhase& phase) -> const auto& {
        return phase.kinds[kind].busy_ops;
      });
  profile.busy_ratio = static_cast<double>(sum_of(busy)) /
                       static_cast<double>(std::max<Nanoseconds>(1, profile.ops));
  return profile;
}

LinkProfile Profiler::combine_link(std::size_t rule,
                                   const std::vector<ProfilePhase>& phases) const {
  const LinkRule& link = cluster_->spec().links[rule];
  LinkProfile profile{.from = link.from, .to = link.to, .throttled = link.throttled};
  profile.fit = {.latency = link.latency, .bandwidth = link.bandwidth};
  std::vector<LinkSample> samples;
  for (const ProfilePhase& phase : phases) {
    samples.insert(samples.end(), phase.links[rule].begin(), phase.links[rule].end());
  }
  if (samples.empty()) return profile;
  profile.fit = fit_link(samples);
  profile.measured = true;
  return profile;
}

Profile Profiler::combine(const std::vector<ProfilePhase>& phases) const {
  Profile profile{.cluster = cluster_->spec()};
  std::vector<std::vector<Nanoseconds>> times(2 * kinds_.size());
  std::vector<NamedTimes> named;
  for (std::size_t i = 0; i < kinds_.size(); ++i) {
    profile.kinds.push_back(combine_kind(i, phases, times[2 * i], times[2 * i + 1]));
    const KindProfile& found = profile.kinds.back();
    named.emplace_back(found.kind, &times[2 * i]);
    if (found.busy_ratio > 0) named.emplace_back(busy_name(found.kind), &times[2 * i + 1]);
    for (Device& device : profile.cluster.devices) {
      if (device.kind == found.kind) device.gap = found.gap;
    }
  }
  // A graph has one figure for all devices: the largest.
  std::vector<Bytes> temporary(graph_->num_ops(), 0);
  for (const ProfilePhase& phase : phases) {
    for (const ProfilePhase::Kind& kind : phase.kinds) {
      for (OpId op = 0; op < graph_->num_ops(); ++op) {
        temporary[op] = std::max(temporary[op], kind.temporary[op]);
      }
    }
  }
  profile.graph = with_measured(*graph_, named, temporary);
  for (std::size_t rule = 0; rule < profile.cluster.links.size(); ++rule) {
    profile.links.push_back(combine_link(rule, phases));
    profile.cluster.links[rule].latency = profile.links[rule].fit.latency;
    profile.cluster.links[rule].bandwidth = profile.links[rule].fit.bandwidth;
  }
  std::vector<Nanoseconds> references;
  for (const ProfilePhase& phase : phases) references.push_back(phase.reference);
  profile.reference = spread_of(references).median;
  const auto [fastest, slowest] =
      std::minmax_element(phases.begin(), phases.end(),
                          [](const auto& a, const auto& b) { return a.reference < b.reference; });
  profile.drift = static_cast<double>(slowest->reference) /
                  static_cast<double>(std::max<Nanoseconds>(1, fastest->reference));
  return profile;
}

}  // namespace emplace
