#include "store.hpp"

#include <array>
#include <atomic>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

#include "queues.hpp"

namespace metricstream {

void Store::add(Clients& to, const Batch& batch) {
  auto& own = to[batch.client];
  for (const auto& [name, value] : batch.samples) {
    const auto [at, is_new] = own.try_emplace(name, Series{0, value, value, value});
    auto& series = at->second;
    series = {series.count + 1, value, std::min(series.least, value),
              std::max(series.most, value)};
    counters_.series += is_new;
  }
  counters_.samples_stored += batch.samples.size();
}

void Store::forget(Clients& clients) {
  for (const auto& [client, own] : clients) counters_.series -= own.size();
  clients.clear();
}

namespace {

/// All clients behind two locks, both taken for every batch: the study's first store.
class DoubleMutexStore final : public Store {
 public:
  using Store::Store;

  bool put(Batch&& batch, PutTimes& times) override {
    const auto asked = Clock::now();
    const std::lock_guard index(index_);
    const std::lock_guard values(values_);
    const auto had = Clock::now();
    add(clients_, batch);
    times = {had - asked, Clock::now() - had};
    return true;
  }

  void clear() override {
    const std::scoped_lock both(index_, values_);
    forget(clients_);
  }

 private:
  std::mutex index_;
  std::mutex values_;
  Clients clients_;
};

/// Clients spread over parts by the hash of their name, each part with a lock of its own.
class PerClientStore final : public Store {
 public:
  using Store::Store;

  bool put(Batch&& batch, PutTimes& times) override {
    auto& part = parts_[std::hash<std::string>{}(batch.client) % parts_.size()];
    const auto asked = Clock::now();
    const std::lock_guard lock(part.mutex);
    const auto had = Clock::now();
    add(part.clients, batch);
    times = {had - asked, Clock::now() - had};
    return true;
  }

  void clear() override {
    for (auto& part : parts_) {
      const std::lock_guard lock(part.mutex);
      forget(part.clients);
    }
  }

 private:
  struct Part {
    std::mutex mutex;
    Clients clients;
  };

  std::array<Part, 64> parts_;
};

/// Batches go into a lock-free ring; one thread empties it into the series.
class RingStore final : public Store {
 public:
  explicit RingStore(Counters& counters) : Store(counters), ring_(queue_depth) {
    std::thread([this] { empty(); }).detach();
  }

  bool put(Batch&& batch, PutTimes& times) override {
    const auto began = Clock::now();
    const bool taken = ring_.try_push(std::move(batch));
    times = {Clock::duration::zero(), Clock::now() - began};
    if (taken) {
      pushed_.fetch_add(1);
      pushed_.notify_one();
    }
    return taken;
  }

  void clear() override {
    const std::lock_guard lock(mutex_);
    forget(clients_);
  }

 private:
  void empty() {
    for (;;) {
      // Read before the ring: what is pushed after that changes it, and the wait returns at once.
      const auto seen = pushed_.load();
      Batch batch;
      while (ring_.try_pop(batch)) {
        const std::lock_guard lock(mutex_);
        add(clients_, batch);
      }
      pushed_.wait(seen);
    }
  }

  // Only `clear` wants the series beside the thread that fills them.
  std::mutex mutex_;
  Clients clients_;
  Ring<Batch> ring_;
  std::atomic<std::uint32_t> pushed_{0};
};

/// Producers put batches into a queue, consumers take them out into the store behind it.
class QueuedStore final : public Store {
 public:
  QueuedStore(const Settings& settings, Counters& counters, std::unique_ptr<Store> behind)
      : Store(counters), behind_(std::move(behind)), queue_(queue_depth) {
    for (std::size_t made = 0; made < settings.threads; ++made) {
      std::thread([this] { consume(); }).detach();
    }
  }

  bool put(Batch&& batch, PutTimes& times) override {
    const auto began = Clock::now();
    const bool taken = queue_.try_push(std::move(batch));
    times = {Clock::duration::zero(), Clock::now() - began};
    return taken;
  }

  void clear() override { behind_->clear(); }

 private:
  void consume() {
    for (;;) {
      auto batch = queue_.pop();
      PutTimes ignored;
      while (!behind_->put(std::move(batch), ignored)) std::this_thread::yield();
    }
  }

  std::unique_ptr<Store> behind_;
  BoundedQueue<Batch> queue_;
};

std::unique_ptr<Store> plain_store(const Settings& settings, Counters& counters) {
  switch (settings.store) {
    case StoreKind::PerClient: return std::make_unique<PerClientStore>(counters);
    case StoreKind::Ring: return std::make_unique<RingStore>(counters);
    case StoreKind::DoubleMutex: break;
  }
  return std::make_unique<DoubleMutexStore>(counters);
}

}  // namespace

std::unique_ptr<Store> make_store(const Settings& settings, Counters& counters) {
  auto store = plain_store(settings, counters);
  if (settings.threading != Threading::ProducerConsumer) return store;
  return std::make_unique<QueuedStore>(settings, counters, std::move(store));
}

}  // namespace metricstream
