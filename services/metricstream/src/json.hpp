#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "settings.hpp"

namespace metricstream {

struct JsonValue {
  using Array = std::vector<JsonValue>;
  using Object = std::vector<std::pair<std::string, JsonValue>>;

  std::variant<std::nullptr_t, bool, double, std::string, Array, Object> held{nullptr};
};

/// Parse a JSON text; nothing where it is none, is nested deeper than 32, or has a `\u` in it.
///
/// `Linear` reads the text once. `Quadratic` is the study's first parser: it copies what is left of
/// the text after every token, so that twice the text takes four times as long.
std::optional<JsonValue> parse_json(ParserKind kind, std::string_view text);

/// Return a text as a JSON string, quotes included.
std::string json_quoted(std::string_view text);

}  // namespace metricstream
