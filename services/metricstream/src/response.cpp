#include "response.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>

#include "json_text.hpp"

namespace metricstream {
namespace {

std::string_view phrase_of(int status) {
  switch (status) {
    case 200: return "OK";
    case 202: return "Accepted";
    case 400: return "Bad Request";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 408: return "Request Timeout";
    case 413: return "Content Too Large";
    case 417: return "Expectation Failed";
    case 431: return "Request Header Fields Too Large";
    case 500: return "Internal Server Error";
    case 501: return "Not Implemented";
    case 503: return "Service Unavailable";
    case 505: return "HTTP Version Not Supported";
    default: return "Unknown";
  }
}

void append_number(std::string& to, std::uint64_t number) {
  std::array<char, 20> digits;
  const auto written = std::to_chars(digits.data(), digits.data() + digits.size(), number);
  to.append(digits.data(), written.ptr);
}

}  // namespace

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
  const auto units = (static_cast<std::uint64_t>(std::max<std::int64_t>(ns, 0)) + unit_ns / 2) / unit_ns;
  append_number(to, units / units_per_ms);
  // A one before them keeps the zeros that they begin with.
  const auto from = to.size();
  append_number(to, units_per_ms + units % units_per_ms);
  to[from] = '.';
}

void append_bytes(std::string& to, const Response& response, std::string_view timing,
                  bool keeps_alive, bool with_body) {
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
  if (with_body) to += response.body;
}

}  // namespace metricstream
