// File calls of which the n-th fails, for every n.
#pragma once

#include <cerrno>

#include <gtest/gtest.h>

#include "io/file_calls.h"

namespace emplace {

enum class Fault { kNoSpace, kDevice, kShort, kInterrupted };

// Lets the n-th call fail, once or from then on.
class FailingCalls final : public FileCalls {
 public:
  FailingCalls(int at, Fault fault, bool from_then_on)
      : at_(at), fault_(fault), from_then_on_(from_then_on), before_(replace_file_calls(this)) {}
  ~FailingCalls() override { replace_file_calls(before_); }

  bool reached() const { return count_ > at_; }

  int open(const char* path, int flags, mode_t mode) override {
    return fails() ? -1 : FileCalls::open(path, flags, mode);
  }
  ssize_t write(int descriptor, const void* bytes, std::size_t count) override {
    const bool here = due();
    if (here && fault_ == Fault::kShort) {
      return FileCalls::write(descriptor, bytes, (count + 1) / 2);
    }
    if (here && refuses()) return -1;
    return FileCalls::write(descriptor, bytes, count);
  }
  int change_mode(int descriptor, mode_t mode) override {
    return fails() ? -1 : FileCalls::change_mode(descriptor, mode);
  }
  int sync(int descriptor) override { return fails() ? -1 : FileCalls::sync(descriptor); }
  int close(int descriptor) override {
    const bool failed = fails();
    const int result = FileCalls::close(descriptor);
    return failed ? -1 : result;
  }
  int rename(const char* from, const char* to) override {
    return fails() ? -1 : FileCalls::rename(from, to);
  }
  int make_folder(const char* path, mode_t mode) override {
    return fails() ? -1 : FileCalls::make_folder(path, mode);
  }
  int exchange(const char* one, const char* other) override {
    return fails() ? -1 : FileCalls::exchange(one, other);
  }
  // What cannot be removed stays: that is not what is tried here.
  int remove(const char* path) override { return FileCalls::remove(path); }

 private:
  bool due() {
    const int now = count_++;
    return now == at_ || (from_then_on_ && now > at_);
  }
  bool refuses() {
    errno = fault_ == Fault::kNoSpace ? ENOSPC : fault_ == Fault::kDevice ? EIO : EINTR;
    return fault_ != Fault::kShort;
  }
  bool fails() { return due() && refuses(); }

  int at_;
  Fault fault_;
  bool from_then_on_;
  int count_ = 0;
  FileCalls* before_;
};

// Calls `body(n, fault, from_then_on)` for every n until no call is left to fail.
template <class Body>
void with_every_fault(Body body) {
  for (const Fault fault : {Fault::kNoSpace, Fault::kDevice, Fault::kShort, Fault::kInterrupted}) {
    for (const bool from_then_on : {false, true}) {
      // A signal that interrupts every call is no fault that ends.
      if (from_then_on && fault == Fault::kInterrupted) continue;
      for (int n = 0;; ++n) {
        SCOPED_TRACE(::testing::Message() << "fault " << static_cast<int>(fault) << " at call " << n
                                          << (from_then_on ? " and all after it" : ""));
        if (!body(n, fault, from_then_on)) break;
      }
    }
  }
}

inline bool is_survivable(Fault fault) {
  return fault == Fault::kShort || fault == Fault::kInterrupted;
}

}  // namespace emplace
