#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "counters.hpp"
#include "settings.hpp"

namespace metricstream {

struct Sample {
  std::string name;
  double value = 0;
};

/// What one request brings: the samples of one client.
struct Batch {
  std::string client;
  std::vector<Sample> samples;
};

/// How long putting a batch waited for locks, and how long it then took.
struct PutTimes {
  Clock::duration waited{};
  Clock::duration stored{};
};

/// Where batches go.
class Store {
 public:
  explicit Store(Counters& counters) : counters_(counters) {}
  virtual ~Store() = default;

  /// Take a batch; false where it waits for room that is not there.
  virtual bool put(Batch&& batch, PutTimes& times) = 0;

  /// Forget all series.
  virtual void clear() = 0;

 protected:
  /// What is kept of one metric of one client.
  struct Series {
    std::uint64_t count = 0;
    double last = 0;
    double least = 0;
    double most = 0;
  };
  using Clients = std::unordered_map<std::string, std::unordered_map<std::string, Series>>;

  /// Add to a part of the store that is locked, and count it.
  void add(Clients& to, const Batch& batch);
  /// Forget a part of the store that is locked.
  void forget(Clients& clients);

 private:
  Counters& counters_;
};

/// The store that the settings name; with producers and consumers, behind their queue.
std::unique_ptr<Store> make_store(const Settings& settings, Counters& counters);

}  // namespace metricstream
