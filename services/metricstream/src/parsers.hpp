#pragma once

#include <optional>
#include <string_view>

#include "json_value.hpp"
#include "settings.hpp"

namespace metricstream {

/// Parse a JSON text in one pass; nothing where it is none.
std::optional<JsonValue> parse_linear(std::string_view text);

/// The same as the study's first parser did it: what is left of the text is copied after every
/// token, so that twice the text takes four times as long.
std::optional<JsonValue> parse_quadratic(std::string_view text);

inline std::optional<JsonValue> parse_json(ParserKind kind, std::string_view text) {
  return kind == ParserKind::Linear ? parse_linear(text) : parse_quadratic(text);
}

}  // namespace metricstream
