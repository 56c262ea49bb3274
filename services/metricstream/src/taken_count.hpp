#pragma once

#include <atomic>
#include <cstdint>

namespace metricstream {

/// Counts what was taken, of which some may be given back: nothing that was taken before a reset.
///
/// Count and era are one word, so that what is counted knows the era that it was counted in: who
/// gives back after a reset would else take from what others took since, or from nothing, and the
/// count would wrap. It holds 2^48 samples, and a give-back up to 65,535 resets late is told apart.
class TakenCount {
 public:
  using Era = std::uint64_t;

  /// Count so many; returns the era, for who must give them back.
  Era take(std::uint64_t many) { return word_.fetch_add(many) >> count_bits; }

  /// Count so many that were taken in an era no more, where that one still lasts.
  void give_back(std::uint64_t many, Era taken_in) {
    auto seen = word_.load();
    while (seen >> count_bits == taken_in) {
      if (word_.compare_exchange_weak(seen, seen - many)) return;
    }
  }

  /// Begin a new era with nothing taken.
  void reset() {
    auto seen = word_.load();
    while (!word_.compare_exchange_weak(seen, ((seen >> count_bits) + 1) << count_bits)) {
    }
  }

  [[nodiscard]] std::uint64_t value() const { return word_.load() & most; }

 private:
  static constexpr int count_bits = 48;
  static constexpr std::uint64_t most = (std::uint64_t{1} << count_bits) - 1;

  std::atomic<std::uint64_t> word_{0};
};

}  // namespace metricstream
