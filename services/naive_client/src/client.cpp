#include "client.hpp"

#include <algorithm>

namespace naive_client {
namespace {

// Between two looks at a connection from which, unknown to the client, nothing more can come.
constexpr milliseconds look_again{10};

}  // namespace

Tally Client::run() {
  Tally tally;
  const auto pause = shared_.workload.pause();
  const auto& stop = shared_.stop;
  while (!stop.asked() && Clock::now() < shared_.end) {
    if (shared_.begun.fetch_add(1) >= shared_.workload.most_requests) break;
    const auto attempt = ask();
    tally.add(attempt);
    shared_.answered += attempt.outcome == Outcome::Answered;
    // The naive pace: what the request took is not subtracted, so the rate is never reached.
    if (pause > Clock::duration::zero()) {
      stop.sleep_until(std::min(Clock::now() + pause, shared_.end));
    }
  }
  return tally;
}

Attempt Client::ask() {
  Attempt attempt;
  const auto began = Clock::now();
  const auto fault = exchange(attempt, began);
  const auto ended = Clock::now();
  attempt.latency = ended - began;
  if (fault) attempt.outcome = *fault;
  attempt.hung = attempt.hung || attempt.outcome == Outcome::TimedOut;
  if (!shared_.workload.persistent) {
    connection_.close();
    attempt[Phase::Close] = Clock::now() - ended;
  }
  return attempt;
}

Fault Client::exchange(Attempt& attempt, Instant began) {
  const auto until = began + shared_.workload.timeout;
  auto connected = began;
  // With `persistent` it was opened once; whether it still stands is not asked.
  if (!connection_.is_open()) {
    if (const auto fault = connection_.open(shared_.workload.target_port, until)) {
      connection_.close();
      return fault;
    }
    connected = Clock::now();
    attempt[Phase::Connect] = connected - began;
  }
  const auto lost = connection_.send(shared_.request, until);
  const auto sent = Clock::now();
  attempt[Phase::Send] = sent - connected;
  // The client that keeps its connection does not look at what sending returned.
  if (lost && (lost != Outcome::Reset || !shared_.workload.persistent)) return lost;
  return read_answer(attempt, until, sent, lost);
}

Fault Client::read_answer(Attempt& attempt, Instant until, Instant sent, Fault lost) {
  AnswerReader reader;
  auto first_byte = sent;
  while (!reader.is_whole()) {
    const auto fault = connection_.receive(reader, until);
    if (first_byte == sent && reader.has_begun()) first_byte = Clock::now();
    if (reader.is_wrong()) return Outcome::Other;
    if (!fault) continue;
    attempt.hung = fault == Outcome::TimedOut;
    if (attempt.hung && lost) return lost;
    if (fault != Outcome::ClosedByServer && fault != Outcome::Reset) return fault;
    if (fault == Outcome::ClosedByServer && reader.ends_with_connection()) break;
    if (!lost) lost = reader.has_begun() ? Outcome::Short : fault;
    if (!shared_.workload.persistent) return lost;
    // The client that keeps its connection takes its end for "nothing yet", and waits on.
    shared_.stop.sleep_until(std::min(Clock::now() + look_again, until));
  }
  attempt[Phase::Wait] = first_byte - sent;
  attempt[Phase::Receive] = Clock::now() - first_byte;
  const bool is_good = reader.status() >= 200 && reader.status() < 300;
  attempt.outcome = is_good ? Outcome::Answered : Outcome::Status;
  return std::nullopt;
}

}  // namespace naive_client
