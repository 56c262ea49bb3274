#pragma once

#include <atomic>
#include <cstddef>
#include <optional>
#include <utility>

namespace metricstream {

/// Lets so many connections in at once and no more.
class Admission {
 public:
  /// The place of one connection, given back when it goes.
  class Slot {
   public:
    explicit Slot(Admission& of) : of_(&of) {}
    Slot(Slot&& other) noexcept : of_(std::exchange(other.of_, nullptr)) {}
    Slot(const Slot&) = delete;
    Slot& operator=(const Slot&) = delete;
    Slot& operator=(Slot&&) = delete;
    ~Slot() { release(); }

    void release() {
      if (of_) std::exchange(of_, nullptr)->open_.fetch_sub(1);
    }

   private:
    Admission* of_;
  };

  explicit Admission(std::size_t most) : most_(most) {}

  std::optional<Slot> enter() {
    if (open_.fetch_add(1) < most_) return Slot(*this);
    open_.fetch_sub(1);
    return std::nullopt;
  }

  [[nodiscard]] std::size_t open() const { return open_.load(); }

 private:
  const std::size_t most_;
  std::atomic<std::size_t> open_{0};
};

}  // namespace metricstream
