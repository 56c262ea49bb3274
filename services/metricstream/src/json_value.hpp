#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace metricstream {

/// What both parsers make of a JSON text.
struct JsonValue {
  using Array = std::vector<JsonValue>;
  using Object = std::vector<std::pair<std::string, JsonValue>>;

  std::variant<std::nullptr_t, bool, double, std::string, Array, Object> held{nullptr};

  bool operator==(const JsonValue&) const = default;
};

/// Nesting deeper than this is refused: a parser that recurses must not exhaust its stack.
inline constexpr int max_json_depth = 32;

}  // namespace metricstream
