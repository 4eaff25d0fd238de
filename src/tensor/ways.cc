#include "tensor/ways.h"

#include <algorithm>

namespace emplace {
namespace {

bool is_accepted(const Cuttable& what, const Cuts& cuts) {
  return !what.accepts || what.accepts(cuts);
}

bool has_parts(const Cuttable& what, const Cuts& cuts, std::int8_t dimension) {
  return has_parts_for_all(what.whole[static_cast<std::size_t>(dimension)], cuts, dimension,
                           what.workers);
}

class Enumeration {
 public:
  Enumeration(const Cuttable& what, bool spare, std::size_t most)
      : what_(what), spare_(spare), most_(most) {}

  std::vector<Cuts> run(const Cuts& prefix) {
    cuts_ = prefix;
    extend();
    return std::move(result_);
  }

 private:
  void extend() {
    if (result_.size() >= most_) return;
    if (cuts_.size() == what_.workers.levels()) {
      if (is_accepted(what_, cuts_)) result_.push_back(cuts_);
      return;
    }
    bool any = false;
    for (const std::int8_t dimension : what_.allowed) {
      cuts_.push_back(dimension);
      if (has_parts(what_, cuts_, dimension)) {
        any = true;
        extend();
      }
      cuts_.pop_back();
    }
    if (any && !spare_) return;
    cuts_.push_back(kUncut);
    extend();
    cuts_.pop_back();
  }

  const Cuttable& what_;
  bool spare_;
  std::size_t most_;
  Cuts cuts_;
  std::vector<Cuts> result_;
};

// As they are enumerated: an uncut level comes last.
bool comes_before(const Cuts& a, const Cuts& b) {
  return std::lexicographical_compare(
      a.begin(), a.end(), b.begin(), b.end(), [](std::int8_t x, std::int8_t y) {
        return static_cast<std::uint8_t>(x) < static_cast<std::uint8_t>(y);
      });
}

}  // namespace

std::vector<std::int8_t> variables_to_cut(const tdl::Description& description) {
  std::vector<std::int8_t> result;
  for (const tdl::VariableId v : description.divisible()) {
    if (v <= std::numeric_limits<std::int8_t>::max()) result.push_back(static_cast<std::int8_t>(v));
  }
  return result;
}

std::vector<std::int8_t> all_dimensions(std::size_t rank) {
  std::vector<std::int8_t> result;
  for (std::size_t d = 0; d < rank; ++d) result.push_back(static_cast<std::int8_t>(d));
  return result;
}

std::vector<Cuts> ways_to_cut(const Cuttable& what, bool spare, const Cuts& prefix,
                              std::size_t most) {
  return Enumeration(what, spare, most).run(prefix);
}

std::vector<Cuts> ways_along_one(const Cuttable& what, std::size_t first_level) {
  const std::size_t levels = what.workers.levels();
  std::vector<Cuts> result;
  for (const std::int8_t dimension : what.allowed) {
    Cuts cuts(std::min(first_level, levels), kUncut);
    cuts.resize(levels, dimension);
    if (first_level < levels && has_parts(what, cuts, dimension) && is_accepted(what, cuts)) {
      result.push_back(std::move(cuts));
    }
  }
  result.emplace_back(levels, kUncut);
  return result;
}

std::vector<Cuts> ways_near(const Cuttable& what, const std::set<Cuts>& known) {
  std::vector<std::int8_t> choices = what.allowed;
  choices.push_back(kUncut);
  const auto is_way = [&](const Cuts& cuts) {
    return std::all_of(cuts.begin(), cuts.end(),
                       [&](std::int8_t cut) {
                         return std::find(choices.begin(), choices.end(), cut) != choices.end();
                       }) &&
           std::all_of(cuts.begin(), cuts.end(), [&](std::int8_t cut) {
             return cut == kUncut || has_parts(what, cuts, cut);
           });
  };
  std::set<Cuts> seen;
  std::vector<Cuts> result;
  for (const Cuts& each : known) {
    for (std::size_t level = 0; level < each.size(); ++level) {
      for (const std::int8_t choice : choices) {
        Cuts cuts = each;
        cuts[level] = choice;
        if (!seen.insert(cuts).second) continue;
        if (is_way(cuts) && is_accepted(what, cuts)) result.push_back(std::move(cuts));
      }
    }
  }
  std::sort(result.begin(), result.end(), comes_before);
  return result;
}

}  // namespace emplace
