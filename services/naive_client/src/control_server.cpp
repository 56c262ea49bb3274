#include "control_server.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <thread>
#include <variant>

#include "api.hpp"

namespace naive_client {
namespace {

constexpr std::size_t most_visits = 64;
constexpr milliseconds patience{2000};
constexpr milliseconds pause_without_descriptors{5};
constexpr int look_at_clock_ms = 200;
constexpr int backlog = 64;
constexpr std::size_t piece_bytes = 16384;

}  // namespace

ControlServer::ControlServer(const Settings& settings)
    : settings_(settings),
      listener_(checked(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0),
                        "socket")) {
  const int on = 1;
  ::setsockopt(listener_.number(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(settings.port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const auto* generic = reinterpret_cast<const sockaddr*>(&address);
  const auto where = settings.host + ":" + std::to_string(settings.port);
  if (::bind(listener_.number(), generic, sizeof address) != 0) throw last_error("bind " + where);
  if (::listen(listener_.number(), backlog) != 0) throw last_error("listen " + where);
}

void ControlServer::serve_until(int descriptor) {
  while (true) {
    const bool has_room = visits_.size() < most_visits;
    std::vector<pollfd> waited{{descriptor, POLLIN, 0},
                               {has_room ? listener_.number() : -1, POLLIN, 0}};
    for (const auto& visit : visits_) waited.push_back({visit.socket.number(), POLLIN, 0});
    if (::poll(waited.data(), waited.size(), look_at_clock_ms) < 0) continue;
    if (waited[0].revents != 0) return;
    const auto now = Clock::now();
    for (std::size_t at = visits_.size(); at-- > 0;) {
      auto& visit = visits_[at];
      const bool stays = waited[at + 2].revents != 0 ? go_on(visit) : now < visit.deadline;
      if (!stays) visits_.erase(visits_.begin() + static_cast<std::ptrdiff_t>(at));
    }
    if (waited[1].revents != 0) accept();
  }
}

void ControlServer::accept() {
  FileDescriptor socket(
      ::accept4(listener_.number(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (socket.is_open()) {
    visits_.push_back({std::move(socket), "", Clock::now() + patience});
  } else if (errno != EAGAIN && errno != EINTR) {
    // No descriptor is left, say: to try again at once would fill a core.
    std::this_thread::sleep_for(pause_without_descriptors);
  }
}

bool ControlServer::go_on(Visit& visit) {
  std::array<char, piece_bytes> piece;
  const auto length = ::recv(visit.socket.number(), piece.data(), piece.size(), 0);
  if (length < 0) return errno == EAGAIN || errno == EINTR;
  if (length == 0 || Clock::now() >= visit.deadline) return false;
  if (visit.is_answered) return true;
  visit.read.append(piece.data(), static_cast<std::size_t>(length));
  const auto request = read_control_request(visit.read);
  if (!request) return true;
  if (const auto* refusal = std::get_if<Refusal>(&*request)) {
    give(visit, to_bytes(refused(*refusal)));
  } else {
    give(visit, to_bytes(answer(std::get<ControlRequest>(*request), runs_, settings_)));
  }
  return true;
}

void ControlServer::give(Visit& visit, const std::string& bytes) {
  // An answer is a few KiB: a fresh connection's buffer takes it at once. The visit stays until the
  // client closes: to close on unread bytes would reset the connection under the answer.
  ::send(visit.socket.number(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  ::shutdown(visit.socket.number(), SHUT_WR);
  visit.read = std::string();
  visit.is_answered = true;
}

}  // namespace naive_client
