#include "cli/learning.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <set>
#include <system_error>

#include "base/error.h"
#include "base/units.h"

#include "placers/all.h"

#include "io/file.h"

namespace emplace::cli {
namespace {

// The first of the options that was given, as it was written; empty where none was.
std::string first_given(const LearningArguments& arguments) {
  if (!arguments.checkpoint.empty()) return "--checkpoint " + arguments.checkpoint;
  if (!arguments.curves.empty()) return "--curves " + arguments.curves;
  return arguments.device.empty() ? std::string() : "--device " + arguments.device;
}

// Whether a run learns something of its own, rather than giving another order of ops to what the
// run before it learned.
bool trains(const std::vector<PlacerRun>& runs, std::size_t index) {
  if (!learns(runs[index])) return false;
  return index == 0 || runs[index].scheduler == kOwnSchedule ||
         runs[index].placer != runs[index - 1].placer || runs[index].seed != runs[index - 1].seed;
}

std::size_t num_trainings(const std::vector<PlacerRun>& runs) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < runs.size(); ++i) count += trains(runs, i) ? 1 : 0;
  return count;
}

// "post(learner=ppo)" with seed 2: post-learner=ppo-2, without what shells and TensorBoard's filter
// take for something else.
std::string folder_name(const PlacerRun& run) {
  std::string name;
  for (const char c : run.placer.to_string()) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 ||
                       std::string_view("_=.-").find(c) != std::string_view::npos;
    if (plain) name += c;
    if (c == '(' || c == ',') name += '-';
  }
  return fmt::format("{}-{}", name, run.seed);
}

// Another where it is taken, as by the same run asked for twice.
std::string free_name(const std::string& name, std::set<std::string>& taken) {
  std::string own = name;
  for (int i = 2; !taken.insert(own).second; ++i) own = fmt::format("{}.{}", name, i);
  return own;
}

std::string without_slashes_at_the_end(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

void require_new(const std::string& path) {
  std::error_code ignored;
  const auto status = std::filesystem::status(path, ignored);
  if (std::filesystem::is_directory(status)) {
    fail_option("--checkpoint {}: is a directory; expected a file's name", path);
  }
  if (!std::filesystem::is_regular_file(status)) return;
  fail_option("--checkpoint {}: exists; give --resume to go on from it, or another name", path);
}

}  // namespace

void LearningArguments::add_to(CLI::App& command, bool several_runs) {
  command
      .add_option("--device", device,
                  "Where learned placers compute: cpu, or a GPU such as cuda:0. Default: cpu")
      ->type_name("DEVICE");
  command
      .add_option("--curves", curves,
                  several_runs
                      ? "Write learned placers' curves here, a folder each: for TensorBoard, and "
                        "as a table"
                      : "Write a learned placer's curves here, several placers' in a folder each: "
                        "for TensorBoard, and as a table")
      ->type_name("FOLDER");
  if (several_runs) return;
  CLI::Option* file =
      command
          .add_option("--checkpoint", checkpoint,
                      "Keep the state of a learned placer here, to go on from with --resume")
          ->type_name("FILE");
  command.add_option("--checkpoint-every", checkpoint_every, "How often, e.g. 5m. Default: 30s")
      ->needs(file)
      ->type_name("DURATION");
  command
      .add_flag("--resume", resume,
                "Go on from the checkpoint: --evaluations counts those before it too, --time does "
                "not")
      ->needs(file);
}

void LearningArguments::check(const std::vector<PlacerRun>& runs, const Stages& stages) const {
  const std::string given = first_given(*this);
  if (given.empty()) return;
  if (std::none_of(runs.begin(), runs.end(), learns)) {
    fail_option("{} is for placers that learn, and '{}' is none of them (see: emplace list)", given,
                runs.front().placer.key);
  }
  require_folder(checkpoint);
  require_folder(without_slashes_at_the_end(curves));
  if (checkpoint.empty() && curves.empty()) return;
  if (stages.list().size() > 1) {
    fail_option("{} is for one run: with --devices, every set of devices has one of its own",
                given);
  }
  if (!checkpoint.empty() && num_trainings(runs) > 1) {
    fail_option("{} is for one run, and these are {}", given, num_trainings(runs));
  }
}

bool learns(const PlacerRun& run) {
  return all_placers().info(run.placer.key).family == "learned";
}

std::vector<std::unique_ptr<LearningFiles>> open_learning_files(const LearningArguments& arguments,
                                                                const std::vector<PlacerRun>& runs,
                                                                bool always_apart) {
  const bool apart = always_apart || num_trainings(runs) > 1;
  std::vector<std::unique_ptr<LearningFiles>> files(runs.size());
  std::set<std::string> taken;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (!trains(runs, i)) continue;
    LearningArguments own = arguments;
    if (apart && !own.curves.empty()) {
      own.curves =
          without_slashes_at_the_end(own.curves) + "/" + free_name(folder_name(runs[i]), taken);
    }
    files[i] = std::make_unique<LearningFiles>(std::move(own));
  }
  return files;
}

LearningFiles::LearningFiles(LearningArguments arguments)
    : arguments_(std::move(arguments)), save_seconds_(Training{}.save_seconds) {
  if (!arguments_.checkpoint_every.empty()) {
    const auto every = parse_seconds(arguments_.checkpoint_every);
    if (!every) {
      fail_option("--checkpoint-every {}: expected a duration such as 30s or 5m",
                  arguments_.checkpoint_every);
    }
    save_seconds_ = *every;
  }
  if (arguments_.resume) {
    resumed_ = read_file(arguments_.checkpoint);
    if (resumed_.empty()) fail_input("{}: is empty; expected a checkpoint", arguments_.checkpoint);
  } else {
    require_new(arguments_.checkpoint);
  }
  if (!arguments_.checkpoint.empty()) require_writable(arguments_.checkpoint);
  if (arguments_.curves.empty()) return;
  curves_.emplace(arguments_.curves,
                  arguments_.resume ? TrainingCurves::Begin::kGoOn : TrainingCurves::Begin::kAnew);
}

void LearningFiles::attach(Training& training, std::function<void(const TrainingPoint&)> listener) {
  if (!arguments_.device.empty()) training.device = arguments_.device;
  training.resume = resumed_;
  training.resume_name = arguments_.checkpoint;
  training.save_seconds = save_seconds_;
  if (!arguments_.checkpoint.empty()) {
    training.save = [this](std::string_view bytes) { save(bytes); };
  }
  training.on_round = [this, listener = std::move(listener)](const TrainingPoint& point) {
    listener(point);
    add(point);
  };
}

const std::optional<std::string>& LearningFiles::failure() const {
  return checkpoint_failure_ ? checkpoint_failure_ : curves_failure_;
}

// A later try may do.
void LearningFiles::save(std::string_view bytes) {
  checkpoint_failure_.reset();
  try {
    write_file(arguments_.checkpoint, bytes);
  } catch (const Error& error) {
    checkpoint_failure_ = error.what();
  }
}

// Curves with a gap are worse than curves that end.
void LearningFiles::add(const TrainingPoint& point) {
  if (!curves_ || curves_failure_) return;
  try {
    curves_->add(point);
  } catch (const Error& error) {
    curves_failure_ = error.what();
  }
}

}  // namespace emplace::cli
