#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "batch.hpp"

namespace metricstream {

/// How many series may be kept, over all parts of a store.
class SeriesBudget {
 public:
  explicit SeriesBudget(std::size_t most) : most_(most) {}

  bool take() {
    if (used_.fetch_add(1) < most_) return true;
    used_.fetch_sub(1);
    return false;
  }
  void give_back(std::size_t series) { used_.fetch_sub(series); }
  [[nodiscard]] std::size_t used() const { return used_.load(); }

 private:
  const std::size_t most_;
  std::atomic<std::size_t> used_{0};
};

/// What is kept of one metric of one client.
struct Series {
  std::uint64_t count = 0;
  double last = 0;
  double least = 0;
  double most = 0;

  void add(double value) {
    least = count == 0 || value < least ? value : least;
    most = count == 0 || value > most ? value : most;
    last = value;
    ++count;
  }
};

/// The series of some clients; whoever uses it holds the lock that it needs.
class SeriesMap {
 public:
  explicit SeriesMap(SeriesBudget& budget) : budget_(budget) {}

  /// Add all samples of a batch; return how many found no room.
  std::size_t add(const Batch& batch) {
    std::size_t dropped = 0;
    auto& own = clients_[batch.client];
    for (const auto& sample : batch.samples) {
      auto at = own.find(sample.name);
      if (at == own.end()) {
        if (!budget_.take()) {
          ++dropped;
          continue;
        }
        at = own.emplace(sample.name, Series{}).first;
      }
      at->second.add(sample.value);
    }
    // A client's name takes room too: one without a series is not kept.
    if (own.empty()) clients_.erase(batch.client);
    return dropped;
  }

  void clear() {
    for (const auto& [client, own] : clients_) budget_.give_back(own.size());
    clients_.clear();
  }

 private:
  SeriesBudget& budget_;
  std::unordered_map<std::string, std::unordered_map<std::string, Series>> clients_;
};

}  // namespace metricstream
