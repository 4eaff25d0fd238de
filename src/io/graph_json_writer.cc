// emplace.graph/1 out: everything that a Graph holds, one line for each tensor and each op.
#include "io/graph_json_writer.h"

#include <charconv>
#include <cmath>
#include <iterator>

#include <fmt/format.h>

#include "base/error.h"

#include "graph/copy.h"

#include "io/json_quote.h"

namespace emplace {
namespace {

constexpr std::string_view kInfinity = "1e999";  // beyond every double; read back as infinity

bool is_plain(std::string_view text) {
  for (const char c : text) {
    if (c < ' ' || c > '~' || c == '"' || c == '\\') return false;
  }
  return true;
}

class GraphWriter {
 public:
  explicit GraphWriter(const Graph& graph) : graph_(graph) {}

  std::string write() && {
    constexpr std::size_t kBytesPerOp = 256;
    text_.reserve(kBytesPerOp * (graph_.num_ops() + std::size_t{1}));
    text_ += R"({"format": "emplace.graph/1", "name": )";
    quote(graph_.name());
    if (!graph_.source().empty()) {
      text_ += R"(, "source": )";
      quote(graph_.source());
    }
    text_ += ",\n \"tensors\": [";
    for (TensorId tensor = 0; tensor < graph_.num_tensors(); ++tensor) {
      text_ += tensor == 0 ? "\n  " : ",\n  ";
      add_tensor(tensor);
    }
    text_ += "],\n \"ops\": [";
    for (OpId op = 0; op < graph_.num_ops(); ++op) {
      text_ += op == 0 ? "\n  " : ",\n  ";
      add_op(op);
    }
    text_ += "]}\n";
    return std::move(text_);
  }

 private:
  void quote(std::string_view text) {
    if (!is_plain(text)) {
      text_ += json_quoted(text);
      return;
    }
    text_ += '"';
    text_ += text;
    text_ += '"';
  }

  void number(std::int64_t value) {
    char digits[24];
    text_.append(digits, std::to_chars(std::begin(digits), std::end(digits), value).ptr);
  }

  // The shortest text that reads back as the same double, and as a real: 2.0, not 2.
  void real(double value) {
    if (std::isinf(value)) {
      text_ += value < 0 ? "-" : "";
      text_ += kInfinity;
      return;
    }
    char digits[32];
    const std::string_view written(digits,
                                   std::to_chars(std::begin(digits), std::end(digits), value).ptr);
    text_ += written;
    if (written.find_first_of(".e") == std::string_view::npos) text_ += ".0";
  }

  // As people write it, "41.2", where that is short.
  void decimal(const Decimal& value) {
    constexpr std::int32_t kMostPlaces = 18;
    if (value.exponent >= 0 || value.exponent < -kMostPlaces || value.negative()) {
      text_ += value.to_string();
      return;
    }
    std::string digits = fmt::format("{}", value.mantissa);
    const auto places = static_cast<std::size_t>(-value.exponent);
    if (digits.size() <= places) digits.insert(0, places + 1 - digits.size(), '0');
    digits.insert(digits.size() - places, 1, '.');
    text_ += digits;
  }

  template <class List, class Add>
  void list(const List& items, Add add) {
    text_ += '[';
    bool first = true;
    for (const auto& item : items) {
      if (!first) text_ += ", ";
      first = false;
      add(item);
    }
    text_ += ']';
  }
  void numbers(const auto& items) {
    list(items, [this](std::int64_t item) { number(item); });
  }

  void key(std::string_view name) {
    text_ += ", \"";
    text_ += name;
    text_ += "\": ";
  }

  void add_tensor(TensorId tensor) {
    if (graph_.has_shape(tensor)) {
      text_ += R"({"shape": )";
      numbers(graph_.shape(tensor));
      key("dtype");
      quote(dtype_name(graph_.dtype(tensor)));
    } else {
      text_ += R"({"bytes": )";
      number(graph_.bytes(tensor));
    }
    const Bytes size = size_in_bytes(graph_, tensor);
    if (graph_.memory_bytes(tensor) != size) {
      key("memory_bytes");
      number(graph_.memory_bytes(tensor));
    }
    if (graph_.bytes(tensor) != size) {
      key("sent_bytes");
      number(graph_.bytes(tensor));
    }
    text_ += '}';
  }

  void add_op(OpId op) {
    text_ += R"({"name": )";
    quote(graph_.op_name(op));
    key("type");
    quote(graph_.type(op));
    key("inputs");
    numbers(graph_.inputs(op));
    key("outputs");
    numbers(graph_.outputs(op));
    if (graph_.phase(op) != Phase::kForward) {
      key("phase");
      quote(phase_name(graph_.phase(op)));
    }
    add_costs(op);
    if (graph_.is_view(op)) {
      key("view");
      text_ += "true";
    }
    if (!graph_.module(op).empty()) {
      key("module");
      quote(graph_.module(op));
    }
    add_rules(op);
    if (!graph_.attributes(op).empty()) add_attributes(op);
    text_ += '}';
  }

  void add_costs(OpId op) {
    if (const auto flops = graph_.flops(op)) {
      key("flops");
      number(*flops);
    }
    if (const auto bytes = graph_.bytes_moved(op)) {
      key("bytes_moved");
      number(*bytes);
    }
    if (!graph_.measured_times(op).empty()) {
      key("time_us");
      char before = '{';
      for (const MeasuredTime& time : graph_.measured_times(op)) {
        text_ += before;
        if (before == ',') text_ += ' ';
        before = ',';
        quote(graph_.strings().get(time.device));
        text_ += ": ";
        decimal(time.microseconds);
      }
      text_ += '}';
    }
    if (graph_.persistent_bytes(op) != 0) {
      key("persistent_bytes");
      number(graph_.persistent_bytes(op));
    }
    if (graph_.temp_bytes(op) != 0) {
      key("temp_bytes");
      number(graph_.temp_bytes(op));
    }
  }

  void add_rules(OpId op) {
    if (!graph_.after(op).empty()) {
      key("after");
      list(graph_.after(op), [this](OpId before) { quote(graph_.op_name(before)); });
    }
    if (!graph_.colocate(op).empty()) {
      key("colocate");
      quote(graph_.colocate(op));
    }
    if (!graph_.allowed_devices(op).empty()) {
      key("devices");
      list(graph_.allowed_devices(op),
           [this](StringId device) { quote(graph_.strings().get(device)); });
    }
  }

  void add_attributes(OpId op) {
    key("attributes");
    char before = '{';
    for (const Attributes::Entry& entry : graph_.attributes(op).entries()) {
      text_ += before;
      if (before == ',') text_ += ' ';
      before = ',';
      quote(entry.first);
      text_ += ": ";
      std::visit([&](const auto& held) { attribute(op, entry.first, held); }, entry.second);
    }
    text_ += '}';
  }

  void attribute(OpId, const std::string&, std::int64_t value) { number(value); }
  void attribute(OpId, const std::string&, const std::string& value) { quote(value); }
  void attribute(OpId, const std::string&, const std::vector<std::int64_t>& values) {
    numbers(values);
  }
  void attribute(OpId op, const std::string& name, double value) {
    if (std::isnan(value)) {
      fail_input("op '{}': attributes: {}: JSON cannot hold what is not a number",
                 graph_.op_name(op), name);
    }
    real(value);
  }
  void attribute(OpId op, const std::string& name, const std::vector<double>& values) {
    list(values, [&](double value) { attribute(op, name, value); });
  }

  const Graph& graph_;
  std::string text_;
};

}  // namespace

std::string write_graph_json(const Graph& graph) {
  return GraphWriter(graph).write();
}

}  // namespace emplace
