#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace metricstream {

/// Takes the chunks of a body apart as they come (RFC 9112, section 7.1).
class ChunkedBody {
 public:
  enum class State { NeedsMore, Whole, Wrong, TooLong };

  explicit ChunkedBody(std::size_t most_bytes) : most_bytes_(most_bytes) {}

  /// Read on in a buffer, and remove from it what was read.
  State read(std::string& buffer);

  std::string take() { return std::move(body_); }

 private:
  enum class Part { Size, Data, DataEnd, Trailer };

  State step(std::string_view& rest, bool& moved);
  State read_line(std::string_view& rest, bool& moved);
  State read_size(std::string_view line);

  std::size_t most_bytes_;
  std::string body_;
  Part part_ = Part::Size;
  std::size_t left_ = 0;
  std::size_t trailer_bytes_ = 0;
};

}  // namespace metricstream
