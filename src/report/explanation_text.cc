#include <algorithm>
#include <map>
#include <numeric>

#include <fmt/format.h>

#include "base/units.h"

#include "report/alternatives.h"
#include "report/explanation.h"
#include "report/prose.h"
#include "report/shortfall.h"
#include "report/stream_report.h"
#include "report/whole_modules.h"

namespace emplace {
namespace {

using Kind = ChainSegment::Kind;

std::string percent_of_step(Nanoseconds part, Nanoseconds whole) {
  return fmt::format(
      "{:.0f} %", whole == 0 ? 0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

// "layer.0-11" where only a number differs, else "conv1 .. fc".
std::string from_to(std::string_view first, std::string_view last) {
  const std::size_t digits = last.find_last_not_of("0123456789") + 1;
  const bool counts = digits < last.size() && first.substr(0, digits) == last.substr(0, digits);
  return counts ? fmt::format("{}-{}", first, last.substr(digits))
                : fmt::format("{} .. {}", first, last);
}

class Writer {
 public:
  Writer(const Explanation& explanation, const Assessment& assessment)
      : explanation_(explanation),
        assessment_(assessment),
        graph_(assessment.problem().graph()),
        cluster_(assessment.problem().cluster()) {}

  std::string write() {
    if (!assessment_.fits()) {
      begin("What is short");
      text_ += describe_shortfall(assessment_) + advise_on_shortfall(explanation_, assessment_);
    }
    begin(assessment_.throughput ? "What sets the period" : "What limits the step");
    if (assessment_.throughput) {
      write_loads();
      text_ += explain_stream(assessment_);
    } else {
      write_chain();
    }
    write_full_devices();
    begin("What is where");
    write_contents();
    write_cut_modules();
    if (explanation_.whole_modules) {
      begin("Against op by op");
      line("{}", describe(*explanation_.whole_modules));
    }
    begin("Against one device");
    write_one_device();
    return std::move(text_) + describe_alternatives(explanation_, assessment_);
  }

 private:
  void begin(const std::string& title) { text_ += fmt::format("\n{}\n", title); }
  template <class... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    text_ += wrapped(fmt::format(format, std::forward<Args>(args)...));
  }

  const std::string& device(DeviceId id) const { return cluster_.device(id).name; }

  std::string op(OpId id) const {
    const std::string& module = explanation_.modules.names[explanation_.modules.of_op[id]];
    std::string name(graph_.op_name(id));
    if (module.empty() || name.find(module) != std::string::npos) return name;
    return fmt::format("{} of {}", name, module);
  }

  // ---- what limits

  void write_chain() {
    const CriticalChain& chain = explanation_.chain;
    std::vector<std::pair<Nanoseconds, std::string>> parts{
        {chain.compute, "computing"},
        {chain.transfer, "in transfers"},
        {chain.device_wait, "waiting for busy devices"},
        {chain.channel_wait, "waiting for busy channels"},
        {chain.idle, "in gaps between ops or transfers"}};
    std::stable_sort(parts.begin(), parts.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    std::vector<std::string> said;
    for (const auto& [time, what] : parts) {
      if (200 * time < assessment_.timeline.step || time == 0) continue;
      said.push_back(fmt::format("{} {} ({})", percent_of_step(time, assessment_.timeline.step),
                                 what, format_time(time)));
    }
    if (said.empty()) return line("nothing in it takes time");
    line("the chain of ops that ends last: {}", join_words(said));
    if (!assessment_.optimal()) write_verdict();
    write_largest(Kind::kCompute, "longest ops on the chain");
    write_largest(Kind::kTransfer, "longest transfers on it");
    if (explanation_.used.size() > 1) write_waits();
  }

  Nanoseconds least_busy() const {
    Nanoseconds least = assessment_.timeline.step;
    for (const DeviceUse& use : assessment_.timeline.devices) least = std::min(least, use.busy);
    return least;
  }

  // What would make it faster, in one sentence.
  void write_verdict() {
    const Nanoseconds step = assessment_.timeline.step;
    const Load busiest = *std::find_if(explanation_.loads.begin(), explanation_.loads.end(),
                                       [](const Load& load) { return load.is_device; });
    const CriticalChain& chain = explanation_.chain;
    if (explanation_.used.size() == 1) {
      if (!split_is_faster()) line("one device does everything, so its own speed is the limit");
    } else if (20 * least_busy() >= 17 * step && 4 * chain.compute < 3 * step) {
      line("all devices work at least {} of the step: faster ones, or more of them, would help",
           percent_of_step(least_busy(), step));
    } else if (10 * busiest.time >= 9 * step) {
      line("{} works {} of the step: little but moving work from it could help", busiest.name,
           percent_of_step(busiest.time, step));
    } else if (4 * (chain.transfer + chain.channel_wait) >= step) {
      line("moving tensors between devices takes {} of it: faster links, or fewer cuts, would help",
           percent_of_step(chain.transfer + chain.channel_wait, step));
    } else if (4 * chain.compute >= 3 * step) {
      line("these ops need each other's results, so more devices would not make them faster");
    } else {
      Nanoseconds busy = 0;
      for (const DeviceUse& use : assessment_.timeline.devices) busy += use.busy;
      line("on average {:.1f} of {} devices work at a time; {}, the busiest, works {} of the step",
           static_cast<double>(busy) / static_cast<double>(step), explanation_.used.size(),
           busiest.name, percent_of_step(busiest.time, step));
    }
  }

  void write_largest(Kind kind, const std::string& title) {
    constexpr std::size_t kShown = 3;
    std::vector<const ChainSegment*> found;
    for (const ChainSegment& segment : explanation_.chain.segments) {
      if (segment.kind == kind && 100 * segment.length() >= assessment_.timeline.step) {
        found.push_back(&segment);
      }
    }
    if (found.empty()) return;
    std::stable_sort(found.begin(), found.end(),
                     [](const auto* a, const auto* b) { return a->length() > b->length(); });
    std::vector<std::string> said;
    for (std::size_t i = 0; i < std::min(kShown, found.size()); ++i) {
      said.push_back(kind == Kind::kCompute ? op_part(*found[i]) : transfer_part(*found[i]));
    }
    line("{}: {}", title, fmt::join(said, "; "));
  }

  std::string op_part(const ChainSegment& segment) const {
    return fmt::format("{} on {} ({})", op(segment.op), device(assessment_.placement[segment.op]),
                       format_time(segment.length()));
  }
  std::string transfer_part(const ChainSegment& segment) const {
    const Transfer& transfer = assessment_.timeline.transfers[segment.transfer];
    return fmt::format("{} from {} to {} ({}, {})", op(graph_.producer(transfer.tensor)),
                       device(transfer.from), device(transfer.to),
                       format_bytes(graph_.bytes(transfer.tensor)), format_time(segment.length()));
  }

  // The devices and channels that the chain waited for longest.
  void write_waits() {
    constexpr std::size_t kShown = 4;
    std::map<std::string, Nanoseconds> waits;
    for (const ChainSegment& segment : explanation_.chain.segments) {
      if (segment.kind == Kind::kDeviceWait) {
        waits[device(assessment_.placement[segment.op])] += segment.length();
      } else if (segment.kind == Kind::kChannelWait) {
        const ChannelId channel = assessment_.timeline.transfers[segment.transfer].channel;
        waits["channel " + cluster_.channel_name(channel)] += segment.length();
      }
    }
    std::vector<std::pair<Nanoseconds, std::string>> longest;
    for (const auto& [name, time] : waits) {
      if (20 * time >= assessment_.timeline.step) longest.emplace_back(time, name);
    }
    std::stable_sort(longest.begin(), longest.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    longest.resize(std::min(kShown, longest.size()));
    std::vector<std::string> said;
    for (const auto& [time, name] : longest) {
      said.push_back(fmt::format("{} ({})", name, format_time(time)));
    }
    if (!said.empty()) line("it waited longest for {}", join_words(said));
  }

  void write_loads() {
    const std::vector<Load>& all = explanation_.loads;
    line("{} {} sets it: {} of work a step", all[0].is_device ? "device" : "channel", all[0].name,
         format_time(all[0].time));
    if (all.size() > 1 && all[1].time > 0) {
      line("next is {} {} with {} ({} of the period)", all[1].is_device ? "device" : "channel",
           all[1].name, format_time(all[1].time), percent_of_step(all[1].time, assessment_.time()));
    }
  }

  void write_full_devices() {
    std::vector<std::string> full;
    for (const DeviceId id : explanation_.used) {
      const Bytes capacity = cluster_.device(id).memory;
      const Bytes used = assessment_.used(id);
      if (capacity == kUnlimited || used > capacity || used < capacity / 10 * 9) continue;
      full.push_back(
          fmt::format("{} ({} of {})", device(id), format_bytes(used), format_bytes(capacity)));
    }
    constexpr std::size_t kShown = 4;
    if (full.empty()) return;
    const std::size_t more = full.size() - std::min(kShown, full.size());
    full.resize(full.size() - more);
    if (more > 0) full.push_back(fmt::format("{} more", more));
    line("memory is nearly full on {}", join_words(full));
  }

  // ---- what is where

  void write_contents() {
    constexpr std::size_t kShown = 16;
    std::size_t width = 0;
    for (DeviceId id = 0; id < cluster_.num_devices(); ++id) {
      width = std::max(width, device(id).size());
    }
    for (std::size_t i = 0; i < std::min(kShown, explanation_.used.size()); ++i) {
      const DeviceContents& held = explanation_.contents[explanation_.used[i]];
      line("{:<{}}  {}: {:.0f} % of the work, {} of parameters and state",
           device(explanation_.used[i]), width, modules(held), 100 * held.work,
           format_bytes(held.resident));
    }
    if (explanation_.used.size() > kShown)
      line("and {} more",
           count_of(static_cast<std::int64_t>(explanation_.used.size() - kShown), "device"));
    std::vector<std::string> unused;
    for (DeviceId id = 0; id < cluster_.num_devices(); ++id) {
      if (!std::binary_search(explanation_.used.begin(), explanation_.used.end(), id))
        unused.push_back(device(id));
    }
    if (unused.size() > kShown) {
      line("{} devices are not used", unused.size());
    } else if (!unused.empty()) {
      line("not used: {}", fmt::join(unused, ", "));
    }
    if (uses_cpu(assessment_)) write_cpus();
  }

  // Where times are of steps that were executed on these devices, launches are in them.
  bool launches_are_measured() const {
    for (OpId op = 0; op < graph_.num_ops(); ++op) {
      if (graph_.is_source(op) || graph_.is_view(op)) continue;
      if (cluster_.device(assessment_.placement[op]).runs_on.empty()) return false;
      if (graph_.measured_times(op).empty()) return false;
    }
    return true;
  }

  void write_cpus() {
    Bytes needed = 0;
    Bytes accelerators = 0;
    for (DeviceId id = 0; id < cluster_.num_devices(); ++id) {
      needed += assessment_.used(id);
      if (cluster_.is_cpu(id)) continue;
      const Bytes memory = cluster_.device(id).memory;
      accelerators =
          std::min(kUnlimited, accelerators + std::min(memory, kUnlimited - accelerators));
    }
    if (!launches_are_measured()) {
      line(
          "CPUs also start the accelerators' kernels, which is not counted: expect their ops, and "
          "what waits for them, to take longer");
    }
    if (needed <= accelerators) {
      line(
          "the accelerators together have memory for all of it: where such steps were executed, a "
          "CPU beside them gained at most 4 %, and sometimes lost up to 11 %");
    }
  }

  void write_cut_modules() {
    constexpr std::size_t kShown = 4;
    const std::vector<CutModule>& cut = explanation_.cut;
    if (explanation_.used.size() < 2 || !explanation_.modules.named) return;
    if (cut.empty()) return line("every module is on one device");
    std::vector<std::string> said;
    for (std::size_t i = 0; i < std::min(kShown, cut.size()); ++i) {
      std::vector<std::string> devices;
      for (const DeviceId id : cut[i].devices) devices.push_back(device(id));
      said.push_back(fmt::format("{} ({})", cut[i].name, fmt::join(devices, ", ")));
    }
    if (cut.size() > kShown) said.push_back(fmt::format("{} more", cut.size() - kShown));
    line("cut between devices: {} of {} modules: {}", cut.size(), explanation_.modules.size(),
         join_words(said));
  }

  // The ones with most of the device's work, in the order of the model.
  std::string modules(const DeviceContents& held) const {
    constexpr std::size_t kShown = 8;
    constexpr double kWorthNaming = 0.05;
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < held.modules.size(); ++i) {
      const HeldModules& own = held.modules[i];
      if (own.whole() || own.share >= kWorthNaming) order.push_back(i);
    }
    // Bits of everything: then all of them, of which the largest are shown.
    if (order.empty()) {
      order.resize(held.modules.size());
      std::iota(order.begin(), order.end(), std::size_t{0});
    }
    const std::size_t worth_naming = order.size();
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return held.modules[a].work > held.modules[b].work;
    });
    order.resize(std::min(kShown, order.size()));
    std::sort(order.begin(), order.end());
    std::vector<std::string> said;
    for (const std::size_t i : order) said.push_back(range(held.modules[i]));
    const std::size_t more = worth_naming - order.size();
    return fmt::format("{}{}", fmt::join(said, ", "),
                       more == 0 ? "" : fmt::format(" and {} more", more));
  }

  static std::string range(const HeldModules& held) {
    std::string text = held.first.empty() ? "ops of no module" : held.first;
    if (held.count > 1) text = from_to(held.first, held.last);
    if (held.whole()) return text;
    return fmt::format("{} ({:.0f} % of {})", text, 100 * held.share,
                       held.count > 1 ? "them" : "it");
  }

  // ---- one device

  void write_one_device() {
    if (explanation_.used.size() == 1) return write_split();
    if (!explanation_.fastest_device) return line("not every op may be on the same device");
    const SingleDevice& fastest = *explanation_.fastest_device;
    if (!fastest.value.fits()) {
      const Bytes capacity = cluster_.device(fastest.device).memory;
      line("{} would need {} of its {}, {} more; with that memory it {}", device(fastest.device),
           format_bytes(fastest.used), format_bytes(capacity),
           format_bytes(fastest.used - capacity), compared(fastest.value.step));
    }
    if (explanation_.fitting_device) {
      line("{} alone {}", device(explanation_.fitting_device->device),
           compared(explanation_.fitting_device->value.step));
    } else {
      line("no device holds all of it");
    }
  }

  std::string compared(Nanoseconds time) const {
    const auto ratio = [](Nanoseconds a, Nanoseconds b) {
      return static_cast<double>(a) / static_cast<double>(std::max<Nanoseconds>(1, b));
    };
    if (time >= assessment_.time()) {
      return fmt::format("would take {}, {:.2f} times as long", format_time(time),
                         ratio(time, assessment_.time()));
    }
    return fmt::format("would be faster: {}, {:.2f} times as fast", format_time(time),
                       ratio(assessment_.time(), time));
  }

  void write_split() {
    if (!explanation_.best_split) return line("this is one device");
    if (split_is_faster()) {
      return line("this is one device, but a split fits and is faster: {} takes {}",
                  explanation_.best_split->placer,
                  format_time(explanation_.best_split->value.step));
    }
    line("this is one device; the best split that was tried, by {}, takes {}{}",
         explanation_.best_split->placer, format_time(explanation_.best_split->value.step),
         explanation_.best_split->value.fits() ? "" : " and does not fit");
  }

  bool split_is_faster() const {
    return explanation_.best_split && explanation_.best_split->value.fits() &&
           explanation_.best_split->value.step < assessment_.time();
  }

  const Explanation& explanation_;
  const Assessment& assessment_;
  const Graph& graph_;
  const Cluster& cluster_;
  std::string text_;
};

}  // namespace

std::string to_text(const Explanation& explanation, const Assessment& assessment) {
  return Writer(explanation, assessment).write();
}

}  // namespace emplace
