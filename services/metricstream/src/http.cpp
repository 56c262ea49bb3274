#include "http.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
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

std::string_view phrase_of(int status) {
  switch (status) {
    case 200: return "OK";
    case 202: return "Accepted";
    case 400: return "Bad Request";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 411: return "Length Required";
    case 413: return "Content Too Large";
    case 431: return "Request Header Fields Too Large";
    case 503: return "Service Unavailable";
    default: return "Unknown";
  }
}

void append_number(std::string& to, std::uint64_t number) {
  std::array<char, 20> digits;
  const auto written = std::to_chars(digits.data(), digits.data() + digits.size(), number);
  to.append(digits.data(), written.ptr);
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
  return {status, "{\"error\": " + json_quoted(reason) + "}", ""};
}

void add_timing(std::string& to, std::string_view phase, Clock::duration took) {
  if (!to.empty()) to += ", ";
  to += phase;
  to += ";dur=";
  // Four decimals of a millisecond.
  constexpr std::uint64_t unit_ns = 100;
  constexpr std::uint64_t units_per_ms = 10000;
  const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(took).count();
  const auto units = (static_cast<std::uint64_t>(std::max<std::int64_t>(ns, 0)) + unit_ns / 2) /
                     unit_ns;
  append_number(to, units / units_per_ms);
  // A one before them keeps the zeros that they begin with.
  const auto from = to.size();
  append_number(to, units_per_ms + units % units_per_ms);
  to[from] = '.';
}

void append_bytes(std::string& to, const Response& response, std::string_view timing,
                  bool keeps_alive) {
  to.reserve(to.size() + 256 + response.headers.size() + response.body.size());
  to += "HTTP/1.1 ";
  append_number(to, static_cast<std::uint64_t>(response.status));
  to += ' ';
  to += phrase_of(response.status);
  to += "\r\nContent-Type: application/json\r\nContent-Length: ";
  append_number(to, response.body.size());
  to += keeps_alive ? "\r\nConnection: keep-alive\r\n" : "\r\nConnection: close\r\n";
  if (!timing.empty()) {
    to += "Server-Timing: ";
    to += timing;
    to += "\r\n";
  }
  to += response.headers;
  to += "\r\n";
  to += response.body;
}

}  // namespace metricstream
