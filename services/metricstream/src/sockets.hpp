#pragma once

#include <sys/epoll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <span>
#include <string>
#include <system_error>
#include <utility>

#include "settings.hpp"

namespace metricstream {

/// Owns a descriptor of the kernel and closes it once.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int number) : number_(number) {}
  FileDescriptor(FileDescriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~FileDescriptor() { reset(); }

  [[nodiscard]] int number() const { return number_; }
  [[nodiscard]] bool is_open() const { return number_ >= 0; }

  void reset() {
    if (number_ >= 0) ::close(std::exchange(number_, -1));
  }

 private:
  int number_ = -1;
};

/// The last call's error, with what was tried.
inline std::system_error last_error(const std::string& tried) {
  return {errno, std::generic_category(), tried};
}

/// The kernel's list of what a loop waits for.
class Poller {
 public:
  Poller() : epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
    if (!epoll_.is_open()) throw last_error("epoll_create1");
  }

  void add(int descriptor, std::uint32_t events) { control(EPOLL_CTL_ADD, descriptor, events); }
  void change(int descriptor, std::uint32_t events) { control(EPOLL_CTL_MOD, descriptor, events); }

  /// Wait for events; they are valid until the next call.
  std::span<const epoll_event> wait() {
    const int found =
        ::epoll_wait(epoll_.number(), events_.data(), static_cast<int>(events_.size()), -1);
    return {events_.data(), found > 0 ? static_cast<std::size_t>(found) : 0};
  }

 private:
  void control(int operation, int descriptor, std::uint32_t events) {
    epoll_event event{};
    event.events = events;
    event.data.fd = descriptor;
    if (::epoll_ctl(epoll_.number(), operation, descriptor, &event) != 0) {
      throw last_error("epoll_ctl");
    }
  }

  FileDescriptor epoll_;
  std::array<epoll_event, 256> events_{};
};

}  // namespace metricstream
