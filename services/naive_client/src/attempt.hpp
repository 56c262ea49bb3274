#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

#include "clock.hpp"

namespace naive_client {

/// How a request ended. Each ends in one way, so that the counts add up to all that were attempted.
enum class Outcome : std::size_t {
  Answered,        ///< a whole answer with a status of 2xx
  Status,          ///< a whole answer with another status
  ConnectRefused,
  Reset,           ///< before a byte of the answer, or while sending
  TimedOut,
  ClosedByServer,  ///< before a byte of the answer
  Short,           ///< closed or reset amid the answer
  NoPort,          ///< the system had no port left to connect from
  Other,
  Cancelled        ///< the client was told to end
};

inline constexpr std::size_t outcome_count = 10;
inline constexpr std::array<std::string_view, outcome_count> outcome_names{
    "answered",         "status", "connect_refused", "reset", "timed_out",
    "closed_by_server", "short",  "no_port",         "other", "cancelled"};

enum class Phase : std::size_t { Connect, Send, Wait, Receive, Close };

inline constexpr std::size_t phase_count = 5;
inline constexpr std::array<std::string_view, phase_count> phase_names{"connect", "send", "wait",
                                                                       "receive", "close"};

/// One request, as this client sees it.
struct Attempt {
  Outcome outcome = Outcome::Other;
  bool hung = false;  ///< it waited until its time-out, for whatever reason nothing came
  Clock::duration latency{};
  std::array<std::optional<Clock::duration>, phase_count> phases{};

  std::optional<Clock::duration>& operator[](Phase phase) {
    return phases[static_cast<std::size_t>(phase)];
  }
};

}  // namespace naive_client
