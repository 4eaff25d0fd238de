#include "graph/attributes.h"

#include <algorithm>

namespace emplace {
namespace {

bool named_before(const Attributes::Entry& entry, std::string_view name) {
  return entry.first < name;
}

// The copy is whole before it becomes a variant.
AttributeValue copied(const AttributeValue& value) {
  return std::visit(
      [](const auto& held) {
        auto copy = held;
        return AttributeValue(std::move(copy));
      },
      value);
}

}  // namespace

Attributes::Attributes(std::initializer_list<Entry> entries) {
  for (const Entry& entry : entries) set(entry.first, copied(entry.second));
}

Attributes::Attributes(const Attributes& other) {
  entries_.reserve(other.entries_.size());
  for (const auto& [name, value] : other.entries_) entries_.emplace_back(name, copied(value));
}

Attributes& Attributes::operator=(const Attributes& other) {
  if (this != &other) *this = Attributes(other);
  return *this;
}

void Attributes::set(std::string name, AttributeValue value) {
  const auto at = std::lower_bound(entries_.begin(), entries_.end(), name, named_before);
  if (at != entries_.end() && at->first == name) {
    at->second = std::move(value);
  } else {
    entries_.insert(at, {std::move(name), std::move(value)});
  }
}

const AttributeValue* Attributes::find(std::string_view name) const {
  const auto at = std::lower_bound(entries_.begin(), entries_.end(), name, named_before);
  return at != entries_.end() && at->first == name ? &at->second : nullptr;
}

std::int64_t Attributes::integer(std::string_view name, std::int64_t otherwise) const {
  const AttributeValue* value = find(name);
  const auto* integer = value == nullptr ? nullptr : std::get_if<std::int64_t>(value);
  return integer == nullptr ? otherwise : *integer;
}

double Attributes::real(std::string_view name, double otherwise) const {
  const AttributeValue* value = find(name);
  if (value == nullptr) return otherwise;
  if (const auto* real = std::get_if<double>(value)) return *real;
  if (const auto* integer = std::get_if<std::int64_t>(value)) return static_cast<double>(*integer);
  return otherwise;
}

std::string_view Attributes::text(std::string_view name, std::string_view otherwise) const {
  const AttributeValue* value = find(name);
  const auto* text = value == nullptr ? nullptr : std::get_if<std::string>(value);
  return text == nullptr ? otherwise : std::string_view(*text);
}

std::span<const std::int64_t> Attributes::integers(std::string_view name) const {
  const AttributeValue* value = find(name);
  const auto* list = value == nullptr ? nullptr : std::get_if<std::vector<std::int64_t>>(value);
  return list == nullptr ? std::span<const std::int64_t>() : std::span<const std::int64_t>(*list);
}

}  // namespace emplace
