#pragma once

#include <cstddef>
#include <memory>

#include "batch.hpp"
#include "clock.hpp"
#include "counters.hpp"
#include "series.hpp"
#include "settings.hpp"

namespace metricstream {

/// How long putting a batch waited for locks, and how long it then took.
struct PutTimes {
  Clock::duration waited{};
  Clock::duration stored{};
};

/// Where batches go.
class Store {
 public:
  Store(const Settings& settings, Counters& counters)
      : budget_(settings.max_series), counters_(counters) {}
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;
  virtual ~Store() = default;

  /// Take a batch; false where it waits for room that is not there.
  virtual bool put(Batch&& batch, PutTimes& times) = 0;

  /// Forget all series.
  virtual void clear() = 0;

  [[nodiscard]] virtual std::size_t series() const { return budget_.used(); }

 protected:
  /// Add to a part of the store that is locked, and count it.
  void add(SeriesMap& to, const Batch& batch) {
    const auto dropped = to.add(batch);
    counters_.samples_dropped += dropped;
    counters_.samples_stored += batch.samples.size() - dropped;
  }

  SeriesBudget budget_;

 private:
  Counters& counters_;
};

/// The store that settings name.
std::unique_ptr<Store> make_store(const Settings& settings, Counters& counters);

/// A store behind a queue that `settings.threads` consumers empty into it.
std::unique_ptr<Store> make_queued(const Settings& settings, Counters& counters,
                                   std::unique_ptr<Store> behind);

}  // namespace metricstream
