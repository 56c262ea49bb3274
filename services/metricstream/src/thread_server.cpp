#include <poll.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "server.hpp"

namespace metricstream {
namespace {

/// Counts threads that nobody joins, so that their end can be waited for.
class Threads {
 public:
  /// Start a thread; throws std::system_error where the system has none left.
  template <typename Work>
  void start(Work&& work) {
    {
      const std::lock_guard lock(mutex_);
      ++running_;
    }
    try {
      std::thread([this, work = std::forward<Work>(work)]() mutable {
        work();
        ended();
      }).detach();
    } catch (...) {
      ended();
      throw;
    }
  }

  void wait() {
    std::unique_lock lock(mutex_);
    none_left_.wait(lock, [this] { return running_ == 0; });
  }

 private:
  void ended() {
    const std::lock_guard lock(mutex_);
    --running_;
    // Under the lock: who waits must not go on, and destroy this, before it was told.
    none_left_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable none_left_;
  std::size_t running_ = 0;
};

/// Wait for a descriptor, or the wish to stop while nobody has asked yet.
void wait_for(int descriptor, short events, const Stop& stop, milliseconds at_most) {
  std::array<pollfd, 2> waited{{{descriptor, events, 0}, {stop.descriptor(), POLLIN, 0}}};
  ::poll(waited.data(), stop.asked() ? 1 : 2, static_cast<int>(at_most.count()));
}

milliseconds until(Instant deadline, Instant now) {
  const auto left = std::chrono::ceil<milliseconds>(deadline - now);
  return std::clamp(left, milliseconds(0), milliseconds(60000));
}

void serve(Connection connection, const Stop& stop, Instant accepted) {
  auto wants = connection.advance(accepted);
  Instant last_moment = Instant::max();
  while (wants != Connection::Wants::Nothing) {
    const auto deadline = std::min(connection.deadline(), last_moment);
    const short events = wants == Connection::Wants::Write ? POLLOUT : POLLIN;
    wait_for(connection.descriptor(), events, stop, until(deadline, Clock::now()));
    const auto now = Clock::now();
    if (stop.asked() && last_moment == Instant::max()) last_moment = now + stop_patience;
    if (now >= last_moment) return;
    wants = connection.look_at_clock(now);
    if (wants != Connection::Wants::Nothing) wants = connection.advance(now);
  }
}

}  // namespace

void serve_by_threads(const Listener& listener, const Shared& shared) {
  Threads threads;
  Acceptor acceptor(listener, shared);
  while (!shared.stop.asked()) {
    wait_for(listener.descriptor(), POLLIN, shared.stop, milliseconds(60000));
    auto accepted = acceptor.accept();
    if (!accepted) continue;
    const auto now = Clock::now();
    auto connection = std::make_unique<Connection>(std::move(accepted->socket),
                                                   std::move(accepted->slot), shared, now);
    try {
      threads.start([held = std::move(connection), &stop = shared.stop, now] {
        serve(std::move(*held), stop, now);
      });
    } catch (const std::system_error&) {
      // No thread is left; the connection was closed with what was to be its thread.
      ++shared.counters.turned_away;
    }
  }
  threads.wait();
}

}  // namespace metricstream
