#pragma once

#include <cstddef>
#include <span>
#include <stdexcept>
#include <string>

#include "clock.hpp"

namespace metricstream {

enum class Threading { Thread, ProducerConsumer, Pool, Epoll };
enum class KeepAlive { Off, On, Limited };
enum class ParserKind { Quadratic, Linear };
enum class StoreKind { DoubleMutex, PerClient, Ring };

/// What the server is started with; every bound on its memory is here.
struct Settings {
  std::string host = "127.0.0.1";
  int port = 0;
  Threading threading = Threading::Thread;
  std::size_t threads = 16;
  KeepAlive keep_alive = KeepAlive::Off;
  std::size_t keep_alive_requests = 100;
  milliseconds keep_alive_idle{5000};
  ParserKind parser = ParserKind::Linear;
  StoreKind store = StoreKind::DoubleMutex;
  std::size_t queue_depth = 1024;
  int backlog = 1024;
  std::size_t max_connections = 1024;
  std::size_t max_head_bytes = 8192;
  std::size_t max_body_bytes = 65536;
  std::size_t max_series = 100000;
  milliseconds request_timeout{5000};
};

/// A word of the command line that is no setting; its text names the word and what is allowed.
class SettingError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Read words such as `threading=pool`; throw SettingError for any that is unknown or out of range.
Settings read_settings(std::span<char* const> words);

/// Return the settings in force as a JSON object, by the names that the command line has for them.
std::string to_json(const Settings& settings);

}  // namespace metricstream
