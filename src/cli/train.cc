// emplace train: one policy for many graphs and clusters, as a file that `place` begins with.
#include "run/train.h"

#include <list>
#include <mutex>

#include <fmt/core.h>

#include "base/error.h"
#include "base/parallel.h"

#include "cli/command.h"
#include "cli/messages.h"
#include "cli/progress.h"
#include "io/file.h"

namespace emplace::cli {
namespace {

// A setting of the trainer, as it was given.
struct Setting {
  OptionInfo info;
  std::string value;
};

struct Arguments {
  TrainOptions options;
  std::list<Setting> settings;  // whose addresses stay
  std::string output;
  std::string describe;
  BudgetArguments budget;  // no evaluations
};

void check_output(const std::string& output) {
  if (output.empty()) fail_option("--output is missing: expected a file to write");
  if (output == "-") fail_option("--output -: policies are kept while training; expected a file");
  if (output.ends_with(".gz")) fail_option("--output {}: policies are not compressed", output);
  require_writable(output);
}

void train(const Arguments& arguments, Session& session) {
  if (!arguments.describe.empty()) {
    fmt::print("{}", describe_policy(arguments.describe));
    return;
  }
  check_output(arguments.output);
  TrainOptions options = arguments.options;
  for (const Setting& setting : arguments.settings) {
    if (!setting.value.empty()) options.settings.emplace_back(setting.info.name, setting.value);
  }
  options.budget = arguments.budget.make(session);
  options.on_save = [&](std::string_view bytes) { write_file(arguments.output, bytes); };
  std::mutex mutex;
  std::string line;
  const TrainResult result = [&] {
    const Progress progress([&] {
      const std::lock_guard lock(mutex);
      return line;
    });
    return train_policy(options, [&](const std::string& now) {
      const std::lock_guard lock(mutex);
      line = now;
    });
  }();
  write_file(arguments.output, result.policy);
  if (session.cancelled) note("interrupted; this is the policy so far");
  fmt::print("{} tasks, {} placements evaluated{}\nwrote the policy to {}\n", result.tasks,
             result.evaluations, result.finished ? "" : ", stopped before the last step",
             arguments.output);
}

// "--learning-rate" for learning_rate, as the trainer declares it.
void add_settings(Command command, std::list<Setting>& settings) {
  for (const OptionInfo& info : train_settings()) {
    settings.push_back({info, {}});
    std::string name = "--" + info.name;
    std::replace(name.begin(), name.end(), '_', '-');
    command
        .text(name, settings.back().value,
              fmt::format("{} ({}). Default: {}", info.help, info.range, info.default_value))
        .type(info.type == "flag" ? "BOOL" : "N");
  }
}

}  // namespace

void add_train(Command& root, Session& session) {
  auto arguments = std::make_shared<Arguments>();
  TrainOptions& options = arguments->options;
  Command command = root.command("train", "Train a policy on many graphs and clusters");
  command.text("--policy", options.policy, "Whose policy: gdp, mars or placeto")
      .one_of({"gdp", "mars", "placeto"})
      .shown();
  command
      .list("--graphs", options.graphs,
            "Model files, folders of them, zoo models, or families such as family:ptb:seed=0..31")
      .type("LIST");
  command.list("--clusters", options.clusters, "Cluster files or presets").type("LIST");
  command
      .reals("--memory", options.memory, 1e-6, 1e6,
             "Every graph with this much memory on each device instead, in parts of what it needs "
             "on one, e.g. 0.4,0.8")
      .type("SHARES");
  command
      .text("--imitate", options.imitate,
            "First imitate this placer, e.g. expert or auto; none: learn by practice alone")
      .shown()
      .type("SPEC");
  command
      .integer("--imitate-evaluations", options.imitate_evaluations, 1, INT64_MAX,
               "Placements that it may evaluate for each task")
      .shown();
  add_settings(command, arguments->settings);
  command.text("--device", options.device, "Where networks compute: cpu, or cuda:0").shown();
  add_file(command, "--from", options.from, "A policy to begin with");
  add_seed(command, options.seed);
  add_file(command, "-o,--output", arguments->output, "Where the policy goes");
  add_file(command, "--describe", arguments->describe, "Print what a policy was trained on");
  command.text("--time", arguments->budget.time, "End after this long with what there is, e.g. 30m")
      .type("DURATION");
  command.integer("--threads", arguments->budget.threads, 0, 1024, "0: as many as there are")
      .shown();
  add_quiet(command);
  command.footer(
      "Example: emplace train --policy gdp --graphs family:ptb:seed=0..15 --clusters 4xp100 "
      "--memory 0.4,0.8 --steps 200 -o ptb.policy\n"
      "Then:    emplace place family:ptb:seed=99 --cluster 4xp100 --placer "
      "\"gdp(policy=ptb.policy)\"");
  command.run([arguments, &session] { train(*arguments, session); });
}

}  // namespace emplace::cli
