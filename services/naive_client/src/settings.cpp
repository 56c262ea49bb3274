#include "settings.hpp"

#include <array>
#include <charconv>
#include <string_view>

#include "json_object.hpp"

namespace naive_client {
namespace {

struct Number {
  std::string_view name;
  std::int64_t Settings::* field;
  std::int64_t least;
  std::int64_t most;
};

constexpr Number target_port{"target", &Settings::target_port, 1024, 65535};
constexpr std::array<Number, 4> numbers{{{"port", &Settings::port, 0, 65535},
                                         {"max_clients", &Settings::max_clients, 1, 1024},
                                         {"max_requests", &Settings::max_requests, 1, 1'000'000},
                                         {"max_duration_s", &Settings::max_duration_s, 1, 3600}}};

std::int64_t number_within(const Number& number, std::string_view text) {
  std::int64_t value = 0;
  const auto* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stopped != end || value < number.least || value > number.most) {
    throw SettingError(std::string(number.name) + ": '" + std::string(text) +
                       "' must be a whole number from " + std::to_string(number.least) + " to " +
                       std::to_string(number.most));
  }
  return value;
}

void read_word(Settings& into, std::string_view word) {
  const auto equals = word.find('=');
  const auto name = word.substr(0, equals);
  const std::string_view text = equals == std::string_view::npos ? "" : word.substr(equals + 1);
  if (name == "host") {
    if (text != loopback) throw SettingError("host: it listens on 127.0.0.1 and nowhere else");
    return;
  }
  if (name == "target") {
    const std::string here = std::string(loopback) + ":";
    if (!text.starts_with(here)) {
      throw SettingError("target: load goes to 127.0.0.1 and nowhere else");
    }
    into.target_port = number_within(target_port, text.substr(here.size()));
    return;
  }
  for (const auto& number : numbers) {
    if (number.name != name) continue;
    into.*number.field = number_within(number, text);
    return;
  }
  throw SettingError("unknown setting '" + std::string(word) + "'");
}

}  // namespace

Settings read_settings(std::span<char* const> words) {
  Settings settings;
  for (const std::string_view word : words) read_word(settings, word);
  return settings;
}

std::string to_json(const Settings& settings) {
  JsonObject object;
  for (const auto& number : numbers) {
    // Where it listens is no setting, nor is what it loads: both are others after every start.
    if (number.field == &Settings::port) continue;
    object.add(number.name, static_cast<std::uint64_t>(settings.*number.field));
  }
  return object.text();
}

}  // namespace naive_client
