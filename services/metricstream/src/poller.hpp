#pragma once

#include <sys/epoll.h>

#include <array>
#include <cstdint>
#include <span>

#include "clock.hpp"
#include "connection.hpp"
#include "file_descriptor.hpp"

namespace metricstream {

/// The kernel's list of what a loop waits for.
class Poller {
 public:
  Poller() : epoll_(checked(::epoll_create1(EPOLL_CLOEXEC), "epoll_create1")) {}

  void add(int descriptor, std::uint32_t events) { control(EPOLL_CTL_ADD, descriptor, events); }

  /// Add a connection's; false where the kernel has no room for it.
  bool try_add(int descriptor, std::uint32_t events) {
    return try_control(EPOLL_CTL_ADD, descriptor, events);
  }

  void change(int descriptor, std::uint32_t events) { control(EPOLL_CTL_MOD, descriptor, events); }
  void remove(int descriptor) { control(EPOLL_CTL_DEL, descriptor, 0); }

  /// Wait for events, at most so long; they are valid until the next call.
  std::span<const epoll_event> wait(milliseconds at_most) {
    const int found = ::epoll_wait(epoll_.number(), events_.data(),
                                   static_cast<int>(events_.size()),
                                   static_cast<int>(at_most.count()));
    return {events_.data(), found > 0 ? static_cast<std::size_t>(found) : 0};
  }

 private:
  void control(int operation, int descriptor, std::uint32_t events) {
    if (!try_control(operation, descriptor, events)) throw last_error("epoll_ctl");
  }

  bool try_control(int operation, int descriptor, std::uint32_t events) {
    epoll_event event{};
    event.events = events;
    event.data.fd = descriptor;
    return ::epoll_ctl(epoll_.number(), operation, descriptor, &event) == 0;
  }

  FileDescriptor epoll_;
  std::array<epoll_event, 256> events_{};
};

inline std::uint32_t events_for(Connection::Wants wants) {
  return wants == Connection::Wants::Write ? EPOLLOUT : EPOLLIN;
}

}  // namespace metricstream
