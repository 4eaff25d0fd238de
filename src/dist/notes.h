// Words between any two ranks, past rank 0, while they share a job.
#pragma once

#include <functional>
#include <string_view>

#include "dist/wire.h"

namespace emplace::dist {

class Notes {
 public:
  virtual ~Notes() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  // From any thread. Those from one rank to another arrive in the order in which they were sent, or
  // not at all: whoever waits for an answer hears of the other's loss from rank 0.
  virtual void note(int to, std::string_view body) = 0;
  // Called from another thread, and soon to return; an Error says that it makes no sense. Until it
  // is nothing, which returns when no call is under way. What comes while nobody listens is lost.
  virtual void on_notes(std::function<void(int from, Reader& body)> listener) = 0;
};

}  // namespace emplace::dist
