#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "settings.hpp"

namespace metricstream {

/// One whole request, as far as this server needs it.
struct Request {
  std::string method;
  std::string path;  ///< without its query
  std::string body;
  bool keeps_alive = true;  ///< whether the client wants to go on with the connection
};

/// An answer before it is put into bytes.
struct Response {
  int status = 200;
  std::string body;  ///< JSON
};

/// Cuts what comes from a connection into requests; a body must come with its length.
class RequestReader {
 public:
  enum class Outcome { NeedsMore, Request, Refused };

  void feed(std::string_view bytes) { buffer_ += bytes; }

  /// Read on in what was fed. After `Refused` there is nothing more to be read.
  Outcome next();

  /// The request that `next` found; it is handed over.
  Request take_request() { return std::move(request_); }
  /// The answer to what it refused.
  [[nodiscard]] const Response& refusal() const { return refusal_; }

 private:
  Outcome refuse(int status, std::string_view reason);

  std::string buffer_;
  bool in_body_ = false;
  std::size_t length_ = 0;
  Request request_;
  Response refusal_;
};

/// An answer whose body says what is wrong.
Response problem(int status, std::string_view reason);

/// One entry of Server-Timing, a separator before it where others are there.
void add_timing(std::string& to, std::string_view phase, Clock::duration took);

/// Append the bytes of an answer; `timing` is what Server-Timing says, if anything.
void append_bytes(std::string& to, const Response& response, std::string_view timing,
                  bool keeps_alive);

}  // namespace metricstream
