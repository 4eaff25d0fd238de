// What the environment takes to value placements, called from C++: bench/environment.py runs this
// beside the same from Python. Prints the microseconds of processor time of an evaluation for each
// time that it values the file that it is given: int32 rows, devices by group.
#include <cstdio>
#include <cstdlib>
#include <ctime>
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
    const std::clock_t start = std::clock();  // of the processor
    environment.evaluate(rows, values, threads);
    const double took = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    std::printf("%.3f\n", 1e6 * took / static_cast<double>(count));
  }
  return 0;
}
