#include "connection.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>
#include <utility>

namespace metricstream {
namespace {

constexpr std::size_t piece_bytes = 16384;
// All phases of an answer; a longer text would only cost another allocation.
constexpr std::size_t timing_bytes = 96;

}  // namespace

Connection::Connection(FileDescriptor socket, const Shared& shared)
    : socket_(std::move(socket)), shared_(shared) {
  const int on = 1;
  ::setsockopt(socket_.number(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

Connection::Wants Connection::advance(Instant noticed) {
  untaken_ += Clock::now() - noticed;
  auto receipt = Receipt::Some;
  for (;;) {
    if (!flush()) return is_open() ? Wants::Write : Wants::Nothing;
    if (ends_) return finish();
    const auto found = reader_.next();
    if (found == RequestReader::Outcome::Request) answer();
    if (found == RequestReader::Outcome::Refused) refuse(reader_.refusal());
    if (found != RequestReader::Outcome::NeedsMore) continue;
    if (receipt == Receipt::Last) return Wants::Read;
    receipt = receive();
    if (receipt == Receipt::Later) return Wants::Read;
    if (receipt == Receipt::End) return close();
  }
}

Connection::Receipt Connection::receive() {
  std::array<char, piece_bytes> piece;
  const auto length = ::recv(socket_.number(), piece.data(), piece.size(), 0);
  if (length < 0 && (errno == EAGAIN || errno == EINTR)) return Receipt::Later;
  if (length <= 0) return Receipt::End;
  const auto read = static_cast<std::size_t>(length);
  reader_.feed({piece.data(), read});
  // A piece that is not full was all there is: to ask again would only be told so. What comes
  // after it, and the client's end too, is noticed by whoever waits for this connection.
  return read < piece.size() ? Receipt::Last : Receipt::Some;
}

void Connection::answer() {
  const auto request = reader_.take_request();
  ++shared_.counters.requests;
  ends_ = !shared_.settings.keep_alive || !request.keeps_alive;
  std::string timing;
  timing.reserve(timing_bytes);
  add_timing(timing, "taken", std::exchange(untaken_, Clock::duration::zero()));
  const auto response = metricstream::answer(request, shared_, timing);
  append_bytes(unsent_, response, timing, !ends_);
}

void Connection::refuse(const Response& response) {
  ends_ = lingers_ = true;
  append_bytes(unsent_, response, "", false);
}

bool Connection::flush() {
  while (!unsent_.empty()) {
    const auto length = ::send(socket_.number(), unsent_.data(), unsent_.size(), MSG_NOSIGNAL);
    if (length < 0 && errno == EINTR) continue;
    if (length < 0 && errno == EAGAIN) return false;
    if (length < 0) {
      close();
      return false;
    }
    unsent_.erase(0, static_cast<std::size_t>(length));
  }
  return true;
}

Connection::Wants Connection::finish() {
  if (!lingers_) return close();
  // To close on unread bytes would reset the connection, and the client could lose the answer
  // (RFC 9112, section 9.6).
  ::shutdown(socket_.number(), SHUT_WR);
  std::array<char, piece_bytes> piece;
  const auto length = ::recv(socket_.number(), piece.data(), piece.size(), 0);
  return length > 0 || (length < 0 && errno == EAGAIN) ? Wants::Read : close();
}

Connection::Wants Connection::turn_away() {
  ++shared_.counters.turned_away;
  refuse(problem(503, "the server is full"));
  return flush() ? finish() : close();
}

Connection::Wants Connection::close() {
  if (is_open()) {
    socket_.reset();
    --shared_.counters.open_connections;
  }
  return Wants::Nothing;
}

}  // namespace metricstream
