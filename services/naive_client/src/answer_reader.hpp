#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace naive_client {

/// Follows an HTTP answer as far as a naive client does: its status, its length, its bytes.
///
/// It knows no chunks and no interim answers. The body is counted, not kept.
class AnswerReader {
 public:
  void feed(std::string_view bytes);

  /// Whether as many bytes are there as Content-Length says.
  [[nodiscard]] bool is_whole() const { return has_head_ && length_ && body_bytes_ >= *length_; }
  /// Whether the end of the connection is the end of the answer.
  [[nodiscard]] bool ends_with_connection() const { return has_head_ && !length_; }
  [[nodiscard]] bool has_begun() const { return has_head_ || !head_.empty(); }
  /// Whether this cannot become an answer.
  [[nodiscard]] bool is_wrong() const { return is_wrong_; }
  [[nodiscard]] int status() const { return status_; }

 private:
  void read_head();

  std::string head_;
  bool has_head_ = false;
  bool is_wrong_ = false;
  int status_ = 0;
  std::optional<std::size_t> length_;
  std::size_t body_bytes_ = 0;
};

}  // namespace naive_client
