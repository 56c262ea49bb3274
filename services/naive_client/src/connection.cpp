#include "connection.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>

namespace naive_client {
namespace {

constexpr std::size_t piece_bytes = 16384;

Outcome outcome_of(int error) {
  switch (error) {
    case ECONNREFUSED: return Outcome::ConnectRefused;
    case ECONNRESET:
    case EPIPE: return Outcome::Reset;
    case ETIMEDOUT: return Outcome::TimedOut;
    case EADDRNOTAVAIL: return Outcome::NoPort;
    default: return Outcome::Other;
  }
}

int error_of(int socket) {
  int error = 0;
  socklen_t size = sizeof error;
  return ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

}  // namespace

Fault Connection::open(std::uint16_t port, Instant until) {
  socket_ = FileDescriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket_.is_open()) return Outcome::Other;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  // The one place where an address is made: load goes to this host and to no other.
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const auto* generic = reinterpret_cast<const sockaddr*>(&address);
  if (::connect(socket_.number(), generic, sizeof address) == 0) return std::nullopt;
  if (errno != EINPROGRESS) return outcome_of(errno);
  if (const auto fault = waited_for(POLLOUT, until)) return fault;
  const int error = error_of(socket_.number());
  return error == 0 ? Fault() : outcome_of(error);
}

Fault Connection::send(std::string_view text, Instant until) {
  while (!text.empty()) {
    const auto length = ::send(socket_.number(), text.data(), text.size(), MSG_NOSIGNAL);
    if (length >= 0) {
      text.remove_prefix(static_cast<std::size_t>(length));
    } else if (errno == EAGAIN) {
      if (const auto fault = waited_for(POLLOUT, until)) return fault;
    } else if (errno != EINTR) {
      return outcome_of(errno);
    }
  }
  return std::nullopt;
}

Fault Connection::receive(AnswerReader& into, Instant until) {
  std::array<char, piece_bytes> piece;
  if (const auto fault = waited_for(POLLIN, until)) return fault;
  const auto length = ::recv(socket_.number(), piece.data(), piece.size(), 0);
  if (length == 0) return Outcome::ClosedByServer;
  if (length < 0) return errno == EAGAIN || errno == EINTR ? Fault() : outcome_of(errno);
  into.feed({piece.data(), static_cast<std::size_t>(length)});
  return std::nullopt;
}

Fault Connection::waited_for(short events, Instant until) const {
  // The end of a connection can always be read, and would be read for ever.
  if (Clock::now() >= until) return Outcome::TimedOut;
  if (stop_.wait_for(socket_.number(), events, until)) return std::nullopt;
  return stop_.asked() ? Outcome::Cancelled : Outcome::TimedOut;
}

}  // namespace naive_client
