// emplace train: one policy for many graphs and clusters, as a file that `place` begins with.
#include "run/train.h"

#include <list>
#include <mutex>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/parallel.h"
#include "base/text.h"

#include "cli/command.h"
#include "cli/json_output.h"
#include "cli/messages.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/ranks.h"
#include "io/file.h"
#include "report/page.h"
#include "report/page_data.h"

namespace emplace::cli {
namespace {

using Json = nlohmann::ordered_json;

// A setting of the trainer, as it was given.
struct Setting {
  OptionInfo info;
  std::string value;
};

struct TrainArguments {
  TrainOptions options;
  std::list<Setting> settings;  // whose addresses stay
  std::string output;
  std::string describe;
  std::string report;
  LearningArguments learning;
  BudgetArguments budget;
  RankArguments ranks;
  bool json = false;
};

std::string to_json(const TrainResult& result, const TrainArguments& arguments, double seconds) {
  Json json{{"policy", arguments.options.policy},
            {"output", arguments.output},
            {"graphs", arguments.options.graphs},
            {"clusters", arguments.options.clusters},
            {"seed", arguments.options.seed},
            {"tasks", result.tasks},
            {"steps", result.steps},
            {"finished", result.finished},
            {"evaluations", result.evaluations},
            {"seconds", seconds},
            {"reference", "expert"}};
  const bool practised = result.relative_time > 0;
  json["relative_time"] = practised ? Json(result.relative_time) : Json();
  json["fitting_share"] = practised ? Json(result.fitting_share) : Json();
  return json.dump();
}

void check_output(const std::string& output) {
  if (output.empty()) fail_option("--output is missing: expected a file to write");
  if (output == "-") fail_option("--output -: policies are kept while training; expected a file");
  if (output.ends_with(".gz")) fail_option("--output {}: policies are not compressed", output);
  require_folder(output);
  require_writable(output);
}

std::vector<std::string> inputs_of(const TrainArguments& arguments) {
  std::vector<std::string> inputs = arguments.options.graphs;
  inputs.insert(inputs.end(), arguments.options.clusters.begin(), arguments.options.clusters.end());
  const std::vector<std::string> policies = inputs_of_specs(arguments.options.imitate);
  inputs.insert(inputs.end(), policies.begin(), policies.end());
  return inputs;
}

// A policy may be trained further in place: the file is replaced when there is a better one.
void check_inputs(const TrainArguments& arguments) {
  for (const std::string& input : inputs_of(arguments)) {
    if (input.empty() || !same_file(arguments.output, input)) continue;
    fail_option("--output {}: is an input too; give the output another name", arguments.output);
  }
  for (const std::string& other : arguments.learning.outputs()) {
    if (!same_file(arguments.output, other)) continue;
    fail_option("--output {}: is the name of two outputs; give each its own", arguments.output);
  }
}

// Without what goes into files.
TrainOptions options_of(const TrainArguments& arguments, const Session& session) {
  TrainOptions options = arguments.options;
  for (const Setting& setting : arguments.settings) {
    if (!setting.value.empty()) options.settings.emplace_back(setting.info.name, setting.value);
  }
  options.budget = arguments.budget.make(session);
  return options;
}

void train(const TrainArguments& arguments, Session& session) {
  if (session.member != nullptr) {
    if (!arguments.describe.empty()) return session.member->wait();
    return serve_training(options_of(arguments, session), *session.member);
  }
  if (!arguments.describe.empty()) {
    const std::string card = printable(describe_policy(arguments.describe));
    fmt::print("{}",
               !arguments.json
                   ? card
                   : with_header({.format = "emplace.policy-card/1"},
                                 Json{{"policy", arguments.describe}, {"card", card}}.dump()));
    return;
  }
  check_output(arguments.output);
  check_inputs(arguments);
  std::vector<std::string> inputs = inputs_of(arguments);
  inputs.insert(inputs.end(), {arguments.output, arguments.options.from});
  const Outputs outputs(session, {arguments.report}, arguments.json, inputs,
                        arguments.learning.outputs());
  TrainOptions options = options_of(arguments, session);
  const LearningSettings learning = arguments.learning.make();
  options.curves = learning.curves;
  options.checkpoint = learning.checkpoint;
  options.checkpoint_seconds = learning.checkpoint_seconds;
  options.resume = learning.resume;
  options.on_save = [&](std::string_view bytes) { write_file(arguments.output, bytes); };
  std::mutex mutex;
  std::string line;
  const TrainResult result = [&] {
    const Progress progress([&] {
      const std::lock_guard lock(mutex);
      return line;
    });
    const auto say = [&](const std::string& now) {
      const std::lock_guard lock(mutex);
      line = now;
    };
    return train_policy(options, say, session.crew);
  }();
  write_file(arguments.output, result.policy);
  for (const std::string& warning : result.warnings) warn(warning);
  if (session.cancelled) note("interrupted; this is the policy so far");
  const std::string json =
      with_header({.format = "emplace.training/1",
                   .budget = &options.budget,
                   .ranks = session.crew != nullptr ? session.crew->size() : 1,
                   .lost_ranks = session.crew != nullptr ? session.crew->lost() : 0},
                  to_json(result, arguments, options.budget.elapsed_seconds()));
  if (!arguments.report.empty()) {
    outputs.write(arguments.report,
                  page_html({page_of_training({session.command_line, "train", json}, result)}));
  }
  if (arguments.json) {
    fmt::print("{}", json);
    return;
  }
  outputs.print("{} tasks, {} placements evaluated{}\n", result.tasks, result.evaluations,
                result.finished ? "" : ", stopped before the last step");
  if (result.relative_time > 0) {
    outputs.print("samples of the last step take {:.3f} times the expert's step, {:.0f} % fit\n",
                  result.relative_time, 100 * result.fitting_share);
  }
  outputs.print("wrote the policy to {}\n", arguments.output);
  for (const std::string& path : outputs.files()) {
    outputs.print("wrote how it went to {} (open it in a browser)\n", path);
  }
}

// As `place` has them.
void add_files(Command command, LearningArguments& learning) {
  command
      .text("--curves", learning.settings.curves,
            "Write the course of the training here: for TensorBoard, and as a table")
      .type("FOLDER");
  const Option file = command
                          .text("--checkpoint", learning.settings.checkpoint,
                                "Keep the state of the training here, to resume with --resume")
                          .type("FILE");
  command.text("--checkpoint-every", learning.checkpoint_every, "How often, e.g. 5m. Default: 30s")
      .needs(file)
      .type("DURATION");
  command
      .flag("--resume", learning.settings.resume,
            "Resume from the checkpoint: --evaluations counts those before it too, --time does not")
      .needs(file);
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
  auto arguments = std::make_shared<TrainArguments>();
  TrainOptions& options = arguments->options;
  Command command = root.command("train", "Train a policy on many graphs and clusters");
  command.text("--policy", options.policy, "Which policy to train: gdp, mars or placeto")
      .one_of({"gdp", "mars", "placeto"})
      .shown();
  command
      .list("--graphs", options.graphs,
            "Model files, folders of them, zoo models, or families such as family:ptb:seed=0..31")
      .type("LIST");
  command.list("-c,--cluster,--clusters", options.clusters, "Cluster files or presets")
      .type("LIST");
  command
      .reals(
          "--memory", options.memory, 1e-6, 1e6,
          "Train with this much memory on each device instead, as shares of what the graph needs "
          "on one device, e.g. 0.4,0.8")
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
  command
      .text("--device", options.device, "Where networks are trained: cpu, or a GPU such as cuda:0")
      .shown();
  add_file(command, "--from", options.from, "Begin with this policy");
  add_seed(command, options.seed);
  add_file(command, "-o,--output", arguments->output, "Write the policy here");
  add_file(command, "--describe", arguments->describe, "Print what a policy was trained on");
  command.text("--time", arguments->budget.time, "End after this long with what there is, e.g. 30m")
      .type("DURATION");
  command
      .count("--evaluations", arguments->budget.evaluations,
             "End before more placements than these are simulated")
      .type("N");
  command
      .integer("--threads", arguments->budget.threads, 1, 1024,
               "How many threads to use. Default: all; the policy does not depend on them")
      .type("N");
  arguments->ranks.add_to(command);
  add_files(command, arguments->learning);
  add_report_option(command, arguments->report, "how the training went");
  add_json(command, arguments->json);
  add_quiet(command);
  command.footer(
      "Progress, curves and results tell the step times of sampled placements in multiples of "
      "those\n"
      "of the placer `expert` on the same graph and cluster (relative_time): below 1 is faster.\n"
      "Example: emplace train --policy gdp --graphs family:ptb:seed=0..15 --cluster 4xp100 "
      "--memory 0.4,0.8 --steps 200 -o ptb.policy\n"
      "Then:    emplace place family:ptb:seed=99 --cluster 4xp100 --placer "
      "\"gdp(policy=ptb.policy)\"");
  command.run([arguments, &session] {
    run_on_ranks(arguments->ranks, session, [&] { train(*arguments, session); });
  });
}

}  // namespace emplace::cli
