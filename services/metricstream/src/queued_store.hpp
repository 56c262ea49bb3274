#pragma once

#include <cstddef>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "bounded_queue.hpp"
#include "store.hpp"

namespace metricstream {

/// Producers put batches into a queue, consumers take them out into the store behind it.
class QueuedStore final : public Store {
 public:
  QueuedStore(const Settings& settings, Counters& counters, std::unique_ptr<Store> behind)
      : Store(settings, counters), behind_(std::move(behind)), queue_(settings.queue_depth) {
    try {
      for (std::size_t made = 0; made < settings.threads; ++made) {
        consumers_.emplace_back([this] { consume(); });
      }
    } catch (...) {
      end();
      throw;
    }
  }

  ~QueuedStore() override { end(); }

  bool put(Batch&& batch, PutTimes& times) override {
    const auto began = Clock::now();
    const bool taken = queue_.try_push(std::move(batch));
    times = {Clock::duration::zero(), Clock::now() - began};
    return taken;
  }

  void clear() override { behind_->clear(); }
  [[nodiscard]] std::size_t series() const override { return behind_->series(); }

 private:
  void consume() {
    while (auto batch = queue_.pop()) {
      PutTimes ignored;
      while (!behind_->put(std::move(*batch), ignored)) std::this_thread::yield();
    }
  }

  void end() {
    queue_.close();
    for (auto& each : consumers_) each.join();
  }

  std::unique_ptr<Store> behind_;
  BoundedQueue<Batch> queue_;
  std::vector<std::thread> consumers_;
};

}  // namespace metricstream
