#pragma once

#include <string>

#include "control_request.hpp"
#include "runs.hpp"
#include "settings.hpp"

namespace naive_client {

/// An answer of this program; its body is JSON.
struct Response {
  int status = 200;
  std::string body;
  std::string headers;  ///< further lines, each with its end
};

Response refused(const Refusal& refusal);

/// Do what is asked for.
Response answer(const ControlRequest& request, Runs& runs, const Settings& settings);

std::string to_bytes(const Response& response);

}  // namespace naive_client
