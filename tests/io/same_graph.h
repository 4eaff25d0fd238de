// Whether two graphs are the same, op by op and field by field; what differs is a test failure.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "graph/graph.h"

namespace emplace {

// 3.0 is 3.
inline Decimal normalized(Decimal value) {
  if (value.mantissa == 0) return {};
  for (; value.mantissa % 10 == 0; value.mantissa /= 10) ++value.exponent;
  return value;
}

inline std::vector<std::pair<std::string, Decimal>> times_of(const Graph& graph, OpId op) {
  std::vector<std::pair<std::string, Decimal>> times;
  for (const MeasuredTime& time : graph.measured_times(op)) {
    times.emplace_back(graph.strings().get(time.device), normalized(time.microseconds));
  }
  return times;
}

inline std::vector<std::string> devices_of(const Graph& graph, OpId op) {
  std::vector<std::string> devices;
  for (const StringId device : graph.allowed_devices(op)) {
    devices.emplace_back(graph.strings().get(device));
  }
  return devices;
}

template <class T>
std::vector<T> copy_of(std::span<const T> items) {
  return {items.begin(), items.end()};
}

inline void expect_same_tensors(const Graph& a, const Graph& b) {
  ASSERT_EQ(a.num_tensors(), b.num_tensors());
  for (TensorId tensor = 0; tensor < a.num_tensors(); ++tensor) {
    SCOPED_TRACE("tensor " + std::to_string(tensor));
    EXPECT_EQ(a.producer(tensor), b.producer(tensor));
    EXPECT_EQ(copy_of(a.consumers(tensor)), copy_of(b.consumers(tensor)));
    EXPECT_EQ(a.bytes(tensor), b.bytes(tensor));
    EXPECT_EQ(a.memory_bytes(tensor), b.memory_bytes(tensor));
    EXPECT_EQ(a.dtype(tensor), b.dtype(tensor));
    EXPECT_EQ(copy_of(a.shape(tensor)), copy_of(b.shape(tensor)));
  }
}

inline void expect_same_op(const Graph& a, const Graph& b, OpId op) {
  EXPECT_EQ(a.op_name(op), b.op_name(op));
  EXPECT_EQ(a.type(op), b.type(op));
  EXPECT_EQ(a.role(op), b.role(op));
  EXPECT_EQ(a.phase(op), b.phase(op));
  EXPECT_EQ(a.is_view(op), b.is_view(op));
  EXPECT_EQ(a.flops(op), b.flops(op));
  EXPECT_EQ(a.bytes_moved(op), b.bytes_moved(op));
  EXPECT_EQ(a.persistent_bytes(op), b.persistent_bytes(op));
  EXPECT_EQ(a.temp_bytes(op), b.temp_bytes(op));
  EXPECT_EQ(a.module(op), b.module(op));
  EXPECT_EQ(a.colocate(op), b.colocate(op));
  EXPECT_EQ(copy_of(a.inputs(op)), copy_of(b.inputs(op)));
  EXPECT_EQ(copy_of(a.outputs(op)), copy_of(b.outputs(op)));
  EXPECT_EQ(copy_of(a.after(op)), copy_of(b.after(op)));
  EXPECT_EQ(times_of(a, op), times_of(b, op));
  EXPECT_EQ(devices_of(a, op), devices_of(b, op));
  EXPECT_TRUE(a.attributes(op) == b.attributes(op));
}

inline void expect_same_graph(const Graph& a, const Graph& b) {
  EXPECT_EQ(a.name(), b.name());
  EXPECT_EQ(a.source(), b.source());
  expect_same_tensors(a, b);
  ASSERT_EQ(a.num_ops(), b.num_ops());
  for (OpId op = 0; op < a.num_ops(); ++op) {
    SCOPED_TRACE("op '" + std::string(a.op_name(op)) + "'");
    expect_same_op(a, b, op);
  }
}

}  // namespace emplace
