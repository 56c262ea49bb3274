#include "run.hpp"

#include <algorithm>
#include <exception>
#include <utility>

namespace naive_client {

Run::Run(std::string id, Workload workload)
    : id_(std::move(id)),
      workload_(std::move(workload)),
      began_(Clock::now()),
      under_way_{workload_, request_text(workload_), began_ + workload_.duration, stop_},
      thread_([this] { go(); }) {}

Run::~Run() {
  stop_.ask();
  thread_.join();
}

void Run::go() {
  std::vector<Tally> tallies(workload_.clients);
  try {
    start_clients(tallies);
  } catch (const std::exception& error) {
    fail(error.what());
  }
  Tally all;
  for (const auto& tally : tallies) all.join(tally);
  const auto took = Clock::now() - began_;
  const std::lock_guard lock(mutex_);
  took_ = took;
  results_ = all.results(workload_, took);
  ended_.store(true);
}

void Run::start_clients(std::vector<Tally>& tallies) {
  // Joins them also where the next one cannot be started.
  struct Joined : std::vector<std::thread> {
    ~Joined() {
      for (auto& thread : *this) thread.join();
    }
  } threads;
  threads.reserve(tallies.size());
  try {
    for (auto& tally : tallies) {
      threads.emplace_back([this, &tally] {
        try {
          tally = Client(under_way_).run();
        } catch (const std::exception& error) {
          fail(error.what());
        }
      });
    }
  } catch (...) {
    stop_.ask();
    throw;
  }
}

void Run::fail(const std::string& why) {
  stop_.ask();
  const std::lock_guard lock(mutex_);
  if (problem_.empty()) problem_ = why;
}

std::string Run::to_json() const {
  const std::lock_guard lock(mutex_);
  const bool is_running = !ended_.load();
  JsonObject progress;
  progress.add("begun", std::min(under_way_.begun.load(), workload_.most_requests))
      .add("answered", under_way_.answered.load());
  JsonObject object;
  object.add("run_id", id_)
      .add("status", is_running ? "running" : problem_.empty() ? "completed" : "failed")
      .add("load_from", "naive_client")
      .add("workload", naive_client::to_json(workload_))
      .add("elapsed_s", std::optional(to_s(is_running ? Clock::now() - began_ : took_)))
      .add("progress", progress);
  if (!problem_.empty()) object.add("problem", problem_);
  if (!is_running) object.add("results", results_);
  return object.text();
}

}  // namespace naive_client
