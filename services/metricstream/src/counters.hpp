#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "taken_count.hpp"

namespace metricstream {

/// What the server has done since its start or its last reset.
struct Counters {
  using Count = std::atomic<std::uint64_t>;

  Count accepted{0};          ///< connections
  Count turned_away{0};       ///< connections over max_connections, answered 503
  Count no_descriptor{0};     ///< connections closed because no descriptor was left
  Count requests{0};          ///< whole requests, whatever their answer
  Count refused_requests{0};  ///< answers 4xx and 5xx
  Count timeouts{0};          ///< connections whose request or reading took too long
  Count resets{0};            ///< connections that ended amid a request or answer
  TakenCount samples_taken;   ///< samples of answered requests
  Count samples_stored{0};    ///< samples in the store
  Count samples_dropped{0};   ///< samples taken for which the store had no room

  void reset() {
    for (auto* each : {&accepted, &turned_away, &no_descriptor, &requests, &refused_requests,
                       &timeouts, &resets, &samples_stored, &samples_dropped}) {
      each->store(0);
    }
    samples_taken.reset();
  }

  [[nodiscard]] std::string to_json(std::uint64_t series, std::uint64_t open) const {
    std::string text = "{";
    const auto add = [&text](const char* name, std::uint64_t value) {
      text += (text.size() > 1 ? ", \"" : "\"") + std::string(name) + "\": " +
              std::to_string(value);
    };
    add("accepted", accepted);
    add("turned_away", turned_away);
    add("no_descriptor", no_descriptor);
    add("requests", requests);
    add("refused_requests", refused_requests);
    add("timeouts", timeouts);
    add("resets", resets);
    add("samples_taken", samples_taken.value());
    add("samples_stored", samples_stored);
    add("samples_dropped", samples_dropped);
    add("series", series);
    add("open_connections", open);
    return text + "}";
  }
};

}  // namespace metricstream
