#include "base/string_pool.h"

#include <functional>

namespace emplace {

std::size_t StringPool::slot_of(std::string_view text) const {
  const std::size_t mask = slots_.size() - 1;
  std::size_t at = std::hash<std::string_view>{}(text)&mask;
  while (slots_[at] != 0 && get(slots_[at] - 1) != text) at = (at + 1) & mask;
  return at;
}

std::optional<StringId> StringPool::find(std::string_view text) const {
  const std::uint32_t entry = slots_[slot_of(text)];
  if (entry == 0) return std::nullopt;
  return entry - 1;
}

StringId StringPool::intern(std::string_view text) {
  const std::size_t at = slot_of(text);
  if (slots_[at] != 0) return slots_[at] - 1;
  const StringId id = size();
  buffer_.append(text);
  offsets_.push_back(buffer_.size());
  slots_[at] = id + 1;
  if (2 * static_cast<std::size_t>(size()) > slots_.size()) grow();
  return id;
}

void StringPool::grow() {
  slots_.assign(slots_.size() * 2, 0);
  for (StringId id = 0; id < size(); ++id) slots_[slot_of(get(id))] = id + 1;
}

}  // namespace emplace
