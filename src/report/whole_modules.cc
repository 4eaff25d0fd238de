#include "report/whole_modules.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/units.h"

namespace emplace {
namespace {

using Json = nlohmann::ordered_json;

std::string percent_above(double share) {
  return share < 0.1 ? fmt::format("{:.1f} %", 100 * share) : fmt::format("{:.0f} %", 100 * share);
}

std::string what(const WholeModules& modules) {
  return fmt::format("keeping {}s whole", granularity_name(modules.granularity));
}

std::string by_the_bound(const WholeModules& modules) {
  const auto most = modules.most();
  if (!most) return "";
  return fmt::format("no placement op by op beats {}, so it costs at most {}",
                     format_time(modules.bound.step), percent_above(*most));
}

// "keeping modules whole costs 4.0 % against 123.4 ms op by op, which auto found in 3.3 s".
std::string by_the_search(const WholeModules& modules) {
  std::string search = modules.placer + " found";
  if (modules.seconds >= 0.05) search += fmt::format(" in {:.1f} s", modules.seconds);
  if (!modules.whole.fits()) {
    return modules.op_by_op->fits()
               ? fmt::format("{} does not fit; op by op it fits and takes {}, which {}",
                             what(modules), format_time(modules.op_by_op->step), search)
               : fmt::format("{} does not fit; nor does what {} op by op", what(modules), search);
  }
  if (*modules.cost() > 0) {
    return fmt::format("{} costs {} against {} op by op, which {}", what(modules),
                       percent_above(*modules.cost()), format_time(modules.op_by_op->step), search);
  }
  return fmt::format("{} costs nothing that was seen: what {} op by op was no faster",
                     what(modules), search);
}

}  // namespace

std::string describe(const WholeModules& modules) {
  const bool nothing = modules.most() && *modules.most() <= 0;
  if (nothing) return what(modules) + " costs nothing: no placement op by op is faster";
  const std::string most = by_the_bound(modules);
  if (modules.op_by_op) return by_the_search(modules) + (most.empty() ? "" : "; " + most);
  return fmt::format("{} was not compared with a search op by op{}", what(modules),
                     most.empty() ? "" : "; " + most);
}

nlohmann::ordered_json to_json(const WholeModules& modules, const char* time) {
  const auto known = [](const std::optional<double>& share) {
    return share ? Json(*share) : Json();
  };
  Json json;
  json["granularity"] = granularity_name(modules.granularity);
  json["parts"] = modules.parts;
  json["cost"] = known(modules.cost());
  json["cost_at_most"] = known(modules.most());
  json["op_by_op"] = nullptr;
  if (modules.op_by_op) {
    json["op_by_op"] = {{"placer", modules.placer},
                        {time, modules.op_by_op->step},
                        {"fits", modules.op_by_op->fits()},
                        {"seconds", modules.seconds}};
  }
  return json;
}

}  // namespace emplace
