#include "base/options.h"

#include <algorithm>
#include <charconv>
#include <numeric>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "base/decimal.h"

namespace emplace {
namespace {

// Levenshtein's distance, one row at a time.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (const char c : a) {
    std::size_t diagonal = row[0]++;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t substituted = diagonal + (c == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({substituted, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row[b.size()];
}

constexpr std::string_view kPreset = "preset";
const std::vector<std::string> kPresets = {"emplace", "paper"};

template <class Value>
Value& value_at(void* options, std::size_t offset) {
  return *reinterpret_cast<Value*>(static_cast<std::byte*>(options) + offset);
}
template <class Value>
const Value& value_at(const void* options, std::size_t offset) {
  return *reinterpret_cast<const Value*>(static_cast<const std::byte*>(options) + offset);
}

}  // namespace

std::int64_t read_integer(std::string_view name, std::string_view text, std::int64_t low,
                          std::int64_t high) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < low || value > high) {
    fail_option("option '{}': '{}' is not a whole number from {} to {}", name, text, low, high);
  }
  return value;
}

double read_real(std::string_view name, std::string_view text, double low, double high) {
  const auto parsed = Decimal::parse(text);
  if (!parsed || parsed->to_double() < low || parsed->to_double() > high) {
    fail_option("option '{}': '{}' is not a number from {} to {}", name, text, low, high);
  }
  return parsed->to_double();
}

bool read_flag(std::string_view name, std::string_view text) {
  if (text == "true" || text == "yes" || text == "1") return true;
  if (text == "false" || text == "no" || text == "0") return false;
  fail_option("option '{}': '{}' is neither true nor false", name, text);
}

const std::string& read_choice(std::string_view name, std::string_view text,
                               const std::vector<std::string>& choices) {
  const auto found = std::find(choices.begin(), choices.end(), text);
  if (found == choices.end()) {
    fail_option("option '{}': '{}' is not one of: {}", name, text, fmt::join(choices, ", "));
  }
  return *found;
}

std::string suggestion(std::string_view name, const std::vector<std::string>& known) {
  // What has the word as a part, as rtx3090 has 3090, is nearer than what has as many letters.
  const auto distance = [&](std::string_view other) {
    const bool has_it = name.size() >= 3 && other.find(name) != other.npos;
    const bool is_part = name.find(other) != name.npos;
    return std::tuple(has_it ? 0 : 1, edit_distance(name, other), is_part ? 0 : 1);
  };
  const auto nearest =
      std::min_element(known.begin(), known.end(),
                       [&](const auto& a, const auto& b) { return distance(a) < distance(b); });
  if (nearest == known.end()) return {};
  const auto [apart, letters, _] = distance(*nearest);
  if (apart == 1 && letters > 1 + name.size() / 3) return {};
  return fmt::format(" (did you mean '{}'?)", *nearest);
}

std::vector<OptionInfo> OptionTable::describe() const {
  std::vector<OptionInfo> result;
  for (const Entry& entry : entries_) result.push_back(entry.info);
  return result;
}

void OptionTable::add(OptionInfo info, std::function<void(void*, std::string_view)> assign) {
  entries_.push_back({std::move(info), std::move(assign)});
}

void OptionTable::add_integer(std::string_view name, Place place, std::int64_t low,
                              std::int64_t high, std::string_view help) {
  const auto initial = value_at<std::int64_t>(place.defaults, place.offset);
  add({std::string(name), "integer", fmt::format("{}", initial), fmt::format("{} to {}", low, high),
       std::string(help)},
      [name = std::string(name), at = place.offset, low, high](void* options,
                                                               std::string_view text) {
        value_at<std::int64_t>(options, at) = read_integer(name, text, low, high);
      });
}

void OptionTable::add_real(std::string_view name, Place place, double low, double high,
                           std::string_view help) {
  const auto initial = value_at<double>(place.defaults, place.offset);
  add({std::string(name), "real", fmt::format("{}", initial), fmt::format("{} to {}", low, high),
       std::string(help)},
      [name = std::string(name), at = place.offset, low, high](void* options,
                                                               std::string_view text) {
        value_at<double>(options, at) = read_real(name, text, low, high);
      });
}

void OptionTable::add_flag(std::string_view name, Place place, std::string_view help) {
  const auto initial = value_at<bool>(place.defaults, place.offset);
  add({std::string(name), "flag", initial ? "true" : "false", "true, false", std::string(help)},
      [name = std::string(name), at = place.offset](void* options, std::string_view text) {
        value_at<bool>(options, at) = read_flag(name, text);
      });
}

void OptionTable::add_choice(std::string_view name, Place place, std::vector<std::string> choices,
                             std::string_view help) {
  std::string range = fmt::format("{}", fmt::join(choices, ", "));
  add({std::string(name), "choice", value_at<std::string>(place.defaults, place.offset),
       std::move(range), std::string(help)},
      [name = std::string(name), at = place.offset, choices = std::move(choices)](
          void* options, std::string_view text) {
        value_at<std::string>(options, at) = read_choice(name, text, choices);
      });
}

void OptionTable::add_named(std::string_view name, Place place, NamedAccess access,
                            const Named* choices, std::size_t count, std::string_view help) {
  const std::int64_t initial =
      access.get(static_cast<const std::byte*>(place.defaults) + place.offset);
  std::vector<std::string> names;
  std::vector<std::int64_t> values;
  std::string default_name;
  for (const Named* choice = choices; choice != choices + count; ++choice) {
    names.emplace_back(choice->name);
    values.push_back(choice->value);
    if (choice->value == initial) default_name = choice->name;
  }
  EMPLACE_CHECK(!default_name.empty());
  add({std::string(name), "choice", default_name, fmt::format("{}", fmt::join(names, ", ")),
       std::string(help)},
      [=, name = std::string(name), at = place.offset](void* options, std::string_view text) {
        const auto chosen = static_cast<std::size_t>(&read_choice(name, text, names) - &names[0]);
        access.set(static_cast<std::byte*>(options) + at, values[chosen]);
      });
}

void OptionTable::add_text(std::string_view name, Place place, std::string_view range,
                           std::string_view help) {
  add({std::string(name), "text", value_at<std::string>(place.defaults, place.offset),
       std::string(range), std::string(help)},
      [at = place.offset](void* options, std::string_view text) {
        value_at<std::string>(options, at) = text;
      });
}

void OptionTable::add_paper(
    std::initializer_list<std::pair<std::string_view, std::string_view>> values, void* scratch) {
  EMPLACE_CHECK(!has_paper_);
  has_paper_ = true;
  for (Entry& entry : entries_) entry.info.paper = entry.info.default_value;
  for (const auto& [name, value] : values) {
    const Entry& entry = find(name);
    entry.assign(scratch, value);
    entries_[static_cast<std::size_t>(&entry - entries_.data())].info.paper = value;
    paper_.emplace_back(name, value);
  }
  Entry preset = {{.name = std::string(kPreset),
                   .type = "choice",
                   .default_value = kPresets[0],
                   .range = fmt::format("{}", fmt::join(kPresets, ", ")),
                   .help = "What the other options begin with: our settings, or the paper's.",
                   .paper = kPresets[1]},
                  [](void*, std::string_view text) { read_choice(kPreset, text, kPresets); }};
  entries_.insert(entries_.begin(), std::move(preset));
}

void OptionTable::assign_all(void* options, const OptionValues& values) const {
  for (const auto& [name, text] : values) {
    if (!has_paper_ || name != kPreset || read_choice(kPreset, text, kPresets) != "paper") continue;
    for (const auto& [published, value] : paper_) find(published).assign(options, value);
  }
  for (const auto& [name, text] : values) find(name).assign(options, text);
}

const OptionTable::Entry& OptionTable::find(std::string_view name) const {
  std::vector<std::string> known;
  for (const Entry& entry : entries_) {
    if (entry.info.name == name) return entry;
    known.push_back(entry.info.name);
  }
  if (known.empty()) fail_option("unknown option '{}': there are no options here", name);
  fail_option("unknown option '{}'{}; expected one of: {}", name, suggestion(name, known),
              fmt::join(known, ", "));
}

}  // namespace emplace
