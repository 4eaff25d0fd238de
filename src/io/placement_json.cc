#include <nlohmann/json.hpp>

#include "io/json_fields.h"
#include "io/json_quote.h"
#include "io/placement_file.h"

namespace emplace {
namespace {

constexpr std::string_view kPlacementFormat = "emplace.placement/1";

class PlacementReader {
 public:
  explicit PlacementReader(const Problem& problem) : problem_(problem) {
    file_.placement.assign(problem.num_ops(), kNoDevice);
  }

  PlacementFile read(simdjson::ondemand::document& document) {
    if (document.type() == simdjson::ondemand::json_type::array) {
      read_devices(document.get_array());
      expect_end(document);
      check_placement(problem_, file_.placement);
      return std::move(file_);
    }
    bool assigned = false;
    for (auto field : json_root(document)) {
      const std::string_view key = field.unescaped_key();
      if (key == "format") {
        const std::string format = json_string(field.value(), "format");
        if (format != kPlacementFormat)
          fail_input("format: expected \"{}\" instead of \"{}\"", kPlacementFormat, format);
      } else if (key == "graph") {
        file_.graph = json_string(field.value(), "graph");
      } else if (key == "cluster") {
        file_.cluster = json_string(field.value(), "cluster");
      } else if (key == "placer") {
        file_.placer = json_string(field.value(), "placer");
      } else if (key == "seed") {
        file_.seed = json_unsigned(field.value(), "seed");
      } else if (key == "made_with") {
        read_made_with(json_object(field.value(), "made_with"));
      } else if (key == "assignment") {
        assigned = true;
        read_assignment(field.value());
      } else if (key == "groups") {
        assigned = true;
        read_groups(json_array(field.value(), "groups"));
      } else if (key == "priorities") {
        read_priorities(field.value());
      }
    }
    expect_end(document);
    if (!assigned) fail_input("assignment: is missing");
    require_all();
    check_placement(problem_, file_.placement);
    return std::move(file_);
  }

 private:
  OpId find_op(std::string_view name, std::string_view field) const {
    const auto op = problem_.graph().find_op(name);
    if (!op) {
      fail_input("{}: graph '{}' has no op '{}'{}", field, problem_.graph().name(), name,
                 hint(name));
    }
    return *op;
  }

  void read_made_with(simdjson::ondemand::object object) {
    MadeWith& made = file_.made_with;
    for (auto field : object) {
      const std::string key(std::string_view(field.unescaped_key()));
      const std::string where = "made_with." + key;
      if (key == "dims") {
        for (auto dim : json_object(field.value(), where)) {
          const std::string name(std::string_view(dim.unescaped_key()));
          made.dims[name] = json_integer(dim.value(), where + "." + name);
        }
      } else if (key == "training") {
        made.training = json_flag(field.value(), where);
      } else if (key == "optimizer") {
        made.optimizer = json_string(field.value(), where);
      } else if (key == "colocate_gradients") {
        made.colocate_gradients = json_flag(field.value(), where);
      } else if (key == "recompute") {
        made.recompute = json_strings(field.value(), where);
      } else if (key == "granularity") {
        made.granularity = json_string(field.value(), where);
      } else if (key == "batch") {
        made.batch = json_integer(field.value(), where);
      } else if (key == "precision") {
        made.precision = json_string(field.value(), where);
      } else if (key == "in_place") {
        made.in_place = json_string(field.value(), where);
      }
    }
  }

  // Names that a training step gives to its gradients and updates.
  std::string_view hint(std::string_view name) const {
    const Graph& graph = problem_.graph();
    const bool of_training = name.find("/grad") != std::string_view::npos ||
                             name.find("/update") != std::string_view::npos;
    for (OpId op = 0; op < graph.num_ops(); ++op) {
      if (graph.phase(op) != Phase::kForward) return "";
    }
    return of_training ? kHintAtTraining : "";
  }

  DeviceId find_device(OpId op, std::string_view name) const {
    const auto device = problem_.cluster().find_device(name);
    if (device) return *device;
    fail_input("op '{}': cluster '{}' has no device '{}'", problem_.graph().op_name(op),
               problem_.cluster().name(), name);
  }

  void read_assignment(JsonValue value) {
    if (value.type() == simdjson::ondemand::json_type::array) {
      read_devices(value.get_array());
      return;
    }
    for (auto field : json_object(value, "assignment")) {
      const std::string name(std::string_view(field.unescaped_key()));
      const OpId op = find_op(name, "assignment");
      const DeviceId device =
          find_device(op, json_string(field.value(), "assignment of op '" + name + "'"));
      if (file_.placement[op] != kNoDevice) fail_input("op '{}': is placed twice", name);
      file_.placement[op] = device;
    }
  }

  // A device's name, or its number from 0, for each of `count` things; `place` takes them in turn.
  template <class Place>
  static void read_list(simdjson::ondemand::array list, std::size_t count, std::string_view what,
                        const Place& place) {
    std::size_t i = 0;
    for (auto item : list) {
      if (i < count) place(i, item.value());
      ++i;
    }
    if (i != count) {
      fail_input("expected {} devices, one for each {}, instead of {}", count, what, i);
    }
  }

  void read_devices(simdjson::ondemand::array list) {
    read_list(list, problem_.num_ops(), "op", [&](std::size_t op, JsonValue value) {
      file_.placement[op] = read_device(static_cast<OpId>(op), value);
    });
  }

  void read_groups(simdjson::ondemand::array list) {
    read_list(list, problem_.num_groups(), "group", [&](std::size_t group, JsonValue value) {
      const auto ops = problem_.group_ops(static_cast<GroupId>(group));
      const DeviceId device = read_device(ops[0], value);
      for (const OpId op : ops) file_.placement[op] = device;
    });
  }

  DeviceId read_device(OpId op, JsonValue value) const {
    if (value.type() == simdjson::ondemand::json_type::string) {
      return find_device(op, std::string_view(value.get_string()));
    }
    std::int64_t number = -1;
    if (value.get_int64().get(number) != simdjson::SUCCESS || number < 0 ||
        number >= problem_.num_devices()) {
      fail_input("op '{}': expected a device's name or its number, 0 to {}",
                 problem_.graph().op_name(op), problem_.num_devices() - 1);
    }
    return static_cast<DeviceId>(number);
  }

  void read_priorities(JsonValue value) {
    std::vector<std::int64_t>& priorities = file_.schedule.priorities;
    if (value.type() == simdjson::ondemand::json_type::array) {
      priorities = json_integers(value, "priorities");
      if (priorities.size() == problem_.num_ops()) return;
      fail_input("priorities: expected {} numbers, one for each op, instead of {}",
                 problem_.num_ops(), priorities.size());
    }
    priorities.assign(problem_.num_ops(), 0);
    for (auto field : json_object(value, "priorities")) {
      const std::string name(std::string_view(field.unescaped_key()));
      const OpId op = find_op(name, "priorities");
      priorities[op] = json_integer(field.value(), "priority of op '" + name + "'");
    }
  }

  void require_all() const {
    for (OpId op = 0; op < problem_.num_ops(); ++op) {
      if (file_.placement[op] != kNoDevice) continue;
      const std::string& graph = problem_.graph().name();
      const bool other = !file_.graph.empty() && file_.graph != graph;
      fail_input(
          "op '{}': is not placed{}", problem_.graph().op_name(op),
          other ? fmt::format("; the file is for graph '{}', not '{}'", file_.graph, graph) : "");
    }
  }

  const Problem& problem_;
  PlacementFile file_;
};

}  // namespace

std::string made_with_json(const MadeWith& made) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  if (!made.dims.empty()) json["dims"] = made.dims;
  if (made.training) json["training"] = true;
  if (!made.optimizer.empty()) json["optimizer"] = made.optimizer;
  if (made.colocate_gradients) json["colocate_gradients"] = true;
  if (!made.recompute.empty()) json["recompute"] = made.recompute;
  if (!made.granularity.empty()) json["granularity"] = made.granularity;
  if (made.batch > 0) json["batch"] = made.batch;
  if (!made.precision.empty()) json["precision"] = made.precision;
  if (!made.in_place.empty()) json["in_place"] = made.in_place;
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

PlacementFile read_placement_json(const std::string& text, const Problem& problem) {
  JsonText json(text);
  return reading_json([&] { return PlacementReader(problem).read(json.document()); });
}

PlacementNames read_placement_names(const std::string& text) {
  JsonText json(text);
  return reading_json([&] {
    PlacementNames names;
    for (auto field : json_root(json.document())) {
      const std::string_view key = field.unescaped_key();
      if (key == "format") {
        const std::string format = json_string(field.value(), "format");
        if (format != kPlacementFormat)
          fail_input("format: expected \"{}\" instead of \"{}\"", kPlacementFormat, format);
      } else if (key == "graph") {
        names.graph = json_string(field.value(), "graph");
      } else if (key == "cluster") {
        names.cluster = json_string(field.value(), "cluster");
      } else if (key == "placer") {
        names.placer = json_string(field.value(), "placer");
      } else if (key == "predicted") {
        for (auto part : json_object(field.value(), "predicted")) {
          const std::string_view inner = part.unescaped_key();
          if (inner == "step_ns") names.step = json_integer(part.value(), "predicted.step_ns");
        }
      } else if (key == "assignment") {
        JsonValue value = field.value();
        if (value.type() != simdjson::ondemand::json_type::object) {
          fail_input("assignment: expected an object of op names and device names");
        }
        for (auto part : json_object(value, "assignment")) {
          std::string op(std::string_view(part.unescaped_key()));
          std::string device = json_string(part.value(), "assignment of op '" + op + "'");
          names.assignment.emplace_back(std::move(op), std::move(device));
        }
      }
    }
    expect_end(json.document());
    if (names.assignment.empty()) fail_input("assignment: is missing or empty");
    return names;
  });
}

std::string write_placement_json(const Problem& problem, const PlacementFile& file) {
  nlohmann::ordered_json json;
  json["format"] = kPlacementFormat;
  json["graph"] = file.graph;
  json["cluster"] = file.cluster;
  json["placer"] = file.placer;
  json["seed"] = file.seed;
  if (!file.made_with.empty()) {
    json["made_with"] = nlohmann::ordered_json::parse(made_with_json(file.made_with));
  }
  if (file.predicted) {
    json["predicted"] = {{"step_ns", file.predicted->step},
                         {"fits", file.predicted->fits},
                         {"lower_bound_ns", file.predicted->lower_bound}};
    if (file.predicted->period) json["predicted"]["period_ns"] = *file.predicted->period;
    if (file.predicted->in_flight > 0) json["predicted"]["in_flight"] = file.predicted->in_flight;
  }
  // Written by hand: an ordered_json of a million names is quadratic.
  std::string text = json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  text.pop_back();
  const auto write_map = [&](std::string_view key, auto value_of) {
    text += fmt::format(",\n\"{}\":{{", key);
    for (OpId op = 0; op < problem.num_ops(); ++op) {
      text += op == 0 ? "\n" : ",\n";
      text += json_quoted(problem.graph().op_name(op));
      text += ':';
      text += value_of(op);
    }
    text += "}";
  };
  write_map("assignment", [&](OpId op) {
    return json_quoted(problem.cluster().device(file.placement[op]).name);
  });
  if (!file.schedule.fifo()) {
    write_map("priorities",
              [&](OpId op) { return fmt::format("{}", file.schedule.priorities[op]); });
  }
  return text + "}\n";
}

}  // namespace emplace
