// m-ETF: earliest task first within memory. Jeon et al.: "Baechi: Fast Device Placement of Machine
// Learning Graphs", SoCC 2020, after Hwang, Chow, Anger, Lee: "Scheduling precedence graphs in
// systems with interprocessor communication times", SIAM J. Comput. 1989.
#include "placer/placer.h"

#include "placers/common/earliest_task.h"
#include "placers/common/list_schedule.h"

namespace emplace {
namespace {

class MEtf final : public Placer {
 public:
  struct Options {
    bool contention = true;
  };

  static OptionSchema<Options> schema() {
    return OptionSchema<Options>{}.flag(
        "contention", &Options::contention,
        "Let a channel carry one transfer at a time; else transfers never wait.");
  }

  explicit MEtf(const Options& options) : options_(options) {}

  PlaceResult place(PlaceContext& context, const Budget& budget, Rng) override {
    const Problem& problem = context.problem();
    return place_by_list(
        problem, context.evaluator(), budget,
        {.insertion = false, .contention = options_.contention}, true,
        [](ListSchedule& schedule) { return EarliestTaskFirst(schedule, nullptr).run(); });
  }

 private:
  Options options_;
};

}  // namespace

EMPLACE_PLACER(m_etf, MEtf, .family = "heuristic",
               .summary = "Repeatedly the ready op and device that can start soonest.",
               .reference = "Jeon et al., SoCC 2020 (Baechi)")

}  // namespace emplace
