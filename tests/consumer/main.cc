// Builds a graph in code and places it with the installed library.
#include <cstdio>
#include <memory>
#include <utility>

#include "cluster/presets.h"
#include "graph/graph_builder.h"

#include "placer/run.h"

#include "placers/all.h"

int main() {
  using namespace emplace;
  GraphBuilder builder("two-ops");
  const auto x =
      builder.add({.name = "x", .type = "input"}, {{.shape = {32, 64}, .dtype = DType::kFloat32}});
  builder.add({.name = "y", .type = "relu", .inputs = x, .flops = 2048},
              {{.shape = {32, 64}, .dtype = DType::kFloat32}});
  const auto problem = compile(std::make_shared<const Graph>(std::move(builder).build()),
                               std::make_shared<const Cluster>(preset_cluster("2xp100")));
  Evaluator evaluator(problem);
  const RunResult result =
      run_placer(all_placers(), evaluator, {MethodSpec::parse("heft")}, Budget{});
  std::printf("%zu placers; step %lld ns\n", all_placers().list().size(),
              static_cast<long long>(result.evaluation.step));
  return result.evaluation.fits() && !all_placers().list().empty() ? 0 : 1;
}
