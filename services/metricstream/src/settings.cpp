#include "settings.hpp"

#include <charconv>
#include <string_view>
#include <utility>
#include <vector>

namespace metricstream {
namespace {

using Words = std::map<std::string, std::string>;

const Words defaults{
    {"host", "127.0.0.1"},      {"port", "0"},
    {"threading", "thread"},    {"threads", "16"},
    {"keep_alive", "off"},      {"parser", "linear"},
    {"store", "double_mutex"},  {"backlog", "1024"},
    {"max_connections", "1024"}};

[[noreturn]] void refuse(const std::string& name, const std::string& text, const std::string& why) {
  throw SettingError(name + ": '" + text + "' must be " + why);
}

std::size_t number(const Words& words, const std::string& name, std::size_t least,
                   std::size_t most) {
  const auto& text = words.at(name);
  std::size_t value = 0;
  const auto* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stopped != end || value < least || value > most) {
    refuse(name, text, "a whole number from " + std::to_string(least) + " to " +
                           std::to_string(most));
  }
  return value;
}

template <typename Kind>
Kind choice(const Words& words, const std::string& name,
            const std::vector<std::pair<std::string, Kind>>& kinds) {
  const auto& text = words.at(name);
  std::string listed;
  for (const auto& [known, kind] : kinds) {
    if (known == text) return kind;
    listed += (listed.empty() ? "" : ", ") + known;
  }
  refuse(name, text, "one of " + listed);
}

bool is_number(const std::string& text) {
  return text.find_first_not_of("0123456789") == std::string::npos;
}

}  // namespace

Settings read_settings(std::span<char* const> given) {
  Words words = defaults;
  for (const std::string word : given) {
    const auto equals = word.find('=');
    const auto known = words.find(word.substr(0, equals));
    if (equals == std::string::npos || known == words.end()) {
      throw SettingError("unknown setting '" + word + "'");
    }
    known->second = word.substr(equals + 1);
  }
  return {
      .words = words,
      .host = words.at("host"),
      .port = number(words, "port", 0, 65535),
      .threading = choice<Threading>(words, "threading",
                                     {{"thread", Threading::Thread},
                                      {"producer_consumer", Threading::ProducerConsumer},
                                      {"pool", Threading::Pool},
                                      {"epoll", Threading::Epoll}}),
      .threads = number(words, "threads", 1, 1024),
      .keep_alive = choice<bool>(words, "keep_alive", {{"off", false}, {"on", true}}),
      .parser = choice<ParserKind>(
          words, "parser", {{"quadratic", ParserKind::Quadratic}, {"linear", ParserKind::Linear}}),
      .store = choice<StoreKind>(words, "store",
                                 {{"double_mutex", StoreKind::DoubleMutex},
                                  {"per_client", StoreKind::PerClient},
                                  {"ring", StoreKind::Ring}}),
      .backlog = number(words, "backlog", 1, 65535),
      .max_connections = number(words, "max_connections", 1, 65536),
  };
}

std::string to_json(const Settings& settings) {
  std::string json;
  for (const auto& [name, text] : settings.words) {
    // Where it listens is no setting: it is another after every start.
    if (name == "host" || name == "port") continue;
    json += (json.empty() ? "{\"" : ", \"") + name + "\": ";
    json += is_number(text) ? text : '"' + text + '"';
  }
  return json + "}";
}

}  // namespace metricstream
