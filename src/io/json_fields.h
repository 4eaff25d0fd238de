// Typed reading of JSON values with simdjson's on-demand parser; every mismatch is an Error that
// names the field and what was expected. Numbers are taken from their text, so decimals are exact.
#pragma once

#include <cstdint>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include <simdjson.h>

#include "base/decimal.h"
#include "base/error.h"

namespace emplace {

// A document that owns its padded text.
class JsonText {
 public:
  // Throws an Error when the text is not JSON as far as can be seen before reading on. Memory that
  // ends is a bad_alloc, as everywhere, though simdjson itself throws none.
  explicit JsonText(std::string_view text);

  simdjson::ondemand::document& document() { return document_; }

 private:
  simdjson::padded_string padded_;
  simdjson::ondemand::parser parser_;
  simdjson::ondemand::document document_;
};

// The whole document as an object, which it must be.
simdjson::ondemand::object json_root(simdjson::ondemand::document& document);
// Throws an Error unless the document has been read to its end.
void expect_end(simdjson::ondemand::document& document);

using JsonValue = simdjson::ondemand::value;

Decimal json_decimal(JsonValue value, std::string_view field);
std::int64_t json_integer(JsonValue value, std::string_view field);
std::uint64_t json_unsigned(JsonValue value, std::string_view field);
bool json_flag(JsonValue value, std::string_view field);
std::string json_string(JsonValue value, std::string_view field);
std::vector<std::string> json_strings(JsonValue value, std::string_view field);
std::vector<std::int64_t> json_integers(JsonValue value, std::string_view field);
simdjson::ondemand::array json_array(JsonValue value, std::string_view field);
simdjson::ondemand::object json_object(JsonValue value, std::string_view field);

// Runs `body`, turning simdjson's own exceptions (text that breaks off, stray characters) to
// Errors.
template <class Body>
decltype(auto) reading_json(Body&& body) {
  try {
    return std::forward<Body>(body)();
  } catch (const simdjson::simdjson_error& error) {
    if (error.error() == simdjson::MEMALLOC) throw std::bad_alloc();
    fail_input("malformed JSON: {}", error.what());
  }
}

}  // namespace emplace
