#pragma once

#include <mutex>

#include "store.hpp"

namespace metricstream {

/// All clients behind two locks, both taken for every batch: the study's first store.
class DoubleMutexStore final : public Store {
 public:
  DoubleMutexStore(const Settings& settings, Counters& counters)
      : Store(settings, counters), series_(budget_) {}

  bool put(Batch&& batch, PutTimes& times) override {
    const auto asked = Clock::now();
    const std::lock_guard index(index_);
    const std::lock_guard values(values_);
    const auto had = Clock::now();
    add(series_, batch);
    times = {had - asked, Clock::now() - had};
    return true;
  }

  void clear() override {
    const std::lock_guard index(index_);
    const std::lock_guard values(values_);
    series_.clear();
  }

 private:
  std::mutex index_;
  std::mutex values_;
  SeriesMap series_;
};

}  // namespace metricstream
