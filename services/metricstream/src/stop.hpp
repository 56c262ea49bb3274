#pragma once

#include <sys/eventfd.h>

#include <atomic>
#include <cstdint>

#include "file_descriptor.hpp"

namespace metricstream {

/// The wish to end: every loop waits for its descriptor, which stays readable once it was asked.
class Stop {
 public:
  Stop() : event_(checked(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd")) {}

  void ask() {
    asked_.store(true);
    const std::uint64_t one = 1;
    // It can only fail where the counter is full, and then it is readable already.
    [[maybe_unused]] const auto written = ::write(event_.number(), &one, sizeof one);
  }

  [[nodiscard]] bool asked() const { return asked_.load(); }
  [[nodiscard]] int descriptor() const { return event_.number(); }

 private:
  FileDescriptor event_;
  std::atomic<bool> asked_{false};
};

}  // namespace metricstream
