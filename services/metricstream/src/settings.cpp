#include "settings.hpp"

#include <array>
#include <charconv>
#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

namespace metricstream {
namespace {

template <typename Kind, std::size_t Size>
using Names = std::array<std::pair<std::string_view, Kind>, Size>;

constexpr Names<Threading, 4> threadings{{{"thread", Threading::Thread},
                                          {"producer_consumer", Threading::ProducerConsumer},
                                          {"pool", Threading::Pool},
                                          {"epoll", Threading::Epoll}}};
constexpr Names<KeepAlive, 3> keep_alives{
    {{"off", KeepAlive::Off}, {"on", KeepAlive::On}, {"limited", KeepAlive::Limited}}};
constexpr Names<ParserKind, 2> parsers{
    {{"quadratic", ParserKind::Quadratic}, {"linear", ParserKind::Linear}}};
constexpr Names<StoreKind, 3> stores{{{"double_mutex", StoreKind::DoubleMutex},
                                      {"per_client", StoreKind::PerClient},
                                      {"ring", StoreKind::Ring}}};

/// One setting: how its text is read and how it is told.
struct Entry {
  std::string_view name;
  std::function<void(Settings&, std::string_view)> read;
  std::function<std::string(const Settings&)> tell;
};

std::int64_t number_within(std::string_view text, std::int64_t least, std::int64_t most) {
  std::int64_t value = 0;
  const auto* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stopped != end || value < least || value > most) {
    throw SettingError("'" + std::string(text) + "' must be a whole number from " +
                       std::to_string(least) + " to " + std::to_string(most));
  }
  return value;
}

template <typename Field>
Entry number(std::string_view name, Field Settings::* field, std::int64_t least,
             std::int64_t most) {
  return {name,
          [=](Settings& into, std::string_view text) {
            into.*field = static_cast<Field>(number_within(text, least, most));
          },
          [=](const Settings& from) { return std::to_string(from.*field); }};
}

Entry duration(std::string_view name, milliseconds Settings::* field, std::int64_t least,
               std::int64_t most) {
  return {name,
          [=](Settings& into, std::string_view text) {
            into.*field = milliseconds(number_within(text, least, most));
          },
          [=](const Settings& from) { return std::to_string((from.*field).count()); }};
}

template <typename Kind, std::size_t Size>
Entry choice(std::string_view name, Kind Settings::* field, const Names<Kind, Size>& names) {
  return {name,
          [field, &names](Settings& into, std::string_view text) {
            std::string listed;
            for (const auto& [known, kind] : names) {
              if (known == text) {
                into.*field = kind;
                return;
              }
              listed += listed.empty() ? "" : ", ";
              listed += known;
            }
            throw SettingError("'" + std::string(text) + "' must be one of " + listed);
          },
          [field, &names](const Settings& from) {
            for (const auto& [known, kind] : names) {
              if (kind == from.*field) return '"' + std::string(known) + '"';
            }
            return std::string("null");
          }};
}

std::vector<Entry> entries() {
  return {
      {"host", [](Settings& into, std::string_view text) { into.host = text; },
       [](const Settings& from) { return '"' + from.host + '"'; }},
      number("port", &Settings::port, 0, 65535),
      choice("threading", &Settings::threading, threadings),
      number("threads", &Settings::threads, 1, 1024),
      choice("keep_alive", &Settings::keep_alive, keep_alives),
      number("keep_alive_requests", &Settings::keep_alive_requests, 1, 1'000'000),
      duration("keep_alive_idle_ms", &Settings::keep_alive_idle, 1, 3'600'000),
      choice("parser", &Settings::parser, parsers),
      choice("store", &Settings::store, stores),
      number("queue_depth", &Settings::queue_depth, 1, 65536),
      number("backlog", &Settings::backlog, 1, 65535),
      number("max_connections", &Settings::max_connections, 1, 65536),
      number("max_head_bytes", &Settings::max_head_bytes, 256, 1 << 20),
      number("max_body_bytes", &Settings::max_body_bytes, 1, 1 << 24),
      number("max_series", &Settings::max_series, 1, 10'000'000),
      duration("request_timeout_ms", &Settings::request_timeout, 10, 3'600'000),
  };
}

}  // namespace

Settings read_settings(std::span<char* const> words) {
  const auto known = entries();
  Settings settings;
  for (const std::string_view word : words) {
    const auto equals = word.find('=');
    const auto name = word.substr(0, equals);
    bool found = false;
    for (const auto& entry : known) {
      if (equals == std::string_view::npos || entry.name != name) continue;
      found = true;
      try {
        entry.read(settings, word.substr(equals + 1));
      } catch (const SettingError& error) {
        throw SettingError(std::string(name) + ": " + error.what());
      }
    }
    if (!found) throw SettingError("unknown setting '" + std::string(word) + "'");
  }
  return settings;
}

std::string to_json(const Settings& settings) {
  std::string text = "{";
  for (const auto& entry : entries()) {
    // Where it listens is no setting: it is another after every start.
    if (entry.name == "host" || entry.name == "port") continue;
    text += text.size() > 1 ? ", \"" : "\"";
    text += entry.name;
    text += "\": " + entry.tell(settings);
  }
  return text + "}";
}

}  // namespace metricstream
