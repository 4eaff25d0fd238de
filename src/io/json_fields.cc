#include "io/json_fields.h"

namespace emplace {
namespace {

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
  reading_json([&] { document_ = parser_.iterate(padded_); });
}

simdjson::ondemand::object json_root(simdjson::ondemand::document& document) {
  return expect(document.get_object(), "the file", "a JSON object");
}

void expect_end(simdjson::ondemand::document& document) {
  if (document.current_location().error() == simdjson::SUCCESS) {
    fail_input("malformed JSON: there is text after the end");
  }
}

Decimal json_decimal(JsonValue value, std::string_view field) {
  if (simdjson::ondemand::json_type type = value.type(); type != simdjson::ondemand::json_type::number) {
    fail_input("{}: expected a number", field);
  }
  std::string_view token = value.raw_json_token();
  while (!token.empty() && (token.back() == ' ' || token.back() == '\n' || token.back() == '\r' ||
                            token.back() == '\t')) {
    token.remove_suffix(1);
  }
  // Read it as JSON too, which refuses what Decimal is lenient about (leading zeros, "1.").
  if (double ignored = 0; value.get_double().get(ignored) != simdjson::SUCCESS) {
    fail_input("{}: '{}' is not a number", field, token);
  }
  const auto parsed = Decimal::parse(token);
  if (!parsed) fail_input("{}: '{}' is not a number of at most 18 digits", field, token);
  return *parsed;
}

std::int64_t json_integer(JsonValue value, std::string_view field) {
  const Decimal number = json_decimal(value, field);
  const bool negative = number.negative();
  const Decimal magnitude{negative ? -number.mantissa : number.mantissa, number.exponent};
  const auto rounded = round_half_up(magnitude, 1);
  if (!rounded) fail_input("{}: {} is out of range", field, number.to_string());
  // Trailing zeros of the mantissa never stay behind the point, so whole numbers have exponent >= 0.
  if (number.exponent < 0) fail_input("{}: expected a whole number", field);
  return negative ? -*rounded : *rounded;
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
