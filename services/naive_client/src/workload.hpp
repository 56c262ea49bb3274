#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "clock.hpp"
#include "json_object.hpp"
#include "refusal.hpp"
#include "settings.hpp"

namespace naive_client {

/// The load that was asked for.
struct Workload {
  std::uint16_t target_port = 0;
  std::string path;
  std::optional<std::string> body;  ///< sent by POST as JSON; without one it is a GET
  std::size_t clients = 1;
  double rate_per_s = 0;  ///< of all clients together; 0: as fast as they can
  Clock::duration duration{};
  bool persistent = false;
  milliseconds timeout{};
  std::uint64_t most_requests = 0;

  /// How long a client sleeps after each request: the whole interval, as if a request took no time.
  [[nodiscard]] Clock::duration pause() const {
    return rate_per_s > 0 ? of_s(static_cast<double>(clients) / rate_per_s)
                          : Clock::duration::zero();
  }
};

/// Read a workload and hold it to the bounds of the settings.
std::variant<Workload, Refusal> read_workload(std::string_view text, const Settings& settings);

/// The bytes of each of its requests.
std::string request_text(const Workload& workload);

/// What was asked for, without the body itself.
JsonObject to_json(const Workload& workload);

}  // namespace naive_client
