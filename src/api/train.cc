// emplace/train.h over run.
#include "run/train.h"

#include <mutex>

#include <emplace/train.h>

#include "base/error.h"
#include "base/read_bytes.h"

#include "learn/backend.h"
#include "run/ticker.h"

namespace emplace {

TrainResult train(const TrainOptions& options) {
  std::mutex mutex;
  std::string line;
  const Ticker ticker(options.on_progress, [&] {
    const std::lock_guard lock(mutex);
    return line;
  });
  return train_policy(options, [&](const std::string& now) {
    const std::lock_guard lock(mutex);
    line = now;
  });
}

std::vector<OptionInfo> train_settings() {
  std::vector<OptionInfo> all = learn::MultiGraphSettings::schema().describe();
  // These are fields of their own.
  std::erase_if(all, [](const OptionInfo& option) {
    return option.name == "policy" || option.name == "device";
  });
  return all;
}

std::string describe_policy(const std::string& path) {
  return learn::backend("a policy").describe_policy(read_bytes(path), path).card;
}

}  // namespace emplace
