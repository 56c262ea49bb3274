#include <cstddef>
#include <string>
#include <utility>

#include "json_text.hpp"
#include "parsers.hpp"

namespace metricstream {
namespace {

/// A sign of JSON's grammar, or a whole scalar.
struct Token {
  enum class Kind { Sign, Scalar, End, Wrong };
  Kind kind = Kind::Wrong;
  char sign = '\0';
  JsonValue scalar;
};

/// Cuts tokens off the front of a copy of the text.
class Tokens {
 public:
  explicit Tokens(std::string_view text) : rest_(text) { next(); }

  [[nodiscard]] const Token& now() const { return now_; }
  [[nodiscard]] bool is(char sign) const {
    return now_.kind == Token::Kind::Sign && now_.sign == sign;
  }

  /// Return the token of now and go on to the next: this copy of the rest is what costs.
  Token next() {
    Token before = std::exchange(now_, Token{});
    std::size_t space = 0;
    while (space < rest_.size() && is_json_space(rest_[space])) ++space;
    rest_ = std::string(rest_.substr(space));
    const auto length = read();
    rest_ = std::string(rest_.substr(length));
    return before;
  }

 private:
  std::size_t read() {
    if (rest_.empty()) {
      now_.kind = Token::Kind::End;
      return 0;
    }
    static constexpr std::string_view signs = "{}[]:,";
    if (signs.find(rest_[0]) != std::string_view::npos) {
      now_.kind = Token::Kind::Sign;
      now_.sign = rest_[0];
      return 1;
    }
    return rest_[0] == '"' ? read_string() : read_plain();
  }

  std::size_t read_string() {
    std::size_t end = 1;
    while (end < rest_.size() && rest_[end] != '"') end += rest_[end] == '\\' ? 2 : 1;
    if (end >= rest_.size()) return 0;
    auto decoded = json_string(std::string_view(rest_).substr(1, end - 1));
    if (!decoded) return 0;
    return scalar({std::move(*decoded)}, end + 1);
  }

  std::size_t read_plain() {
    if (rest_.starts_with("true")) return scalar({true}, 4);
    if (rest_.starts_with("false")) return scalar({false}, 5);
    if (rest_.starts_with("null")) return scalar({nullptr}, 4);
    const auto length = json_number_length(rest_);
    if (length == 0) return 0;
    const auto value = json_number(std::string_view(rest_).substr(0, length));
    return value ? scalar({*value}, length) : 0;
  }

  std::size_t scalar(JsonValue value, std::size_t length) {
    now_.kind = Token::Kind::Scalar;
    now_.scalar = std::move(value);
    return length;
  }

  std::string rest_;
  Token now_;
};

class QuadraticParser {
 public:
  explicit QuadraticParser(std::string_view text) : tokens_(text) {}

  std::optional<JsonValue> whole() {
    auto value = read_value(0);
    if (tokens_.now().kind != Token::Kind::End) return std::nullopt;
    return value;
  }

 private:
  std::optional<JsonValue> read_value(int depth) {
    if (depth > max_json_depth) return std::nullopt;
    if (tokens_.now().kind == Token::Kind::Scalar) return tokens_.next().scalar;
    if (tokens_.is('[')) return read_array(depth);
    if (tokens_.is('{')) return read_object(depth);
    return std::nullopt;
  }

  bool take(char sign) {
    if (!tokens_.is(sign)) return false;
    tokens_.next();
    return true;
  }

  std::optional<JsonValue> read_array(int depth) {
    tokens_.next();
    JsonValue::Array items;
    if (take(']')) return JsonValue{items};
    do {
      auto item = read_value(depth + 1);
      if (!item) return std::nullopt;
      items.push_back(std::move(*item));
    } while (take(','));
    if (!take(']')) return std::nullopt;
    return JsonValue{std::move(items)};
  }

  std::optional<JsonValue> read_object(int depth) {
    tokens_.next();
    JsonValue::Object members;
    if (take('}')) return JsonValue{members};
    do {
      if (tokens_.now().kind != Token::Kind::Scalar) return std::nullopt;
      auto name = tokens_.next().scalar;
      auto* text = std::get_if<std::string>(&name.held);
      if (!text || !take(':')) return std::nullopt;
      auto value = read_value(depth + 1);
      if (!value) return std::nullopt;
      members.emplace_back(std::move(*text), std::move(*value));
    } while (take(','));
    if (!take('}')) return std::nullopt;
    return JsonValue{std::move(members)};
  }

  Tokens tokens_;
};

}  // namespace

std::optional<JsonValue> parse_quadratic(std::string_view text) {
  return QuadraticParser(text).whole();
}

}  // namespace metricstream
