#include "request_reader.hpp"

#include <algorithm>
#include <utility>

namespace metricstream {
namespace {

constexpr std::string_view head_end = "\r\n\r\n";

}  // namespace

RequestReader::Outcome RequestReader::next() { return in_body_ ? read_body() : read_head(); }

RequestReader::Outcome RequestReader::read_head() {
  // Some clients end a body with an empty line too many (RFC 9112, section 2.2).
  while (buffer_.starts_with("\r\n")) {
    buffer_.erase(0, 2);
    searched_ = 0;
  }
  // An end may have come in two pieces; what lies before that was looked through already.
  const auto from = searched_ < head_end.size() ? 0 : searched_ - head_end.size();
  const auto end = buffer_.find(head_end, from);
  const auto length = end == std::string::npos ? buffer_.size() : end + head_end.size();
  if (length > settings_.max_head_bytes) return refuse(431, "the head is too long");
  if (end == std::string::npos) {
    searched_ = buffer_.size();
    return Outcome::NeedsMore;
  }
  auto parsed = parse_head(std::string_view(buffer_).substr(0, length));
  buffer_.erase(0, length);
  searched_ = 0;
  if (auto* refusal = std::get_if<Refusal>(&parsed)) {
    return refuse(refusal->status, refusal->reason);
  }
  head_ = std::move(std::get<Head>(parsed));
  if (head_.length > settings_.max_body_bytes) return refuse(413, "the body is too long");
  if (head_.chunked) chunks_.emplace(settings_.max_body_bytes);
  in_body_ = true;
  is_expected_ = head_.expects_continue && (head_.chunked || head_.length > 0);
  return read_body();
}

RequestReader::Outcome RequestReader::read_body() {
  if (!buffer_.empty()) is_expected_ = false;
  if (head_.chunked) {
    switch (chunks_->read(buffer_)) {
      case ChunkedBody::State::NeedsMore: return Outcome::NeedsMore;
      case ChunkedBody::State::Wrong: return refuse(400, "a chunk is wrong");
      case ChunkedBody::State::TooLong: return refuse(413, "the body is too long");
      case ChunkedBody::State::Whole: break;
    }
    return whole(chunks_->take());
  }
  if (buffer_.size() < head_.length) return Outcome::NeedsMore;
  auto body = buffer_.substr(0, head_.length);
  buffer_.erase(0, head_.length);
  return whole(std::move(body));
}

RequestReader::Outcome RequestReader::whole(std::string body) {
  head_.request.body = std::move(body);
  in_body_ = false;
  chunks_.reset();
  return Outcome::Request;
}

bool RequestReader::take_expectation() { return std::exchange(is_expected_, false); }

RequestReader::Outcome RequestReader::refuse(int status, std::string reason) {
  refusal_ = {status, std::move(reason)};
  buffer_.clear();
  buffer_.shrink_to_fit();
  in_body_ = false;
  return Outcome::Refused;
}

}  // namespace metricstream
