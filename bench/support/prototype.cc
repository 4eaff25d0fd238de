#include "support/prototype.h"

#include <array>

namespace emplace::bench {
namespace {

struct Prototype {
  std::string_view graph;
  std::array<double, 3> ms;
};

constexpr Prototype kPrototype[] = {
    {"resnet50-b32", {204.1, 195.0, 247.3}},        {"bert-base-b24", {356.1, 354.1, 499.5}},
    {"inception-v3-b32", {268.9, 263.6, 383.0}},    {"nasnet-b32", {225.5, 227.5, 502.2}},
    {"transformer-xl8-b32", {167.1, 163.8, 321.5}}, {"gnmt4-b256", {741, 708, 1482}},
};

}  // namespace

std::optional<double> prototype_ms(std::string_view graph, std::string_view cluster) {
  const std::size_t column = std::string_view("abc").find(cluster);
  if (cluster.size() != 1 || column == std::string_view::npos) return std::nullopt;
  for (const Prototype& row : kPrototype) {
    if (row.graph == graph) return row.ms[column];
  }
  return std::nullopt;
}

}  // namespace emplace::bench
