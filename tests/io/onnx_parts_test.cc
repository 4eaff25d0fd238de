#include "io/onnx_parts.h"

#include <cstdio>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <unistd.h>

#include "base/rng.h"

#include "io/device_segments.h"
#include "io/failing_calls.h"
#include "io/file.h"
#include "io/folder.h"
#include "io/onnx_check.h"
#include "io/onnx_models.h"
#include "support/command.h"
#include "support/error_text.h"

namespace emplace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Json = nlohmann::json;

// By the op's name; others are on the first device.
using Devices = std::map<std::string, DeviceId>;

Json write_parts(const std::string& bytes, const Devices& devices,
                 const testing::TemporaryFolder& folder, OnnxPartsSummary* summary = nullptr) {
  PlacedOnnx placed{.source = {.bytes = bytes, .folder = folder.path("")},
                    .graph = "model",
                    .devices = {"gpu0", "gpu1"},
                    .device_of = [&](std::string_view op) {
                      const auto found = devices.find(std::string(op));
                      return found == devices.end() ? DeviceId{0} : found->second;
                    }};
  std::filesystem::create_directory(folder.path("parts"));
  const OnnxPartsSummary written = write_onnx_parts(placed, folder.path("parts"));
  if (summary != nullptr) *summary = written;
  return Json::parse(folder.read("parts/manifest.json"));
}

onnx::ModelProto part_of(const testing::TemporaryFolder& folder, const Json& manifest,
                         std::size_t number) {
  return parse_onnx(folder.read("parts/" + manifest["parts"][number]["file"].get<std::string>()));
}

// x -> a -> b -> c, with a weight at each.
void add_chain(OnnxModelMaker& model) {
  model.input("x", {2, 3});
  model.weights("w", {3, 3});
  model.node("MatMul", {"x", "w"}, {"a"}, "a");
  model.node("MatMul", {"a", "w"}, {"b"}, "b");
  model.node("Relu", {"b"}, {"c"}, "c");
  model.output("c");
}

TEST(OnnxParts, say_what_flows_where) {
  OnnxModelMaker model;
  add_chain(model);
  const testing::TemporaryFolder folder;
  OnnxPartsSummary summary;
  const Json manifest = write_parts(model.bytes(), {{"b", 1}, {"c", 1}}, folder, &summary);
  EXPECT_EQ(summary.parts, 2U);
  EXPECT_EQ(summary.tensors, 1U);
  EXPECT_EQ(summary.bytes, 24);
  EXPECT_THAT(summary.missing, ElementsAre("absent.bin"));
  ASSERT_EQ(manifest["parts"].size(), 2U);
  EXPECT_EQ(manifest["parts"][0]["device"], "gpu0");
  EXPECT_EQ(manifest["parts"][1]["device"], "gpu1");
  EXPECT_EQ(manifest["parts"][1]["after"], Json({0}));
  EXPECT_EQ(manifest["parts"][1]["inputs"], Json({"a"}));
  EXPECT_EQ(manifest["inputs"][0]["name"], "x");
  EXPECT_EQ(manifest["inputs"][0]["to"], Json({0}));
  EXPECT_EQ(manifest["outputs"][0]["from"], 1);
  EXPECT_EQ(manifest["tensors"][0]["name"], "a");
  EXPECT_EQ(manifest["tensors"][0]["shape"], Json({2, 3}));
  EXPECT_EQ(manifest["tensors"][0]["dtype"], "float32");
  EXPECT_EQ(manifest["tensors"][0]["from"], 0);
  EXPECT_EQ(manifest["tensors"][0]["to"], Json({1}));
  // Both read the weight.
  for (const std::size_t part : {0, 1}) {
    const onnx::ModelProto proto = part_of(folder, manifest, part);
    ASSERT_EQ(proto.graph().initializer_size(), 1);
    EXPECT_EQ(proto.graph().initializer(0).name(), "w");
    EXPECT_EQ(onnx_complaint(proto.SerializeAsString()), "");
  }
}

TEST(OnnxParts, what_nobody_reads_is_left_out_and_constants_are_in_every_part_that_reads_them) {
  OnnxModelMaker model;
  model.input("x", {2, 3});
  auto& one = model.node("Constant", {}, {"one"}, "one");
  add_attribute(one, "value_float", onnx::AttributeProto::FLOAT).set_f(1);
  model.node("Add", {"x", "one"}, {"a"}, "a");
  model.node("Relu", {"x"}, {"dead"}, "dead");
  model.node("Add", {"a", "one"}, {"b"}, "b");
  model.output("b");
  const testing::TemporaryFolder folder;
  const Json manifest = write_parts(model.bytes(), {{"b", 1}, {"dead", 1}}, folder);
  ASSERT_EQ(manifest["parts"].size(), 2U);
  for (const std::size_t part : {0, 1}) {
    const onnx::ModelProto proto = part_of(folder, manifest, part);
    ASSERT_EQ(proto.graph().node_size(), 2);
    EXPECT_EQ(proto.graph().node(0).op_type(), "Constant");
    EXPECT_EQ(proto.graph().node(1).op_type(), "Add");
  }
}

TEST(OnnxParts, an_input_or_a_weight_may_be_an_output) {
  OnnxModelMaker model;
  add_chain(model);
  model.output("x");
  model.output("w");
  const testing::TemporaryFolder folder;
  const Json manifest = write_parts(model.bytes(), {{"c", 1}}, folder);
  EXPECT_EQ(manifest["outputs"][1]["from"], "input");
  EXPECT_EQ(manifest["outputs"][2]["from"], 0);
  const onnx::ModelProto first = part_of(folder, manifest, 0);
  EXPECT_EQ(first.graph().output(first.graph().output_size() - 1).name(), "w");
}

TEST(OnnxParts, bodies_take_what_they_read_from_other_parts) {
  OnnxModelMaker model;
  model.input("x", {2});
  model.input("which", {}, onnx::TensorProto::BOOL);
  model.node("Relu", {"x"}, {"a"}, "a");
  auto& choice = model.node("If", {"which"}, {"y"}, "choice");
  for (const char* branch : {"then_branch", "else_branch"}) {
    OnnxGraphMaker body = add_graph(choice, branch);
    body.node(branch[0] == 't' ? "Neg" : "Exp", {"a"}, {"inner"});
    body.output("inner");
  }
  model.output("y");
  const testing::TemporaryFolder folder;
  const Json manifest = write_parts(model.bytes(), {{"choice", 1}}, folder);
  ASSERT_EQ(manifest["parts"].size(), 2U);
  EXPECT_EQ(manifest["parts"][1]["inputs"], Json({"which", "a"}));
}

TEST(OnnxParts, calls_of_functions_are_cut_where_their_nodes_are_placed) {
  OnnxModelMaker model;
  model.import_opset("custom", 1);
  model.input("x", {2});
  model.node("Twice", {"x"}, {"y"}, "call", "custom");
  model.output("y");
  auto* function = model.model.add_functions();
  function->set_name("Twice");
  function->set_domain("custom");
  function->add_input("in");
  function->add_output("out");
  auto* import = function->add_opset_import();
  import->set_version(17);
  for (const auto& [in, out] : {std::pair("in", "middle"), std::pair("middle", "out")}) {
    auto* node = function->add_node();
    node->set_op_type("Relu");
    node->set_name(out);
    node->add_input(in);
    node->add_output(out);
  }
  const testing::TemporaryFolder folder;
  const Json manifest = write_parts(model.bytes(), {{"call/out", 1}}, folder);
  ASSERT_EQ(manifest["parts"].size(), 2U);
  EXPECT_EQ(manifest["outputs"][0]["name"], "y");
  EXPECT_EQ(part_of(folder, manifest, 0).functions_size(), 0);
}

void write_at(const std::string& path, std::int64_t offset, const std::string& bytes) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  if (!file) file.open(path, std::ios::out | std::ios::binary);
  file.seekp(offset);
  file << bytes;
}

void place_weights(onnx::TensorProto& tensor, std::int64_t offset, std::int64_t length) {
  tensor.mutable_external_data(0)->set_value("weights.bin");
  for (const auto& [key, value] : {std::pair("offset", offset), std::pair("length", length)}) {
    auto* entry = tensor.add_external_data();
    entry->set_key(key);
    entry->set_value(std::to_string(value));
  }
}

std::map<std::string, std::string> external_of(const onnx::TensorProto& tensor) {
  std::map<std::string, std::string> entries;
  for (const auto& entry : tensor.external_data()) entries[entry.key()] = entry.value();
  return entries;
}

// The file has a hole, so it takes no room.
TEST(OnnxParts, weights_beyond_2_gib_of_their_file_are_copied) {
  constexpr std::int64_t kFar = (std::int64_t{5} << 30) + 8;
  const testing::TemporaryFolder folder;
  write_at(folder.path("weights.bin"), 0, std::string(16, 'a'));
  write_at(folder.path("weights.bin"), kFar, std::string(16, 'b'));
  OnnxModelMaker model;
  model.input("x", {2, 2});
  place_weights(model.weights("near", {2, 2}), 0, 16);
  place_weights(model.weights("far", {2, 2}), kFar, 16);
  model.node("MatMul", {"x", "near"}, {"a"}, "a");
  model.node("MatMul", {"a", "far"}, {"b"}, "b");
  model.node("MatMul", {"b", "near"}, {"c"}, "c");
  model.output("c");
  OnnxPartsSummary summary;
  const Json manifest = write_parts(model.bytes(), {{"b", 1}, {"c", 1}}, folder, &summary);
  EXPECT_TRUE(summary.missing.empty());
  ASSERT_EQ(manifest["parts"].size(), 2U);
  const onnx::ModelProto second = part_of(folder, manifest, 1);
  ASSERT_EQ(second.graph().initializer_size(), 2);
  const std::string weights =
      folder.read("parts/" + manifest["parts"][1]["weights"].get<std::string>());
  for (const auto& tensor : second.graph().initializer()) {
    const auto entries = external_of(tensor);
    EXPECT_EQ(entries.at("location"), manifest["parts"][1]["weights"]);
    EXPECT_EQ(entries.at("length"), "16");
    const std::size_t offset = std::stoul(entries.at("offset"));
    EXPECT_EQ(offset % 4096, 0U);
    EXPECT_EQ(weights.substr(offset, 16), std::string(16, tensor.name() == "far" ? 'b' : 'a'));
  }
}

// Weights are written piece by piece, outside write_file.
TEST(OnnxParts, are_written_whole_or_not_at_all_whatever_fails) {
  OnnxModelMaker model;
  model.input("x", {2, 2});
  place_weights(model.weights("first", {2, 2}), 0, 16);
  place_weights(model.weights("second", {2, 2}), 16, 16);
  model.node("MatMul", {"x", "first"}, {"a"}, "a");
  model.node("MatMul", {"a", "second"}, {"b"}, "b");
  model.output("b");
  const testing::TemporaryFolder folder;
  folder.write("weights.bin", std::string(16, 'a') + std::string(16, 'b'));
  const PlacedOnnx placed{.source = {.bytes = model.bytes(), .folder = folder.path("")},
                          .graph = "model",
                          .devices = {"gpu0"},
                          .device_of = [](std::string_view) { return DeviceId{0}; }};
  int tries = 0;
  with_every_fault([&](int n, Fault fault, bool from_then_on) {
    std::string problem;
    bool reached = false;
    {
      FailingCalls calls(n, fault, from_then_on);
      problem = error_text([&] {
        write_folder(folder.path("parts"), "manifest.json",
                     [&](const std::string& into) { write_onnx_parts(placed, into); });
      });
      reached = calls.reached();
    }
    ++tries;
    EXPECT_EQ(problem.empty(), !reached || is_survivable(fault)) << problem;
    EXPECT_EQ(folder.has("parts/manifest.json"), problem.empty());
    if (problem.empty()) {
      const Json manifest = Json::parse(folder.read("parts/manifest.json"));
      const std::string weights =
          folder.read("parts/" + manifest["parts"][0]["weights"].get<std::string>());
      EXPECT_EQ(weights.size(), 4096U + 16);
      EXPECT_EQ(weights.substr(0, 16), std::string(16, 'a'));
      EXPECT_EQ(weights.substr(4096), std::string(16, 'b'));
      std::filesystem::remove_all(folder.path("parts"));
    } else {
      EXPECT_THAT(problem, HasSubstr("cannot be written: "));
    }
    EXPECT_EQ(folder.num_files(), 1U);  // weights.bin
    return reached;
  });
  // In seven ways, each of: making and renaming the folder; open, three writes, sync and close of
  // the weights; open, write, sync, close and rename of two files; none.
  EXPECT_EQ(tries, 7 * (2 + 6 + 2 * 5 + 1));
}

TEST(OnnxParts, weights_in_a_pipe_are_refused) {
  const testing::TemporaryFolder folder;
  ASSERT_EQ(::mkfifo(folder.path("weights.bin").c_str(), 0600), 0);
  OnnxModelMaker model;
  model.input("x", {2, 2});
  place_weights(model.weights("w", {2, 2}), 0, 16);
  model.node("MatMul", {"x", "w"}, {"a"}, "a");
  model.output("a");
  EXPECT_THAT(error_text([&] { write_parts(model.bytes(), {}, folder); }),
              HasSubstr("tensor 'w': external_data: location: 'weights.bin' is no file"));
}

// A link in the model's folder may lead to a file that is nobody else's business.
TEST(OnnxParts, weights_behind_links_are_refused) {
  namespace fs = std::filesystem;
  const testing::TemporaryFolder folder;
  fs::create_directories(folder.path("model/below"));
  fs::create_directory(folder.path("secret"));
  write_at(folder.path("secret/key"), 0, std::string(16, 's'));
  write_at(folder.path("model/below/weights.bin"), 0, std::string(16, 'a'));
  fs::create_symlink("../secret/key", folder.path("model/link.bin"));
  fs::create_directory_symlink("../secret", folder.path("model/linked"));
  const auto complaint = [&](const char* location) {
    OnnxModelMaker model;
    model.input("x", {2, 2});
    auto& weights = model.weights("w", {2, 2});
    place_weights(weights, 0, 16);
    weights.mutable_external_data(0)->set_value(location);
    model.node("MatMul", {"x", "w"}, {"a"}, "a");
    model.output("a");
    const PlacedOnnx placed{.source = {.bytes = model.bytes(), .folder = folder.path("model")},
                            .graph = "model",
                            .devices = {"gpu0"},
                            .device_of = [](std::string_view) { return DeviceId{0}; }};
    return error_text([&] {
      write_folder(folder.path("parts"), "manifest.json",
                   [&](const std::string& into) { write_onnx_parts(placed, into); });
    });
  };
  for (const char* location : {"link.bin", "linked/key"}) {
    EXPECT_THAT(complaint(location),
                HasSubstr("tensor 'w': external_data: location: '" + std::string(location) +
                          "' is or goes through a link"));
    EXPECT_FALSE(folder.has("parts"));
  }
  EXPECT_EQ(complaint("below/weights.bin"), "");
}

TEST(OnnxParts, weights_that_cannot_be_right_are_refused) {
  const auto complaint = [](const char* location, std::int64_t offset) {
    const testing::TemporaryFolder folder;
    write_at(folder.path("weights.bin"), 0, std::string(16, 'a'));
    OnnxModelMaker model;
    model.input("x", {2, 2});
    auto& weights = model.weights("w", {2, 2});
    place_weights(weights, offset, 16);
    weights.mutable_external_data(0)->set_value(location);
    model.node("MatMul", {"x", "w"}, {"a"}, "a");
    model.output("a");
    return error_text([&] { write_parts(model.bytes(), {}, folder); });
  };
  EXPECT_THAT(complaint("weights.bin", 8),
              HasSubstr("weights.bin: has 16 bytes, and tensor 'w' is said to be 16 bytes from "
                        "byte 8 on"));
  EXPECT_THAT(complaint("../weights.bin", 0),
              HasSubstr("tensor 'w': external_data: location: expected a file in the model's "
                        "folder instead of '../weights.bin'"));
  EXPECT_THAT(complaint("weights.bin", -3), HasSubstr("offset: expected a number of bytes"));
}

// Every edge between segments goes on, nothing is both before and after a segment, and no two
// neighbours of a device could be one.
TEST(DeviceSegments, are_convex_and_in_order) {
  Rng rng(7);
  for (int round = 0; round < 200; ++round) {
    const std::size_t nodes = 1 + rng.below(30);
    std::vector<DeviceId> devices;
    std::vector<std::vector<std::uint32_t>> reads(nodes);
    for (std::uint32_t node = 0; node < nodes; ++node) {
      devices.push_back(static_cast<DeviceId>(rng.below(3)));
      for (std::uint32_t from = 0; from < node; ++from) {
        if (rng.below(6) == 0) reads[node].push_back(from);
      }
    }
    const DeviceSegments segments = device_segments(devices, reads);
    std::vector<bool> used(segments.size(), false);
    for (std::uint32_t node = 0; node < nodes; ++node) {
      used[segments.of_node[node]] = true;
      EXPECT_EQ(segments.device[segments.of_node[node]], devices[node]);
      for (const std::uint32_t from : reads[node]) {
        EXPECT_LE(segments.of_node[from], segments.of_node[node]);
      }
    }
    EXPECT_THAT(used, ::testing::Each(true));
  }
}

TEST(DeviceSegments, an_op_that_waits_for_another_device_joins_its_own) {
  // 0 on A; 1 on B, alone; 2 on A reads both.
  const DeviceSegments segments = device_segments({0, 1, 0}, {{}, {}, {0, 1}});
  EXPECT_EQ(segments.size(), 2U);
  EXPECT_EQ(segments.of_node[0], segments.of_node[2]);
  // But not where the other one waits for its own.
  EXPECT_EQ(device_segments({0, 1, 0}, {{}, {0}, {1}}).size(), 3U);
}

TEST(WriteFolder, replaces_its_own_and_nothing_else) {
  const testing::TemporaryFolder folder;
  const auto write = [&](const std::string& text) {
    write_folder(folder.path("out"), "mark", [&](const std::string& inside) {
      std::ofstream(inside + "/mark") << "\"emplace.test/1\": \"part\" " << text;
      std::ofstream(inside + "/part") << text;
    });
  };
  write("one");
  write("two");
  EXPECT_EQ(folder.read("out/part"), "two");
  EXPECT_EQ(folder.num_files(), 1U);
  EXPECT_THROW(write_folder(folder.path("out"), "mark",
                            [](const std::string&) { throw Error(ErrorKind::kInput, "no"); }),
               Error);
  EXPECT_EQ(folder.read("out/part"), "two");
  folder.write("out/other", "mine");
  EXPECT_THAT(error_text([&] { write("three"); }), HasSubstr("with other files in it"));
  EXPECT_EQ(folder.read("out/other"), "mine");
  std::filesystem::remove(folder.path("out/other"));
  folder.write("out/mark", "somebody else's \"part\"");
  EXPECT_THAT(error_text([&] { write("three"); }), HasSubstr("with other files in it"));
}

class FolderFaults : public ::testing::Test {
 protected:
  void write(const std::string& text) const {
    write_folder(folder_.path("out"), "mark", [&](const std::string& inside) {
      write_file(inside + "/mark", "\"emplace.test/1\": \"part\" " + text);
      write_file(inside + "/part", text);
    });
  }

  testing::TemporaryFolder folder_;
};

TEST_F(FolderFaults, a_folder_is_the_old_one_or_the_new_one) {
  with_every_fault([&](int n, Fault fault, bool from_then_on) {
    write("old");
    std::string problem;
    bool reached = false;
    {
      FailingCalls calls(n, fault, from_then_on);
      problem = error_text([&] { write("new"); });
      reached = calls.reached();
    }
    EXPECT_EQ(folder_.read("out/part"), problem.empty() ? "new" : "old");
    EXPECT_EQ(problem.empty(), !reached || is_survivable(fault)) << problem;
    EXPECT_EQ(folder_.num_files(), 1U);
    return reached;
  });
}

// Counts the names that the folder is without between two calls.
class WatchingCalls : public FileCalls {
 public:
  WatchingCalls(std::string path, bool exchanges)
      : path_(std::move(path)), exchanges_(exchanges), before_(replace_file_calls(this)) {}
  ~WatchingCalls() override { replace_file_calls(before_); }
  int rename(const char* from, const char* to) override {
    const int result = FileCalls::rename(from, to);
    if (!std::filesystem::exists(path_)) ++gone_;
    return result;
  }
  int exchange(const char* one, const char* other) override {
    if (exchanges_) return FileCalls::exchange(one, other);
    errno = EINVAL;
    return -1;
  }
  int gone() const { return gone_; }

 private:
  std::string path_;
  bool exchanges_;
  FileCalls* before_;
  int gone_ = 0;
};

TEST_F(FolderFaults, a_folder_is_never_gone_where_the_disk_can_exchange_names) {
  write("one");
  {
    const WatchingCalls calls(folder_.path("out"), true);
    write("two");
    EXPECT_EQ(calls.gone(), 0);
  }
  EXPECT_EQ(folder_.read("out/part"), "two");
  {
    const WatchingCalls calls(folder_.path("out"), false);
    write("three");
    EXPECT_EQ(calls.gone(), 1);
  }
  EXPECT_EQ(folder_.read("out/part"), "three");
  EXPECT_EQ(folder_.num_files(), 1U);
}

TEST_F(FolderFaults, what_a_killed_process_left_is_taken_away) {
  namespace fs = std::filesystem;
  constexpr pid_t kNobody = 1 << 30;
  const auto old = fs::file_time_type::clock::now() - std::chrono::hours(1);
  const fs::path left = folder_.path("out.tmp-" + std::to_string(kNobody) + "-3");
  const fs::path living = folder_.path("out.tmp-" + std::to_string(::getpid()) + "-999");
  for (const fs::path& path : {left, living}) {
    fs::create_directory(path);
    std::ofstream(path / "part") << "half";
    fs::last_write_time(path, old);
  }
  write("whole");
  EXPECT_FALSE(fs::exists(left));
  EXPECT_TRUE(fs::exists(living));
}

TEST_F(FolderFaults, a_folder_behind_a_link_is_replaced_and_keeps_its_mode) {
  namespace fs = std::filesystem;
  write("old");
  fs::rename(folder_.path("out"), folder_.path("real"));
  fs::permissions(folder_.path("real"), fs::perms::owner_all);
  fs::create_directory_symlink("real", folder_.path("out"));
  write("new");
  EXPECT_EQ(folder_.read("real/part"), "new");
  EXPECT_TRUE(fs::is_symlink(folder_.path("out")));
  EXPECT_EQ(fs::status(folder_.path("real")).permissions(), fs::perms::owner_all);
}

}  // namespace
}  // namespace emplace
