#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <thread>
#include <utility>

#include "ring.hpp"
#include "store.hpp"

namespace metricstream {

/// Batches go into a lock-free ring; one thread empties it into the series.
class RingStore final : public Store {
 public:
  RingStore(const Settings& settings, Counters& counters)
      : Store(settings, counters),
        series_(budget_),
        ring_(settings.queue_depth),
        emptier_([this] { empty(); }) {}

  ~RingStore() override {
    ended_.store(true);
    wake();
    emptier_.join();
  }

  bool put(Batch&& batch, PutTimes& times) override {
    const auto began = Clock::now();
    const bool taken = ring_.try_push(std::move(batch));
    times = {Clock::duration::zero(), Clock::now() - began};
    if (taken) wake();
    return taken;
  }

  void clear() override {
    const std::lock_guard lock(mutex_);
    series_.clear();
  }

 private:
  void wake() {
    pushed_.fetch_add(1);
    pushed_.notify_one();
  }

  void empty() {
    for (;;) {
      // Read before the ring: what is pushed after that changes it, and the wait returns at once.
      const auto seen = pushed_.load();
      const bool last = ended_.load();
      Batch batch;
      while (ring_.try_pop(batch)) {
        const std::lock_guard lock(mutex_);
        add(series_, batch);
      }
      if (last) return;
      pushed_.wait(seen);
    }
  }

  // Only `clear` wants the series beside the thread that fills them.
  std::mutex mutex_;
  SeriesMap series_;
  Ring<Batch> ring_;
  std::atomic<std::uint32_t> pushed_{0};
  std::atomic<bool> ended_{false};
  std::thread emptier_;
};

}  // namespace metricstream
