#include "http.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include "json.hpp"

namespace metricstream {
namespace {

constexpr std::size_t max_head_bytes = 8192;
constexpr std::size_t max_body_bytes = 1 << 20;
constexpr std::string_view head_end = "\r\n\r\n";

/// Thrown within this file alone.
struct Wrong {
  int status;
  const char* reason;
};

std::string lowered(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return out;
}

std::string_view trimmed(std::string_view text) {
  const auto from = text.find_first_not_of(" \t");
  if (from == std::string_view::npos) return {};
  return text.substr(from, text.find_last_not_of(" \t") - from + 1);
}

/// Cut a text's first part off, up to a mark that goes too.
std::string_view cut(std::string_view& text, std::string_view mark) {
  const auto at = text.find(mark);
  const auto part = text.substr(0, at);
  text.remove_prefix(at == std::string_view::npos ? text.size() : at + mark.size());
  return part;
}

std::size_t length_of(std::string_view value) {
  std::size_t length = 0;
  const auto* end = value.data() + value.size();
  const auto [stopped, error] = std::from_chars(value.data(), end, length);
  if (error != std::errc() || stopped != end) throw Wrong{400, "Content-Length is no number"};
  return length;
}

/// Read a head without its end; return how long its body is.
std::size_t read_head(Request& into, std::string_view head) {
  auto line = cut(head, "\r\n");
  into.method = cut(line, " ");
  const auto target = cut(line, " ");
  if (into.method.empty() || !target.starts_with('/') || !line.starts_with("HTTP/1.")) {
    throw Wrong{400, "the request line is wrong"};
  }
  into.path = target.substr(0, target.find('?'));
  into.keeps_alive = line != "HTTP/1.0";
  std::size_t length = 0;
  while (!head.empty()) {
    auto value = cut(head, "\r\n");
    const auto name = lowered(cut(value, ":"));
    if (name == "content-length") length = length_of(trimmed(value));
    if (name == "transfer-encoding") throw Wrong{411, "a body needs a Content-Length"};
    if (name == "connection" && lowered(trimmed(value)) == "close") into.keeps_alive = false;
  }
  return length;
}

}  // namespace

RequestReader::Outcome RequestReader::next() {
  if (!in_body_) {
    const auto end = buffer_.find(head_end);
    if (std::min(end, buffer_.size()) > max_head_bytes) return refuse(431, "the head is too long");
    if (end == std::string::npos) return Outcome::NeedsMore;
    try {
      length_ = read_head(request_, std::string_view(buffer_).substr(0, end));
    } catch (const Wrong& wrong) {
      return refuse(wrong.status, wrong.reason);
    }
    if (length_ > max_body_bytes) return refuse(413, "the body is too long");
    buffer_.erase(0, end + head_end.size());
    in_body_ = true;
  }
  if (buffer_.size() < length_) return Outcome::NeedsMore;
  request_.body = buffer_.substr(0, length_);
  buffer_.erase(0, length_);
  in_body_ = false;
  return Outcome::Request;
}

RequestReader::Outcome RequestReader::refuse(int status, std::string_view reason) {
  refusal_ = problem(status, reason);
  buffer_.clear();
  return Outcome::Refused;
}

Response problem(int status, std::string_view reason) {
  return {status, "{\"error\": " + json_quoted(reason) + "}"};
}

void add_timing(std::string& to, std::string_view phase, Clock::duration took) {
  const std::chrono::duration<double, std::milli> took_ms = took;
  if (!to.empty()) to += ", ";
  to += phase;
  to += ";dur=" + std::to_string(took_ms.count());
}

void append_bytes(std::string& to, const Response& response, std::string_view timing,
                  bool keeps_alive) {
  to.reserve(to.size() + 256 + response.body.size());
  // A phrase after the status is optional, the blank before it is not (RFC 9112, section 4).
  to += "HTTP/1.1 " + std::to_string(response.status) + " \r\n";
  to += "Content-Type: application/json\r\n";
  to += "Content-Length: " + std::to_string(response.body.size());
  to += keeps_alive ? "\r\nConnection: keep-alive\r\n" : "\r\nConnection: close\r\n";
  if (!timing.empty()) {
    to += "Server-Timing: ";
    to += timing;
    to += "\r\n";
  }
  to += "\r\n";
  to += response.body;
}

}  // namespace metricstream
