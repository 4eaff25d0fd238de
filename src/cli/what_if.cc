#include "cli/what_if.h"

#include "base/options.h"

namespace emplace::cli {

void WhatIfArguments::add_batch(Command command) {
  command
      .text("--batch", batch,
            takes_ranges
                ? "Samples per step, for a zoo model or an ONNX file with a symbolic "
                  "batch: a number; max, the largest that fits; or the largest of a range "
                  "such as 8..512"
                : "Samples per step, for a zoo model or an ONNX file with a symbolic batch")
      .type("N");
}

void WhatIfArguments::add_hardware(Command command) {
  command
      .texts("--scale", scales,
             "What if: multiply compute, memory-bandwidth, speed (everything that devices do), "
             "memory, or the links' bandwidth or latency, e.g. --scale bandwidth=2,memory=1.5")
      .type("WHAT=FACTOR");
  command
      .texts("--price", prices,
             "What an hour of a device costs, by its kind or name, or gpu or cpu for all of them, "
             "e.g. --price a100=2.5; gives costs of a step and of a million samples")
      .type("DEVICES=PRICE");
}

std::optional<BatchRange> WhatIfArguments::range() const {
  return takes_ranges ? BatchRange::parse(batch) : std::nullopt;
}

void WhatIfArguments::apply(ProblemRequest& request) const {
  if (!batch.empty() && !range()) {
    request.batch = read_integer("--batch", batch, 1, BatchRange::kMost);
  }
  request.scale = ClusterScale::parse(scales);
  request.prices = Prices::parse(prices);
}

}  // namespace emplace::cli
