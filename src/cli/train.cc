// emplace train: one policy for many graphs and clusters, as a file that `place` begins with.
#include <mutex>

#include <fmt/core.h>

#include "base/error.h"
#include "base/options.h"
#include "base/parallel.h"
#include "base/read_bytes.h"

#include "placer/run.h"

#include "placers/all.h"

#include "cli/command.h"
#include "cli/exercises.h"
#include "cli/progress.h"
#include "io/file.h"
#include "learn/general/canonical.h"
#include "learn/general/kinds.h"
#include "learn/general/policy_file.h"
#include "learn/general/teacher.h"
#include "learn/nn/device.h"

namespace emplace::cli {
namespace {

struct Arguments {
  learn::TeacherSettings teacher;
  std::vector<std::string> graphs;
  std::vector<std::string> clusters;
  std::vector<double> memory;
  std::string imitate = "none";
  std::int64_t imitate_evaluations = 5000;
  std::string from;
  std::string output;
  std::string describe;
  std::uint64_t seed = 1;
  BudgetArguments budget;  // no evaluations
};

// What the progress line tells, written by the teacher and read by its thread.
class Blackboard {
 public:
  void write(std::string line) {
    const std::lock_guard lock(mutex_);
    line_ = std::move(line);
  }
  std::string read() {
    const std::lock_guard lock(mutex_);
    return line_;
  }

 private:
  std::mutex mutex_;
  std::string line_;
};

std::string describe(const learn::LessonReport& report) {
  std::string line = fmt::format("{} step {} of {}", report.stage, report.step, report.steps);
  if (report.stage == "imitation") {
    line += fmt::format(": examples at likelihood {:.3f}", report.likelihood);
  }
  if (report.stage == "practice") {
    line += fmt::format(": samples at {:.3f} of the reference, {:.0f} % fit", report.relative_time,
                        100 * report.fitting_share);
  }
  return line;
}

std::string card_of(const Arguments& arguments, std::size_t exercises) {
  const learn::TeacherSettings& teacher = arguments.teacher;
  return fmt::format(
      "policy: {}{}\nwidth {}, layers {}, superposition {}\ngraphs: {}\nclusters: {}\n"
      "memory on each device, of what a graph needs on one: {}\nexercises: {}\n"
      "steps: {} of the encoder, {} of imitation of {} ({} evaluations), {} of practice\n"
      "exercises in a step: {}, learning rate: {}\nseed: {}\n",
      teacher.kind, arguments.from.empty() ? "" : ", from " + arguments.from, teacher.network.width,
      teacher.network.layers, teacher.network.superposition, fmt::join(arguments.graphs, " "),
      fmt::join(arguments.clusters, " "),
      arguments.memory.empty() ? "as the cluster has it"
                               : fmt::format("{}", fmt::join(arguments.memory, ", ")),
      exercises, teacher.encoder_steps, teacher.imitation_steps, arguments.imitate,
      arguments.imitate_evaluations, teacher.steps, teacher.exercises_per_step,
      teacher.learning_rate, arguments.seed);
}

// The reference is what the expert does; the example, what the placer to imitate does.
learn::Exercise prepare(const NamedProblem& problem, const Arguments& arguments,
                        const Budget& whole) {
  learn::Exercise exercise;
  exercise.name = problem.name;
  exercise.evaluator = std::make_shared<Evaluator>(problem.problem);
  Budget budget = whole;
  budget.threads = 1;
  const auto run = [&](const std::string& spec) {
    Evaluator evaluator(exercise.evaluator->simulator());
    return run_placer(all_placers(), evaluator,
                      {.placer = MethodSpec::parse(spec), .seed = arguments.seed}, budget);
  };
  exercise.reference_seconds = static_cast<double>(run("expert").evaluation.step) * 1e-9;
  if (arguments.imitate == "none" || arguments.teacher.imitation_steps == 0) return exercise;
  budget.evaluations = arguments.imitate_evaluations;
  const RunResult result = with_context(problem.name, [&] { return run(arguments.imitate); });
  if (!result.evaluation.fits()) return exercise;
  const Placement ordered = learn::in_order(*problem.problem, result.result.placement);
  // Where links differ, devices that are alike are not quite.
  const bool worse =
      exercise.evaluator->evaluate(result.result.placement) < exercise.evaluator->evaluate(ordered);
  exercise.example = worse ? result.result.placement : ordered;
  return exercise;
}

// What would only be noticed after long preparations.
void check(const Arguments& arguments) {
  if (arguments.output.empty()) fail_option("--output is missing: expected a file to write");
  if (arguments.output.ends_with(".gz")) {
    fail_option("--output {}: policies are not compressed", arguments.output);
  }
  if (arguments.graphs.empty() || arguments.clusters.empty()) {
    fail_option("--graphs and --clusters are missing: expected what to train on");
  }
  const std::int64_t width = arguments.teacher.network.width;
  if (width % 2 != 0) fail_option("--width {}: expected an even number", width);
  if ((arguments.imitate == "none") != (arguments.teacher.imitation_steps == 0)) {
    fail_option("--imitate and --imitation-steps: expected both or neither");
  }
  if (arguments.imitate != "none") all_placers().make(MethodSpec::parse(arguments.imitate));
  require_writable(arguments.output);
  learn::require_device(arguments.teacher.device);
}

// The policy to begin from, whose network is then the one that is trained.
std::string read_start(Arguments& arguments) {
  if (arguments.from.empty()) return {};
  std::string bytes = read_bytes(arguments.from);
  const learn::PolicyFile file(bytes, arguments.from);
  if (file.kind() != arguments.teacher.kind) {
    fail_input("{}: a policy of {}; expected one of {}", arguments.from, file.kind(),
               arguments.teacher.kind);
  }
  arguments.teacher.network = file.network();
  return bytes;
}

void train(Arguments arguments, Session& session) {
  if (!arguments.describe.empty()) {
    fmt::print("{}", learn::PolicyFile(read_bytes(arguments.describe), arguments.describe).card());
    return;
  }
  check(arguments);
  const std::string from = read_start(arguments);
  const Budget budget = arguments.budget.make(session);
  Blackboard blackboard;
  Progress progress([&] { return blackboard.read(); });
  blackboard.write("reading graphs");
  const std::vector<NamedProblem> problems =
      cross(list_models(arguments.graphs), list_clusters(arguments.clusters), arguments.memory,
            budget.threads);
  blackboard.write(fmt::format("preparing {} exercises", problems.size()));
  std::vector<learn::Exercise> exercises(problems.size());
  parallel_for(problems.size(), budget.threads,
               [&](std::size_t i) { exercises[i] = prepare(problems[i], arguments, budget); });
  if (budget.spent(0)) {
    fail(ErrorKind::kSystem, "stopped before the first step: {} was not written", arguments.output);
  }
  const std::string card = card_of(arguments, problems.size());
  const learn::TeacherHooks hooks{
      .on_step = [&](const learn::LessonReport& report) { blackboard.write(describe(report)); },
      .save = [&](std::string_view bytes) { write_file(arguments.output, bytes); }};
  const learn::Taught taught = learn::teach(std::move(exercises), arguments.teacher, from, card,
                                            budget, Rng(arguments.seed), hooks);
  write_file(arguments.output, taught.policy);
  fmt::print("{} exercises, {} placements evaluated{}\nwrote the policy to {}\n", problems.size(),
             taught.evaluations, taught.whole ? "" : ", stopped before the last step",
             arguments.output);
}

}  // namespace

void add_train(Command& root, Session& session) {
  auto arguments = std::make_shared<Arguments>();
  learn::TeacherSettings& teacher = arguments->teacher;
  Command command = root.command("train", "Train one policy on many graphs and clusters");
  command.add_option("--policy", teacher.kind, "Whose policy")
      ->check(CLI::IsMember(learn::general_kinds()))
      ->capture_default_str();
  command
      .add_option("--graphs", arguments->graphs,
                  "Model files, folders of them, zoo models, or families such as "
                  "family:ptb:seed=0..31")
      ->type_name("LIST");
  command.add_option("--clusters", arguments->clusters, "Cluster files or presets")
      ->type_name("LIST");
  command
      .add_option("--memory", arguments->memory,
                  "Every graph with this much memory on each device instead, in parts of what it "
                  "needs on one, e.g. 0.4,0.8")
      ->delimiter(',')
      ->check(CLI::Range(1e-6, 1e6))
      ->type_name("SHARES");
  command
      .add_option("--imitate", arguments->imitate,
                  "First imitate this placer, e.g. expert or auto; none: learn by practice alone")
      ->capture_default_str()
      ->type_name("SPEC");
  command
      .add_option("--imitate-evaluations", arguments->imitate_evaluations,
                  "Placements that it may evaluate for each exercise")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  const auto steps = [&](const char* name, std::int64_t& value, const char* help) {
    command.add_option(name, value, help)
        ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 40))
        ->capture_default_str();
  };
  steps("--encoder-steps", teacher.encoder_steps,
        "Steps in which the graph's encoder learns without placements (mars)");
  steps("--imitation-steps", teacher.imitation_steps, "Steps of imitation");
  steps("--steps", teacher.steps, "Steps of practice");
  command
      .add_option("--exercises-per-step", teacher.exercises_per_step, "Whose gradients are summed")
      ->check(CLI::Range(1, 100'000))
      ->capture_default_str();
  command.add_option("--learning-rate", teacher.learning_rate, "Of practice")
      ->check(CLI::Range(1e-9, 1.0))
      ->capture_default_str();
  command.add_option("--width", teacher.network.width, "Of the network; even")
      ->check(CLI::Range(2, 4096))
      ->capture_default_str();
  command.add_option("--layers", teacher.network.layers, "Of the network")
      ->check(CLI::Range(0, 64))
      ->capture_default_str();
  command.add_flag("--superposition,!--no-superposition", teacher.network.superposition,
                   "Condition dense layers on the whole graph (gdp)");
  command.add_option("--device", teacher.device, "Where networks compute: cpu, or cuda:0")
      ->capture_default_str();
  command.add_option("--from", arguments->from, "A policy to begin with")->type_name("FILE");
  command.add_option("--seed", arguments->seed, "Decides everything that is random")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command.add_option("-o,--output", arguments->output, "Where the policy goes")->type_name("FILE");
  command.add_option("--describe", arguments->describe, "Print what a policy was trained on")
      ->type_name("FILE");
  command
      .add_option("--time", arguments->budget.time,
                  "End after this long with what there is, e.g. 30m")
      ->type_name("TIME");
  command.add_option("--threads", arguments->budget.threads, "0: as many as there are")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  command.footer(
      "Example: emplace train --policy gdp --graphs family:ptb:seed=0..15 --clusters 4xp100 "
      "--memory 0.4,0.8 --steps 200 -o ptb.policy\n"
      "Then:    emplace place family:ptb:seed=99 --cluster 4xp100 --placer "
      "\"gdp(policy=ptb.policy)\"");
  command.run([arguments, &session] { train(*arguments, session); });
}

}  // namespace emplace::cli
