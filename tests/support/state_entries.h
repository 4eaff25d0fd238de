// The entries of a checkpoint or a policy, to change them one by one and to put them together
// again, with the checksum that they should have: damage that a checksum does not show.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace emplace::testing {

struct StateEntry {
  std::string name;
  char kind = 0;
  std::vector<std::int64_t> shape;
  std::string bytes;

  template <class T>
  std::vector<T> values() const {
    std::vector<T> result(bytes.size() / sizeof(T));
    if (!result.empty()) std::memcpy(result.data(), bytes.data(), result.size() * sizeof(T));
    return result;
  }
  template <class T>
  StateEntry with(const std::vector<T>& values) const {
    StateEntry changed = *this;
    changed.bytes.assign(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
    return changed;
  }
};

class StateEntries {
 public:
  explicit StateEntries(const std::string& file);
  std::string bytes() const;
  // With one entry in the place of that of its name.
  std::string with(const StateEntry& changed) const;

  std::vector<StateEntry> list;

 private:
  std::string head_;
};

// What an attacker would make of an entry: lists of other lengths, numbers out of range and numbers
// that are none.
struct StateChange {
  std::string what;
  StateEntry entry;
};
std::vector<StateChange> changes_of(const StateEntry& entry);

}  // namespace emplace::testing
