// Schedules: each rank takes what can begin first of what is ready, backward before forward, and
// stage s of S has at most S - s micro-batches in flight, as in 1F1B. The oldest micro-batch can
// always go on, so no schedule gets stuck: where it stands, fewer are in flight than that stage may
// have. Columns are the longest chain of cells before: what a cell needs is in columns before its
// own.
#include "io/pipeline_exports.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/error.h"

#include "graph/layers.h"

#include "io/json_layout.h"

namespace emplace {
namespace {

using PipelineJson = nlohmann::ordered_json;

constexpr const char* kPassingInTorch =
    "PyTorch sends such straight to where they are read, which only schedules of one stage a GPU "
    "(GPipe, 1F1B) can do";

// Modules that follow each other on one device.
struct PipelineStage {
  DeviceId device = 0;
  int rank = 0;  // devices are numbered by their first stages
  std::vector<std::string> modules = {};
  Nanoseconds forward = 0;  // of all its ops
};

class Pipeline {
 public:
  Pipeline(const Problem& problem, const Placement& placement)
      : problem_(problem), modules_(module_devices(problem, placement, SharedWeights::kCopied)) {
    for (const ModuleDevices::Entry& entry : modules_.entries) {
      if (problem.graph().is_source(entry.first)) continue;
      if (stages_.empty() || stages_.back().device != entry.device) {
        stages_.push_back({.device = entry.device, .rank = rank_of(entry.device), .modules = {}});
        begins_.push_back(entry.first);
      }
      stages_.back().modules.push_back(entry.path);
    }
    if (stages_.size() < 2) fail_input("all modules are on one device: there is nothing to split");
    add_weights_alone();
    check();
  }

  const std::vector<PipelineStage>& stages() const { return stages_; }
  int ranks() const { return static_cast<int>(devices_.size()); }
  std::size_t skipping() const { return skipping_.size(); }  // tensors that pass over a stage

  // What the target decides itself, or does on the way; `passing` is what becomes of tensors that
  // pass over a stage.
  void say_more(const ExportNote& note, const char* passing) const {
    if (!skipping_.empty()) {
      note(fmt::format("{} tensor{} over a stage: {}", skipping_.size(),
                       skipping_.size() == 1 ? " passes" : "s pass", passing));
    }
    note_what_moves(problem_.graph(), modules_, note);
  }

  // Of the backward pass, as long as the device's ops take, shared by forward times; 0 for all
  // where there is none.
  std::vector<Nanoseconds> backward_times(const Placement& placement) const {
    std::vector<double> on_device(problem_.num_devices(), 0);
    std::vector<double> forward(problem_.num_devices(), 0);
    for (OpId op = 0; op < problem_.num_ops(); ++op) {
      if (problem_.graph().phase(op) != Phase::kBackward) continue;
      on_device[placement[op]] += static_cast<double>(problem_.duration(op, placement[op]));
    }
    for (const PipelineStage& stage : stages_) {
      forward[stage.device] += static_cast<double>(stage.forward);
    }
    std::vector<Nanoseconds> times;
    for (const PipelineStage& stage : stages_) {
      const double share =
          static_cast<double>(stage.forward) / std::max(1.0, forward[stage.device]);
      times.push_back(static_cast<Nanoseconds>(share * on_device[stage.device]));
    }
    return times;
  }

 private:
  int rank_of(DeviceId device) {
    const auto found = std::find(devices_.begin(), devices_.end(), device);
    const auto rank = static_cast<int>(found - devices_.begin());
    if (found == devices_.end()) devices_.push_back(device);
    return rank;
  }

  // Modules and weights without ops, which are where they are read.
  void add_weights_alone() {
    for (const ModuleDevices::Entry& entry : modules_.entries) {
      if (!problem_.graph().is_source(entry.first)) continue;
      const std::vector<OpId> readers = forward_readers(problem_.graph(), entry.first);
      if (readers.empty()) continue;
      const OpId first = *std::min_element(readers.begin(), readers.end());
      stages_[stage_of(first)].modules.push_back(entry.path);
    }
  }

  // Ops between the entries' first ops are of the stage before.
  std::size_t stage_of(OpId op) const {
    const auto after = std::upper_bound(begins_.begin() + 1, begins_.end(), op);
    return static_cast<std::size_t>(after - begins_.begin()) - 1;
  }

  void check() {
    const Graph& graph = problem_.graph();
    const Cluster& cluster = problem_.cluster();
    for (OpId op = 0; op < graph.num_ops(); ++op) {
      if (graph.phase(op) != Phase::kForward || graph.is_source(op)) continue;
      const std::size_t stage = stage_of(op);
      if (modules_.of_op[op] != stages_[stage].device && !graph.is_view(op)) {
        fail_input(
            "op '{}' is on {} and comes between the modules of stage {}, which are on {}: the "
            "placement is no pipeline in the order of the forward pass",
            graph.op_name(op), cluster.device(modules_.of_op[op]).name, stage,
            cluster.device(stages_[stage].device).name);
      }
      stages_[stage].forward += problem_.duration(op, stages_[stage].device);
      for (const TensorId tensor : graph.inputs(op)) {
        const OpId from = graph.producer(tensor);
        if (!graph.is_source(from) && stage_of(from) + 1 < stage) skipping_.insert(tensor);
      }
    }
  }

  const Problem& problem_;
  ModuleDevices modules_;
  std::vector<DeviceId> devices_;  // by rank
  std::vector<PipelineStage> stages_;
  std::vector<OpId> begins_;  // by stage: its first op
  std::set<TensorId> skipping_;
};

// What a rank does at once: a stage of a micro-batch, forward or backward.
struct Cell {
  int stage = 0;
  bool backward = false;
  int micro_batch = 0;

  friend auto operator<=>(const Cell&, const Cell&) = default;
  std::string text() const {
    return fmt::format("{}{}{}", stage, backward ? 'B' : 'F', micro_batch);
  }
};

class PipelineScheduler {
 public:
  PipelineScheduler(const std::vector<PipelineStage>& stages, std::vector<Nanoseconds> backward,
                    int micro_batches)
      : stages_(stages),
        backward_(std::move(backward)),
        micro_batches_(micro_batches),
        next_forward_(stages.size(), 0),
        next_backward_(stages.size(), 0) {}

  // By rank: its cells by column.
  std::map<int, std::vector<std::string>> run() && {
    for (std::optional<Cell> next = choose(); next; next = choose()) add(*next);
    return std::move(rows_);
  }

 private:
  int count() const { return static_cast<int>(stages_.size()); }

  // What it needs, or nothing where that is the beginning.
  std::optional<Cell> before(const Cell& cell) const {
    if (!cell.backward) {
      if (cell.stage == 0) return std::nullopt;
      return Cell{cell.stage - 1, false, cell.micro_batch};
    }
    if (cell.stage + 1 == count()) return Cell{cell.stage, false, cell.micro_batch};
    return Cell{cell.stage + 1, true, cell.micro_batch};
  }

  // When it could begin; nothing while what it needs is not there.
  std::optional<Nanoseconds> start_of(const Cell& cell) const {
    const int rank = stages_[static_cast<std::size_t>(cell.stage)].rank;
    const auto idle = idle_from_.find(rank);
    const Nanoseconds free = idle == idle_from_.end() ? 0 : idle->second;
    const std::optional<Cell> need = before(cell);
    if (!need) return free;
    const auto done = done_.find(*need);
    if (done == done_.end()) return std::nullopt;
    return std::max(free, done->second.finish);
  }

  std::optional<Cell> choose() const {
    std::optional<Cell> best;
    Nanoseconds best_start = 0;
    const auto consider = [&](const Cell& cell) {
      if (cell.micro_batch == micro_batches_) return;
      const auto start = start_of(cell);
      if (!start) return;
      const auto key = [](const Cell& of, Nanoseconds at) {
        return std::tuple(at, !of.backward, -of.stage);
      };
      if (best && key(*best, best_start) <= key(cell, *start)) return;
      best = cell;
      best_start = *start;
    };
    for (int stage = 0; stage < count(); ++stage) {
      const auto i = static_cast<std::size_t>(stage);
      const bool room = next_forward_[i] - next_backward_[i] < count() - stage;
      if (room) consider({stage, false, next_forward_[i]});
      if (next_backward_[i] < next_forward_[i]) consider({stage, true, next_backward_[i]});
    }
    return best;
  }

  void add(const Cell& cell) {
    const auto stage = static_cast<std::size_t>(cell.stage);
    const int rank = stages_[stage].rank;
    const Nanoseconds length = (cell.backward ? backward_ : forward_times())[stage];
    const Nanoseconds start = *start_of(cell);
    std::vector<std::string>& row = rows_[rank];
    std::size_t column = row.size();
    if (const auto need = before(cell)) column = std::max(column, done_.at(*need).column + 1);
    row.resize(column);
    row.push_back(cell.text());
    const Nanoseconds finish = start + std::max<Nanoseconds>(1, length / micro_batches_);
    done_[cell] = {finish, column};
    idle_from_[rank] = finish;
    ++(cell.backward ? next_backward_ : next_forward_)[stage];
  }

  const std::vector<Nanoseconds>& forward_times() {
    if (forward_.empty()) {
      for (const PipelineStage& stage : stages_) forward_.push_back(stage.forward);
    }
    return forward_;
  }

  struct Done {
    Nanoseconds finish = 0;
    std::size_t column = 0;
  };

  const std::vector<PipelineStage>& stages_;
  std::vector<Nanoseconds> forward_;
  std::vector<Nanoseconds> backward_;
  int micro_batches_;
  std::vector<int> next_forward_;  // by stage: micro-batches
  std::vector<int> next_backward_;
  std::map<int, Nanoseconds> idle_from_;  // by rank
  std::map<Cell, Done> done_;
  std::map<int, std::vector<std::string>> rows_;
};

// PyTorch's stages send to each other in one process group, whose devices are of one sort.
void require_one_sort(const Problem& problem, const std::vector<PipelineStage>& stages) {
  const Cluster& cluster = problem.cluster();
  const PipelineStage& first = stages.front();
  for (const PipelineStage& stage : stages) {
    if (cluster.is_cpu(stage.device) == cluster.is_cpu(first.device)) continue;
    fail_input("stage '{}' is on {} and stage '{}' on {}; PyTorch sends between GPUs, or CPUs",
               first.modules.front(), cluster.device(first.device).name, stage.modules.front(),
               cluster.device(stage.device).name);
  }
}

// Of the stages in order, for programs that number GPUs themselves: each of the first GPUs has one.
std::vector<int> require_gpus(const Problem& problem, const std::vector<PipelineStage>& stages,
                              const char* target) {
  std::vector<int> gpus;
  std::set<int> used;
  for (const PipelineStage& stage : stages) {
    gpus.push_back(accelerator_number(problem.cluster(), stage.device));
    if (gpus.back() < 0) {
      fail_input("stage '{}' is on {}; {} has one GPU for each rank", stage.modules.front(),
                 problem.cluster().device(stage.device).name, target);
    }
    used.insert(gpus.back());
  }
  const int count = *used.rbegin() + 1;
  if (static_cast<int>(used.size()) < count) {
    fail_input("only {} of the first {} GPUs have a stage; {} gives every rank one", used.size(),
               count, target);
  }
  return gpus;
}

// Of the model's inputs: what their shapes begin with, where that is the same for all.
std::optional<std::int64_t> batch_of(const Graph& graph) {
  std::optional<std::int64_t> batch;
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    if (graph.role(op) != OpRole::kInput) continue;
    for (const TensorId tensor : graph.outputs(op)) {
      if (!graph.has_shape(tensor) || graph.shape(tensor).empty()) continue;
      const std::int64_t first = graph.shape(tensor)[0];
      if (batch && *batch != first) return std::nullopt;
      batch = first;
    }
  }
  return batch;
}

bool has_backward_pass(const Graph& graph) {
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    if (graph.phase(op) == Phase::kBackward) return true;
  }
  return false;
}

int usual_micro_batches(int given, std::size_t stages) {
  return given > 0 ? given : 2 * static_cast<int>(stages);
}

bool in_module(const std::string& path, const std::string& module) {
  return path == module || path.starts_with(module + ".");
}

// "layers.3": numbered. By stage: how many of the one row of them that the model has.
std::vector<int> layers_by_stage(const Problem& problem, const std::vector<PipelineStage>& stages) {
  const Modules modules = infer_modules(problem.graph());
  std::set<std::string> layers;
  for (const std::string& layer : layers_of_modules(modules)) {
    const std::size_t dot = layer.rfind('.');
    const bool numbered = dot != std::string::npos && dot + 1 < layer.size() &&
                          std::all_of(layer.begin() + static_cast<std::ptrdiff_t>(dot) + 1,
                                      layer.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (numbered) layers.insert(layer);
  }
  std::vector<int> counts(stages.size(), 0);
  for (const std::string& layer : layers) {
    std::optional<std::size_t> home;
    for (std::size_t stage = 0; stage < stages.size(); ++stage) {
      const auto& paths = stages[stage].modules;
      if (std::none_of(paths.begin(), paths.end(), [&](const std::string& path) {
            return in_module(layer, path) || in_module(path, layer);
          })) {
        continue;
      }
      if (home) {
        fail_input(
            "layer '{}' is divided between stages {} and {}; expected layers that are kept "
            "whole",
            layer, *home, stage);
      }
      home = stage;
    }
    if (home) ++counts[*home];
  }
  return counts;
}

}  // namespace

std::string write_torch_pipeline(const Problem& problem, const Placement& placement,
                                 const ExportNote& note) {
  const Pipeline pipeline(problem, placement);
  require_one_sort(problem, pipeline.stages());
  PipelineJson json;
  json["format"] = "emplace.torch_pipeline/1";
  json["split_spec"] = PipelineJson::object();
  json["stages"] = PipelineJson::array();
  for (const PipelineStage& stage : pipeline.stages()) {
    if (!json["stages"].empty()) json["split_spec"][stage.modules.front()] = "BEGINNING";
    json["stages"].push_back({{"rank", stage.rank},
                              {"device", problem.cluster().device(stage.device).name},
                              {"modules", stage.modules}});
  }
  // Where its stages send to, unless a schedule that is loaded says otherwise.
  for (std::size_t i = 0; i < pipeline.stages().size(); ++i) {
    const int usual = static_cast<int>(i) % pipeline.ranks();
    if (pipeline.stages()[i].rank == usual) continue;
    note(
        fmt::format("stage {} is on rank {}, where PyTorch's own schedules have it on rank {}: "
                    "load the CSV of torch-schedule, which says whose it is",
                    i, pipeline.stages()[i].rank, usual));
    break;
  }
  pipeline.say_more(note, kPassingInTorch);
  return laid_out(json, 2);
}

std::string write_pipeline_schedule(const Problem& problem, const Placement& placement,
                                    int micro_batches, const ExportNote& note) {
  const Pipeline pipeline(problem, placement);
  const int ranks = pipeline.ranks();
  require_one_sort(problem, pipeline.stages());
  if (!has_backward_pass(problem.graph())) {
    fail_input("the step has no backward pass; PyTorch takes schedules of training steps alone");
  }
  if (pipeline.skipping() > 0 && static_cast<int>(pipeline.stages().size()) > ranks) {
    fail_input("{} tensor{} over a stage, and {} stages are on {} GPUs; {}", pipeline.skipping(),
               pipeline.skipping() == 1 ? " passes" : "s pass", pipeline.stages().size(), ranks,
               kPassingInTorch);
  }
  const int count = usual_micro_batches(micro_batches, pipeline.stages().size());
  auto rows = PipelineScheduler(pipeline.stages(), pipeline.backward_times(placement), count).run();
  std::size_t columns = 0;
  for (const auto& [rank, row] : rows) columns = std::max(columns, row.size());
  std::string csv;
  for (int rank = 0; rank < ranks; ++rank) {
    rows[rank].resize(columns);
    csv += fmt::format("{}\n", fmt::join(rows[rank], ","));
  }
  note(fmt::format("a schedule of {} micro-batches; stages' ranks are those of torch-pipeline",
                   count));
  pipeline.say_more(note, kPassingInTorch);
  return csv;
}

std::string write_torchtitan_config(const Problem& problem, const Placement& placement,
                                    const ExportNote& note) {
  const Pipeline pipeline(problem, placement);
  const std::vector<PipelineStage>& stages = pipeline.stages();
  const std::vector<int> gpus = require_gpus(problem, stages, "torchtitan");
  const int ranks = pipeline.ranks();
  // It deals its stages out to the ranks in turn.
  for (std::size_t i = 0; i < stages.size(); ++i) {
    if (gpus[i] == static_cast<int>(i) % ranks) continue;
    fail_input(
        "stage {} ('{}') is on GPU {}, where torchtitan has its stage on GPU {}: expected "
        "stages in the order of the GPUs",
        i, stages[i].modules.front(), gpus[i], static_cast<int>(i) % ranks);
  }
  if (stages.size() % static_cast<std::size_t>(ranks) != 0) {
    fail_input("{} stages on {} GPUs; torchtitan has the same number on each", stages.size(),
               ranks);
  }
  std::string text = fmt::format(
      "[parallelism]\npipeline_parallel_degree = {}\npipeline_parallel_schedule = \"{}\"\n"
      "module_fqns_per_model_part = [\n",
      ranks, stages.size() > static_cast<std::size_t>(ranks) ? "Interleaved1F1B" : "1F1B");
  for (const PipelineStage& stage : stages) {
    // Strings of JSON are strings of TOML.
    text += fmt::format("  {},\n", PipelineJson(stage.modules).dump(-1, ' ', true));
  }
  text += "]\n";
  note("torchtitan's modules are those of its own models: the names must be theirs");
  pipeline.say_more(note, "a stage of torchtitan gets what the one before returns and no more");
  return text;
}

std::string write_deepspeed_config(const Problem& problem, const Placement& placement,
                                   int micro_batches, const ExportNote& note) {
  const Pipeline pipeline(problem, placement);
  const std::vector<PipelineStage>& stages = pipeline.stages();
  const std::vector<int> gpus = require_gpus(problem, stages, "DeepSpeed");
  const int ranks = pipeline.ranks();
  if (static_cast<int>(stages.size()) != ranks) {
    fail_input("{} stages on {} GPUs; DeepSpeed has one on each", stages.size(), ranks);
  }
  const std::vector<int> layers = layers_by_stage(problem, stages);
  if (layers[0] == 0) {
    fail_input(
        "the model's layers are not numbered; DeepSpeed's configuration cannot say where stages "
        "begin");
  }
  if (std::any_of(layers.begin(), layers.end(), [&](int count) { return count != layers[0]; })) {
    fail_input("stages have {} layers; DeepSpeed's configuration divides layers evenly",
               fmt::join(layers, ", "));
  }
  const int count = usual_micro_batches(micro_batches, stages.size());
  PipelineJson json;
  if (const auto batch = batch_of(problem.graph()); batch && *batch % count == 0) {
    json["train_micro_batch_size_per_gpu"] = *batch / count;
  } else {
    note(
        fmt::format("train_micro_batch_size_per_gpu is yours to say: {} micro-batches do not "
                    "divide a batch that is known",
                    count));
  }
  json["gradient_accumulation_steps"] = count;
  json["pipeline"] = {{"stages", ranks}};
  note(
      "a PipelineModule needs partition_method='type:CLASS', with the class of the numbered "
      "layers: 'uniform' counts embeddings and head too, and the stages would begin elsewhere");
  if (!std::is_sorted(gpus.begin(), gpus.end())) {
    note(fmt::format("stages are on GPUs {}; DeepSpeed has them in the order of its ranks",
                     fmt::join(gpus, ", ")));
  }
  pipeline.say_more(note, "layers of a PipelineModule have to hand them on");
  return laid_out(json, 1);
}

}  // namespace emplace
