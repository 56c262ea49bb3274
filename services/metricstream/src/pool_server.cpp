#include <atomic>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "bounded_queue.hpp"
#include "poller.hpp"
#include "server.hpp"

namespace metricstream {
namespace {

/// A connection that workers serve in turn, one at a time.
struct Held {
  explicit Held(Connection&& made) : connection(std::move(made)) {}

  std::mutex mutex;  ///< for the connection
  Connection connection;
  std::atomic<bool> is_queued{false};
};

/// A connection with something to do, since when.
struct Ready {
  std::shared_ptr<Held> held;
  Instant noticed;
};

/// One thread accepts and watches; those of the pool serve what is ready.
///
/// A connection is armed for one event, so that it is in the queue or with a worker only once. A
/// client that is slow or idle holds a connection, but no worker.
class Pool {
 public:
  Pool(const Listener& listener, const Shared& shared)
      : listener_(listener),
        shared_(shared),
        acceptor_(listener, shared),
        queue_(shared.settings.queue_depth) {
    poller_.add(listener.descriptor(), EPOLLIN);
    poller_.add(shared.stop.descriptor(), EPOLLIN);
    try {
      for (std::size_t made = 0; made < shared.settings.threads; ++made) {
        workers_.emplace_back([this] { work(); });
      }
    } catch (...) {
      end();
      throw;
    }
  }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;
  ~Pool() { end(); }

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
  void take_up(int descriptor, Instant noticed) {
    if (descriptor == listener_.descriptor()) {
      accept(noticed);
      return;
    }
    const auto found = held_.find(descriptor);
    if (found == held_.end()) return;
    const auto& held = found->second;
    held->is_queued.store(true);
    if (queue_.try_push({held, noticed})) return;
    held->is_queued.store(false);
    // The worker that armed it may be about to let go of it.
    const std::lock_guard lock(held->mutex);
    arm(*held, held->connection.turn_away());
  }

  void accept(Instant now) {
    while (auto accepted = acceptor_.accept()) {
      const int descriptor = accepted->socket.number();
      auto held = std::make_shared<Held>(
          Connection(std::move(accepted->socket), std::move(accepted->slot), shared_, now));
      // What had this number before is closed, and was not looked at since.
      held_.insert_or_assign(descriptor, std::move(held));
      if (!poller_.try_add(descriptor, EPOLLIN | EPOLLONESHOT)) {
        ++shared_.counters.turned_away;
        held_.erase(descriptor);
      }
    }
  }

  void arm(const Held& held, Connection::Wants wants) {
    if (wants == Connection::Wants::Nothing) return;
    poller_.change(held.connection.descriptor(), events_for(wants) | EPOLLONESHOT);
  }

  void work() {
    while (auto ready = queue_.pop()) {
      const std::lock_guard lock(ready->held->mutex);
      ready->held->is_queued.store(false);
      if (!ready->held->connection.is_open()) continue;
      arm(*ready->held, ready->held->connection.advance(ready->noticed));
    }
  }

  void look_at_clocks(Instant now) {
    next_look_ = now + look_every;
    for (auto at = held_.begin(); at != held_.end();) {
      at = is_over(*at->second, now) ? held_.erase(at) : std::next(at);
    }
  }

  /// Whether a connection is closed; one that a worker has or will have is left to it.
  bool is_over(Held& held, Instant now) {
    const std::unique_lock lock(held.mutex, std::try_to_lock);
    if (!lock || held.is_queued.load()) return false;
    if (!held.connection.is_open()) return true;
    const bool was_due = now >= held.connection.deadline();
    const auto wants = held.connection.look_at_clock(now);
    if (was_due) arm(held, wants);
    return wants == Connection::Wants::Nothing;
  }

  void end() {
    queue_.close();
    for (auto& worker : workers_) worker.join();
    workers_.clear();
  }

  const Listener& listener_;
  const Shared& shared_;
  Acceptor acceptor_;
  Poller poller_;
  BoundedQueue<Ready> queue_;
  std::unordered_map<int, std::shared_ptr<Held>> held_;
  std::vector<std::thread> workers_;
  Instant next_look_{};
  bool stops_ = false;
};

}  // namespace

void serve_by_pool(const Listener& listener, const Shared& shared) {
  Pool(listener, shared).run();
}

}  // namespace metricstream
