#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "client.hpp"

namespace naive_client {

/// One load, from its start on: a thread for each client, and one that waits for them.
class Run {
 public:
  Run(std::string id, Workload workload);
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;
  /// Ends the load where it goes on.
  ~Run();

  [[nodiscard]] const std::string& id() const { return id_; }
  [[nodiscard]] bool is_running() const { return !ended_.load(); }

  /// How far it is, and its results once it has ended.
  [[nodiscard]] std::string to_json() const;

 private:
  void go();
  void start_clients(std::vector<Tally>& tallies);
  void fail(const std::string& why);

  const std::string id_;
  const Workload workload_;
  const Instant began_;
  Stop stop_;
  UnderWay under_way_;
  mutable std::mutex mutex_;  // of what follows
  Clock::duration took_{};
  std::string problem_;
  JsonObject results_;
  std::atomic<bool> ended_{false};
  std::thread thread_;
};

}  // namespace naive_client
