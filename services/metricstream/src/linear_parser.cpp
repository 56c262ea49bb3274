#include <cstddef>
#include <string>
#include <utility>

#include "json_text.hpp"
#include "parsers.hpp"

namespace metricstream {
namespace {

// As many as a metric or a batch has; more are no fault.
constexpr std::size_t expected_members = 2;

class LinearParser {
 public:
  explicit LinearParser(std::string_view text) : text_(text) {}

  std::optional<JsonValue> whole() {
    JsonValue value;
    if (!read_value(value, 0)) return std::nullopt;
    skip_space();
    if (at_ != text_.size()) return std::nullopt;
    return value;
  }

 private:
  void skip_space() {
    while (at_ < text_.size() && is_json_space(text_[at_])) ++at_;
  }

  bool take(char c) {
    skip_space();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  bool take_word(std::string_view word) {
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }

  bool read_value(JsonValue& into, int depth) {
    skip_space();
    if (at_ >= text_.size() || depth > max_json_depth) return false;
    switch (text_[at_]) {
      case '{': return read_object(into, depth);
      case '[': return read_array(into, depth);
      case '"': return read_string(into.held.emplace<std::string>());
      case 't': into.held = true; return take_word("true");
      case 'f': into.held = false; return take_word("false");
      case 'n': into.held = nullptr; return take_word("null");
      default: return read_number(into);
    }
  }

  bool read_number(JsonValue& into) {
    const auto length = json_number_length(text_.substr(at_));
    if (length == 0) return false;
    const auto value = json_number(text_.substr(at_, length));
    if (!value) return false;
    into.held = *value;
    at_ += length;
    return true;
  }

  bool read_string(std::string& into) {
    const auto from = ++at_;
    while (at_ < text_.size() && text_[at_] != '"') at_ += text_[at_] == '\\' ? 2 : 1;
    if (at_ >= text_.size()) return false;
    auto decoded = json_string(text_.substr(from, at_ - from));
    if (!decoded) return false;
    ++at_;
    into = std::move(*decoded);
    return true;
  }

  bool read_array(JsonValue& into, int depth) {
    auto& array = into.held.emplace<JsonValue::Array>();
    ++at_;
    if (take(']')) return true;
    do {
      if (!read_value(array.emplace_back(), depth + 1)) return false;
    } while (take(','));
    return take(']');
  }

  bool read_object(JsonValue& into, int depth) {
    auto& object = into.held.emplace<JsonValue::Object>();
    ++at_;
    if (take('}')) return true;
    object.reserve(expected_members);
    do {
      skip_space();
      if (at_ >= text_.size() || text_[at_] != '"') return false;
      auto& [name, value] = object.emplace_back();
      if (!read_string(name) || !take(':') || !read_value(value, depth + 1)) return false;
    } while (take(','));
    return take('}');
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

std::optional<JsonValue> parse_linear(std::string_view text) { return LinearParser(text).whole(); }

}  // namespace metricstream
