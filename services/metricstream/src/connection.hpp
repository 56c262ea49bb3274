#pragma once

#include <cstddef>
#include <string>

#include "admission.hpp"
#include "clock.hpp"
#include "counters.hpp"
#include "file_descriptor.hpp"
#include "handler.hpp"
#include "request_reader.hpp"
#include "settings.hpp"
#include "stop.hpp"

namespace metricstream {

/// What all connections of a server share.
struct Shared {
  const Settings& settings;
  Counters& counters;
  const Handler& handler;
  Stop& stop;
  Admission& admission;
};

/// One client's connection. It never waits: whoever drives it is told what to wait for.
///
/// Not safe for two threads at once. What it holds is bounded: a head, a body, one piece that was
/// read, and answers up to `most_unsent` and one more.
class Connection {
 public:
  enum class Wants { Read, Write, Nothing };  ///< Nothing: it is closed

  Connection(FileDescriptor socket, Admission::Slot slot, const Shared& shared, Instant now);

  /// Go on as far as possible; `noticed` is when it was known that there is something to do.
  Wants advance(Instant noticed);

  /// Close what took too long, and what has nothing in hand while the server stops.
  Wants look_at_clock(Instant now);

  /// Refuse for want of room, and end.
  Wants turn_away();

  [[nodiscard]] int descriptor() const { return socket_.number(); }
  [[nodiscard]] bool is_open() const { return socket_.is_open(); }
  [[nodiscard]] Instant deadline() const { return deadline_; }

 private:
  enum class Receipt { Some, Last, Later, End };  ///< Last: some, and no more is there for now

  Wants go_on(Instant now);
  Wants finish();
  Wants linger();
  Wants close();
  bool flush();
  Receipt receive(Instant now);
  void answer();
  void refuse(const Refusal& refusal);
  void send_later(const Response& response, const std::string& timing, bool with_body = true);
  [[nodiscard]] bool has_unread() const;
  [[nodiscard]] bool may_go_on(const Request& request) const;

  FileDescriptor socket_;
  Admission::Slot slot_;
  const Shared& shared_;
  RequestReader reader_;
  std::string unsent_;
  std::size_t sent_ = 0;
  std::size_t answered_ = 0;
  std::size_t lingered_bytes_ = 0;
  Clock::duration untaken_{};  // what the next answer has waited for a thread so far
  Instant deadline_;
  bool request_under_way_ = true;
  bool is_blocked_ = false;
  bool ends_ = false;
  bool leaves_unread_ = false;
  bool lingers_ = false;
};

}  // namespace metricstream
