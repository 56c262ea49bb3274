#pragma once

#include <poll.h>
#include <sys/eventfd.h>

#include <array>
#include <atomic>
#include <cstdint>

#include "clock.hpp"
#include "file_descriptor.hpp"

namespace naive_client {

/// The wish to end: its descriptor stays readable once it was asked, so every wait ends with it.
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

  /// Wait for a descriptor; false where the instant came first, or the wish to end.
  bool wait_for(int descriptor, short events, Instant until) const {
    std::array<pollfd, 2> waited{{{event_.number(), POLLIN, 0}, {descriptor, events, 0}}};
    while (!asked()) {
      const auto left = left_until(until);
      if (::ppoll(waited.data(), waited.size(), &left, nullptr) >= 0) break;
    }
    return !asked() && waited[1].revents != 0;
  }

  /// Sleep; false where the wish to end came first.
  bool sleep_until(Instant until) const {
    wait_for(-1, 0, until);
    return !asked();
  }

 private:
  FileDescriptor event_;
  std::atomic<bool> asked_{false};
};

}  // namespace naive_client
