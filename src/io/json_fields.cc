#include "io/json_fields.h"

#include <charconv>
#include <new>

namespace emplace {
namespace {

// To see what simdjson does not look at: whether the strings of a document have memory to be in.
class OpenDocument : public simdjson::ondemand::document {
 public:
  static bool has_memory(simdjson::ondemand::document& document) {
    return (document.*&OpenDocument::iter).string_buf_loc() != nullptr;
  }
};

// A value of the wrong type is the file's mistake; anything else wrong is broken JSON.
template <class T>
T expect(simdjson::simdjson_result<T>&& result, std::string_view field, std::string_view expected) {
  T value;
  const simdjson::error_code error = std::move(result).get(value);
  if (error == simdjson::SUCCESS) return value;
  if (error == simdjson::INCORRECT_TYPE || error == simdjson::NUMBER_ERROR ||
      error == simdjson::NUMBER_OUT_OF_RANGE) {
    fail_input("{}: expected {}", field, expected);
  }
  throw simdjson::simdjson_error(error);
}

}  // namespace

JsonText::JsonText(std::string_view text) : padded_(text) {
  // A copy that found no memory looks as if there was no text.
  if (padded_.data() == nullptr) throw std::bad_alloc();
  reading_json([&] { document_ = parser_.iterate(padded_); });
  if (!OpenDocument::has_memory(document_)) throw std::bad_alloc();
}

simdjson::ondemand::object json_root(simdjson::ondemand::document& document) {
  return expect(document.get_object(), "the file", "a JSON object");
}

void expect_end(simdjson::ondemand::document& document) {
  if (document.current_location().error() == simdjson::SUCCESS) {
    fail_input("malformed JSON: there is text after the end");
  }
}

namespace {

// A number's text; anything that is no JSON number is refused.
std::string_view number_text(JsonValue value, std::string_view field) {
  simdjson::ondemand::json_type type = value.type();
  if (type != simdjson::ondemand::json_type::number) fail_input("{}: expected a number", field);
  std::string_view token = value.raw_json_token();
  token = token.substr(0, token.find_last_not_of(" \n\r\t") + 1);
  // Decimal is lenient about what JSON is strict about (leading zeros, "1.").
  if (double ignored = 0; value.get_double().get(ignored) != simdjson::SUCCESS) {
    fail_input("{}: '{}' is not a number", field, token);
  }
  return token;
}

}  // namespace

Decimal json_decimal(JsonValue value, std::string_view field) {
  const std::string_view token = number_text(value, field);
  const auto parsed = Decimal::parse(token);
  if (!parsed) fail_input("{}: '{}' is not a number of at most 18 digits", field, token);
  return *parsed;
}

std::int64_t json_integer(JsonValue value, std::string_view field) {
  const std::string_view token = number_text(value, field);
  std::int64_t integer = 0;
  const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), integer);
  if (error == std::errc{} && end == token.data() + token.size()) return integer;
  // Not written as an integer; it may still be one, as 1e6 and 2.0 are.
  const auto number = Decimal::parse(token);
  if (!number) fail_input("{}: {} is out of range", field, token);
  if (number->exponent < 0) fail_input("{}: expected a whole number", field);
  const bool negative = number->negative();
  const auto magnitude =
      round_half_up({negative ? -number->mantissa : number->mantissa, number->exponent}, 1);
  if (!magnitude) fail_input("{}: {} is out of range", field, token);
  return negative ? -*magnitude : *magnitude;
}

std::uint64_t json_unsigned(JsonValue value, std::string_view field) {
  return expect(value.get_uint64(), field, "a whole number of at least 0");
}

bool json_flag(JsonValue value, std::string_view field) {
  return expect(value.get_bool(), field, "true or false");
}

std::string json_string(JsonValue value, std::string_view field) {
  return std::string(expect(value.get_string(), field, "a string"));
}

simdjson::ondemand::array json_array(JsonValue value, std::string_view field) {
  return expect(value.get_array(), field, "a list");
}

simdjson::ondemand::object json_object(JsonValue value, std::string_view field) {
  return expect(value.get_object(), field, "an object");
}

std::vector<std::string> json_strings(JsonValue value, std::string_view field) {
  std::vector<std::string> result;
  for (auto item : json_array(value, field)) result.push_back(json_string(item.value(), field));
  return result;
}

std::vector<std::int64_t> json_integers(JsonValue value, std::string_view field) {
  std::vector<std::int64_t> result;
  for (auto item : json_array(value, field)) result.push_back(json_integer(item.value(), field));
  return result;
}

}  // namespace emplace
