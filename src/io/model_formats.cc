#include "io/model_formats.h"

#include <algorithm>
#include <array>

#include "base/error.h"

#include "io/onnx_training_notes.h"

namespace emplace {
namespace {

constexpr std::string_view kBlank = " \t\r\n\v\f";
constexpr std::string_view kGzipEnding = ".gz";

Model model_of(Graph graph) {
  return {std::make_shared<const Graph>(std::move(graph)), nullptr};
}

// What begins so is JSON, if not what it should be; its reader says that.
bool is_object(std::string_view content) {
  const std::size_t start = content.find_first_not_of(kBlank);
  return start != std::string_view::npos && (content[start] == '{' || content[start] == '[');
}

bool is_dnn_partitioning(std::string_view content) {
  return is_object(content) && content.find("\"maxSizePerFPGA\"") != std::string_view::npos;
}

// A PipeDream profile is lines of "node1 -- ..." and of TAB "node1 -- node2".
bool is_pipedream(std::string_view content) {
  const std::size_t start = content.find_first_not_of(" \t\r\n");
  if (start == std::string_view::npos) return false;
  const std::string_view line = content.substr(start, content.find('\n', start) - start);
  return line.starts_with("node") && line.find(" -- ") != std::string_view::npos;
}

// Protobuf has no mark of its own.
bool is_anything(std::string_view) {
  return true;
}

Model read_graph(const std::string& content, const ReadOptions&, const std::string&) {
  return model_of(read_graph_json(content));
}

Model read_workload(const std::string& content, const ReadOptions&, const std::string& name) {
  return read_dnn_partitioning(content, name);
}

Model read_profile(const std::string& content, const ReadOptions&, const std::string& name) {
  return model_of(read_pipedream(content, name));
}

Model read_onnx_model(const std::string& content, const ReadOptions& options,
                      const std::string& name) {
  Model model = model_of(read_onnx(content, options, name));
  if (options.training) model.notes = training_notes(*model.graph);
  return model;
}

constexpr std::array<std::string_view, 1> kJsonEndings{".json"};
constexpr std::array<std::string_view, 1> kProfileEndings{".graph.txt"};
constexpr std::array<std::string_view, 2> kProfileSharedEndings{".graph", ".txt"};
constexpr std::array<std::string_view, 1> kOnnxEndings{".onnx"};

constexpr std::array<ModelFormat, 4> kFormats{{
    {"dnn-partitioning", kJsonEndings, {}, is_dnn_partitioning, read_workload},
    {"graph JSON", kJsonEndings, {}, is_object, read_graph},
    {"PipeDream", kProfileEndings, kProfileSharedEndings, is_pipedream, read_profile},
    {"ONNX", kOnnxEndings, {}, is_anything, read_onnx_model},
}};

std::string_view without_gzip_ending(std::string_view name) {
  if (name.ends_with(kGzipEnding)) name.remove_suffix(kGzipEnding.size());
  return name;
}

// 0 where the name has none of the endings.
std::size_t longest_ending(std::string_view name, std::span<const std::string_view> endings) {
  std::size_t longest = 0;
  for (const std::string_view ending : endings) {
    if (name.ends_with(ending)) longest = std::max(longest, ending.size());
  }
  return longest;
}

}  // namespace

std::span<const ModelFormat> model_formats() {
  return kFormats;
}

bool is_text(std::string_view content) {
  constexpr std::size_t kLooked = 64;
  const std::string_view start = content.substr(0, kLooked);
  return std::all_of(start.begin(), start.end(), [](char c) {
    return static_cast<unsigned char>(c) >= ' ' || kBlank.find(c) != std::string_view::npos;
  });
}

const ModelFormat& recognise_model(std::string_view content) {
  if (content.find_first_not_of(kBlank) == std::string_view::npos) fail_input("the file is empty");
  if (content.starts_with("\xEF\xBB\xBF")) {
    fail_input("begins with a byte order mark; expected UTF-8 without one");
  }
  const auto found = std::find_if(kFormats.begin(), kFormats.end(), [&](const ModelFormat& format) {
    return format.recognises(content);
  });
  if (found->name == "ONNX" && is_text(content)) {
    fail_input(
        "is not a model in a known format; expected ONNX, graph JSON, a dnn-partitioning "
        "workload or a PipeDream profile");
  }
  return *found;
}

std::string without_model_ending(std::string_view file_name) {
  const std::string_view name = without_gzip_ending(file_name);
  std::size_t longest = 0;
  for (const ModelFormat& format : kFormats) {
    longest = std::max({longest, longest_ending(name, format.endings),
                        longest_ending(name, format.shared_endings)});
  }
  return std::string(name.substr(0, name.size() - longest));
}

bool has_model_ending(std::string_view file_name) {
  const std::string_view name = without_gzip_ending(file_name);
  return std::any_of(kFormats.begin(), kFormats.end(), [&](const ModelFormat& format) {
    return longest_ending(name, format.endings) > 0;
  });
}

}  // namespace emplace
