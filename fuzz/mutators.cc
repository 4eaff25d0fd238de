#include "fuzz/mutators.h"

#include <algorithm>
#include <limits>
#include <random>
#include <vector>

#include <google/protobuf/message.h>
#include <nlohmann/json.hpp>
#include <onnx/onnx_pb.h>

namespace emplace::fuzz {
namespace {

using Json = nlohmann::ordered_json;
using Random = std::minstd_rand;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

std::size_t below(Random& random, std::size_t count) {
  return count == 0 ? 0 : random() % count;
}

std::string mutated(std::string text, MutateBytes mutate) {
  constexpr std::size_t kMore = 16;
  const std::size_t size = text.size();
  text.resize(size + kMore);
  text.resize(mutate(reinterpret_cast<std::uint8_t*>(text.data()), size, text.size()));
  return text;
}

// Numbers at which something changes, and any.
std::int64_t odd_number(Random& random, std::int64_t now) {
  using Limits = std::numeric_limits<std::int64_t>;
  const std::int64_t odd[] = {0,
                              1,
                              -1,
                              2,
                              64,
                              65'536,
                              std::int64_t{1} << 31,
                              std::int64_t{1} << 53,
                              std::int64_t{1} << 60,
                              Limits::max(),
                              Limits::min()};
  const std::size_t chosen = below(random, std::size(odd) + 3);
  if (chosen < std::size(odd)) return odd[chosen];
  if (chosen == std::size(odd)) return static_cast<std::int64_t>(random()) % 1000;
  const auto moved = static_cast<std::uint64_t>(now) + (chosen % 2 == 0 ? 1U : ~0U);
  return static_cast<std::int64_t>(moved);
}

double odd_real(Random& random) {
  constexpr double kOdd[] = {0, -0.0, 1e-320, 1e308, -1, 0.5, 1e18};
  return kOdd[below(random, std::size(kOdd))];
}

void collect(Json& value, std::vector<Json*>& all) {
  all.push_back(&value);
  if (value.is_structured()) {
    for (Json& item : value) collect(item, all);
  }
}

Json odd_json(Random& random) {
  switch (below(random, 7)) {
    case 0:
      return Json();
    case 1:
      return Json::array();
    case 2:
      return Json::object();
    case 3:
      return odd_number(random, 0);
    case 4:
      return odd_real(random);
    case 5:
      return below(random, 2) == 0;
    default:
      return "x";
  }
}

void change_list(Json& list, Random& random) {
  const auto at = static_cast<std::ptrdiff_t>(below(random, list.size()));
  switch (below(random, 4)) {
    case 0:
      list.erase(list.begin() + at);
      break;
    case 1: {
      const Json copy = list[static_cast<std::size_t>(at)];
      list.push_back(copy);
      break;
    }
    case 2:
      std::swap(list[static_cast<std::size_t>(at)], list[below(random, list.size())]);
      break;
    default:
      list.push_back(odd_json(random));
  }
}

void change_object(Json& object, Random& random, MutateBytes mutate) {
  auto member = object.begin();
  std::advance(member, static_cast<std::ptrdiff_t>(below(random, object.size())));
  const std::string key = member.key();
  switch (below(random, 3)) {
    case 0:
      object.erase(key);
      break;
    case 1: {
      const Json value = object[key];
      object[mutated(key, mutate)] = value;
      break;
    }
    default:
      object[key] = odd_json(random);
  }
}

void change(Json& value, Random& random, MutateBytes mutate) {
  if (below(random, 8) == 0) {
    value = odd_json(random);
  } else if (value.is_array() && !value.empty()) {
    change_list(value, random);
  } else if (value.is_object() && !value.empty()) {
    change_object(value, random, mutate);
  } else if (value.is_string()) {
    value = mutated(value.get<std::string>(), mutate);
  } else if (value.is_number_integer()) {
    value = odd_number(random, value.get<std::int64_t>());
  } else {
    value = odd_json(random);
  }
}

void collect_messages(Message& message, std::vector<Message*>& all) {
  all.push_back(&message);
  const Reflection& reflection = *message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    if (!field->is_repeated()) {
      collect_messages(*reflection.MutableMessage(&message, field), all);
      continue;
    }
    for (int i = 0; i < reflection.FieldSize(message, field); ++i) {
      collect_messages(*reflection.MutableRepeatedMessage(&message, field, i), all);
    }
  }
}

// Sets the field, or adds to it.
void set_field(Message& message, const FieldDescriptor* field, Random& random, MutateBytes mutate) {
  const Reflection& reflection = *message.GetReflection();
  const bool list = field->is_repeated();
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT64: {
      const std::int64_t value = odd_number(random, list ? 0 : reflection.GetInt64(message, field));
      list ? reflection.AddInt64(&message, field, value)
           : reflection.SetInt64(&message, field, value);
      break;
    }
    case FieldDescriptor::CPPTYPE_INT32: {
      const auto value = static_cast<std::int32_t>(odd_number(random, 1));
      list ? reflection.AddInt32(&message, field, value)
           : reflection.SetInt32(&message, field, value);
      break;
    }
    case FieldDescriptor::CPPTYPE_UINT64: {
      const auto value = static_cast<std::uint64_t>(odd_number(random, 1));
      list ? reflection.AddUInt64(&message, field, value)
           : reflection.SetUInt64(&message, field, value);
      break;
    }
    case FieldDescriptor::CPPTYPE_FLOAT: {
      const auto value = static_cast<float>(odd_real(random) > 1e30 ? 1e30 : odd_real(random));
      list ? reflection.AddFloat(&message, field, value)
           : reflection.SetFloat(&message, field, value);
      break;
    }
    case FieldDescriptor::CPPTYPE_DOUBLE: {
      const double value = odd_real(random);
      list ? reflection.AddDouble(&message, field, value)
           : reflection.SetDouble(&message, field, value);
      break;
    }
    case FieldDescriptor::CPPTYPE_STRING: {
      const std::string now = list ? "a" : reflection.GetString(message, field);
      list ? reflection.AddString(&message, field, mutated(now, mutate))
           : reflection.SetString(&message, field, mutated(now, mutate));
      break;
    }
    case FieldDescriptor::CPPTYPE_ENUM: {
      const int value = static_cast<int>(below(random, 24));
      list ? reflection.AddEnumValue(&message, field, value)
           : reflection.SetEnumValue(&message, field, value);
      break;
    }
    case FieldDescriptor::CPPTYPE_MESSAGE:
      list ? reflection.AddMessage(&message, field) : reflection.MutableMessage(&message, field);
      break;
    default:
      break;
  }
}

// An element of a list: once more, elsewhere, or no longer.
void change_elements(Message& message, const FieldDescriptor* field, Random& random) {
  const Reflection& reflection = *message.GetReflection();
  const int size = reflection.FieldSize(message, field);
  const auto any = [&] { return static_cast<int>(below(random, static_cast<std::size_t>(size))); };
  switch (below(random, 3)) {
    case 0:
      reflection.RemoveLast(&message, field);
      break;
    case 1:
      reflection.SwapElements(&message, field, any(), any());
      break;
    default:
      if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
        const int from = any();
        Message* added = reflection.AddMessage(&message, field);
        added->CopyFrom(reflection.GetRepeatedMessage(message, field, from));
      }
  }
}

void change(Message& message, Random& random, MutateBytes mutate) {
  const Reflection& reflection = *message.GetReflection();
  std::vector<const FieldDescriptor*> present;
  reflection.ListFields(message, &present);
  const bool any = present.empty() || below(random, 4) == 0;
  const auto* descriptor = message.GetDescriptor();
  if (any && descriptor->field_count() == 0) return;
  const FieldDescriptor* field =
      any ? descriptor->field(static_cast<int>(
                below(random, static_cast<std::size_t>(descriptor->field_count()))))
          : present[below(random, present.size())];
  const bool filled = field->is_repeated() && reflection.FieldSize(message, field) > 0;
  if (filled && below(random, 2) == 0) {
    change_elements(message, field, random);
  } else if (below(random, 6) == 0) {
    reflection.ClearField(&message, field);
  } else {
    set_field(message, field, random, mutate);
  }
}

}  // namespace

std::string mutate_json(std::string_view bytes, unsigned seed, MutateBytes mutate) {
  Json json = Json::parse(bytes, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return {};
  Random random(seed);
  for (std::size_t times = 1 + below(random, 3); times > 0; --times) {
    std::vector<Json*> all;
    collect(json, all);
    change(*all[below(random, all.size())], random, mutate);
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::ignore);
}

std::string mutate_onnx(std::string_view bytes, unsigned seed, MutateBytes mutate) {
  onnx::ModelProto model;
  if (bytes.empty() || !model.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return {};
  }
  Random random(seed);
  for (std::size_t times = 1 + below(random, 3); times > 0; --times) {
    std::vector<Message*> all;
    collect_messages(model, all);
    change(*all[below(random, all.size())], random, mutate);
  }
  return model.SerializePartialAsString();
}

}  // namespace emplace::fuzz
