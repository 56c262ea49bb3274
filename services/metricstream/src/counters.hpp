#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <utility>

namespace metricstream {

/// What the server has done since its start or its last reset.
struct Counters {
  using Count = std::atomic<std::uint64_t>;

  Count accepted{0};          ///< connections
  Count turned_away{0};       ///< connections that found no room: over max_connections, a full queue
  Count requests{0};          ///< whole requests, whatever their answer
  Count samples_taken{0};     ///< samples of requests that were answered with 202
  Count samples_stored{0};    ///< samples in the store
  // What is there now; no reset changes it.
  Count series{0};
  Count open_connections{0};

  void reset() {
    for (auto* each : {&accepted, &turned_away, &requests, &samples_taken, &samples_stored}) {
      each->store(0);
    }
  }

  [[nodiscard]] std::string to_json() const {
    const std::array<std::pair<const char*, const Count&>, 7> named{{
        {"accepted", accepted},
        {"turned_away", turned_away},
        {"requests", requests},
        {"samples_taken", samples_taken},
        {"samples_stored", samples_stored},
        {"series", series},
        {"open_connections", open_connections},
    }};
    std::string json;
    for (const auto& [name, count] : named) {
      json += (json.empty() ? "{\"" : ", \"") + std::string(name) + "\": " +
              std::to_string(count.load());
    }
    return json + "}";
  }
};

}  // namespace metricstream
