#pragma once

#include <cstddef>
#include <string>

#include "handler.hpp"
#include "http.hpp"
#include "sockets.hpp"

namespace metricstream {

/// One client's connection. It never waits: whoever drives it is told what to wait for.
///
/// Not safe for two threads at once.
class Connection {
 public:
  enum class Wants { Read, Write, Nothing };  ///< Nothing: it is closed

  Connection(FileDescriptor socket, const Shared& shared);
  Connection(Connection&&) = default;
  ~Connection() { close(); }

  /// Go on as far as possible; `noticed` is when it was known that there is something to do.
  Wants advance(Instant noticed);

  /// Answer 503 for want of room, and end.
  Wants turn_away();

  [[nodiscard]] int descriptor() const { return socket_.number(); }
  [[nodiscard]] bool is_open() const { return socket_.is_open(); }

 private:
  enum class Receipt { Some, Last, Later, End };  ///< Last: some, and no more is there for now

  Wants finish();
  Wants close();
  bool flush();
  Receipt receive();
  void answer();
  void refuse(const Response& response);

  FileDescriptor socket_;
  const Shared& shared_;
  RequestReader reader_;
  std::string unsent_;
  Clock::duration untaken_{};  ///< what the next answer has waited for a thread so far
  bool ends_ = false;
  bool lingers_ = false;  ///< all is said; what the client still sends is thrown away
};

}  // namespace metricstream
