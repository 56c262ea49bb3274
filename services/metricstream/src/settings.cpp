#include "settings.hpp"

#include <stdexcept>

namespace metricstream {
namespace {

using Words = std::map<std::string, std::string>;

const Words defaults{
    {"host", "127.0.0.1"},      {"port", "0"},
    {"threading", "thread"},    {"threads", "16"},
    {"keep_alive", "off"},      {"parser", "linear"},
    {"store", "double_mutex"},  {"max_connections", "1024"},
    {"backlog", "1024"}};

std::size_t number(const Words& words, const std::string& name) {
  return std::stoul(words.at(name));
}

template <typename Kind>
Kind choice(const Words& words, const std::string& name, const std::map<std::string, Kind>& kinds) {
  const auto found = kinds.find(words.at(name));
  if (found == kinds.end()) throw std::invalid_argument(name + ": '" + words.at(name) + "' is not allowed");
  return found->second;
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
      throw std::invalid_argument("unknown setting '" + word + "'");
    }
    known->second = word.substr(equals + 1);
  }
  return {
      .words = words,
      .host = words.at("host"),
      .port = number(words, "port"),
      .threading = choice<Threading>(words, "threading",
                                     {{"thread", Threading::Thread},
                                      {"producer_consumer", Threading::ProducerConsumer},
                                      {"pool", Threading::Pool},
                                      {"epoll", Threading::Epoll}}),
      .threads = number(words, "threads"),
      .keep_alive = choice<bool>(words, "keep_alive", {{"off", false}, {"on", true}}),
      .parser = choice<ParserKind>(
          words, "parser", {{"quadratic", ParserKind::Quadratic}, {"linear", ParserKind::Linear}}),
      .store = choice<StoreKind>(words, "store",
                                 {{"double_mutex", StoreKind::DoubleMutex},
                                  {"per_client", StoreKind::PerClient},
                                  {"ring", StoreKind::Ring}}),
      .max_connections = number(words, "max_connections"),
      .backlog = static_cast<int>(number(words, "backlog")),
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
