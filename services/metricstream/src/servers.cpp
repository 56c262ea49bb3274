#include "servers.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <thread>
#include <unordered_map>
#include <utility>

#include "queues.hpp"

namespace metricstream {
namespace {

using Wants = Connection::Wants;

// While no descriptor is to be had: to try again at once would fill a core.
constexpr milliseconds pause_without_descriptors{5};

/// Take a connection that waits; nothing where none does, or where there is no room for it.
std::optional<Connection> accept(const FileDescriptor& listener, const Shared& shared) {
  FileDescriptor socket(
      ::accept4(listener.number(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!socket.is_open()) {
    if (errno == EMFILE || errno == ENFILE) std::this_thread::sleep_for(pause_without_descriptors);
    return std::nullopt;
  }
  ++shared.counters.accepted;
  const bool has_room = shared.counters.open_connections++ < shared.settings.max_connections;
  Connection connection(std::move(socket), shared);
  if (has_room) return connection;
  connection.turn_away();
  return std::nullopt;
}

std::uint32_t events_for(Wants wants) { return wants == Wants::Write ? EPOLLOUT : EPOLLIN; }

void wait_for(int descriptor, short events) {
  pollfd waited{descriptor, events, 0};
  ::poll(&waited, 1, -1);
}

/// Serve one connection to its end, and wait for it meanwhile.
void serve(Connection& connection, Instant accepted) {
  auto wants = connection.advance(accepted);
  while (wants != Wants::Nothing) {
    wait_for(connection.descriptor(), wants == Wants::Write ? POLLOUT : POLLIN);
    wants = connection.advance(Clock::now());
  }
}

/// One thread accepts and watches; those of the pool serve what is ready.
///
/// A connection is armed for one event, so that it is in the queue or with a worker only once. A
/// client that is slow or idle holds a connection, but no worker.
class Pool {
 public:
  Pool(const FileDescriptor& listener, const Shared& shared)
      : listener_(listener), shared_(shared), queue_(queue_depth) {
    poller_.add(listener.number(), EPOLLIN);
    for (std::size_t made = 0; made < shared.settings.threads; ++made) {
      std::thread([this] { work(); }).detach();
    }
  }

  [[noreturn]] void run() {
    for (;;) {
      const auto events = poller_.wait();
      const auto noticed = Clock::now();
      for (const auto& event : events) {
        if (event.data.fd == listener_.number()) take_all();
        else hand_over(event.data.fd, noticed);
      }
    }
  }

 private:
  /// A connection that workers serve in turn, one at a time.
  struct Held {
    explicit Held(Connection&& made) : connection(std::move(made)) {}

    std::mutex mutex;  ///< for the connection
    Connection connection;
  };

  /// A connection with something to do, since when.
  struct Ready {
    std::shared_ptr<Held> held;
    Instant noticed;
  };

  void take_all() {
    while (auto connection = accept(listener_, shared_)) {
      const int descriptor = connection->descriptor();
      // What had this number before is closed, and was not looked at since.
      held_.insert_or_assign(descriptor, std::make_shared<Held>(std::move(*connection)));
      poller_.add(descriptor, EPOLLIN | EPOLLONESHOT);
    }
  }

  void hand_over(int descriptor, Instant noticed) {
    const auto found = held_.find(descriptor);
    if (found == held_.end()) return;
    const auto& held = found->second;
    if (queue_.try_push({held, noticed})) return;
    // The worker that armed it may be about to let go of it.
    const std::lock_guard lock(held->mutex);
    arm(*held, held->connection.turn_away());
  }

  void arm(const Held& held, Wants wants) {
    if (wants == Wants::Nothing) return;
    poller_.change(held.connection.descriptor(), events_for(wants) | EPOLLONESHOT);
  }

  [[noreturn]] void work() {
    for (;;) {
      const auto [held, noticed] = queue_.pop();
      const std::lock_guard lock(held->mutex);
      if (held->connection.is_open()) arm(*held, held->connection.advance(noticed));
    }
  }

  const FileDescriptor& listener_;
  const Shared& shared_;
  Poller poller_;
  BoundedQueue<Ready> queue_;
  std::unordered_map<int, std::shared_ptr<Held>> held_;
};

/// One thread that serves its connections in turn.
class Loop {
 public:
  Loop(const FileDescriptor& listener, const Shared& shared)
      : listener_(listener), shared_(shared) {
    // Of several loops that wait, the kernel wakes one and not all.
    poller_.add(listener.number(), EPOLLIN | EPOLLEXCLUSIVE);
  }

  [[noreturn]] void run() {
    for (;;) {
      const auto events = poller_.wait();
      const auto noticed = Clock::now();
      for (const auto& event : events) {
        if (event.data.fd == listener_.number()) take_some();
        else go_on(event.data.fd, noticed);
      }
    }
  }

 private:
  // How many connections one loop takes before it serves those that it has.
  static constexpr int most_at_once = 64;

  struct Held {
    Connection connection;
    Wants wants = Wants::Read;
  };

  void take_some() {
    for (int taken = 0; taken < most_at_once; ++taken) {
      auto connection = accept(listener_, shared_);
      if (!connection) return;
      const int descriptor = connection->descriptor();
      held_.emplace(descriptor, Held{std::move(*connection)});
      poller_.add(descriptor, EPOLLIN);
    }
  }

  void go_on(int descriptor, Instant noticed) {
    const auto found = held_.find(descriptor);
    if (found == held_.end()) return;
    auto& held = found->second;
    const auto wants = held.connection.advance(noticed);
    if (wants == Wants::Nothing) {
      held_.erase(found);
    } else if (wants != std::exchange(held.wants, wants)) {
      poller_.change(descriptor, events_for(wants));
    }
  }

  const FileDescriptor& listener_;
  const Shared& shared_;
  Poller poller_;
  std::unordered_map<int, Held> held_;
};

}  // namespace

FileDescriptor listen_at(const Settings& settings) {
  FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int on = 1;
  ::setsockopt(socket.number(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(settings.port));
  if (::inet_pton(AF_INET, settings.host.c_str(), &address.sin_addr) != 1) {
    throw std::invalid_argument("host: '" + settings.host + "' must be an IPv4 address");
  }
  const auto* generic = reinterpret_cast<const sockaddr*>(&address);
  if (::bind(socket.number(), generic, sizeof address) != 0 ||
      ::listen(socket.number(), settings.backlog) != 0) {
    throw last_error("listen at " + settings.host + ":" + std::to_string(settings.port));
  }
  return socket;
}

void serve_by_threads(const FileDescriptor& listener, const Shared& shared) {
  for (;;) {
    wait_for(listener.number(), POLLIN);
    auto accepted = accept(listener, shared);
    if (!accepted) continue;
    const auto now = Clock::now();
    try {
      std::thread([connection = std::move(*accepted), now]() mutable {
        serve(connection, now);
      }).detach();
    } catch (const std::system_error&) {
      // No thread is left; the connection was closed with what was to be its thread.
      ++shared.counters.turned_away;
    }
  }
}

void serve_by_pool(const FileDescriptor& listener, const Shared& shared) {
  Pool(listener, shared).run();
}

void serve_by_epoll(const FileDescriptor& listener, const Shared& shared) {
  for (std::size_t made = 1; made < shared.settings.threads; ++made) {
    std::thread([&] { Loop(listener, shared).run(); }).detach();
  }
  Loop(listener, shared).run();
}

}  // namespace metricstream
