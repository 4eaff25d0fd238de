// Many placements of one problem, simulated one by one, as JSON lines (docs/formats.md).
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <string_view>

#include "sim/objective.h"

#include "placer/evaluator.h"

namespace emplace {

class SimulationLines {
 public:
  // `scheduler`: as load_placement has it.
  SimulationLines(std::shared_ptr<const Problem> problem, const Objective& objective,
                  std::string scheduler = {});

  // A placement file's content in, the line that says what comes of it out; what is wrong with it
  // is said there, too. `name` is a JSON value that tells it from others. Thread-safe.
  std::string answer(std::string_view name, const std::string& placement);
  // The same of a file, by its name.
  std::string answer_file(const std::string& path);

  // Whether one of them could not be simulated.
  bool failed() const { return failed_; }

 private:
  template <class Read>
  std::string answer_with(std::string_view name, const Read& read);

  Evaluator evaluator_;
  std::string scheduler_;
  std::atomic<bool> failed_{false};
};

}  // namespace emplace
