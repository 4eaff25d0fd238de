#include "run/learning_files.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <set>
#include <system_error>

#include "base/error.h"
#include "base/text.h"
#include "base/units.h"

#include "placers/all.h"

#include "io/file.h"
#include "search/spec_in_effect.h"

namespace emplace {
namespace {

// The first of the options that was given, as it was written; empty where none was.
std::string first_given(const LearningSettings& settings) {
  if (!settings.checkpoint.empty()) return "checkpoint " + settings.checkpoint;
  if (!settings.curves.empty()) return "curves " + settings.curves;
  return settings.device.empty() ? std::string() : "device " + settings.device;
}

std::size_t num_trainings(const std::vector<PlacerRun>& runs) {
  return static_cast<std::size_t>(std::count_if(runs.begin(), runs.end(), learns));
}

// "post(learner=ppo)" under fifo with seed 2: post-learner=ppo-fifo-2, without what shells and
// TensorBoard's filter take for something else.
std::string folder_name(const PlacerRun& run) {
  std::string name;
  for (const char c : run.placer.to_string()) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 ||
                       std::string_view("_=.-").find(c) != std::string_view::npos;
    if (plain) name += c;
    if (c == '(' || c == ',') name += '-';
  }
  const bool fixed = run.scheduler != kOwnSchedule && run.scheduler != kBestSchedule;
  if (fixed) name += "-" + run.scheduler;
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

void require_no_folder(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(path, ignored)) return;
  fail_option("checkpoint {}: is a directory; expected a file's name", path);
}

void require_new(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return;
  fail_option("checkpoint {}: exists; resume it, or give another name", path);
}

// The first line of a placer's checkpoint, before what the placer itself has saved.
constexpr std::string_view kOwnerTag = "emplace checkpoint of ";

// Without that line, if it is `owner`'s. What has none is for its reader to refuse.
void take_owner(std::string& bytes, const std::string& owner, const std::string& path) {
  const std::size_t end = bytes.find('\n');
  if (!bytes.starts_with(kOwnerTag) || end == std::string::npos) return;
  const std::string found = bytes.substr(kOwnerTag.size(), end - kOwnerTag.size());
  if (found != owner) {
    fail_input("{}: a checkpoint of {}; expected one of {}", path, printable(found), owner);
  }
  bytes.erase(0, end + 1);
}

}  // namespace

void check_learning(const LearningSettings& settings, const std::vector<PlacerRun>& runs,
                    std::size_t problems) {
  const std::string given = first_given(settings);
  if (given.empty()) return;
  if (keeps_search(settings, runs)) return require_folder(settings.checkpoint);
  if (std::none_of(runs.begin(), runs.end(), learns)) {
    fail_option("{} is for placers that learn, and '{}' is none of them", given,
                runs.front().placer.key);
  }
  require_folder(settings.checkpoint);
  require_folder(without_slashes_at_the_end(settings.curves));
  if (settings.checkpoint.empty() && settings.curves.empty()) return;
  if (problems > 1) {
    fail_option("{} is for one run: every set of devices that is tried has one of its own", given);
  }
  if (!settings.checkpoint.empty() && num_trainings(runs) > 1) {
    fail_option("{} is for one run, and these are {}", given, num_trainings(runs));
  }
}

bool keeps_search(const LearningSettings& settings, const std::vector<PlacerRun>& runs) {
  return !settings.checkpoint.empty() && settings.curves.empty() && settings.device.empty() &&
         runs.size() == 1 && !runs.front().make && !learns(runs.front()) &&
         all_placers().info(runs.front().placer.key).family == "search";
}

bool learns(const PlacerRun& run) {
  return !run.make && all_placers().info(run.placer.key).learns;
}

bool has_controllers(const PlacerRun& run) {
  return learns(run) &&
         std::any_of(run.placer.options.begin(), run.placer.options.end(), [](const auto& option) {
           return (option.first == "controllers" && option.second != "1") ||
                  (option.first == "workers" && option.second != "0");
         });
}

std::vector<std::unique_ptr<LearningFiles>> open_learning_files(const LearningSettings& settings,
                                                                const std::vector<PlacerRun>& runs,
                                                                bool always_apart) {
  const bool apart = always_apart || num_trainings(runs) > 1;
  std::vector<std::unique_ptr<LearningFiles>> files(runs.size());
  std::set<std::string> taken;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (!learns(runs[i])) continue;
    LearningSettings own = settings;
    if (apart && !own.curves.empty()) {
      own.curves =
          without_slashes_at_the_end(own.curves) + "/" + free_name(folder_name(runs[i]), taken);
    }
    const MethodInfo& info = all_placers().info(runs[i].placer.key);
    files[i] = std::make_unique<LearningFiles>(std::move(own),
                                               in_effect(runs[i].placer, info.options).to_string());
  }
  return files;
}

CheckpointFile::CheckpointFile(const LearningSettings& settings, std::string owner)
    : path_(settings.checkpoint),
      owner_(std::move(owner)),
      seconds_(settings.checkpoint_seconds.value_or(Learning{}.save_seconds)) {
  constexpr double kShortest = 1e-3;
  constexpr double kLongest = 1e9;
  if (!(seconds_ >= kShortest && seconds_ <= kLongest)) {
    fail_option("a checkpoint every {} s: expected a number from {} to {}", seconds_, kShortest,
                kLongest);
  }
  if (!path_.empty()) {
    require_no_folder(path_);
    require_writable(path_);
    lock_.emplace(path_);
  }
  if (settings.resume) {
    resumed_ = read_file(path_);
    if (resumed_.empty()) fail_input("{}: is empty; expected a checkpoint", path_);
    if (!owner_.empty()) take_owner(resumed_, owner_, path_);
  } else {
    require_new(path_);
  }
}

// A later try may do.
void CheckpointFile::save(std::string_view bytes) {
  failure_.reset();
  try {
    write_file(path_, owner_.empty() ? std::string(bytes)
                                     : fmt::format("{}{}\n{}", kOwnerTag, owner_, bytes));
  } catch (const Error& error) {
    failure_ = error.what();
  }
}

LearningFiles::LearningFiles(LearningSettings settings, std::string owner)
    : settings_(std::move(settings)), checkpoint_(settings_, std::move(owner)) {
  if (settings_.curves.empty()) return;
  curves_.emplace(settings_.curves,
                  settings_.resume ? CurveFolder::Begin::kGoOn : CurveFolder::Begin::kAnew);
}

void LearningFiles::attach(Learning& learning, std::function<void(const TrainingPoint&)> listener) {
  if (!settings_.device.empty()) learning.device = settings_.device;
  learning.resume = checkpoint_.resumed();
  learning.resume_name = checkpoint_.path();
  learning.save_seconds = checkpoint_.seconds();
  if (checkpoint_.wanted()) {
    learning.save = [this](std::string_view bytes) { checkpoint_.save(bytes); };
  }
  learning.on_round = [this, listener = std::move(listener)](const TrainingPoint& point) {
    listener(point);
    add(point);
  };
}

const std::optional<std::string>& LearningFiles::failure() const {
  return checkpoint_.failure() ? checkpoint_.failure() : curves_failure_;
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

}  // namespace emplace
