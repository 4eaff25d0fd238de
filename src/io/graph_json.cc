// emplace.graph/1: the graph format of docs/formats.md.
#include <algorithm>
#include <limits>

#include "graph/graph_builder.h"

#include "io/json_fields.h"
#include "io/readers.h"

namespace emplace {
namespace {

constexpr std::string_view kFormat = "emplace.graph/1";

std::vector<TensorId> tensor_ids(JsonValue value, std::string_view field) {
  std::vector<TensorId> result;
  for (const std::int64_t index : json_integers(value, field)) {
    if (index < 0) fail_input("{}: tensor index {} is negative", field, index);
    // Larger ones are refused by the builder, which knows how many tensors there are.
    result.push_back(
        static_cast<TensorId>(std::min<std::int64_t>(index, std::numeric_limits<TensorId>::max())));
  }
  return result;
}

TensorSpec read_tensor(simdjson::ondemand::object object) {
  TensorSpec spec;
  bool has_shape = false;
  for (auto field : object) {
    const std::string_view key = field.unescaped_key();
    if (key == "shape") {
      spec.shape = json_integers(field.value(), key);
      has_shape = true;
    } else if (key == "dtype") {
      const std::string name = json_string(field.value(), "dtype");
      const auto dtype = parse_dtype(name);
      if (!dtype)
        fail_input("dtype: '{}' is not known; expected one such as float32 or int64", name);
      spec.dtype = *dtype;
    } else if (key == "bytes") {
      spec.bytes = json_integer(field.value(), "bytes");
    } else if (key == "memory_bytes") {
      spec.memory_bytes = json_integer(field.value(), "memory_bytes");
    }
  }
  if (has_shape != (spec.dtype != DType::kUnknown)) fail_input("shape and dtype belong together");
  return spec;
}

std::vector<std::pair<std::string, Decimal>> read_times(JsonValue value) {
  std::vector<std::pair<std::string, Decimal>> times;
  for (auto field : json_object(value, "time_us")) {
    std::string device(std::string_view(field.unescaped_key()));
    times.emplace_back(std::move(device), json_decimal(field.value(), "time_us"));
  }
  return times;
}

std::string_view token_of(JsonValue value) {
  const std::string_view token = value.raw_json_token();
  return token.substr(0, token.find_last_not_of(" \n\r\t") + 1);
}

// Whole numbers and reals are told apart by how they are written: 2 and 2.0.
bool is_written_as_real(JsonValue value) {
  return token_of(value).find_first_of(".eE") != std::string_view::npos;
}

double read_real(JsonValue value, std::string_view field) {
  if (double real = 0; value.get_double().get(real) == simdjson::SUCCESS) return real;
  // JSON has no infinity; what is beyond every double stands for it.
  const auto number = Decimal::parse(token_of(value));
  if (!number || number->exponent <= std::numeric_limits<double>::max_exponent10) {
    fail_input("{}: '{}' is not a number", field, token_of(value));
  }
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  return number->negative() ? -kInfinity : kInfinity;
}

AttributeValue read_attribute_list(JsonValue list, std::string_view field) {
  std::vector<std::int64_t> integers;
  std::vector<double> reals;
  bool whole = true;
  for (auto item : json_array(list, field)) {
    JsonValue value = item.value();
    const simdjson::ondemand::json_type type = value.type();
    if (type != simdjson::ondemand::json_type::number) {
      fail_input("{}: expected a list of numbers", field);
    }
    whole = whole && !is_written_as_real(value);
    if (whole) integers.push_back(json_integer(value, field));
    reals.push_back(whole ? static_cast<double>(integers.back()) : read_real(value, field));
  }
  if (whole) return integers;
  return reals;
}

AttributeValue read_attribute(JsonValue value, std::string_view field) {
  const simdjson::ondemand::json_type type = value.type();
  switch (type) {
    case simdjson::ondemand::json_type::string:
      return json_string(value, field);
    case simdjson::ondemand::json_type::number:
      if (is_written_as_real(value)) return read_real(value, field);
      return json_integer(value, field);
    case simdjson::ondemand::json_type::array:
      return read_attribute_list(value, field);
    default:
      fail_input("{}: expected a number, a string or a list of numbers", field);
  }
}

Attributes read_attributes(JsonValue value) {
  Attributes attributes;
  for (auto field : json_object(value, "attributes")) {
    std::string name(std::string_view(field.unescaped_key()));
    if (name.empty()) fail_input("attributes: one has no name");
    if (attributes.find(name) != nullptr) fail_input("attributes: '{}' occurs twice", name);
    AttributeValue read = read_attribute(field.value(), fmt::format("attributes: {}", name));
    attributes.set(std::move(name), std::move(read));
  }
  return attributes;
}

Phase read_phase(JsonValue value) {
  const std::string name = json_string(value, "phase");
  const auto phase = parse_phase(name);
  if (!phase) fail_input("phase: '{}' is not one of forward, backward, update", name);
  return *phase;
}

void read_op_field(OpSpec& spec, std::string_view key, JsonValue value) {
  if (key == "name")
    spec.name = json_string(value, "name");
  else if (key == "type")
    spec.type = json_string(value, "type");
  else if (key == "inputs")
    spec.inputs = tensor_ids(value, "inputs");
  else if (key == "outputs")
    spec.outputs = tensor_ids(value, "outputs");
  else if (key == "phase")
    spec.phase = read_phase(value);
  else if (key == "flops")
    spec.flops = json_integer(value, "flops");
  else if (key == "bytes_moved")
    spec.bytes_moved = json_integer(value, "bytes_moved");
  else if (key == "time_us")
    spec.time_us = read_times(value);
  else if (key == "persistent_bytes")
    spec.persistent_bytes = json_integer(value, "persistent_bytes");
  else if (key == "temp_bytes")
    spec.temp_bytes = json_integer(value, "temp_bytes");
  else if (key == "view")
    spec.view = json_flag(value, "view");
  else if (key == "module")
    spec.module = json_string(value, "module");
  else if (key == "after")
    spec.after = json_strings(value, "after");
  else if (key == "colocate")
    spec.colocate = json_string(value, "colocate");
  else if (key == "devices")
    spec.devices = json_strings(value, "devices");
  else if (key == "attributes")
    spec.attributes = read_attributes(value);
}

// Adds every element of a list through `add`; errors say which element.
template <class Add>
void read_list(JsonValue list, std::string_view name, std::string_view singular, Add add) {
  std::size_t index = 0;
  std::string label;
  for (auto item : json_array(list, name)) {
    label.clear();
    try {
      add(json_object(item.value(), name), label);
    } catch (const Error& error) {
      // What the builder says names the op already.
      const std::string_view text = error.what();
      if (text.starts_with("op '") || text.starts_with("tensor ")) throw;
      throw error.in(label.empty() ? fmt::format("{} {}", singular, index)
                                   : fmt::format("{} '{}'", singular, label));
    }
    ++index;
  }
}

class GraphReader {
 public:
  explicit GraphReader(simdjson::ondemand::document& document) : document_(document) {}

  Graph read() {
    read_fields();
    // Ops refer to tensors, so a file that has them the other way round is read twice.
    if (!seen_ops_ && ops_wait_) {
      document_.rewind();
      read_fields();
    }
    expect_end(document_);
    if (format_ != kFormat)
      fail_input("format: expected \"{}\" instead of \"{}\"", kFormat, format_);
    if (!seen_tensors_) fail_input("tensors: is missing");
    if (!seen_ops_) fail_input("ops: is missing");
    return std::move(builder_).build();
  }

 private:
  void read_fields() {
    for (auto field : json_root(document_)) {
      const std::string_view key = field.unescaped_key();
      if (key == "format") {
        format_ = json_string(field.value(), "format");
      } else if (key == "name") {
        builder_.set_name(json_string(field.value(), "name"));
      } else if (key == "source") {
        builder_.set_source(json_string(field.value(), "source"));
      } else if (key == "tensors" && !seen_tensors_) {
        seen_tensors_ = true;
        read_tensors(field.value());
      } else if (key == "ops" && !seen_ops_) {
        ops_wait_ = !seen_tensors_;
        if (!ops_wait_) read_ops(field.value());
      }
    }
  }

  void read_tensors(JsonValue list) {
    read_list(list, "tensors", "tensor", [&](simdjson::ondemand::object object, std::string&) {
      builder_.add_tensor(read_tensor(object));
    });
  }

  void read_ops(JsonValue list) {
    seen_ops_ = true;
    read_list(list, "ops", "op", [&](simdjson::ondemand::object object, std::string& label) {
      OpSpec spec;
      for (auto field : object) {
        const std::string_view key = field.unescaped_key();
        read_op_field(spec, key, field.value());
        if (label.empty()) label = spec.name;
      }
      builder_.add_op(spec);
    });
  }

  simdjson::ondemand::document& document_;
  GraphBuilder builder_{""};
  std::string format_;
  bool seen_tensors_ = false;
  bool seen_ops_ = false;
  bool ops_wait_ = false;
};

}  // namespace

Graph read_graph_json(const std::string& text) {
  JsonText json(text);
  return reading_json([&] { return GraphReader(json.document()).read(); });
}

}  // namespace emplace
