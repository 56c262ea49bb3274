#pragma once

#include <string>

#include "counters.hpp"
#include "http.hpp"
#include "settings.hpp"
#include "store.hpp"

namespace metricstream {

/// What all connections of a server share; many threads use it at once.
struct Shared {
  const Settings& settings;
  Counters& counters;
  Store& store;
};

/// Answer a request; `timing` takes its phases for Server-Timing.
Response answer(const Request& request, const Shared& shared, std::string& timing);

}  // namespace metricstream
