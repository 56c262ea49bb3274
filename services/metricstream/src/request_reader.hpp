#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "chunked_body.hpp"
#include "head_parser.hpp"
#include "request.hpp"
#include "settings.hpp"

namespace metricstream {

/// Cuts what comes from a connection into requests; holds one head and one body at most.
class RequestReader {
 public:
  enum class Outcome { NeedsMore, Request, Refused };

  explicit RequestReader(const Settings& settings) : settings_(settings) {}

  void feed(std::string_view bytes) { buffer_ += bytes; }

  /// Read on in what was fed. After `Refused` there is nothing more to be read.
  Outcome next();

  /// The request that `next` found; it is handed over.
  Request take_request() { return std::move(head_.request); }
  [[nodiscard]] const Refusal& refusal() const { return refusal_; }

  /// Whether the client waits for a word before it sends the body; true once per request.
  bool take_expectation();

  /// Whether a part of a request is there.
  [[nodiscard]] bool has_begun() const { return in_body_ || !buffer_.empty(); }

 private:
  Outcome read_head();
  Outcome read_body();
  Outcome whole(std::string body);
  Outcome refuse(int status, std::string reason);

  const Settings& settings_;
  std::string buffer_;
  std::size_t searched_ = 0;
  bool in_body_ = false;
  bool is_expected_ = false;
  Head head_;
  std::optional<ChunkedBody> chunks_;
  Refusal refusal_;
};

}  // namespace metricstream
