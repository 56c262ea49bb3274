#include "response.hpp"

#include <array>
#include <cstdio>

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

}  // namespace

Response problem(int status, std::string_view reason) {
  return {status, "{\"error\": " + json_quoted(reason) + "}", ""};
}

void add_timing(std::string& to, std::string_view phase, Clock::duration took) {
  std::array<char, 32> number{};
  std::snprintf(number.data(), number.size(), ";dur=%.4f", to_ms(took));
  if (!to.empty()) to += ", ";
  to += phase;
  to += number.data();
}

std::string to_bytes(const Response& response, std::string_view timing, bool keeps_alive,
                     bool with_body) {
  std::string bytes = "HTTP/1.1 " + std::to_string(response.status) + ' ';
  bytes.reserve(256 + response.body.size());
  bytes += phrase_of(response.status);
  bytes += "\r\nContent-Type: application/json\r\nContent-Length: ";
  bytes += std::to_string(response.body.size());
  bytes += keeps_alive ? "\r\nConnection: keep-alive\r\n" : "\r\nConnection: close\r\n";
  if (!timing.empty()) {
    bytes += "Server-Timing: ";
    bytes += timing;
    bytes += "\r\n";
  }
  bytes += response.headers;
  bytes += "\r\n";
  if (with_body) bytes += response.body;
  return bytes;
}

}  // namespace metricstream
