#pragma once

#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>

namespace naive_client {

/// The only address that this program listens on and sends load to.
inline constexpr const char* loopback = "127.0.0.1";

/// What the client is started with: the bounds of every workload.
struct Settings {
  std::string host = loopback;
  std::int64_t port = 0;
  std::int64_t target_port = 0;  ///< of the only service that it may load; 0: any of this host
  std::int64_t max_clients = 256;
  std::int64_t max_requests = 200'000;
  std::int64_t max_duration_s = 300;
};

/// A word of the command line that is no setting; its text names the word and what is allowed.
class SettingError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Read words such as `max_clients=100`; throw SettingError for any that is unknown or out of
/// range.
Settings read_settings(std::span<char* const> words);

/// Return the settings in force as a JSON object, by the names that the command line has for them.
std::string to_json(const Settings& settings);

}  // namespace naive_client
