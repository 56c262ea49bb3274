#pragma once

#include <string>
#include <string_view>

#include "clock.hpp"

namespace metricstream {

/// An answer before it is put into bytes.
struct Response {
  int status = 200;
  std::string body;           ///< JSON
  std::string headers;        ///< further lines, each with its end
};

/// An answer whose body says what is wrong.
Response problem(int status, std::string_view reason);

/// One entry of Server-Timing, a separator before it where others are there.
void add_timing(std::string& to, std::string_view phase, Clock::duration took);

/// Append the bytes of an answer; `timing` is what Server-Timing says, if anything.
void append_bytes(std::string& to, const Response& response, std::string_view timing,
                  bool keeps_alive, bool with_body);

}  // namespace metricstream
