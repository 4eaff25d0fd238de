// Words between any two ranks, past rank 0, while they share a job.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "dist/wire.h"

namespace emplace::dist {

// What a note is about, each of which has a listener of its own: shards of parameters, samples to
// value, and what they are worth.
enum class Topic : std::uint8_t { kShards, kSamples, kValues };
inline constexpr auto kLastTopic = Topic::kValues;

class Notes {
 public:
  virtual ~Notes() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  // From any thread. Those from one rank to another arrive in the order in which they were sent, or
  // not at all: whoever waits for an answer hears of the other's loss from rank 0.
  virtual void note(int to, Topic topic, std::string_view body) = 0;
  // Called from another thread, and soon to return; an Error says that it makes no sense. Until it
  // is nothing, which returns when no call is under way. What comes while nobody listens is lost.
  virtual void on_notes(Topic topic, std::function<void(int from, Reader& body)> listener) = 0;
};

// Who listens to what.
class NoteListeners {
 public:
  using Listener = std::function<void(int from, Reader& body)>;

  static std::string bytes(Topic topic, std::string_view body) {
    return Writer().number(static_cast<std::uint8_t>(topic)).take().append(body);
  }
  void set(Topic topic, Listener listener) {
    const std::lock_guard lock(mutex_);
    listeners_.at(static_cast<std::size_t>(topic)) = std::move(listener);
  }
  void hear(int from, Reader& note) {
    const std::size_t topic = note.number<std::uint8_t>();
    if (topic >= listeners_.size()) fail_input("it sent a note about topic {}", topic);
    const std::lock_guard lock(mutex_);
    if (listeners_[topic]) listeners_[topic](from, note);
  }

 private:
  std::mutex mutex_;
  std::array<Listener, static_cast<std::size_t>(kLastTopic) + 1> listeners_;
};

}  // namespace emplace::dist
