#include "cluster/device_kinds.h"

#include <vector>

namespace emplace {
namespace {

constexpr double kTera = 1e12;
constexpr double kGiga = 1e9;
constexpr Bytes kGiB = Bytes{1} << 30;

// Published nowhere: what a host needs to start one kernel of a framework that runs op by op, as
// measured beside an H200 and on 16 cores (docs/cost-model.md). It is the host's time rather than
// the device's, so every kind of GPU has the same.
constexpr double kGpuLaunch = 15;
constexpr double kCpuLaunch = 9.7;

// 10^12 operations per second on dense (not sparse) operands, accumulated in 32 bits, through
// matrix units where the kind has them for the type; 0: the kind has no such figure.
struct Peaks {
  double float64 = 0;
  double float32 = 0;
  double tf32 = 0;
  double float16 = 0;
  double bfloat16 = 0;
  double float8 = 0;
  double int8 = 0;
};

DeviceKind kind(const char* name, const Peaks& peaks, double gigabytes_per_second, Bytes gib,
                const char* source) {
  DeviceKind result{.name = name, .peak_flops = {}};
  const auto add = [&](const char* dtype, double tera) {
    if (tera > 0) result.peak_flops.emplace(dtype, tera * kTera);
  };
  add("float64", peaks.float64);
  add("float32", peaks.float32);
  add("tf32", peaks.tf32);
  add("float16", peaks.float16);
  add("bfloat16", peaks.bfloat16);
  add("float8", peaks.float8);
  add("int8", peaks.int8);
  result.memory_bandwidth = gigabytes_per_second * kGiga;
  result.memory = gib * kGiB;
  result.launch_us = kGpuLaunch;
  result.source = source;
  return result;
}

constexpr Peaks kA100{
    .float64 = 19.5, .float32 = 19.5, .tf32 = 156, .float16 = 312, .bfloat16 = 312, .int8 = 624};
constexpr Peaks kH100{.float64 = 66.9,
                      .float32 = 66.9,
                      .tf32 = 494.7,
                      .float16 = 989.4,
                      .bfloat16 = 989.4,
                      .float8 = 1978.9,
                      .int8 = 1978.9};
constexpr Peaks kV100{.float64 = 7.8, .float32 = 15.7, .float16 = 125};

// GeForce boards multiply TF32 at the rate of float32, and 16-bit types alike.
constexpr Peaks geforce(double float64, double float32, double float16, double float8,
                        double int8) {
  return {.float64 = float64,
          .float32 = float32,
          .tf32 = float32,
          .float16 = float16,
          .bfloat16 = float16,
          .float8 = float8,
          .int8 = int8};
}

// Matrix units multiply in bfloat16 what is stored in float32 too, unless more precision is asked
// for; that is what TF32 stands for here. float32 is what the vector units do.
constexpr Peaks tpu(double vector, double bfloat16, double int8) {
  return {
      .float32 = vector, .tf32 = bfloat16, .float16 = bfloat16, .bfloat16 = bfloat16, .int8 = int8};
}

// GPU cores that do 16-bit types at the rate of float32; the neural engine is not counted.
constexpr Peaks apple(double float32) {
  return {.float32 = float32, .float16 = float32, .bfloat16 = float32};
}

// No published board: 16 cores with two AVX-512 FMA units each, at 2.5 GHz under such load, make
// 16 * 64 * 2.5e9 float32 operations per second, half as many in float64 and four times as many in
// int8 (VNNI). 16-bit floats are computed in float32. Eight channels of DDR4-3200.
constexpr Peaks kCpuPeaks{
    .float64 = 1.28, .float32 = 2.56, .float16 = 2.56, .bfloat16 = 2.56, .int8 = 10.24};
constexpr const char* kCpuSource =
    "computed for a 16-core Ice Lake server: 64 float32 operations per core and cycle at 2.5 GHz; "
    "8 channels of DDR4-3200";

DeviceKind cpu(const char* name, const Peaks& peaks = kCpuPeaks,
               double gigabytes_per_second = 204.8, Bytes gib = 64,
               const char* source = kCpuSource) {
  DeviceKind result = kind(name, peaks, gigabytes_per_second, gib, source);
  result.launch_us = kCpuLaunch;
  result.curves = cpu_curves();
  return result;
}

// AVX2: two FMA units of eight float32 in a core, in each cycle.
constexpr Peaks avx2(double cores, double gigahertz) {
  const double float32 = cores * 32 * gigahertz / 1000;
  return {.float64 = float32 / 2, .float32 = float32, .float16 = float32, .bfloat16 = float32};
}

std::vector<DeviceKind> make_kinds() {
  return {
      kind("k40", {.float64 = 1.43, .float32 = 4.29}, 288, 12,
           "NVIDIA Tesla K40 GPU accelerator board specification, BD-06902"),
      kind("k80", {.float64 = 1.455, .float32 = 4.37}, 240, 12,
           "NVIDIA Tesla K80 board specification, BD-07317, boost clocks; one of its two GK210"),
      kind("p100", {.float64 = 4.7, .float32 = 9.3, .float16 = 18.7}, 732, 16,
           "NVIDIA Tesla P100 PCIe data sheet, 16 GB"),
      kind("p100-12gb", {.float64 = 4.7, .float32 = 9.3, .float16 = 18.7}, 549, 12,
           "NVIDIA Tesla P100 PCIe data sheet, 12 GB"),
      kind("v100", kV100, 900, 16, "NVIDIA Tesla V100 data sheet, SXM2, 16 GB"),
      kind("v100-32gb", kV100, 900, 32, "NVIDIA Tesla V100 data sheet, SXM2, 32 GB"),
      kind("v100-pcie", {.float64 = 7, .float32 = 14, .float16 = 112}, 900, 16,
           "NVIDIA Tesla V100 data sheet, PCIe, 16 GB"),
      kind("t4", {.float64 = 0.25, .float32 = 8.1, .float16 = 65, .int8 = 130}, 320, 16,
           "NVIDIA T4 product brief, PB-09256; float64 1/32 of float32 (Turing white paper)"),
      kind("a100", kA100, 2039, 80, "NVIDIA A100 data sheet, SXM, 80 GB"),
      kind("a100-40gb", kA100, 1555, 40, "NVIDIA A100 data sheet, SXM, 40 GB"),
      kind("a10",
           {.float64 = 0.49,
            .float32 = 31.2,
            .tf32 = 62.5,
            .float16 = 125,
            .bfloat16 = 125,
            .int8 = 250},
           600, 24, "NVIDIA A10 data sheet; float64 1/64 of float32 (GA102 white paper)"),
      kind("l4",
           {.float64 = 0.47,
            .float32 = 30.3,
            .tf32 = 60,
            .float16 = 121,
            .bfloat16 = 121,
            .float8 = 242.5,
            .int8 = 242.5},
           300, 24, "NVIDIA L4 data sheet, halved where it counts sparsity; float64 1/64"),
      kind("l40s",
           {.float64 = 1.43,
            .float32 = 91.6,
            .tf32 = 183,
            .float16 = 362,
            .bfloat16 = 362,
            .float8 = 733,
            .int8 = 733},
           864, 48, "NVIDIA L40S data sheet; float64 1/64 of float32 (Ada white paper)"),
      kind("a6000",
           {.float64 = 0.6,
            .float32 = 38.7,
            .tf32 = 77.4,
            .float16 = 154.8,
            .bfloat16 = 154.8,
            .int8 = 309.7},
           768, 48,
           "NVIDIA Ampere GA102 white paper, appendix C: RTX A6000; float64 1/64 of float32"),
      kind("rtx6000-ada",
           {.float64 = 1.42,
            .float32 = 91.1,
            .tf32 = 182.1,
            .float16 = 364.2,
            .bfloat16 = 364.2,
            .float8 = 728.5,
            .int8 = 728.5},
           960, 48,
           "NVIDIA RTX 6000 Ada data sheet, 1457 with sparsity in float8; the others in the ratios "
           "of the Ada white paper"),
      kind(
          "rtx3060", geforce(0.2, 12.7, 25.5, 0, 102), 360, 12,
          "NVIDIA GeForce RTX 3060: 3584 cores at 1.78 GHz; types in the ratios of the GA102 white "
          "paper"),
      kind("rtx3070", geforce(0.32, 20.3, 40.6, 0, 162.6), 448, 8,
           "NVIDIA Ampere GA102 white paper, appendix A"),
      kind("rtx3080", geforce(0.47, 29.8, 59.5, 0, 238), 760, 10,
           "NVIDIA Ampere GA102 white paper, 10 GB"),
      kind("rtx3090",
           {.float64 = 0.56,
            .float32 = 35.6,
            .tf32 = 35.6,
            .float16 = 71,
            .bfloat16 = 71,
            .int8 = 284},
           936, 24, "NVIDIA Ampere GA102 white paper, appendix A"),
      kind("rtx4070", geforce(0.46, 29.1, 58.3, 116.6, 233.2), 504, 12,
           "NVIDIA GeForce RTX 4070: 5888 cores at 2.475 GHz; types in the ratios of the Ada white "
           "paper"),
      kind("rtx4080", geforce(0.76, 48.7, 97.5, 194.9, 389.9), 716.8, 16,
           "NVIDIA Ada white paper, 16 GB"),
      kind("rtx4090",
           {.float64 = 1.29,
            .float32 = 82.6,
            .tf32 = 82.6,
            .float16 = 165.2,
            .bfloat16 = 165.2,
            .float8 = 330.3,
            .int8 = 660.6},
           1008, 24, "NVIDIA Ada white paper, appendix A"),
      kind("rtx5080", geforce(0.88, 56.3, 112.6, 225.1, 450.2), 960, 16,
           "NVIDIA RTX Blackwell white paper"),
      kind("rtx5090", geforce(1.64, 104.8, 209.5, 419, 838), 1792, 32,
           "NVIDIA RTX Blackwell white paper"),
      kind("h100", kH100, 3350, 80, "NVIDIA H100 white paper and data sheet, SXM5"),
      kind("h100-pcie",
           {.float64 = 51,
            .float32 = 51,
            .tf32 = 378,
            .float16 = 756,
            .bfloat16 = 756,
            .float8 = 1513,
            .int8 = 1513},
           2000, 80, "NVIDIA H100 white paper and data sheet, PCIe"),
      kind("h200", kH100, 4800, 141, "NVIDIA H200 data sheet, SXM; peaks of the H100 SXM5"),
      kind("b200",
           {.float64 = 37,
            .float32 = 75,
            .tf32 = 1125,
            .float16 = 2250,
            .bfloat16 = 2250,
            .float8 = 4500,
            .int8 = 4500},
           8000, 180, "NVIDIA HGX B200 and DGX B200 data sheets, an eighth, halved for sparsity"),
      kind("gb200",
           {.float64 = 40,
            .float32 = 80,
            .tf32 = 1250,
            .float16 = 2500,
            .bfloat16 = 2500,
            .float8 = 5000,
            .int8 = 5000},
           8000, 186, "NVIDIA GB200 NVL72 data sheet, a 72nd, halved for sparsity"),
      kind("mi250x",
           {.float64 = 47.9, .float32 = 47.9, .float16 = 191.5, .bfloat16 = 191.5, .int8 = 191.5},
           1638.4, 64, "AMD Instinct MI250X data sheet; one of its two dies, as ROCm counts"),
      kind("mi300x",
           {.float64 = 163.4,
            .float32 = 163.4,
            .tf32 = 653.7,
            .float16 = 1307.4,
            .bfloat16 = 1307.4,
            .float8 = 2614.9,
            .int8 = 2614.9},
           5300, 192, "AMD Instinct MI300X data sheet"),
      kind("tpu-v4", tpu(4.3, 275, 275), 1200, 32,
           "Google Cloud documentation, TPU v4; float32: its vector units, 2 x 2048 lanes at 1.05 "
           "GHz (Jouppi et al. 2023)"),
      kind("tpu-v5e", tpu(6.1, 197, 394), 819, 16,
           "Google Cloud documentation, TPU v5e; float32: its vector unit, 4096 lanes at 1.5 GHz, "
           "computed"),
      kind("tpu-v5p", tpu(14.3, 459, 918), 2765, 95,
           "Google Cloud documentation, TPU v5p; float32: its vector units, 2 x 4096 lanes at 1.75 "
           "GHz, computed"),
      kind("m1-max", apple(10.4), 400, 64, "Apple, MacBook Pro with M1 Max, 32 GPU cores"),
      kind("m2-ultra", apple(27.2), 800, 192,
           "Apple, M2 Ultra; float32 computed for 76 GPU cores of 128 lanes at 1.4 GHz"),
      kind("m4-max", apple(16.2), 546, 128,
           "Apple, M4 Max; float32 computed for 40 GPU cores of 128 lanes at 1.58 GHz"),
      cpu("cpu"),
      cpu("cpu16"),
      cpu("cpu-haswell18", avx2(18, 1.9), 68.3, 64,
          "computed for an 18-core Xeon E5-2699 v3: 32 float32 operations per core and cycle at "
          "its AVX base of 1.9 GHz; 4 channels of DDR4-2133; memory assumed"),
      cpu("cpu-broadwell8", avx2(8, 2.2), 76.8, 64,
          "computed for 8 cores of a Xeon E5 v4 at 2.2 GHz, as rented: 32 float32 operations per "
          "core and cycle; 4 channels of DDR4-2400; memory assumed"),
      cpu("cpu-broadwell16", avx2(16, 2.3), 76.8, 488,
          "computed for the 16 cores of a Xeon E5-2686 v4 at 2.3 GHz, EC2 p2.8xlarge: 32 float32 "
          "operations per core and cycle; 4 channels of DDR4-2400; 488 GiB"),
      cpu("cpu-broadwell24", avx2(24, 2.2), 153.6, 128,
          "computed for two 12-core Xeon E5-2650 v4 at 2.2 GHz: 32 float32 operations per core and "
          "cycle; 8 channels of DDR4-2400; memory assumed"),
  };
}

}  // namespace

std::span<const DeviceKind> built_in_device_kinds() {
  static const std::vector<DeviceKind> kinds = make_kinds();
  return kinds;
}

const DeviceKind* find_device_kind(std::string_view name) {
  for (const DeviceKind& kind : built_in_device_kinds()) {
    if (kind.name == name) return &kind;
  }
  return nullptr;
}

}  // namespace emplace
