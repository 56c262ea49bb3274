#pragma once

#include <string>

#include "counters.hpp"
#include "http.hpp"
#include "settings.hpp"
#include "store.hpp"

namespace metricstream {

/// Answers requests; many threads use it at once.
class Handler {
 public:
  Handler(const Settings& settings, Counters& counters, Store& store)
      : settings_(settings), counters_(counters), store_(store) {}

  /// Answer a request; `timing` takes its phases for Server-Timing.
  Response answer(const Request& request, std::string& timing) const;

 private:
  Response take_metrics(const Request& request, std::string& timing) const;

  const Settings& settings_;
  Counters& counters_;
  Store& store_;
};

}  // namespace metricstream
