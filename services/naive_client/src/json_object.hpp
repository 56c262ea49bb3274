#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace naive_client {

/// Return a text as a JSON string. It is for what this program says itself: a byte that is no
/// visible ASCII becomes a question mark.
std::string json_quoted(std::string_view text);

/// Writes an object, member by member.
class JsonObject {
 public:
  JsonObject& add(std::string_view name, std::string_view value);
  JsonObject& add(std::string_view name, const char* value);
  JsonObject& add(std::string_view name, std::uint64_t value);
  JsonObject& add(std::string_view name, const JsonObject& value);
  /// A number that is not there is null.
  JsonObject& add(std::string_view name, std::optional<double> value);

  [[nodiscard]] std::string text() const { return "{" + members_ + "}"; }

 private:
  JsonObject& put(std::string_view name, std::string_view json);

  std::string members_;
};

}  // namespace naive_client
