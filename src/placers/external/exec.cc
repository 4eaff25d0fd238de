// A placer that is a program of somebody else's, in any language, spoken to in JSON lines over its
// standard input and output (docs/external.md): it is told the problem, asks for evaluations of
// placements, and says its answer. The budget is kept here, whatever the program does.
#include <algorithm>
#include <chrono>

#include "base/error.h"
#include "base/limits.h"
#include "base/parallel.h"

#include "placer/memory.h"
#include "placer/placer.h"

#include "placers/external/support/line_process.h"
#include "placers/external/support/protocol.h"

namespace emplace {
namespace {

class Exec final : public Placer {
 public:
  struct Options {
    std::string command;
    double silence = 600;
    double grace = 10;
  };
  static OptionSchema<Options> schema() {
    return OptionSchema<Options>{}
        .text("command", &Options::command, "a program with its arguments",
              "What to start, without a shell; e.g. command=python3 my_placer.py. Needed.")
        .real("silence", &Options::silence, 0.001, 1e6,
              "Seconds that it may compute without a word before it is taken to hang.")
        .real("grace", &Options::grace, 0.001, 1e6,
              "Seconds that it has for its answer once the budget is spent.");
  }
  explicit Exec(const Options& options) : options_(options) {}

  PlaceResult place(PlaceContext& context, const Budget& budget, Rng rng) override;

 private:
  Options options_;
};

class ExecRun {
 public:
  ExecRun(const std::string& command, double silence, double grace, PlaceContext& context,
          const Budget& budget)
      : command_(command),
        silence_(silence),
        grace_(grace),
        context_(context),
        budget_(budget),
        process_(command_words(command)) {}

  PlaceResult run(std::uint64_t seed) {
    const std::string problem = problem_line(context_, budget_, seed);
    // Of answers that it does not read; it may be late with the problem.
    const std::size_t most_unread = problem.size() + limits::kPlacerUnread;
    process_.send(problem);
    std::string line;
    while (true) {
      heard_ = Clock::now();
      switch (process_.receive(line, [this] { return out_of_patience(); })) {
        case LineProcess::Got::kEnd:
          return best_or_fail(process_.how_it_ended());
        case LineProcess::Got::kTooLong:
          return best_or_fail(fmt::format("said a line that does not end within {} MiB",
                                          limits::kPlacerLine >> 20));
        case LineProcess::Got::kNothing:
          return best_or_fail(
              spent_ ? fmt::format("said no answer within {} s of being stopped", grace_)
                     : fmt::format("said nothing for {} s", silence_));
        case LineProcess::Got::kLine:
          break;
      }
      try {
        const ExternalRequest request = read_request(line, context_.problem());
        if (request.kind == ExternalRequest::Kind::kPlace) return finished(request);
        process_.send(evaluated(request));
        if (process_.unsent() > most_unread)
          return best_or_fail(fmt::format("asks and leaves more than {} MiB of answers unread",
                                          limits::kPlacerUnread >> 20));
      } catch (const Error& error) {
        constexpr std::size_t kShown = 60;
        const bool cut = line.size() > kShown;
        return best_or_fail(
            fmt::format("said '{}{}': {}", line.substr(0, kShown), cut ? "..." : "", error.what()));
      }
    }
  }

 private:
  using Clock = std::chrono::steady_clock;

  static double seconds_since(Clock::time_point time) {
    return std::chrono::duration<double>(Clock::now() - time).count();
  }

  bool out_of_patience() {
    if (!spent_ && budget_.spent(context_.evaluations())) spent_ = Clock::now();
    return seconds_since(heard_) > silence_ || (spent_ && seconds_since(*spent_) > grace_);
  }

  // Why no more placements are evaluated; empty where they are.
  std::string_view stop() const {
    if (!budget_.spent(context_.evaluations())) return {};
    if (budget_.cancelled != nullptr && budget_.cancelled->load()) return "interrupted";
    const bool evaluations = budget_.evaluations && context_.evaluations() >= *budget_.evaluations;
    return evaluations ? "evaluations" : "time";
  }

  // In as many parts as there are threads, so that the clock is looked at between them.
  std::string evaluated(const ExternalRequest& request) {
    std::vector<ExternalValue> values;
    const ReadyOrder order(context_.problem(), request.schedule);
    while (values.size() < request.devices.size() && stop().empty()) {
      const std::size_t first = values.size();
      std::size_t count = std::min<std::size_t>(request.devices.size() - first,
                                                static_cast<std::size_t>(16 * budget_.threads));
      if (budget_.evaluations) {
        const std::int64_t left = *budget_.evaluations - context_.evaluations();
        count = std::min(count, static_cast<std::size_t>(left));
      }
      values.resize(first + count);
      std::vector<Placement> placements(count);
      parallel_for(count, budget_.threads, [&](std::size_t i) {
        values[first + i] = value_of(request.devices[first + i], order, placements[i]);
      });
      for (std::size_t i = 0; i < count; ++i) {
        if (values[first + i].error) continue;
        offer(std::move(placements[i]), request.schedule, values[first + i].value);
      }
    }
    const bool all = values.size() == request.devices.size();
    return values_line(values, request.many, context_.objective(), all ? "" : stop());
  }

  ExternalValue value_of(const std::vector<std::int64_t>& devices, const ReadyOrder& order,
                         Placement& placement) {
    ExternalValue value;
    try {
      placement = read_devices(devices, context_.problem());
      value.value = context_.evaluator().evaluate(placement, order, value.peaks);
    } catch (const Error& error) {
      context_.evaluator().count(1);
      value.error = error.what();
    }
    return value;
  }

  void offer(Placement placement, const Schedule& schedule, const Evaluation& value) {
    const std::optional<Evaluation> best = context_.incumbent().value();
    if (best && !(value < *best)) return;
    context_.incumbent().offer({std::move(placement), schedule, value, "exec"});
  }

  // What it says in the end, or the best that it has asked about, whichever is better.
  PlaceResult finished(const ExternalRequest& request) {
    if (!request.devices.empty()) {
      Placement placement = read_devices(request.devices[0], context_.problem());
      const Evaluation value = context_.evaluator().evaluate(placement, request.schedule);
      offer(std::move(placement), request.schedule, value);
    } else if (!context_.incumbent().best()) {
      fail_input("nothing was evaluated, so there is no best placement");
    }
    process_.finish(grace_);
    return best();
  }

  PlaceResult best() {
    Solution best = *context_.incumbent().best();
    PlaceResult result{.placement = std::move(best.placement),
                       .schedule = std::move(best.schedule)};
    note_shortage(context_.problem(), context_.evaluator(), result);
    return result;
  }

  PlaceResult best_or_fail(const std::string& what_happened) {
    if (!context_.incumbent().best()) {
      fail_input(
          "'{}' {}; expected lines such as {{\"evaluate\": [0, 1, ...]}} and, in the end, "
          "{{\"place\": [0, 1, ...]}} with a device for each of {} groups",
          command_, what_happened, context_.problem().num_groups());
    }
    PlaceResult result = best();
    result.notes.push_back(
        fmt::format("'{}' {}; the best of the placements that it asked about is the answer",
                    command_, what_happened));
    return result;
  }

  const std::string& command_;
  double silence_;
  double grace_;
  PlaceContext& context_;
  Budget budget_;
  LineProcess process_;
  Clock::time_point heard_ = Clock::now();
  std::optional<Clock::time_point> spent_ = std::nullopt;  // since when the budget is
};

PlaceResult Exec::place(PlaceContext& context, const Budget& budget, Rng rng) {
  ExecRun run(options_.command, options_.silence, options_.grace, context, budget.or_default());
  return run.run(rng.next() >> 32);  // a number that every language can hold
}

}  // namespace

EMPLACE_PLACER(exec, Exec, .family = "external",
               .summary = "A program of yours that speaks JSON lines (docs/external.md).",
               .reference = "your own", .randomized = true)

}  // namespace emplace
