// Stores and ring under many threads: nothing is lost, nothing is twice, and no bound is
// passed. Each check ends the program with a word on what does not hold.

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "check.hpp"
#include "ring.hpp"
#include "store.hpp"

namespace {

using namespace metricstream;

constexpr std::size_t writers = 4;
constexpr std::size_t puts = 2000;

template <typename Work>
void side_by_side(std::size_t threads, Work work) {
  std::vector<std::thread> running;
  for (std::size_t number = 0; number < threads; ++number) running.emplace_back(work, number);
  for (auto& each : running) each.join();
}

/// Put from several threads, let the store end, and look at what it counted.
void every_sample_is_stored_once(StoreKind kind, bool queued) {
  Settings settings;
  settings.store = kind;
  settings.threads = 3;
  settings.queue_depth = 64;
  settings.max_series = 2 * writers;
  Counters counters;
  {
    auto store = make_store(settings, counters);
    if (queued) store = make_queued(settings, counters, std::move(store));
    side_by_side(writers, [&](std::size_t number) {
      for (std::size_t put = 0; put < puts; ++put) {
        PutTimes times;
        Batch batch{"client" + std::to_string(number), {{"a", 1}, {"b", 2}, {"third", 3}}};
        // It is left as it was where a queue is full.
        while (!store->put(std::move(batch), times)) std::this_thread::yield();
      }
    });
    store.reset();
  }
  const auto kept = counters.samples_stored.load();
  const auto dropped = counters.samples_dropped.load();
  check(kept + dropped == 3 * writers * puts, "every sample is stored or counted as dropped, once");
  check(kept >= 2 && dropped > 0, "series over the bound are dropped, others are kept");
}

void clearing_gives_room_back(StoreKind kind) {
  Settings settings;
  settings.store = kind;
  settings.max_series = 1;
  Counters counters;
  const auto store = make_store(settings, counters);
  for (int time = 0; time < 3; ++time) {
    PutTimes times;
    check(store->put({"client" + std::to_string(time), {{"a", 1}}}, times), "it is taken");
    while (counters.samples_stored + counters.samples_dropped == 0) std::this_thread::yield();
    check(counters.samples_dropped == 0, "a cleared store has room");
    check(store->series() == 1, "one series is there");
    store->clear();
    counters.reset();
    check(store->series() == 0, "none is there");
  }
}

void a_ring_loses_nothing_between_threads() {
  Ring<std::size_t> ring(8);
  std::atomic<std::size_t> sum{0};
  std::atomic<std::size_t> left{writers * puts};
  side_by_side(2 * writers, [&](std::size_t number) {
    if (number < writers) {
      for (std::size_t item = 1; item <= puts; ++item) {
        while (!ring.try_push(std::size_t{item})) std::this_thread::yield();
      }
      return;
    }
    std::size_t item = 0;
    while (left > 0) {
      if (ring.try_pop(item)) {
        sum += item;
        --left;
      } else {
        std::this_thread::yield();
      }
    }
  });
  check(sum == writers * puts * (puts + 1) / 2, "what went in came out, once");
}

}  // namespace

int main() {
  for (const auto kind : {StoreKind::DoubleMutex, StoreKind::PerClient, StoreKind::Ring}) {
    every_sample_is_stored_once(kind, false);
    every_sample_is_stored_once(kind, true);
    clearing_gives_room_back(kind);
  }
  a_ring_loses_nothing_between_threads();
}
