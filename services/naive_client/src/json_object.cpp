#include "json_object.hpp"

#include <array>
#include <cstdio>

namespace naive_client {

std::string json_quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c >= ' ' && c <= '~' ? c : '?';
  }
  return out + '"';
}

JsonObject& JsonObject::add(std::string_view name, std::string_view value) {
  return put(name, json_quoted(value));
}

JsonObject& JsonObject::add(std::string_view name, const char* value) {
  return put(name, json_quoted(value));
}

JsonObject& JsonObject::add(std::string_view name, std::uint64_t value) {
  return put(name, std::to_string(value));
}

JsonObject& JsonObject::add(std::string_view name, const JsonObject& value) {
  return put(name, value.text());
}

JsonObject& JsonObject::add(std::string_view name, std::optional<double> value) {
  if (!value) return put(name, "null");
  std::array<char, 40> number{};
  std::snprintf(number.data(), number.size(), "%.10g", *value);
  return put(name, number.data());
}

JsonObject& JsonObject::put(std::string_view name, std::string_view json) {
  if (!members_.empty()) members_ += ", ";
  members_ += json_quoted(name);
  members_ += ": ";
  members_ += json;
  return *this;
}

}  // namespace naive_client
