// What ONNX's annotations say of plans, read back: every worker has the part that the plan gives
// it.
#include <map>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "io/onnx_check.h"
#include "io/onnx_devices.h"
#include "io/onnx_writer.h"
#include "io/partition_file.h"
#include "io/readers.h"
#include "report/partition_report.h"
#include "run/partition.h"
#include "run/problem_request.h"
#include "zoo/registry.h"

namespace emplace {
namespace {

// Where a part begins and how long it is, by axis.
using Box = std::vector<std::pair<std::int64_t, std::int64_t>>;

// By what a plan means: workers are divided level by level, and dimensions with them.
Box box_by_plan(const SavedPartition& plan, const SavedPartition::Tensor& tensor,
                std::size_t worker) {
  Box box;
  for (const std::int64_t size : tensor.shape) box.emplace_back(0, size);
  std::size_t workers = plan.devices.size();
  for (std::size_t level = 0; level < plan.factors.size(); ++level) {
    const auto groups = static_cast<std::size_t>(plan.factors[level]);
    workers /= groups;
    const auto group = static_cast<std::int64_t>(worker / workers);
    worker %= workers;
    if (!tensor.split[level]) continue;
    auto& [begin, length] = box[static_cast<std::size_t>(*tensor.split[level])];
    length /= static_cast<std::int64_t>(groups);
    begin += group * length;
  }
  return box;
}

// By what the file says of part `part`: parts lie row by row over the axes that are cut.
Box box_by_file(const OnnxTensorCut& cut, const SavedPartition::Tensor& tensor, std::size_t part) {
  Box box;
  for (const std::int64_t size : tensor.shape) box.emplace_back(0, size);
  for (auto axis = cut.axes.rbegin(); axis != cut.axes.rend(); ++axis) {
    const auto parts = static_cast<std::size_t>(axis->second);
    auto& [begin, length] = box.at(static_cast<std::size_t>(axis->first));
    length /= axis->second;
    begin = static_cast<std::int64_t>(part % parts) * length;
    part /= parts;
  }
  return box;
}

// The number of tensors that are cut.
int expect_same_parts(const SavedPartition& plan, const OnnxDeviceNotes& notes,
                      const std::map<std::string, std::string>& name_of_value) {
  int cuts = 0;
  std::map<std::string, bool> seen;
  for (const auto& [op, note] : notes.ops) {
    for (const auto& [value, cut] : note.tensors) {
      SCOPED_TRACE(op + " " + value);
      const auto name = name_of_value.find(value);
      const auto* tensor = plan.find_tensor(name == name_of_value.end() ? value : name->second);
      if (tensor == nullptr) {
        ADD_FAILURE() << "not in the plan";
        continue;
      }
      std::size_t held = 0;
      for (std::size_t part = 0; part < cut.groups.size(); ++part) {
        for (const std::int64_t worker : cut.groups[part]) {
          EXPECT_EQ(box_by_file(cut, *tensor, part),
                    box_by_plan(plan, *tensor, static_cast<std::size_t>(worker)));
          ++held;
        }
      }
      EXPECT_EQ(held, plan.devices.size());
      if (!cut.axes.empty() && !seen[value]) ++cuts;
      seen[value] = true;
    }
  }
  return cuts;
}

void expect_annotated(const std::string& model, const std::string& method) {
  SCOPED_TRACE(model + " by " + method);
  const std::string bytes = write_onnx(zoo::build_model("zoo:" + model + ",training=false"));
  const Graph read = read_onnx(bytes, {}, "zoo");
  const auto problem =
      load_problem({.model = "zoo:" + model + ",training=false", .cluster = "2x(2xp100)@10GB/s"});
  PartitionOptions options;
  options.method = method;
  options.budget.evaluations = 1;
  SavedPartition plan = read_partition_json(plan_json(find_partition(problem, options)));
  fit_partition(plan, read);
  const CutOnnx cut = write_onnx_devices({.bytes = bytes}, plan);
  const OnnxDeviceNotes notes = read_onnx_devices({.bytes = cut.bytes}).value();
  EXPECT_EQ(notes.devices, plan.devices);
  EXPECT_EQ(notes.ops.size(), cut.nodes);
  // An op's outputs, of several by number.
  std::map<std::string, std::string> name_of_value;
  const onnx::ModelProto written = parse_onnx(cut.bytes);
  for (const auto& node : written.graph().node()) {
    for (int i = 0; i < node.output_size(); ++i) {
      const std::string numbered = fmt::format("{}:{}", node.name(), i);
      name_of_value[node.output(i)] =
          plan.find_tensor(numbered) != nullptr ? numbered : node.name();
    }
  }
  EXPECT_GT(expect_same_parts(plan, notes, name_of_value), 0);
}

TEST(PartitionAnnotations, say_what_plans_of_the_zoo_say) {
  for (const char* model :
       {"alexnet:batch=8", "stacked-rnn:layers=2,hidden=16,sequence=2,batch=8",
        "llama3-8b:batch=4,sequence=8,layers=2,hidden=16,heads=4,kv_heads=4,intermediate=24,"
        "vocabulary=32"}) {
    for (const char* method : {"data-parallel", "all-row", "tofu"}) {
      expect_annotated(model, method);
    }
  }
}

}  // namespace
}  // namespace emplace
