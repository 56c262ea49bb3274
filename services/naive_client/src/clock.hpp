#pragma once

#include <time.h>

#include <chrono>

namespace naive_client {

using Clock = std::chrono::steady_clock;
using Instant = Clock::time_point;
using std::chrono::milliseconds;

inline double to_ms(Clock::duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

inline double to_s(Clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

inline Clock::duration of_s(double seconds) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

/// What is left until an instant, as ppoll wants it; nothing where it is over.
inline timespec left_until(Instant instant) {
  const auto left = instant - Clock::now();
  if (left <= Clock::duration::zero()) return {0, 0};
  const auto whole = std::chrono::duration_cast<std::chrono::seconds>(left);
  const std::chrono::nanoseconds rest = left - whole;
  return {static_cast<time_t>(whole.count()), static_cast<long>(rest.count())};
}

}  // namespace naive_client
