#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "connection.hpp"
#include "tally.hpp"
#include "workload.hpp"

namespace naive_client {

/// What all clients of a load share while it goes on.
struct UnderWay {
  const Workload& workload;
  std::string request;
  Instant end;  ///< after it no request is begun
  const Stop& stop;
  std::atomic<std::uint64_t> begun{0};
  std::atomic<std::uint64_t> answered{0};
};

/// One client of the load, as the study's tests had them: it asks, sleeps, and asks again.
class Client {
 public:
  explicit Client(UnderWay& shared) : shared_(shared), connection_(shared.stop) {}

  /// Ask until the end; return what became of it.
  Tally run();

 private:
  Attempt ask();
  Fault exchange(Attempt& attempt, Instant began);
  Fault read_answer(Attempt& attempt, Instant until, Instant sent, Fault lost);

  UnderWay& shared_;
  Connection connection_;
};

}  // namespace naive_client
