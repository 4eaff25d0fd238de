// Cost curves of device kinds in cluster files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

#include "cluster/device_kinds.h"
#include "cluster/presets.h"

#include "io/cluster_yaml_writer.h"
#include "io/readers.h"

namespace emplace {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string file_with_curves(const std::string& curves, const std::string& kind = "own") {
  return "format: emplace.cluster/1\nkinds:\n  " + kind +
         ": {memory: 1GiB, memory_bandwidth: 1GB/s, curves: {" + curves +
         "}}\ndevices: [{name: d0, kind: " + kind + "}]\n";
}

std::string curves_error(const std::string& curves) {
  try {
    read_cluster_yaml(file_with_curves(curves));
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInput);
    return error.what();
  }
  return "no error";
}

TEST(ClusterCurves, given_fields_change_and_others_stay) {
  const Cluster cluster = read_cluster_yaml(
      file_with_curves("convolution: {compute: 0.125, half_depth: 77}, softmax: {launches: 2.5}"));
  const CostCurves& curves = cluster.kind_of(0).curves;
  CostCurve expected = gpu_curves()[OpClass::kConvolution];
  expected.compute = 0.125;
  expected.half_depth = 77;
  EXPECT_EQ(curves[OpClass::kConvolution], expected);
  EXPECT_EQ(curves[OpClass::kSoftmax].launches, 2.5);
  EXPECT_EQ(curves[OpClass::kMatMul], gpu_curves()[OpClass::kMatMul]);
}

TEST(ClusterCurves, a_built_in_kind_starts_from_its_own) {
  const Cluster cluster = read_cluster_yaml(file_with_curves("matmul: {launches: 9}", "cpu"));
  EXPECT_EQ(cluster.kind_of(0).curves[OpClass::kMatMul].launches, 9);
  EXPECT_EQ(cluster.kind_of(0).curves[OpClass::kPool], cpu_curves()[OpClass::kPool]);
}

TEST(ClusterCurves, are_written_back_without_loss) {
  ClusterSpec spec = preset_cluster("1xh200");
  DeviceKind kind = *find_device_kind("h200");
  kind.curves = typical_curves();
  kind.curves[OpClass::kMatMul].compute = 1.0 / 3;
  kind.curves[OpClass::kBatchNorm].lane_bandwidth = 1.23456789012345e10;
  for (const char* name : {"h200", "mine"}) {
    kind.name = name;
    spec.kinds = {kind};
    spec.devices[0].kind = name;
    const Cluster again = read_cluster_yaml(write_cluster_yaml(spec));
    for (std::size_t i = 0; i < kNumOpClasses; ++i) {
      const auto op_class = static_cast<OpClass>(i);
      for (const CurveField& field : curve_fields()) {
        if (!uses_field(op_class, field.value)) continue;
        EXPECT_EQ(again.kind_of(0).curves[op_class].*field.value,
                  kind.curves[op_class].*field.value)
            << op_class_name(op_class) << " " << field.name;
      }
    }
  }
}

TEST(ClusterCurves, built_in_ones_are_not_spelt_out) {
  EXPECT_THAT(write_cluster_yaml(preset_cluster("2xp100+cpu")), Not(HasSubstr("curves")));
}

TEST(ClusterCurves, mistakes_name_kind_class_and_field) {
  EXPECT_THAT(curves_error("matmull: {compute: 1}"),
              AllOf(HasSubstr("kind 'own': curves"), HasSubstr("'matmull'"),
                    HasSubstr("did you mean 'matmul'")));
  EXPECT_THAT(curves_error("matmul: {compude: 1}"),
              AllOf(HasSubstr("kind 'own': curves: matmul"), HasSubstr("'compude'"),
                    HasSubstr("did you mean 'compute'")));
  EXPECT_THAT(curves_error("matmul: {compute: 1.5}"),
              HasSubstr("curves: matmul: compute: '1.5': expected a number from 0.0001 to 1"));
  EXPECT_THAT(curves_error("matmul: {ramp_us: -1}"), HasSubstr("ramp_us: '-1'"));
  EXPECT_THAT(curves_error("matmul: {launches: few}"), HasSubstr("launches: 'few'"));
  EXPECT_THAT(curves_error("matmul: 3"), HasSubstr("expected a mapping"));
  // A field that the class does not look at would have no effect.
  EXPECT_THAT(curves_error("softmax: {half_depth: 3}"), HasSubstr("'half_depth'"));
}

}  // namespace
}  // namespace emplace
