#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace naive_client {

using JsonScalar = std::variant<std::nullptr_t, bool, double, std::string>;
using JsonMembers = std::map<std::string, JsonScalar>;

/// Read a text that is one JSON object without others in it; nothing where it is not that, or where
/// a name comes twice.
std::optional<JsonMembers> read_members(std::string_view text);

}  // namespace naive_client
