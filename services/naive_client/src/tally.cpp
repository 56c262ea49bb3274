#include "tally.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace naive_client {
namespace {

/// The value below or at which so large a part lies, by the nearest rank.
Clock::duration nearest_rank(const std::vector<Clock::duration>& sorted, double part) {
  const auto rank = std::ceil(part * static_cast<double>(sorted.size()));
  return sorted[static_cast<std::size_t>(std::max(rank, 1.0)) - 1];
}

std::optional<double> mean_ms(Clock::duration total, std::uint64_t n) {
  if (n == 0) return std::nullopt;
  return to_ms(total) / static_cast<double>(n);
}

}  // namespace

void Tally::add(const Attempt& attempt) {
  ++outcomes_[static_cast<std::size_t>(attempt.outcome)];
  hung_ += attempt.hung;
  in_requests_ += attempt.latency;
  if (attempt.outcome != Outcome::Answered) return;
  latencies_.push_back(attempt.latency);
  for (std::size_t at = 0; at < phase_count; ++at) {
    if (!attempt.phases[at]) continue;
    ++phases_[at].n;
    phases_[at].total += *attempt.phases[at];
  }
}

void Tally::join(const Tally& other) {
  for (std::size_t at = 0; at < outcome_count; ++at) outcomes_[at] += other.outcomes_[at];
  hung_ += other.hung_;
  in_requests_ += other.in_requests_;
  for (std::size_t at = 0; at < phase_count; ++at) {
    phases_[at].n += other.phases_[at].n;
    phases_[at].total += other.phases_[at].total;
  }
  latencies_.insert(latencies_.end(), other.latencies_.begin(), other.latencies_.end());
}

JsonObject Tally::results(const Workload& workload, Clock::duration took) const {
  const auto attempted = std::accumulate(outcomes_.begin(), outcomes_.end(), std::uint64_t{0});
  const double achieved = static_cast<double>(count(Outcome::Answered)) / to_s(took);
  JsonObject object;
  object.add("attempted", attempted)
      .add("answered", count(Outcome::Answered))
      .add("cancelled", count(Outcome::Cancelled))
      .add("errors", errors())
      .add("hung", hung_)
      .add("total_duration_s", std::optional(to_s(took)))
      .add("target_rate", std::optional(workload.rate_per_s))
      .add("achieved_rate", std::optional(achieved))
      .add("success_rate", workload.rate_per_s > 0 ? std::optional(achieved / workload.rate_per_s)
                                                   : std::nullopt)
      .add("mean_in_flight", std::optional(to_s(in_requests_) / to_s(took)))
      .add("latency_ms", latency())
      .add("phases_ms", phases());
  return object;
}

JsonObject Tally::errors() const {
  JsonObject object;
  for (std::size_t at = 0; at < outcome_count; ++at) {
    const auto outcome = static_cast<Outcome>(at);
    if (outcome == Outcome::Answered || outcome == Outcome::Cancelled) continue;
    object.add(outcome_names[at], outcomes_[at]);
  }
  return object;
}

JsonObject Tally::latency() const {
  auto sorted = latencies_;
  std::ranges::sort(sorted);
  const auto total = std::accumulate(sorted.begin(), sorted.end(), Clock::duration::zero());
  const auto ranked = [&sorted](double part) -> std::optional<double> {
    if (sorted.empty()) return std::nullopt;
    return to_ms(nearest_rank(sorted, part));
  };
  JsonObject object;
  object.add("n", std::uint64_t{sorted.size()})
      .add("mean", mean_ms(total, sorted.size()))
      .add("median", ranked(0.5))
      .add("p95", ranked(0.95))
      .add("max", ranked(1));
  return object;
}

JsonObject Tally::phases() const {
  JsonObject object;
  for (std::size_t at = 0; at < phase_count; ++at) {
    JsonObject phase;
    phase.add("n", phases_[at].n).add("mean", mean_ms(phases_[at].total, phases_[at].n));
    object.add(phase_names[at], phase);
  }
  return object;
}

}  // namespace naive_client
