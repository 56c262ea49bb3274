#include "json.hpp"

#include <cmath>
#include <cstdlib>

namespace metricstream {
namespace {

// A parser that recurses must not exhaust its stack.
constexpr int most_depth = 32;
// As many as a metric or a batch has; more are no fault.
constexpr std::size_t expected_members = 2;

/// Go on in a text that is a view: nothing is copied.
void drop(std::string_view& text, std::size_t length) { text.remove_prefix(length); }

/// Go on in a text that is a string: this copy of the rest is what costs.
void drop(std::string& text, std::size_t length) { text = std::string(text, length); }

std::size_t digits(std::string_view text, std::size_t at) {
  const auto from = at;
  while (at < text.size() && text[at] >= '0' && text[at] <= '9') ++at;
  return at - from;
}

/// Return the length of the number at a text's start by JSON's grammar; 0 where there is none.
std::size_t number_length(std::string_view text) {
  std::size_t at = text.starts_with('-') ? 1 : 0;
  const auto whole = digits(text, at);
  if (whole == 0 || (whole > 1 && text[at] == '0')) return 0;
  at += whole;
  if (text.substr(at).starts_with('.')) {
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

/// Decode what stands between a string's quotes; nothing where it is wrong, or escapes by number.
std::optional<std::string> decoded(std::string_view inside) {
  static constexpr std::string_view names = "\"\\/bfnrt";
  static constexpr std::string_view means = "\"\\/\b\f\n\r\t";
  std::string out;
  out.reserve(inside.size());
  for (std::size_t at = 0; at < inside.size(); ++at) {
    if (static_cast<unsigned char>(inside[at]) < 0x20) return std::nullopt;
    if (inside[at] != '\\') {
      out += inside[at];
      continue;
    }
    // What ends a string is no part of an escape, so that a sign follows.
    const auto known = names.find(inside[++at]);
    if (known == std::string_view::npos) return std::nullopt;
    out += means[known];
  }
  return out;
}

/// Reads one text from its start; every part says whether it was there.
template <typename Text>
class Parser {
 public:
  explicit Parser(std::string_view text) : rest_(text) {}

  std::optional<JsonValue> whole() {
    JsonValue value;
    if (!read_value(value, 0)) return std::nullopt;
    skip_space();
    if (!rest_.empty()) return std::nullopt;
    return value;
  }

 private:
  void skip_space() {
    const auto length = rest_.find_first_not_of(" \t\r\n");
    drop(rest_, length == std::string_view::npos ? rest_.size() : length);
  }

  bool take(char sign) {
    skip_space();
    if (!rest_.starts_with(sign)) return false;
    drop(rest_, 1);
    return true;
  }

  bool read_value(JsonValue& into, int depth) {
    skip_space();
    if (rest_.empty() || depth > most_depth) return false;
    switch (rest_[0]) {
      case '{': return read_object(into.held.emplace<JsonValue::Object>(), depth);
      case '[': return read_array(into.held.emplace<JsonValue::Array>(), depth);
      case '"': return read_string(into.held.emplace<std::string>());
      case 't': into.held = true; return read_word("true");
      case 'f': into.held = false; return read_word("false");
      case 'n': into.held = nullptr; return read_word("null");
      default: return read_number(into.held.emplace<double>());
    }
  }

  bool read_word(std::string_view word) {
    if (!rest_.starts_with(word)) return false;
    drop(rest_, word.size());
    return true;
  }

  bool read_number(double& into) {
    const auto length = number_length(rest_);
    // std::from_chars for doubles is not in every compiler's library.
    into = std::strtod(std::string(rest_.substr(0, length)).c_str(), nullptr);
    drop(rest_, length);
    return length > 0 && std::isfinite(into);
  }

  bool read_string(std::string& into) {
    std::size_t end = 1;
    while (end < rest_.size() && rest_[end] != '"') end += rest_[end] == '\\' ? 2 : 1;
    if (end >= rest_.size()) return false;
    auto text = decoded(std::string_view(rest_).substr(1, end - 1));
    if (!text) return false;
    into = std::move(*text);
    drop(rest_, end + 1);
    return true;
  }

  bool read_array(JsonValue::Array& array, int depth) {
    drop(rest_, 1);
    if (take(']')) return true;
    do {
      if (!read_value(array.emplace_back(), depth + 1)) return false;
    } while (take(','));
    return take(']');
  }

  bool read_object(JsonValue::Object& object, int depth) {
    drop(rest_, 1);
    if (take('}')) return true;
    object.reserve(expected_members);
    do {
      auto& [name, value] = object.emplace_back();
      skip_space();
      if (!rest_.starts_with('"') || !read_string(name)) return false;
      if (!take(':') || !read_value(value, depth + 1)) return false;
    } while (take(','));
    return take('}');
  }

  Text rest_;
};

}  // namespace

std::optional<JsonValue> parse_json(ParserKind kind, std::string_view text) {
  if (kind == ParserKind::Linear) return Parser<std::string_view>(text).whole();
  return Parser<std::string>(text).whole();
}

std::string json_quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < 0x20 ? '?' : c;
  }
  return out + '"';
}

}  // namespace metricstream
