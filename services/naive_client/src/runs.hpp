#pragma once

#include <deque>
#include <memory>
#include <string>
#include <string_view>

#include "run.hpp"

namespace naive_client {

/// The loads of this process: one at a time, and the last of them. For one thread.
class Runs {
 public:
  /// The one that goes on, or null.
  [[nodiscard]] const Run* running() const;
  /// Start one where none goes on; throws std::system_error where no thread is to be had.
  const Run& start(Workload workload);
  /// One by its number, or null where it is none of these.
  [[nodiscard]] const Run* find(std::string_view id) const;

 private:
  std::deque<std::unique_ptr<Run>> kept_;
};

}  // namespace naive_client
