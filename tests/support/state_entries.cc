#include "support/state_entries.h"

#include <limits>

#include <zlib.h>

namespace emplace::testing {
namespace {

void append_to_state(std::string& file, std::int64_t value) {
  file.append(reinterpret_cast<const char*>(&value), 8);
}

template <class T>
void add_changes(const StateEntry& entry, const std::vector<T>& odd,
                 std::vector<StateChange>& changes) {
  std::vector<T> values = entry.values<T>();
  const bool tensor = entry.kind == 'f' || entry.kind == 'n';
  const auto add = [&](const std::string& what, const std::vector<T>& changed) {
    changes.push_back({what, entry.with(changed)});
    if (tensor) changes.back().entry.shape = {static_cast<std::int64_t>(changed.size())};
  };
  std::vector<T> longer = values;
  longer.push_back(values.empty() ? T{1} : values.back());
  add("longer", longer);
  if (values.empty()) return;
  add("none", {});
  add("shorter", {values.begin(), values.end() - 1});
  for (const T value : odd) {
    for (const std::size_t at : {std::size_t{0}, values.size() - 1}) {
      std::vector<T> changed = values;
      changed[at] = value;
      changes.push_back({"odd " + std::to_string(value), entry.with(changed)});
    }
  }
}

}  // namespace

StateEntries::StateEntries(const std::string& file) {
  std::size_t at = file.find('\n') + 1 + 8;
  head_ = file.substr(0, at);
  const auto number = [&] {
    std::int64_t value = 0;
    std::memcpy(&value, file.data() + at, 8);
    at += 8;
    return value;
  };
  const auto text = [&](std::int64_t length) {
    const std::size_t begin = at;
    at += static_cast<std::size_t>(length);
    return file.substr(begin, static_cast<std::size_t>(length));
  };
  for (std::int64_t left = number(); left > 0; --left) {
    StateEntry entry;
    entry.name = text(number());
    entry.kind = text(1)[0];
    entry.shape.resize(static_cast<std::size_t>(number()));
    for (std::int64_t& size : entry.shape) size = number();
    entry.bytes = text(number());
    list.push_back(std::move(entry));
  }
}

std::string StateEntries::bytes() const {
  std::string file = head_;
  append_to_state(file, static_cast<std::int64_t>(list.size()));
  for (const StateEntry& entry : list) {
    append_to_state(file, static_cast<std::int64_t>(entry.name.size()));
    file += entry.name + entry.kind;
    append_to_state(file, static_cast<std::int64_t>(entry.shape.size()));
    for (const std::int64_t size : entry.shape) append_to_state(file, size);
    append_to_state(file, static_cast<std::int64_t>(entry.bytes.size()));
    file += entry.bytes;
  }
  const auto sum = crc32_z(0, reinterpret_cast<const Bytef*>(file.data()), file.size());
  append_to_state(file, static_cast<std::int64_t>(sum));
  return file;
}

std::string StateEntries::with(const StateEntry& changed) const {
  StateEntries other = *this;
  for (StateEntry& entry : other.list) {
    if (entry.name == changed.name) entry = changed;
  }
  return other.bytes();
}

std::vector<StateChange> changes_of(const StateEntry& entry) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  constexpr auto kLeast = std::numeric_limits<std::int64_t>::min();
  std::vector<StateChange> changes;
  switch (entry.kind) {
    case 'i':
    case 'n':
      add_changes<std::int64_t>(entry, {-1, 3, 1'000'000'000'000, kMost, kLeast}, changes);
      break;
    case 'r':
      add_changes<double>(entry, {-1, 1e300, -1e300, kInfinity, -kInfinity, kNone}, changes);
      break;
    case 'f':
      add_changes<float>(
          entry, {-1, 3e38F, static_cast<float>(kInfinity), static_cast<float>(kNone)}, changes);
      break;
    default:
      changes.push_back({"empty", entry});
      changes.back().entry.bytes.clear();
  }
  StateEntry other = entry;  // of another kind, as long
  other.kind = entry.kind == 'i' ? 'r' : entry.kind == 'r' ? 'i' : entry.kind == 'n' ? 'r' : 't';
  other.shape.clear();
  changes.push_back({"of another kind", other});
  return changes;
}

}  // namespace emplace::testing
