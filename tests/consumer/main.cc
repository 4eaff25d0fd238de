// Builds a graph in code and places it with the installed library.
#include <cstdio>

#include <emplace/model.h>
#include <emplace/place.h>
#include <emplace/problem.h>

int main() {
  using namespace emplace;
  const auto graph =
      build_graph("two-ops", {{.name = "x", .type = "input", .outputs = {{.shape = {32, 64}}}},
                              {.name = "y",
                               .type = "relu",
                               .inputs = {{.op = 0}},
                               .outputs = {{.shape = {32, 64}}},
                               .flops = 2048}});
  PlaceOptions options;
  options.placer = "heft";
  const Answer answer = place(compile(graph, read_cluster("2xp100")), options);
  std::printf("emplace %s, %zu placers; step %lld ns\n", version().c_str(), list_placers().size(),
              static_cast<long long>(answer.time()));
  return answer.fits() && answer.time() > 0 && !list_placers().empty() ? 0 : 1;
}
