#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "attempt.hpp"
#include "json_object.hpp"
#include "workload.hpp"

namespace naive_client {

/// What became of requests.
class Tally {
 public:
  void add(const Attempt& attempt);
  void join(const Tally& other);

  /// The results of a load that took so long, as the study's tools would have told them.
  [[nodiscard]] JsonObject results(const Workload& workload, Clock::duration took) const;

 private:
  struct Sum {
    std::uint64_t n = 0;
    Clock::duration total{};
  };

  [[nodiscard]] JsonObject errors() const;
  [[nodiscard]] JsonObject latency() const;
  [[nodiscard]] JsonObject phases() const;
  [[nodiscard]] std::uint64_t count(Outcome outcome) const {
    return outcomes_[static_cast<std::size_t>(outcome)];
  }

  std::array<std::uint64_t, outcome_count> outcomes_{};
  std::uint64_t hung_ = 0;
  Clock::duration in_requests_{};  ///< of all requests, however they ended
  std::array<Sum, phase_count> phases_{};
  std::vector<Clock::duration> latencies_;  ///< of requests that were answered, of no others
};

}  // namespace naive_client
