#pragma once

#include <string>

#include "admission.hpp"
#include "counters.hpp"
#include "request.hpp"
#include "response.hpp"
#include "settings.hpp"
#include "store.hpp"

namespace metricstream {

/// Answers requests; many threads use it at once.
class Handler {
 public:
  Handler(const Settings& settings, Counters& counters, Store& store, const Admission& admission)
      : settings_(settings), counters_(counters), store_(store), admission_(admission) {}

  /// Answer a request; `timing` takes its phases for Server-Timing.
  Response answer(const Request& request, std::string& timing) const;

 private:
  Response take_metrics(const Request& request, std::string& timing) const;
  Response reset() const;

  const Settings& settings_;
  Counters& counters_;
  Store& store_;
  const Admission& admission_;
};

}  // namespace metricstream
