#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <variant>

#include "request.hpp"

namespace metricstream {

/// A request's head: how its body comes, and what the client expects.
struct Head {
  Request request;
  bool chunked = false;
  bool expects_continue = false;
  std::size_t length = 0;
};

/// Parse a head up to and with its empty line, strictly.
///
/// What two readers could understand differently is refused, as it can hide a request in another
/// (RFC 9112, sections 2.2, 5.1, 6.1, 6.3 and 11.2): bare line feeds, folded lines, spaces before a
/// colon, a second length or coding, a length beside a coding.
std::variant<Head, Refusal> parse_head(std::string_view text);

}  // namespace metricstream
