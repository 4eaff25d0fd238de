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
        read_assignment(json_object(field.value(), "assignment"));
      } else if (key == "priorities") {
        read_priorities(json_object(field.value(), "priorities"));
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

  void read_assignment(simdjson::ondemand::object object) {
    for (auto field : object) {
      const std::string name(std::string_view(field.unescaped_key()));
      const OpId op = find_op(name, "assignment");
      const std::string device_name = json_string(field.value(), "assignment of op '" + name + "'");
      const auto device = problem_.cluster().find_device(device_name);
      if (!device) {
        fail_input("op '{}': cluster '{}' has no device '{}'", name, problem_.cluster().name(),
                   device_name);
      }
      if (file_.placement[op] != kNoDevice) fail_input("op '{}': is placed twice", name);
      file_.placement[op] = *device;
    }
  }

  void read_priorities(simdjson::ondemand::object object) {
    file_.schedule.priorities.assign(problem_.num_ops(), 0);
    for (auto field : object) {
      const std::string name(std::string_view(field.unescaped_key()));
      const OpId op = find_op(name, "priorities");
      file_.schedule.priorities[op] = json_integer(field.value(), "priority of op '" + name + "'");
    }
  }

  void require_all() const {
    for (OpId op = 0; op < problem_.num_ops(); ++op) {
      if (file_.placement[op] == kNoDevice)
        fail_input("op '{}': is not placed", problem_.graph().op_name(op));
    }
  }

  const Problem& problem_;
  PlacementFile file_;
};

}  // namespace

namespace {

nlohmann::ordered_json made_with_json(const MadeWith& made) {
  nlohmann::ordered_json json;
  if (!made.dims.empty()) json["dims"] = made.dims;
  if (made.training) json["training"] = true;
  if (!made.optimizer.empty()) json["optimizer"] = made.optimizer;
  if (made.colocate_gradients) json["colocate_gradients"] = true;
  if (!made.recompute.empty()) json["recompute"] = made.recompute;
  if (!made.granularity.empty()) json["granularity"] = made.granularity;
  return json;
}

}  // namespace

PlacementFile read_placement_json(const std::string& text, const Problem& problem) {
  JsonText json(text);
  return reading_json([&] { return PlacementReader(problem).read(json.document()); });
}

std::string write_placement_json(const Problem& problem, const PlacementFile& file) {
  nlohmann::ordered_json json;
  json["format"] = kPlacementFormat;
  json["graph"] = file.graph;
  json["cluster"] = file.cluster;
  json["placer"] = file.placer;
  json["seed"] = file.seed;
  if (!file.made_with.empty()) json["made_with"] = made_with_json(file.made_with);
  if (file.predicted) {
    json["predicted"] = {{"step_ns", file.predicted->step},
                         {"fits", file.predicted->fits},
                         {"lower_bound_ns", file.predicted->lower_bound}};
    if (file.predicted->period) json["predicted"]["period_ns"] = *file.predicted->period;
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
