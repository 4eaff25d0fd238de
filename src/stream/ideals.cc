#include "stream/ideals.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "base/rng.h"

namespace emplace {
namespace {

// An ideal is known by the sum of its elements' random codes (Zobrist 1970): of 128 bits, so that
// two of the millions of ideals that fit in memory are never taken for one.
using Code = std::array<std::uint64_t, 2>;

Code operator+(const Code& a, const Code& b) {
  return {a[0] + b[0], a[1] + b[1]};
}

// The numbers of ideals by their codes. Flat, as millions of nodes would take seconds to free.
class CodeTable {
 public:
  CodeTable() : slots_(std::size_t{1} << 10, kNone) {}

  std::size_t size() const { return codes_.size(); }

  // Its number, which is the next one where it was not there.
  std::uint32_t find_or_add(const Code& code) {
    if (2 * codes_.size() >= slots_.size()) grow();
    std::uint32_t& slot = slot_of(code);
    if (slot == kNone) {
      slot = static_cast<std::uint32_t>(codes_.size());
      codes_.push_back(code);
    }
    return slot;
  }

 private:
  static constexpr std::uint32_t kNone = ~0U;

  std::uint32_t& slot_of(const Code& code) {
    std::size_t at = code[0] & (slots_.size() - 1);
    while (slots_[at] != kNone && codes_[slots_[at]] != code) at = (at + 1) & (slots_.size() - 1);
    return slots_[at];
  }

  void grow() {
    slots_.assign(2 * slots_.size(), kNone);
    for (std::uint32_t i = 0; i < codes_.size(); ++i) slot_of(codes_[i]) = i;
  }

  std::vector<std::uint32_t> slots_;  // a power of two of them
  std::vector<Code> codes_;
};

// Walks from ideal to ideal, depth first, by adding and taking back elements.
class Enumeration {
 public:
  using Step = IdealLattice::Step;
  struct Found {
    std::uint32_t size = 0;     // elements
    std::uint32_t element = 0;  // added last when it was found,
    std::uint32_t before = 0;   // to this ideal
  };

  Enumeration(const Csr<std::uint32_t>& successors, std::size_t limit,
              const std::function<bool()>& stop)
      : successors_(successors), limit_(limit), stop_(stop), waits_(successors.size(), 0) {
    for (const std::uint32_t to : successors.values()) ++waits_[to];
    Rng rng(1);
    for (std::size_t i = 0; i < successors.size(); ++i) codes_.push_back({rng.next(), rng.next()});
  }

  // False when there are more than the limit, or time is up.
  bool run() {
    std::vector<std::uint32_t> ready;
    for (std::uint32_t element = 0; element < waits_.size(); ++element) {
      if (waits_[element] == 0) ready.push_back(element);
    }
    known_.find_or_add(Code{});
    if (too_many(ready)) return false;
    enter({}, std::move(ready));
    while (!frames_.empty()) {
      if (frames_.back().next == frames_.back().ready.size()) {
        leave();
      } else if (!advance()) {
        return false;
      }
    }
    return true;
  }

  const std::vector<Found>& found() const { return found_; }
  // From which ideal, and the step; those of one ideal in their order.
  std::vector<std::pair<std::uint32_t, Step>>& steps() { return steps_; }

 private:
  struct Frame {
    std::uint32_t ideal;
    Code code;
    std::vector<std::uint32_t> ready;
    std::size_t next = 0;  // of `ready`
  };

  void enter(const Code& code, std::vector<std::uint32_t> ready) {
    const auto ideal = static_cast<std::uint32_t>(found_.size());
    Found found;
    if (!frames_.empty()) {
      const Frame& above = frames_.back();
      found.size = found_[above.ideal].size + 1;
      found.element = above.ready[above.next - 1];
      found.before = above.ideal;
    }
    found_.push_back(std::move(found));
    frames_.push_back({ideal, code, std::move(ready)});
  }

  void leave() {
    const std::uint32_t ideal = frames_.back().ideal;
    frames_.pop_back();
    if (frames_.empty()) return;
    for (const std::uint32_t to : successors_[found_[ideal].element]) ++waits_[to];
  }

  // False when that makes one ideal too many.
  bool advance() {
    Frame& frame = frames_.back();
    const std::uint32_t element = frame.ready[frame.next++];
    const Code code = frame.code + codes_[element];
    const std::size_t before = known_.size();
    const std::uint32_t to_ideal = known_.find_or_add(code);
    steps_.push_back({frame.ideal, {element, to_ideal}});
    if (known_.size() == before) return true;
    if (found_.size() == limit_) return false;
    constexpr std::size_t kBetweenQuestions = 4096;
    if (found_.size() % kBetweenQuestions == 0 && stop_ && stop_()) return false;
    std::vector<std::uint32_t> ready = frame.ready;
    std::erase(ready, element);
    for (const std::uint32_t to : successors_[element]) {
      if (--waits_[to] == 0) ready.push_back(to);
    }
    if (too_many(ready)) return false;
    enter(code, std::move(ready));
    return true;
  }

  // Each set of what is ready makes an ideal.
  bool too_many(const std::vector<std::uint32_t>& ready) const {
    return ready.size() >= 32 || (std::size_t{1} << ready.size()) > limit_;
  }

  const Csr<std::uint32_t>& successors_;
  std::size_t limit_;
  const std::function<bool()>& stop_;
  std::vector<std::uint32_t> waits_;
  std::vector<Code> codes_;
  CodeTable known_;
  std::vector<Found> found_;
  std::vector<std::pair<std::uint32_t, Step>> steps_;
  std::vector<Frame> frames_;
};

}  // namespace

std::optional<IdealLattice> IdealLattice::enumerate(const Csr<std::uint32_t>& successors,
                                                    std::size_t limit,
                                                    const std::function<bool()>& stop) {
  // Any order of n elements has n + 1 ideals at least.
  if (successors.size() >= limit) return std::nullopt;
  Enumeration enumeration(successors, limit, stop);
  if (!enumeration.run()) return std::nullopt;
  const std::vector<Enumeration::Found>& found = enumeration.found();
  // By the number of elements, then as they were found.
  std::vector<std::uint32_t> first(successors.size() + 2, 0);
  for (const Enumeration::Found& one : found) ++first[one.size + 1];
  std::partial_sum(first.begin(), first.end(), first.begin());
  std::vector<std::uint32_t> number(found.size());
  for (std::size_t i = 0; i < found.size(); ++i) number[i] = first[found[i].size]++;
  if (stop && stop()) return std::nullopt;
  IdealLattice result;
  result.num_elements_ = static_cast<std::uint32_t>(successors.size());
  result.origin_.resize(found.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    result.origin_[number[i]] = {found[i].element, number[found[i].before]};
  }
  for (auto& [from, step] : enumeration.steps()) {
    from = number[from];
    step.ideal = number[step.ideal];
  }
  if (stop && stop()) return std::nullopt;
  result.steps_ = Csr<Step>::from_pairs(found.size(), enumeration.steps());
  return result;
}

IdealLattice IdealLattice::chain(std::uint32_t num_elements) {
  IdealLattice result;
  result.num_elements_ = num_elements;
  result.origin_.emplace_back();
  for (std::uint32_t i = 0; i < num_elements; ++i) {
    result.steps_.push_back(std::array{Step{i, i + 1}});
    result.origin_.push_back({i, i});
  }
  result.steps_.push_back(std::array<Step, 0>{});
  return result;
}

std::vector<std::uint32_t> IdealLattice::elements(std::uint32_t ideal) const {
  std::vector<std::uint32_t> result;
  for (; ideal != 0; ideal = origin_[ideal].ideal) result.push_back(origin_[ideal].element);
  std::reverse(result.begin(), result.end());
  return result;
}

}  // namespace emplace
