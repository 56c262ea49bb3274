#pragma once

#include <string>

namespace metricstream {

/// One whole request, as far as this server needs it.
struct Request {
  std::string method;
  std::string path;  ///< without its query
  std::string body;
  bool keeps_alive = true;  ///< whether the client wants to go on with the connection
};

/// Why a request is refused; the connection ends after the answer.
struct Refusal {
  int status = 400;
  std::string reason;
};

}  // namespace metricstream
