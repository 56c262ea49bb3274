#include <memory>
#include <system_error>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "poller.hpp"
#include "server.hpp"

namespace metricstream {
namespace {

// How many connections one loop takes before it serves those that it has.
constexpr int most_accepted_at_once = 64;

/// One thread that serves its connections in turn.
class Loop {
 public:
  Loop(const Listener& listener, const Shared& shared)
      : listener_(listener), shared_(shared), acceptor_(listener, shared) {
    // Of several loops that wait, the kernel wakes one and not all.
    poller_.add(listener.descriptor(), EPOLLIN | EPOLLEXCLUSIVE);
    poller_.add(shared.stop.descriptor(), EPOLLIN);
  }

  void run() {
    Instant last_moment = Instant::max();
    while (Clock::now() < last_moment && (!stops_ || !held_.empty())) {
      const auto events = poller_.wait(look_every);
      const auto noticed = Clock::now();
      for (const auto& event : events) take_up(event.data.fd, noticed);
      if (shared_.stop.asked() && !std::exchange(stops_, true)) {
        poller_.remove(listener_.descriptor());
        poller_.remove(shared_.stop.descriptor());
        last_moment = noticed + stop_patience;
      }
      if (noticed >= next_look_ || stops_) look_at_clocks(noticed);
    }
  }

 private:
  struct Held {
    Connection connection;
    Connection::Wants wants = Connection::Wants::Read;
  };

  void take_up(int descriptor, Instant noticed) {
    if (descriptor == listener_.descriptor()) {
      accept(noticed);
      return;
    }
    const auto found = held_.find(descriptor);
    if (found != held_.end()) settle(found, found->second->connection.advance(noticed));
  }

  void accept(Instant now) {
    for (int taken = 0; taken < most_accepted_at_once; ++taken) {
      auto accepted = acceptor_.accept();
      if (!accepted) return;
      const int descriptor = accepted->socket.number();
      auto held = std::make_unique<Held>(Held{
          Connection(std::move(accepted->socket), std::move(accepted->slot), shared_, now)});
      if (!poller_.try_add(descriptor, EPOLLIN)) {
        ++shared_.counters.turned_away;
        continue;
      }
      held_.insert_or_assign(descriptor, std::move(held));
    }
  }

  using Place = std::unordered_map<int, std::unique_ptr<Held>>::iterator;

  /// Wait for what a connection wants now; return the place after it.
  Place settle(Place at, Connection::Wants wants) {
    if (wants == Connection::Wants::Nothing) return held_.erase(at);
    if (wants != std::exchange(at->second->wants, wants)) {
      poller_.change(at->first, events_for(wants));
    }
    return std::next(at);
  }

  void look_at_clocks(Instant now) {
    next_look_ = now + look_every;
    for (auto at = held_.begin(); at != held_.end();) {
      at = settle(at, at->second->connection.look_at_clock(now));
    }
  }

  const Listener& listener_;
  const Shared& shared_;
  Acceptor acceptor_;
  Poller poller_;
  std::unordered_map<int, std::unique_ptr<Held>> held_;
  Instant next_look_{};
  bool stops_ = false;
};

}  // namespace

void serve_by_epoll(const Listener& listener, const Shared& shared) {
  std::vector<std::unique_ptr<Loop>> loops;
  for (std::size_t made = 0; made < shared.settings.threads; ++made) {
    loops.push_back(std::make_unique<Loop>(listener, shared));
  }
  std::vector<std::thread> threads;
  for (auto& loop : loops) threads.emplace_back([&loop] { loop->run(); });
  for (auto& thread : threads) thread.join();
}

}  // namespace metricstream
