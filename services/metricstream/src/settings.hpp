#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <span>
#include <string>

namespace metricstream {

using Clock = std::chrono::steady_clock;
using Instant = Clock::time_point;
using std::chrono::milliseconds;

enum class Threading { Thread, ProducerConsumer, Pool, Epoll };
enum class ParserKind { Quadratic, Linear };
enum class StoreKind { DoubleMutex, PerClient, Ring };

/// What the server is started with; service.toml says what each setting means.
struct Settings {
  std::map<std::string, std::string> words;  ///< all of it as text
  std::string host;
  std::size_t port;
  Threading threading;
  std::size_t threads;
  bool keep_alive;
  ParserKind parser;
  StoreKind store;
  std::size_t max_connections;
  int backlog;  ///< connections that wait to be accepted; the kernel drops what comes beyond
};

/// Read words such as `threading=pool`; throw std::invalid_argument for any that is unknown. Ranges
/// are the lab's to check, by service.toml.
Settings read_settings(std::span<char* const> words);

/// Return the settings in force as a JSON object, by the names that the command line has for them.
std::string to_json(const Settings& settings);

}  // namespace metricstream
