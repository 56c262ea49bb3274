#include "listener.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <string_view>
#include <thread>
#include <utility>

namespace metricstream {
namespace {

// While neither a descriptor nor the spare is to be had: to try again at once would fill a core.
constexpr milliseconds pause_without_descriptors{5};

FileDescriptor open_spare() { return FileDescriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC)); }

void turn_away(int socket) {
  static constexpr std::string_view full =
      "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nContent-Length: 31\r\n"
      "Connection: close\r\nRetry-After: 1\r\n\r\n{\"error\": \"the server is full\"}";
  ::send(socket, full.data(), full.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  ::shutdown(socket, SHUT_WR);
  // What came already is read: to close on unread bytes would reset the connection.
  std::array<char, 4096> ignored;
  [[maybe_unused]] const auto length = ::recv(socket, ignored.data(), ignored.size(), MSG_DONTWAIT);
}

}  // namespace

Listener::Listener(const Settings& settings)
    : socket_(checked(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), "socket")) {
  const int on = 1;
  ::setsockopt(socket_.number(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(settings.port));
  if (::inet_pton(AF_INET, settings.host.c_str(), &address.sin_addr) != 1) {
    throw SettingError("host: '" + settings.host + "' is no IPv4 address");
  }
  const auto* generic = reinterpret_cast<const sockaddr*>(&address);
  const auto where = settings.host + ":" + std::to_string(settings.port);
  if (::bind(socket_.number(), generic, sizeof address) != 0) throw last_error("bind " + where);
  if (::listen(socket_.number(), settings.backlog) != 0) throw last_error("listen " + where);
}

Acceptor::Acceptor(const Listener& listener, const Shared& shared)
    : listener_(listener), shared_(shared), spare_(open_spare()) {}

std::optional<Acceptor::Accepted> Acceptor::accept() {
  FileDescriptor socket(
      ::accept4(listener_.descriptor(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!socket.is_open()) {
    const bool exhausted =
        errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
    if (exhausted) give_up_one();
    return std::nullopt;
  }
  ++shared_.counters.accepted;
  auto slot = shared_.admission.enter();
  if (!slot) {
    ++shared_.counters.turned_away;
    turn_away(socket.number());
    return std::nullopt;
  }
  return Accepted{std::move(socket), std::move(*slot)};
}

void Acceptor::give_up_one() {
  spare_.reset();
  FileDescriptor socket(::accept4(listener_.descriptor(), nullptr, nullptr, SOCK_CLOEXEC));
  if (socket.is_open()) {
    ++shared_.counters.no_descriptor;
    turn_away(socket.number());
  } else {
    std::this_thread::sleep_for(pause_without_descriptors);
  }
  socket.reset();
  spare_ = open_spare();
}

}  // namespace metricstream
