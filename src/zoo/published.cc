#include "zoo/published.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/options.h"

namespace emplace::zoo {
namespace {

constexpr Bytes kMiB = Bytes{1} << 20;

// What a framework could use: of what nvidia-smi shows (with ECC where it takes memory; 11441 MiB
// of a K40 or K80, 12193 and 16280 MiB of P100s), TensorFlow leaves a twentieth to the system.
struct Gpu {
  const char* kind;
  std::int64_t mebibytes;
};
constexpr Gpu kK80{"k80", 10'868};
constexpr Gpu kK40{"k40", 10'868};
constexpr Gpu kP100{"p100", 15'466};
constexpr Gpu kSmallP100{"p100-12gb", 11'583};
constexpr Gpu kK80ForMxnet{"k80", 11'441};

struct Model {
  std::string workload;
  std::string spec;
  std::int64_t parameters;
  const char* note = "";
};

class Table {
 public:
  // A paper's machine: its GPUs, the runtime, and the host.
  struct System {
    const char* name;
    Gpu gpu;
    const char* runtime;
    const char* host;  // "": none
    const char* source;
  };

  // The model on each of these numbers of GPUs.
  void add(const System& system, const std::vector<int>& gpus, const Model& model) {
    for (const int count : gpus) {
      std::string workload = model.workload;
      if (gpus.size() > 1) workload += fmt::format(", {} GPUs", count);
      std::string cluster = fmt::format("{}x{}-{}@{}MiB", count, system.gpu.kind, system.runtime,
                                        system.gpu.mebibytes);
      if (*system.host != 0) cluster += fmt::format("+{}", system.host);
      all_.push_back({.system = system.name,
                      .workload = std::move(workload),
                      .model = "zoo:" + model.spec,
                      .cluster = std::move(cluster),
                      .memory = system.gpu.mebibytes * kMiB,
                      .parameters = model.parameters,
                      .source = system.source,
                      .note = model.note});
    }
  }

  std::vector<PublishedWorkload> take() { return std::move(all_); }

 private:
  std::vector<PublishedWorkload> all_;
};

constexpr std::int64_t kInception = 23'834'568;
constexpr std::int64_t kRnnLm2 = 198'245'632;
constexpr std::int64_t kRnnLm4 = 265'387'264;
constexpr std::int64_t kRnnLm8 = 399'670'528;
constexpr std::int64_t kGnmt2 = 155'001'088;
constexpr std::int64_t kGnmt4 = 196'976'896;
constexpr std::int64_t kGnmt8 = 280'928'512;

// Steps as of Zaremba et al. 2014. As published, it fits one GPU.
constexpr const char* kRnnNote = "width 2048, 35 steps, vocabulary 32,000";
// As published, it does not fit one GPU.
constexpr const char* kNmtNote = "width 1024, 64 words, vocabulary 32,000";
constexpr const char* kGnmtNote = "width 1024, 40 words, vocabulary 32,000";

void add_colocrl(Table& table) {
  const Table::System colocrl{"ColocRL", kK80, "tf1", "cpu-haswell18", "Mirhoseini et al. 2017"};
  table.add(colocrl, {2, 4}, {"RNNLM", "rnnlm:layers=2,batch=64,sequence=35", kRnnLm2, kRnnNote});
  table.add(colocrl, {2, 4}, {"NMT", "gnmt-2:batch=64,sequence=64", kGnmt2, kNmtNote});
  table.add(colocrl, {2, 4}, {"Inception-V3", "inception-v3:batch=32", kInception});
}

void add_hdp(Table& table) {
  const Table::System hdp{"HDP", kK40, "tf1", "cpu-haswell18", "Mirhoseini et al. 2018"};
  table.add(hdp, {2}, {"Inception-V3", "inception-v3:batch=1", kInception});
  table.add(hdp, {2},
            {"ResNet-152", "resnet-152:batch=128,image=128", 60'192'808,
             "128 pixels: 224 would not fit one GPU, as published it does"});
  table.add(hdp, {2}, {"RNNLM", "rnnlm:layers=2,batch=64,sequence=35", kRnnLm2, kRnnNote});
  table.add(hdp, {2}, {"NMT, 2 layers", "gnmt-2:batch=64,sequence=64", kGnmt2, kNmtNote});
  table.add(hdp, {4}, {"NMT, 4 layers", "gnmt-4:batch=64,sequence=64", kGnmt4, kNmtNote});
  table.add(hdp, {8}, {"NMT, 8 layers", "gnmt-8:batch=64,sequence=64", kGnmt8, kNmtNote});
}

void add_spotlight_and_post(Table& table) {
  const Table::System spotlight{"Spotlight", kK80, "tf1", "cpu-broadwell8", "Gao et al. 2018a"};
  table.add(spotlight, {2, 4},
            {"CIFAR-10 CNN", "cifar-10-cnn:batch=128", 1'068'298, "batch of the tutorial"});
  table.add(spotlight, {2, 4}, {"RNNLM", "rnnlm:layers=2,batch=64,sequence=35", kRnnLm2, kRnnNote});
  table.add(spotlight, {2, 4}, {"NMT", "gnmt-2:batch=64,sequence=64", kGnmt2, kNmtNote});

  const Table::System post{"Post", kK80, "tf1", "cpu-broadwell8", "Gao et al. 2018b"};
  table.add(post, {2, 4, 8}, {"Inception-V3", "inception-v3:batch=32", kInception});
  table.add(post, {2, 4, 8}, {"ResNet", "resnet-50:batch=32", 25'557'032, "50 layers"});
  table.add(post, {2, 4, 8},
            {"RNNLM, 4 layers", "rnnlm:layers=4,batch=64,sequence=35", kRnnLm4, kRnnNote});
  table.add(post, {2, 4, 8}, {"NMT", "gnmt-2:batch=64,sequence=64", kGnmt2, kNmtNote});
}

void add_placeto(Table& table) {
  const Table::System placeto{"Placeto", kK80, "placeto", "", "Addanki et al. 2019"};
  table.add(placeto, {2, 4}, {"Inception-V3", "inception-v3:batch=32", kInception, "batch"});
  table.add(placeto, {2, 4}, {"NMT", "gnmt-2:batch=64,sequence=64", kGnmt2, kNmtNote});
  table.add(placeto, {2, 4}, {"NASNet", "nasnet-a-mobile:batch=32", 5'289'978, "size and batch"});
}

void add_gdp(Table& table) {
  const Table::System gdp{"GDP", kP100, "tf1", "cpu-broadwell24", "Zhou et al. 2019"};
  table.add(gdp, {2},
            {"RNNLM, 2 layers", "rnnlm:layers=2,batch=64,sequence=35", kRnnLm2, kRnnNote});
  table.add(gdp, {4},
            {"RNNLM, 4 layers", "rnnlm:layers=4,batch=64,sequence=35", kRnnLm4, kRnnNote});
  table.add(gdp, {8},
            {"RNNLM, 8 layers", "rnnlm:layers=8,batch=64,sequence=35", kRnnLm8, kRnnNote});
  table.add(gdp, {2}, {"GNMT, 2 layers", "gnmt-2:batch=64", kGnmt2, kGnmtNote});
  table.add(gdp, {4}, {"GNMT, 4 layers", "gnmt-4:batch=64", kGnmt4, kGnmtNote});
  table.add(gdp, {8}, {"GNMT, 8 layers", "gnmt-8:batch=64", kGnmt8, kGnmtNote});
  const char* note = "batch and lengths";
  table.add(gdp, {2}, {"Transformer-XL, 2 layers", "transformer-xl-2", 91'800'832, note});
  table.add(gdp, {4}, {"Transformer-XL, 4 layers", "transformer-xl-4", 118'033'664, note});
  table.add(gdp, {8}, {"Transformer-XL, 8 layers", "transformer-xl-8", 170'499'328, note});
  table.add(gdp, {2}, {"Inception-V3", "inception-v3:batch=64", kInception});
  table.add(gdp, {4}, {"AmoebaNet", "amoebanet-d:batch=32", 81'505'540, "size and batch"});
  table.add(gdp, {2},
            {"WaveNet 2x18", "wavenet:layers=18,cycle=9", 7'162'624, "two rounds of 9; batch"});
  table.add(gdp, {4},
            {"WaveNet 4x36", "wavenet:layers=36,cycle=9", 14'258'944, "four rounds of 9; batch"});
}

void add_mars(Table& table) {
  const Table::System mars{"Mars", kSmallP100, "tf1", "cpu-broadwell24", "Lan et al. 2021"};
  table.add(mars, {4}, {"Inception-V3", "inception-v3:batch=1", kInception});
  table.add(mars, {4}, {"GNMT-4", "gnmt-4:batch=256", kGnmt4, kGnmtNote});
  table.add(mars, {4}, {"BERT", "bert-base:batch=24,sequence=384", 109'514'298});
}

// Of a ResNet in which every convolution has `width` times the channels.
std::int64_t wide_resnet_parameters(const std::vector<std::int64_t>& blocks, std::int64_t width) {
  std::int64_t channels = 64 * width;
  std::int64_t in = channels;
  std::int64_t sum = 3 * 7 * 7 * channels + 2 * channels;
  for (const std::int64_t count : blocks) {
    sum += in * 4 * channels + 8 * channels;  // the first block's shortcut
    for (std::int64_t i = 0; i < count; ++i, in = 4 * channels) {
      sum += in * channels + 9 * channels * channels + 4 * channels * channels + 12 * channels;
    }
    channels *= 2;
  }
  return sum + 1000 * in + 1000;
}

// Of LSTM layers that read 512 numbers and make 512.
std::int64_t stacked_rnn_parameters(std::int64_t layers, std::int64_t hidden) {
  return 4 * hidden * (512 + hidden + 2) + (layers - 1) * 4 * hidden * (2 * hidden + 2) +
         512 * hidden + 512;
}

// Batches are the largest that fit, found for each method: those of the zoo are a start.
void add_tofu(Table& table) {
  const Table::System tofu{"Tofu", kK80ForMxnet, "p2", "cpu-broadwell16", "Wang et al. 2019"};
  const char* note = "the batch is the largest that fits";
  const std::vector<std::pair<int, std::vector<std::int64_t>>> depths{
      {50, {3, 4, 6, 3}}, {101, {3, 4, 23, 3}}, {152, {3, 8, 36, 3}}};
  for (const auto& [layers, blocks] : depths) {
    for (const int width : {4, 6, 8, 10}) {
      table.add(tofu, {8},
                {fmt::format("WResNet-{}-{}", layers, width),
                 fmt::format("wide-resnet:layers={},width={}", layers, width),
                 wide_resnet_parameters(blocks, width), note});
    }
  }
  for (const int layers : {6, 8, 10}) {
    for (const int thousands : {4, 6, 8}) {
      const int hidden = 1024 * thousands;
      table.add(tofu, {8},
                {fmt::format("RNN-{}-{}K", layers, thousands),
                 fmt::format("stacked-rnn:layers={},hidden={}", layers, hidden),
                 stacked_rnn_parameters(layers, hidden), note});
    }
  }
}

std::vector<PublishedWorkload> make_all() {
  Table table;
  add_colocrl(table);
  add_hdp(table);
  add_spotlight_and_post(table);
  add_placeto(table);
  add_gdp(table);
  add_mars(table);
  add_tofu(table);
  return table.take();
}

}  // namespace

const std::vector<PublishedWorkload>& published_workloads() {
  static const std::vector<PublishedWorkload> all = make_all();
  return all;
}

std::vector<PublishedWorkload> published_workloads_of(const std::string& system) {
  std::vector<PublishedWorkload> result;
  std::vector<std::string> known;
  for (const PublishedWorkload& workload : published_workloads()) {
    if (workload.system == system) result.push_back(workload);
    if (known.empty() || known.back() != workload.system) known.push_back(workload.system);
  }
  if (result.empty()) {
    fail_option("'{}' is not a published system{}; expected one of: {}", system,
                suggestion(system, known), fmt::join(known, ", "));
  }
  return result;
}

}  // namespace emplace::zoo
