#include "json_members.hpp"

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <utility>

namespace naive_client {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

void append_utf8(std::string& out, std::uint32_t code) {
  const auto byte = [&out](std::uint32_t bits) { out += static_cast<char>(bits); };
  if (code < 0x80) return byte(code);
  if (code < 0x800) {
    byte(0xC0 | code >> 6);
  } else {
    if (code < 0x10000) {
      byte(0xE0 | code >> 12);
    } else {
      byte(0xF0 | code >> 18);
      byte(0x80 | (code >> 12 & 0x3F));
    }
    byte(0x80 | (code >> 6 & 0x3F));
  }
  byte(0x80 | (code & 0x3F));
}

/// Reads one text from its start; every part says whether it was there.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  std::optional<JsonMembers> whole() {
    JsonMembers members;
    if (!take('{')) return std::nullopt;
    if (!take('}')) {
      do {
        std::string name;
        JsonScalar value;
        if (!take('"') || !read_string(name) || !take(':') || !read_value(value)) {
          return std::nullopt;
        }
        if (!members.emplace(std::move(name), std::move(value)).second) return std::nullopt;
      } while (take(','));
      if (!take('}')) return std::nullopt;
    }
    skip_space();
    if (!text_.empty()) return std::nullopt;
    return members;
  }

 private:
  void skip_space() {
    const auto at = text_.find_first_not_of(" \t\r\n");
    text_.remove_prefix(at == std::string_view::npos ? text_.size() : at);
  }

  bool take(char c) {
    skip_space();
    if (!text_.starts_with(c)) return false;
    text_.remove_prefix(1);
    return true;
  }

  bool read_value(JsonScalar& into) {
    if (take('"')) return read_string(into.emplace<std::string>());
    for (const auto& [word, value] : words()) {
      if (!text_.starts_with(word)) continue;
      into = value;
      text_.remove_prefix(word.size());
      return true;
    }
    return read_number(into);
  }

  static const std::map<std::string_view, JsonScalar>& words() {
    static const std::map<std::string_view, JsonScalar> known{
        {"true", true}, {"false", false}, {"null", nullptr}};
    return known;
  }

  std::size_t digits(std::size_t at) const {
    const auto from = at;
    while (at < text_.size() && is_digit(text_[at])) ++at;
    return at - from;
  }

  /// The length of the number that the text begins with, by JSON's grammar; 0 without one.
  [[nodiscard]] std::size_t number_length() const {
    std::size_t at = text_.starts_with('-') ? 1 : 0;
    const auto whole = digits(at);
    if (whole == 0 || (whole > 1 && text_[at] == '0')) return 0;
    at += whole;
    if (text_.substr(at).starts_with('.')) {
      const auto fraction = digits(at + 1);
      if (fraction == 0) return 0;
      at += 1 + fraction;
    }
    if (text_.substr(at).starts_with('e') || text_.substr(at).starts_with('E')) {
      ++at;
      if (text_.substr(at).starts_with('+') || text_.substr(at).starts_with('-')) ++at;
      const auto exponent = digits(at);
      if (exponent == 0) return 0;
      at += exponent;
    }
    return at;
  }

  bool read_number(JsonScalar& into) {
    const auto length = number_length();
    if (length == 0) return false;
    // std::from_chars for doubles is not in every compiler's library.
    const double value = std::strtod(std::string(text_.substr(0, length)).c_str(), nullptr);
    if (!std::isfinite(value)) return false;
    into = value;
    text_.remove_prefix(length);
    return true;
  }

  /// Read what follows an opening quote, up to and with the closing one.
  bool read_string(std::string& into) {
    while (!text_.empty()) {
      const char c = text_.front();
      text_.remove_prefix(1);
      if (c == '"') return true;
      if (static_cast<unsigned char>(c) < 0x20) return false;
      if (c != '\\') into += c;
      else if (!read_escape(into)) return false;
    }
    return false;
  }

  bool read_escape(std::string& into) {
    static constexpr std::string_view names = "\"\\/bfnrt";
    static constexpr std::string_view means = "\"\\/\b\f\n\r\t";
    if (text_.empty()) return false;
    const char c = text_.front();
    text_.remove_prefix(1);
    if (c == 'u') return read_code(into);
    const auto at = names.find(c);
    if (at == std::string_view::npos) return false;
    into += means[at];
    return true;
  }

  bool read_code(std::string& into) {
    const auto first = read_hex();
    if (!first || (*first >= 0xDC00 && *first <= 0xDFFF)) return false;
    if (*first < 0xD800 || *first > 0xDBFF) {
      append_utf8(into, *first);
      return true;
    }
    if (!text_.starts_with("\\u")) return false;
    text_.remove_prefix(2);
    const auto second = read_hex();
    if (!second || *second < 0xDC00 || *second > 0xDFFF) return false;
    append_utf8(into, 0x10000 + ((*first - 0xD800) << 10) + (*second - 0xDC00));
    return true;
  }

  std::optional<std::uint32_t> read_hex() {
    static constexpr std::string_view known = "0123456789abcdefABCDEF";
    if (text_.size() < 4) return std::nullopt;
    std::uint32_t code = 0;
    for (const char c : text_.substr(0, 4)) {
      const auto at = known.find(c);
      if (at == std::string_view::npos) return std::nullopt;
      code = code * 16 + static_cast<std::uint32_t>(at < 16 ? at : at - 6);
    }
    text_.remove_prefix(4);
    return code;
  }

  std::string_view text_;
};

}  // namespace

std::optional<JsonMembers> read_members(std::string_view text) { return Reader(text).whole(); }

}  // namespace naive_client
