// emplace.graph/1 in (docs/formats.md): one pass over the text, objects by tables of their fields,
// handed to the GraphBuilder one by one, so that memory is that of the graph and the text. A file
// whose ops come before its tensors is passed over twice. Linear in the text's length.
//
// What a field of the format says is checked here; what ops and tensors say of each other, by the
// builder. A field that the format does not have is an error: a misspelt one would otherwise take
// its default in silence.
#include <algorithm>
#include <array>
#include <limits>
#include <optional>

#include "base/options.h"

#include "graph/graph_builder.h"

#include "io/json_fields.h"
#include "io/readers.h"

namespace emplace {
namespace {

constexpr std::string_view kGraphFormat = "emplace.graph/1";
constexpr std::string_view kForOtherPrograms = "x-";  // fields that begin so are skipped

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

DType read_dtype(JsonValue value, std::string_view field) {
  const std::string name = json_string(value, field);
  const auto dtype = parse_dtype(name);
  if (!dtype)
    fail_input("{}: '{}' is not known; expected one such as float32 or int64", field, name);
  return *dtype;
}

std::vector<std::pair<std::string, Decimal>> read_times(JsonValue value, std::string_view field) {
  std::vector<std::pair<std::string, Decimal>> times;
  for (auto entry : json_object(value, field)) {
    std::string device(std::string_view(entry.unescaped_key()));
    times.emplace_back(std::move(device), json_decimal(entry.value(), field));
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

Attributes read_attributes(JsonValue value, std::string_view field) {
  Attributes attributes;
  for (auto entry : json_object(value, field)) {
    std::string name(std::string_view(entry.unescaped_key()));
    if (name.empty()) fail_input("{}: one has no name", field);
    if (attributes.find(name) != nullptr) fail_input("{}: '{}' occurs twice", field, name);
    AttributeValue read = read_attribute(entry.value(), fmt::format("{}: {}", field, name));
    attributes.set(std::move(name), std::move(read));
  }
  return attributes;
}

Phase read_phase(JsonValue value, std::string_view field) {
  const std::string name = json_string(value, field);
  const auto phase = parse_phase(name);
  if (!phase) fail_input("{}: '{}' is not one of forward, backward, update", field, name);
  return *phase;
}

// A field of an object that is read to a `Spec`.
template <class Spec>
struct Field {
  std::string_view name;
  void (*read)(Spec& spec, JsonValue value, std::string_view name);
};

template <auto kMember, auto kRead, class Spec>
void set(Spec& spec, JsonValue value, std::string_view field) {
  spec.*kMember = kRead(value, field);
}

constexpr std::array<Field<OpSpec>, 16> kOpFields{{
    {"name", set<&OpSpec::name, json_string>},
    {"type", set<&OpSpec::type, json_string>},
    {"inputs", set<&OpSpec::inputs, tensor_ids>},
    {"outputs", set<&OpSpec::outputs, tensor_ids>},
    {"phase", set<&OpSpec::phase, read_phase>},
    {"flops", set<&OpSpec::flops, json_integer>},
    {"time_us", set<&OpSpec::time_us, read_times>},
    {"bytes_moved", set<&OpSpec::bytes_moved, json_integer>},
    {"persistent_bytes", set<&OpSpec::persistent_bytes, json_integer>},
    {"temp_bytes", set<&OpSpec::temp_bytes, json_integer>},
    {"view", set<&OpSpec::view, json_flag>},
    {"module", set<&OpSpec::module, json_string>},
    {"after", set<&OpSpec::after, json_strings>},
    {"colocate", set<&OpSpec::colocate, json_string>},
    {"devices", set<&OpSpec::devices, json_strings>},
    {"attributes", set<&OpSpec::attributes, read_attributes>},
}};

struct TensorEntry : TensorSpec {
  bool has_shape = false;  // a scalar's is empty
};

void read_shape(TensorEntry& tensor, JsonValue value, std::string_view field) {
  tensor.shape = json_integers(value, field);
  tensor.has_shape = true;
}

constexpr std::array<Field<TensorEntry>, 5> kTensorFields{{
    {"shape", read_shape},
    {"dtype", set<&TensorEntry::dtype, read_dtype>},
    {"bytes", set<&TensorEntry::bytes, json_integer>},
    {"memory_bytes", set<&TensorEntry::memory_bytes, json_integer>},
    {"sent_bytes", set<&TensorEntry::sent_bytes, json_integer>},
}};

// Reads an object to `spec` and returns the first of its fields that it may not have. The caller
// refuses that one when all has been read, so that the error can say which object it is.
template <class Spec, std::size_t kCount>
std::optional<std::string> read_known(simdjson::ondemand::object object,
                                      const std::array<Field<Spec>, kCount>& fields, Spec& spec) {
  std::optional<std::string> unknown;
  std::array<bool, kCount> seen{};
  for (auto entry : object) {
    const std::string_view name = entry.unescaped_key();
    const auto field = std::find_if(fields.begin(), fields.end(),
                                    [&](const auto& known) { return known.name == name; });
    if (field != fields.end()) {
      bool& met = seen[static_cast<std::size_t>(field - fields.begin())];
      if (met) fail_input("{}: is given twice", name);
      met = true;
      field->read(spec, entry.value(), name);
    } else if (!unknown && !name.starts_with(kForOtherPrograms)) {
      unknown = name;
    }
  }
  return unknown;
}

template <class Spec, std::size_t kCount>
[[noreturn]] void fail_unknown(const std::string& name,
                               const std::array<Field<Spec>, kCount>& fields) {
  std::vector<std::string> known;
  for (const Field<Spec>& field : fields) known.emplace_back(field.name);
  fail_input("unknown field '{}'{}; expected one of: {}", name, suggestion(name, known),
             fmt::join(known, ", "));
}

std::string label(const OpSpec& op, std::size_t index) {
  return op.name.empty() ? fmt::format("op {}", index) : fmt::format("op '{}'", op.name);
}

std::string label(const TensorEntry&, std::size_t index) {
  return fmt::format("tensor {}", index);
}

// Hands every element of a list to `add`; errors say which element.
template <class Spec, std::size_t kCount, class Add>
void read_list(JsonValue list, std::string_view name, const std::array<Field<Spec>, kCount>& fields,
               Add add) {
  std::size_t index = 0;
  for (auto item : json_array(list, name)) {
    Spec spec;
    try {
      const auto unknown = read_known(json_object(item.value(), name), fields, spec);
      if (unknown) fail_unknown(*unknown, fields);
      add(spec);
    } catch (const Error& error) {
      // What the builder says names the op already.
      const std::string_view text = error.what();
      if (text.starts_with("op '") || text.starts_with("tensor ")) throw;
      throw error.in(label(spec, index));
    }
    ++index;
  }
}

class GraphReader {
 public:
  explicit GraphReader(simdjson::ondemand::document& document) : document_(document) {}

  Graph read() {
    auto unknown = read_fields();
    // Ops refer to tensors, so a file that has them the other way round is read twice.
    if (!seen_ops_ && ops_wait_) {
      document_.rewind();
      unknown = read_fields();
    }
    expect_end(document_);
    if (format_ != kGraphFormat)
      fail_input("format: expected \"{}\" instead of \"{}\"", kGraphFormat, format_);
    if (unknown) with_context("top level", [&] { fail_unknown(*unknown, kFields); });
    if (!seen_tensors_) fail_input("tensors: is missing");
    if (!seen_ops_) fail_input("ops: is missing");
    return std::move(builder_).build();
  }

 private:
  static const std::array<Field<GraphReader>, 6> kFields;

  std::optional<std::string> read_fields() {
    return read_known(json_root(document_), kFields, *this);
  }

  void read_tensors(JsonValue list, std::string_view field) {
    if (seen_tensors_) return;
    seen_tensors_ = true;
    read_list(list, field, kTensorFields, [&](const TensorEntry& tensor) {
      if (tensor.has_shape != (tensor.dtype != DType::kUnknown)) {
        fail_input("shape and dtype belong together");
      }
      builder_.add_tensor(tensor);
    });
  }

  void read_ops(JsonValue list, std::string_view field) {
    if (seen_ops_) return;
    ops_wait_ = !seen_tensors_;
    if (ops_wait_) return;
    seen_ops_ = true;
    read_list(list, field, kOpFields, [&](const OpSpec& op) { builder_.add_op(op); });
  }

  simdjson::ondemand::document& document_;
  GraphBuilder builder_{""};
  std::string format_;
  bool seen_tensors_ = false;
  bool seen_ops_ = false;
  bool ops_wait_ = false;
};

constexpr std::array<Field<GraphReader>, 6> GraphReader::kFields{{
    {"format", set<&GraphReader::format_, json_string>},
    {"name", [](GraphReader& reader, JsonValue value,
                std::string_view field) { reader.builder_.set_name(json_string(value, field)); }},
    {"source",
     [](GraphReader& reader, JsonValue value, std::string_view field) {
       reader.builder_.set_source(json_string(value, field));
     }},
    {"measured_step_us", [](GraphReader&, JsonValue, std::string_view) {}},  // for people
    {"tensors", [](GraphReader& reader, JsonValue value,
                   std::string_view field) { reader.read_tensors(value, field); }},
    {"ops", [](GraphReader& reader, JsonValue value,
               std::string_view field) { reader.read_ops(value, field); }},
}};

}  // namespace

Graph read_graph_json(const std::string& text) {
  JsonText json(text);
  return reading_json([&] { return GraphReader(json.document()).read(); });
}

}  // namespace emplace
