#include "json_text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>

namespace metricstream {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::size_t digits(std::string_view text, std::size_t at) {
  const auto from = at;
  while (at < text.size() && is_digit(text[at])) ++at;
  return at - from;
}

std::optional<std::uint32_t> hex4(std::string_view text) {
  if (text.size() < 4) return std::nullopt;
  std::uint32_t value = 0;
  for (const char c : text.substr(0, 4)) {
    std::uint32_t digit = 0;
    if (is_digit(c)) digit = static_cast<std::uint32_t>(c - '0');
    else if (c >= 'a' && c <= 'f') digit = static_cast<std::uint32_t>(c - 'a') + 10;
    else if (c >= 'A' && c <= 'F') digit = static_cast<std::uint32_t>(c - 'A') + 10;
    else return std::nullopt;
    value = value * 16 + digit;
  }
  return value;
}

void append_utf8(std::string& out, std::uint32_t code) {
  const auto byte = [&out](std::uint32_t bits) { out += static_cast<char>(bits); };
  if (code < 0x80) {
    byte(code);
  } else if (code < 0x800) {
    byte(0xC0 | code >> 6);
    byte(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    byte(0xE0 | code >> 12);
    byte(0x80 | (code >> 6 & 0x3F));
    byte(0x80 | (code & 0x3F));
  } else {
    byte(0xF0 | code >> 18);
    byte(0x80 | (code >> 12 & 0x3F));
    byte(0x80 | (code >> 6 & 0x3F));
    byte(0x80 | (code & 0x3F));
  }
}

/// Append what `\u....` at a text's start means, both halves of a pair; return its length or 0.
std::size_t append_escaped_code(std::string& out, std::string_view text) {
  const auto first = hex4(text.substr(2));
  if (!first || (*first >= 0xDC00 && *first <= 0xDFFF)) return 0;
  if (*first < 0xD800 || *first > 0xDBFF) {
    append_utf8(out, *first);
    return 6;
  }
  if (text.substr(6, 2) != "\\u") return 0;
  const auto second = hex4(text.substr(8));
  if (!second || *second < 0xDC00 || *second > 0xDFFF) return 0;
  append_utf8(out, 0x10000 + ((*first - 0xD800) << 10) + (*second - 0xDC00));
  return 12;
}

std::size_t append_escape(std::string& out, std::string_view text) {
  if (text.size() < 2) return 0;
  if (text[1] == 'u') return text.size() < 6 ? 0 : append_escaped_code(out, text);
  static constexpr std::string_view names = "\"\\/bfnrt";
  static constexpr std::string_view means = "\"\\/\b\f\n\r\t";
  const auto at = names.find(text[1]);
  if (at == std::string_view::npos) return 0;
  out += means[at];
  return 2;
}

/// Return the length of the UTF-8 sequence at a text's start; 0 where it is wrong.
/// Source: The Unicode Standard, table 3-7.
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&text](std::size_t at) { return static_cast<unsigned char>(text[at]); };
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  const std::size_t length = lead < 0xC2 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : lead < 0xF5 ? 4 : 0;
  if (length == 0 || text.size() < length) return 0;
  const unsigned least = lead == 0xE0 ? 0xA0U : lead == 0xF0 ? 0x90U : 0x80U;
  const unsigned most = lead == 0xED ? 0x9FU : lead == 0xF4 ? 0x8FU : 0xBFU;
  if (byte(1) < least || byte(1) > most) return 0;
  for (std::size_t at = 2; at < length; ++at) {
    if ((byte(at) & 0xC0U) != 0x80) return 0;
  }
  return length;
}

/// Return how many bytes at a text's start stand for themselves and need no further look.
std::size_t plain_length(std::string_view text) {
  const auto end = std::ranges::find_if(text, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 0x20 || byte >= 0x80 || c == '"' || c == '\\';
  });
  return static_cast<std::size_t>(end - text.begin());
}

}  // namespace

std::size_t json_number_length(std::string_view text) {
  std::size_t at = !text.empty() && text[0] == '-' ? 1 : 0;
  const auto whole = digits(text, at);
  if (whole == 0 || (whole > 1 && text[at] == '0')) return 0;
  at += whole;
  if (at < text.size() && text[at] == '.') {
    const auto fraction = digits(text, at + 1);
    if (fraction == 0) return 0;
    at += 1 + fraction;
  }
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    const std::size_t sign = at + 1 < text.size() && (text[at + 1] == '+' || text[at + 1] == '-');
    const auto exponent = digits(text, at + 1 + sign);
    if (exponent == 0) return 0;
    at += 1 + sign + exponent;
  }
  return at;
}

std::optional<double> json_number(std::string_view text) {
  double value = 0;
#ifdef __cpp_lib_to_chars
  const auto* end = text.data() + text.size();
  if (std::from_chars(text.data(), end, value).ec == std::errc()) return value;
#endif
  // Not in every compiler's library is std::from_chars for doubles, and it does not tell too large
  // from too small; the locale is always "C" here.
  value = std::strtod(std::string(text).c_str(), nullptr);
  if (!std::isfinite(value)) return std::nullopt;
  return value;
}

std::optional<std::string> json_string(std::string_view inside) {
  std::string out;
  out.reserve(inside.size());
  while (!inside.empty()) {
    const auto plain = plain_length(inside);
    out += inside.substr(0, plain);
    inside.remove_prefix(plain);
    if (inside.empty()) break;
    std::size_t length = 0;
    if (inside[0] == '\\') {
      length = append_escape(out, inside);
    } else if (static_cast<unsigned char>(inside[0]) >= 0x20 && inside[0] != '"') {
      length = utf8_length(inside);
      out += inside.substr(0, length);
    }
    if (length == 0) return std::nullopt;
    inside.remove_prefix(length);
  }
  return out;
}

std::string json_quoted(std::string_view text) {
  static constexpr std::string_view hex = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20) {
      out += "\\u00";
      out += hex[byte >> 4U];
      out += hex[byte & 0xFU];
    } else {
      out += c;
    }
  }
  return out + '"';
}

}  // namespace metricstream
