#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "refusal.hpp"

namespace naive_client {

/// A request to this program itself.
struct ControlRequest {
  std::string method;
  std::string path;
  std::string content_type;
  std::string body;
};

/// Read what has come so far; nothing where more is to come. Reading is strict and bounded.
std::optional<std::variant<ControlRequest, Refusal>> read_control_request(std::string_view text);

}  // namespace naive_client
