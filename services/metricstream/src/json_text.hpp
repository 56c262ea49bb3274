#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace metricstream {

/// Return the length of the number at a text's start by JSON's grammar; 0 where there is none.
std::size_t json_number_length(std::string_view text);

/// Return a number's value; nothing where it is too large for a double.
std::optional<double> json_number(std::string_view text);

/// Decode what stands between a string's quotes; nothing where an escape, a surrogate, a control
/// character or the UTF-8 is wrong.
std::optional<std::string> json_string(std::string_view inside);

/// Return a text as a JSON string, quotes included.
std::string json_quoted(std::string_view text);

inline bool is_json_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

}  // namespace metricstream
