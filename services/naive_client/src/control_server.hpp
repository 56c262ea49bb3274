#pragma once

#include <string>
#include <vector>

#include "clock.hpp"
#include "file_descriptor.hpp"
#include "runs.hpp"
#include "settings.hpp"

namespace naive_client {

/// Answers what this program itself is asked, one request per connection, in one thread that never
/// waits for a single client.
class ControlServer {
 public:
  /// Throws std::system_error where the address cannot be had.
  explicit ControlServer(const Settings& settings);

  /// Serve until a descriptor can be read.
  void serve_until(int descriptor);

 private:
  /// One who asks: what has come, and until when the rest must.
  struct Visit {
    FileDescriptor socket;
    std::string read;
    Instant deadline;
    bool is_answered = false;
  };

  void accept();
  /// Go on with a visit that has something to say; false where it is over.
  bool go_on(Visit& visit);
  void give(Visit& visit, const std::string& bytes);

  const Settings& settings_;
  Runs runs_;
  FileDescriptor listener_;
  std::vector<Visit> visits_;
};

}  // namespace naive_client
