#include "learn/general/teacher.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>

#include <fmt/core.h>

#include "base/error.h"
#include "base/parallel.h"

#include "learn/blas.h"
#include "learn/features/device_view.h"
#include "learn/general/kinds.h"
#include "learn/general/policy_file.h"
#include "learn/general/pupil.h"
#include "learn/nn/optimizer.h"

namespace emplace::learn {
namespace {

// One problem, its pupil, and all that has to do with them alone, so that exercises can be worked
// on side by side and come out the same.
struct Desk {
  Exercise exercise;
  PupilPtr pupil;
  std::unique_ptr<Environment> environment;
  std::vector<torch::Tensor> gradient;
  TrainingPoint point;
  double likelihood = 0;
  bool learned = false;

  std::size_t num_devices() const { return environment->problem().num_devices(); }
};

class Teacher {
 public:
  Teacher(std::vector<Exercise> exercises, const TeacherSettings& settings,
          const std::string& begin_from, std::string card, const Budget& budget, const Rng& rng,
          const TeacherHooks& hooks)
      : settings_(settings), card_(std::move(card)), budget_(budget), rng_(rng), hooks_(hooks) {
    desks_.resize(exercises.size());
    parallel_for(desks_.size(), budget.threads, [&](std::size_t i) {
      Desk& desk = desks_[i];
      desk.exercise = std::move(exercises[i]);
      Rng weights = rng.split(1);  // the same for all
      desk.pupil = make_pupil(settings.kind, desk.exercise.context->problem(), settings.network,
                              settings.device, weights);
      Budget own = budget;
      own.threads = 1;
      desk.environment = std::make_unique<Environment>(*desk.exercise.context, own, settings.kind);
    });
    if (!begin_from.empty()) {
      const PolicyFile file(begin_from, "the policy to begin from");
      require_same(file);
      file.load_into(master());
    }
  }

  Taught run() {
    Taught result;
    Rng probe = rng_.split(3);
    const bool has_encoder = !desks_.front().pupil->encoder_gradient(probe).empty();
    const bool has_examples = std::any_of(desks_.begin(), desks_.end(), [](const Desk& desk) {
      return desk.exercise.example.has_value();
    });
    result.whole =
        stage("encoder", has_encoder ? settings_.encoder_steps : 0, settings_.imitation_rate, 1,
              [&](Desk& desk, Rng& rng, bool) { return learn_encoder(desk, rng); }) &&
        stage("imitation", has_examples ? settings_.imitation_steps : 0, settings_.imitation_rate,
              1, [&](Desk& desk, Rng& rng, bool) { return imitate(desk, rng); }) &&
        stage("practice", settings_.steps, settings_.learning_rate, desks_.front().pupil->epochs(),
              [&](Desk& desk, Rng& rng, bool first) { return practise(desk, rng, first); });
    result.policy = bytes();
    result.evaluations = evaluations();
    return result;
  }

 private:
  using Clock = std::chrono::steady_clock;

  // The first pupil's parameters are everybody's.
  Parameters& master() { return desks_.front().pupil->parameters(); }
  std::string bytes() {
    return policy_bytes(settings_.kind, settings_.network, master(),
                        card_ + fmt::format("steps taken: {}\n", taken_));
  }

  void require_same(const PolicyFile& file) const {
    const auto describe = [](const std::string& kind, const GeneralNetwork& network) {
      return fmt::format("{} with width {}, layers {}, superposition {}", kind, network.width,
                         network.layers, network.superposition);
    };
    if (file.kind() == settings_.kind && file.network() == settings_.network) return;
    fail_input("{}: a policy of {}; expected one of {}", file.file_name(),
               describe(file.kind(), file.network()), describe(settings_.kind, settings_.network));
  }

  std::int64_t evaluations() const {
    std::int64_t sum = 0;
    for (const Desk& desk : desks_) sum += desk.exercise.context->evaluations();
    return sum;
  }
  // Whether the budget, which is for all of them together, has a round left for these.
  bool affordable(const std::vector<std::size_t>& chosen) const {
    if (!budget_.evaluations) return true;
    std::int64_t needed = evaluations();
    for (const std::size_t i : chosen) needed += desks_[i].pupil->round_size();
    return needed <= *budget_.evaluations;
  }

  bool learn_encoder(Desk& desk, Rng& rng) {
    desk.gradient = desk.pupil->encoder_gradient(rng);
    return !desk.gradient.empty();
  }

  bool imitate(Desk& desk, Rng& rng) {
    if (!desk.exercise.example) return false;
    const std::vector<DeviceId> used = devices_of(*desk.exercise.example);
    desk.pupil->use(used);
    Imitation imitation = desk.pupil->imitate(*desk.exercise.example, *desk.environment, rng);
    desk.gradient = std::move(imitation.gradient);
    desk.likelihood = imitation.likelihood;
    return true;
  }

  static std::vector<DeviceId> devices_of(const Placement& placement) {
    std::vector<DeviceId> used(placement.begin(), placement.end());
    std::sort(used.begin(), used.end());
    used.erase(std::unique(used.begin(), used.end()), used.end());
    return used;
  }

  bool practise(Desk& desk, Rng& rng, bool first) {
    if (first) {
      const std::size_t all = desk.num_devices();
      const bool fewer = rng.chance(settings_.fewer_devices);
      const std::size_t count = fewer ? 1 + rng.below(all) : all;
      desk.pupil->use(desk.pupil->views().fastest(count));
      desk.point = {};
      desk.learned = desk.pupil->explore(*desk.environment, rng, desk.point);
    }
    if (desk.learned) desk.gradient = desk.pupil->gradient();
    return desk.learned;
  }

  // Which exercises a step works on: all of them in turn, in a new order each time.
  std::vector<std::size_t> next_desks(Rng& rng) {
    const auto wanted = std::min<std::size_t>(
        desks_.size(), static_cast<std::size_t>(settings_.exercises_per_step));
    if (queue_.size() < wanted) {
      queue_.resize(desks_.size());
      std::iota(queue_.begin(), queue_.end(), std::size_t{0});
      rng.shuffle(queue_);
    }
    const std::vector<std::size_t> result(queue_.end() - static_cast<std::ptrdiff_t>(wanted),
                                          queue_.end());
    queue_.resize(queue_.size() - wanted);
    return result;
  }

  // Whether all steps were taken. `work` leaves a desk's gradient, or says that there is none.
  template <class Work>
  bool stage(const std::string& name, std::int64_t steps, double rate, std::int64_t epochs,
             const Work& work) {
    Optimizer optimizer({.learning_rate = rate,
                         .final_share = 0.1,
                         .decay_steps = steps * epochs,
                         .clip_norm = settings_.clip_norm});
    for (std::int64_t step = 0; step < steps; ++step) {
      if (budget_.spent(0)) return false;
      const std::vector<std::size_t> chosen = next_desks(rng_);
      if (!affordable(chosen)) return false;
      const Rng of_step = rng_.split(2);
      rng_.next();
      bool any = false;
      for (std::int64_t epoch = 0; epoch < epochs; ++epoch) {
        any = take_step(chosen, of_step, epoch, optimizer, work);
        if (!any) break;
      }
      if (!any && budget_.spent(0)) return false;
      ++taken_;
      report(name, step + 1, steps, chosen);
      save_now_and_then();
    }
    return true;
  }

  template <class Work>
  bool take_step(const std::vector<std::size_t>& chosen, const Rng& rng, std::int64_t epoch,
                 Optimizer& optimizer, const Work& work) {
    const std::vector<torch::Tensor> values = master().values();
    std::vector<char> learned(chosen.size());
    parallel_for(chosen.size(), budget_.threads, [&](std::size_t i) {
      Desk& desk = desks_[chosen[i]];
      desk.pupil->parameters().assign(values);
      Rng own = rng.split(chosen[i]);
      learned[i] = work(desk, own, epoch == 0) ? 1 : 0;
    });
    std::vector<torch::Tensor> sum;
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      if (learned[i] == 0) continue;
      const std::vector<torch::Tensor>& gradient = desks_[chosen[i]].gradient;
      if (sum.empty()) {
        for (const torch::Tensor& tensor : gradient) sum.push_back(tensor.clone());
      } else {
        for (std::size_t p = 0; p < sum.size(); ++p) sum[p] += gradient[p];
      }
    }
    if (sum.empty()) return false;
    optimizer.step(master().tensors(), std::move(sum));
    return true;
  }

  void report(const std::string& name, std::int64_t step, std::int64_t steps,
              const std::vector<std::size_t>& chosen) const {
    if (!hooks_.on_step) return;
    LessonReport report{.stage = name, .step = step, .steps = steps};
    double logarithms = 0;
    for (const std::size_t i : chosen) {
      const Desk& desk = desks_[i];
      report.likelihood += desk.likelihood / static_cast<double>(chosen.size());
      report.fitting_share += desk.point.fitting_share / static_cast<double>(chosen.size());
      if (desk.point.mean_seconds > 0) {
        logarithms += std::log(desk.point.mean_seconds / desk.exercise.reference_seconds);
      }
    }
    report.relative_time = std::exp(logarithms / static_cast<double>(chosen.size()));
    hooks_.on_step(report);
  }

  void save_now_and_then() {
    if (!hooks_.save) return;
    const auto now = Clock::now();
    if (std::chrono::duration<double>(now - saved_at_).count() < hooks_.save_seconds) return;
    hooks_.save(bytes());
    saved_at_ = now;
  }

  const TeacherSettings& settings_;
  std::string card_;
  Budget budget_;
  Rng rng_;
  const TeacherHooks& hooks_;
  std::vector<Desk> desks_;
  std::vector<std::size_t> queue_;
  std::int64_t taken_ = 0;  // steps, of all stages
  Clock::time_point saved_at_ = Clock::now();
};

}  // namespace

Taught teach(std::vector<Exercise> exercises, const TeacherSettings& settings,
             const std::string& begin_from, const std::string& card, const Budget& budget,
             const Rng& rng, const TeacherHooks& hooks) {
  prepare_tensor_operations();
  return Teacher(std::move(exercises), settings, begin_from, card, budget, rng, hooks).run();
}

}  // namespace emplace::learn
