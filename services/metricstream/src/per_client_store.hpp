#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "store.hpp"

namespace metricstream {

/// Clients spread over parts by the hash of their name, each part with a lock of its own.
class PerClientStore final : public Store {
 public:
  PerClientStore(const Settings& settings, Counters& counters) : Store(settings, counters) {
    for (std::size_t made = 0; made < parts; ++made) {
      parts_.push_back(std::make_unique<Part>(budget_));
    }
  }

  bool put(Batch&& batch, PutTimes& times) override {
    auto& part = *parts_[std::hash<std::string>{}(batch.client) % parts];
    const auto asked = Clock::now();
    const std::lock_guard lock(part.mutex);
    const auto had = Clock::now();
    add(part.series, batch);
    times = {had - asked, Clock::now() - had};
    return true;
  }

  void clear() override {
    for (auto& part : parts_) {
      const std::lock_guard lock(part->mutex);
      part->series.clear();
    }
  }

 private:
  static constexpr std::size_t parts = 64;
  struct Part {
    explicit Part(SeriesBudget& budget) : series(budget) {}
    std::mutex mutex;
    SeriesMap series;
  };

  std::vector<std::unique_ptr<Part>> parts_;
};

}  // namespace metricstream
