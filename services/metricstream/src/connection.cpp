#include "connection.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

namespace metricstream {
namespace {

constexpr std::size_t piece_bytes = 16384;
constexpr std::size_t most_unsent = 65536;
// All phases of an answer; a longer text would only cost another allocation.
constexpr std::size_t most_timing_bytes = 96;
// Others shall have their turn, however fast one client sends.
constexpr int most_pieces = 16;
constexpr std::size_t most_lingered_bytes = 1 << 18;
constexpr milliseconds longest_lingering{1000};
constexpr milliseconds idle_without_limit{60000};

}  // namespace

Connection::Connection(FileDescriptor socket, Admission::Slot slot, const Shared& shared,
                       Instant now)
    : socket_(std::move(socket)),
      slot_(std::move(slot)),
      shared_(shared),
      reader_(shared.settings),
      deadline_(now + shared.settings.request_timeout) {
  const int on = 1;
  ::setsockopt(socket_.number(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

Connection::Wants Connection::advance(Instant noticed) {
  const auto now = Clock::now();
  untaken_ += now - noticed;
  return lingers_ ? linger() : go_on(now);
}

Connection::Wants Connection::go_on(Instant now) {
  auto receipt = Receipt::Some;
  for (int pieces = 0;;) {
    const auto outcome =
        ends_ ? RequestReader::Outcome::NeedsMore : reader_.next();
    if (outcome == RequestReader::Outcome::Request) answer();
    if (outcome == RequestReader::Outcome::Refused) refuse(reader_.refusal());
    if (outcome != RequestReader::Outcome::NeedsMore && unsent_.size() < most_unsent) continue;
    if (reader_.take_expectation()) unsent_ += "HTTP/1.1 100 Continue\r\n\r\n";
    if (!flush()) return is_open() ? Wants::Write : Wants::Nothing;
    if (outcome != RequestReader::Outcome::NeedsMore) continue;
    if (ends_) return finish();
    if (receipt == Receipt::Last || pieces++ == most_pieces) return Wants::Read;
    receipt = receive(now);
    if (receipt == Receipt::Later) return Wants::Read;
    if (receipt == Receipt::End) return close();
  }
}

Connection::Receipt Connection::receive(Instant now) {
  std::array<char, piece_bytes> piece;
  const auto length = ::recv(socket_.number(), piece.data(), piece.size(), 0);
  if (length < 0 && (errno == EAGAIN || errno == EINTR)) return Receipt::Later;
  if (length <= 0) {
    if (length < 0 || reader_.has_begun()) ++shared_.counters.resets;
    return Receipt::End;
  }
  if (!request_under_way_) {
    request_under_way_ = true;
    deadline_ = now + shared_.settings.request_timeout;
  }
  const auto read = static_cast<std::size_t>(length);
  reader_.feed({piece.data(), read});
  // A piece that is not full was all there is: to ask again would only be told so. What comes
  // after it, and the client's end too, is noticed by whoever waits for this connection.
  return read < piece.size() ? Receipt::Last : Receipt::Some;
}

void Connection::answer() {
  const auto request = reader_.take_request();
  ++shared_.counters.requests;
  ++answered_;
  ends_ = !may_go_on(request);
  // Who was told before that the connection goes on may have sent the next request already.
  const bool may_have_more = request.keeps_alive && shared_.settings.keep_alive != KeepAlive::Off;
  leaves_unread_ = ends_ && (reader_.has_begun() || may_have_more);
  std::string timing;
  timing.reserve(most_timing_bytes);
  add_timing(timing, "taken", std::exchange(untaken_, Clock::duration::zero()));
  send_later(shared_.handler.answer(request, timing), timing, request.method != "HEAD");
  request_under_way_ = reader_.has_begun();
  const auto& settings = shared_.settings;
  const auto idle = settings.keep_alive == KeepAlive::Limited ? settings.keep_alive_idle
                                                              : idle_without_limit;
  deadline_ = Clock::now() + (request_under_way_ ? settings.request_timeout : idle);
}

bool Connection::may_go_on(const Request& request) const {
  const auto& settings = shared_.settings;
  if (settings.keep_alive == KeepAlive::Off || !request.keeps_alive || shared_.stop.asked()) {
    return false;
  }
  return settings.keep_alive == KeepAlive::On || answered_ < settings.keep_alive_requests;
}

void Connection::refuse(const Refusal& refusal) {
  ends_ = leaves_unread_ = true;
  send_later(problem(refusal.status, refusal.reason), "");
}

void Connection::send_later(const Response& response, const std::string& timing, bool with_body) {
  if (response.status >= 400) ++shared_.counters.refused_requests;
  append_bytes(unsent_, response, timing, !ends_, with_body);
}

bool Connection::flush() {
  while (sent_ < unsent_.size()) {
    const auto length = ::send(socket_.number(), unsent_.data() + sent_, unsent_.size() - sent_,
                               MSG_NOSIGNAL);
    if (length < 0 && errno == EINTR) continue;
    if (length < 0 && errno == EAGAIN) {
      // The time to take the answers counts from the first wait, not from the last byte taken.
      if (!std::exchange(is_blocked_, true)) {
        deadline_ = Clock::now() + shared_.settings.request_timeout;
      }
      return false;
    }
    if (length < 0) {
      ++shared_.counters.resets;
      close();
      return false;
    }
    sent_ += static_cast<std::size_t>(length);
  }
  unsent_.clear();
  sent_ = 0;
  is_blocked_ = false;
  return true;
}

Connection::Wants Connection::finish() {
  if (!leaves_unread_) return close();
  // To close on unread bytes resets the connection, and the client may lose the answer
  // (RFC 9112, section 9.6).
  ::shutdown(socket_.number(), SHUT_WR);
  lingers_ = true;
  deadline_ = Clock::now() + longest_lingering;
  return linger();
}

Connection::Wants Connection::linger() {
  std::array<char, piece_bytes> piece;
  while (lingered_bytes_ < most_lingered_bytes) {
    const auto length = ::recv(socket_.number(), piece.data(), piece.size(), 0);
    if (length < 0 && (errno == EAGAIN || errno == EINTR)) return Wants::Read;
    if (length <= 0) break;
    lingered_bytes_ += static_cast<std::size_t>(length);
  }
  return close();
}

Connection::Wants Connection::look_at_clock(Instant now) {
  const bool has_nothing_in_hand = !request_under_way_ && unsent_.empty() && !lingers_;
  const bool stops = shared_.stop.asked() && has_nothing_in_hand;
  if (!stops && now < deadline_) return is_blocked_ ? Wants::Write : Wants::Read;
  // Who was held up looks late: a request may be there that came in time.
  const bool has_read_nothing = unsent_.empty() && !reader_.has_begun() && !lingers_;
  if (has_read_nothing && has_unread()) return Wants::Read;
  if (lingers_ || has_nothing_in_hand) return close();
  ++shared_.counters.timeouts;
  // Who does not read is told nothing; nor is who has said nothing.
  if (!unsent_.empty() || !reader_.has_begun()) return close();
  refuse({408, "the request took too long"});
  return flush() ? finish() : close();
}

bool Connection::has_unread() const {
  char first = 0;
  return ::recv(socket_.number(), &first, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

Connection::Wants Connection::turn_away() {
  ++shared_.counters.turned_away;
  refuse({503, "the server is full"});
  return flush() ? finish() : close();
}

Connection::Wants Connection::close() {
  socket_.reset();
  slot_.release();
  unsent_ = std::string();
  return Wants::Nothing;
}

}  // namespace metricstream
