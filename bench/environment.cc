// How many placements a second the environment values, called from C++: bench/environment.py runs
// this beside the same from Python. Prints evaluations per second for each batch of the file that
// it is given: int32 rows, devices by group.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <vector>

#include <emplace/emplace.h>

int main(int argc, char** argv) {
  if (argc != 6) {
    std::fprintf(stderr, "usage: environment MODEL CLUSTER ROWS_FILE THREADS REPEATS\n");
    return 2;
  }
  const auto problem =
      emplace::compile(emplace::read_model(argv[1]).graph, emplace::read_cluster(argv[2]));
  const emplace::Environment environment(problem);
  std::ifstream file(argv[3], std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  const std::span<const std::int32_t> rows{reinterpret_cast<const std::int32_t*>(bytes.data()),
                                           bytes.size() / sizeof(std::int32_t)};
  const std::size_t count = rows.size() / emplace::size_of(*problem).groups;
  std::vector<emplace::StepValue> values(count);
  const int threads = std::atoi(argv[4]);
  environment.evaluate(rows, values, threads);
  for (int i = 0; i < std::atoi(argv[5]); ++i) {
    const auto start = std::chrono::steady_clock::now();
    environment.evaluate(rows, values, threads);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    std::printf("%.1f\n", static_cast<double>(count) / took.count());
  }
  return 0;
}
