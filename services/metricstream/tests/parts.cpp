// What ring, queue, counts, heads and Server-Timing promise, each by itself and in one thread. Each
// check ends the program with a word on what does not hold.

#include <chrono>
#include <cstdint>
#include <string>
#include <variant>

#include "bounded_queue.hpp"
#include "check.hpp"
#include "counters.hpp"
#include "head_parser.hpp"
#include "response.hpp"
#include "ring.hpp"
#include "taken_count.hpp"

namespace {

using namespace metricstream;

void a_full_ring_takes_no_more() {
  Ring<int> ring(4);
  for (int item = 0; item < 4; ++item) check(ring.try_push(int{item}), "it has room for its depth");
  check(!ring.try_push(4), "a full ring takes no more");
  int item = -1;
  for (int expected = 0; expected < 4; ++expected) {
    check(ring.try_pop(item) && item == expected, "first in, first out");
  }
  check(!ring.try_pop(item), "an empty ring gives nothing");
}

void a_closed_queue_gives_what_it_has() {
  BoundedQueue<int> queue(2);
  check(queue.try_push(1) && queue.try_push(2), "it has room for its depth");
  check(!queue.try_push(3), "a full queue takes no more");
  queue.close();
  check(queue.pop() == 1 && queue.pop() == 2, "what is in it can still be had");
  check(!queue.pop().has_value(), "then it gives nothing, and does not wait");
}

void a_reset_forgets_every_count() {
  Counters counters;
  const auto at_first = counters.to_json(0, 0);
  for (auto* each : {&counters.accepted, &counters.turned_away, &counters.no_descriptor,
                     &counters.requests, &counters.refused_requests, &counters.timeouts,
                     &counters.resets, &counters.samples_stored, &counters.samples_dropped}) {
    *each += 3;
  }
  counters.samples_taken.take(3);
  check(counters.to_json(0, 0) != at_first, "counts are told");
  counters.reset();
  check(counters.to_json(0, 0) == at_first, "none is left after a reset");
}

void what_a_full_queue_gives_back_is_of_before_the_reset() {
  TakenCount taken;
  const auto before = taken.take(3);
  taken.take(2);
  taken.give_back(3, before);
  check(taken.value() == 2, "what is given back is counted no more");
  const auto late = taken.take(3);
  taken.reset();
  taken.give_back(3, late);
  check(taken.value() == 0, "a reset forgot it already: the count does not wrap");
  taken.take(4);
  taken.give_back(3, late);
  check(taken.value() == 4, "what others took since is theirs");
}

int status_of(const std::string& lines) {
  const auto read = parse_head("POST /metrics HTTP/1.1\r\nHost: a\r\n" + lines + "\r\n");
  const auto* refusal = std::get_if<Refusal>(&read);
  return refusal ? refusal->status : 0;
}

void a_body_has_one_length() {
  check(status_of("Content-Length: 5\r\n") == 0, "one length is one");
  check(status_of("Content-Length: 5\r\ncontent-length: 5\r\n") == 400, "two are refused");
  check(status_of("Transfer-Encoding: chunked\r\n") == 0, "a coding goes without a length");
  check(status_of("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n") == 400, "not with one");
}

std::string told(std::int64_t ns) {
  std::string text;
  add_timing(text, "a", std::chrono::nanoseconds(ns));
  return text;
}

void phases_are_told_in_ms_to_four_decimals() {
  check(told(0) == "a;dur=0.0000", "nothing");
  check(told(49) == "a;dur=0.0000" && told(50) == "a;dur=0.0001", "rounded");
  check(told(99'949) == "a;dur=0.0999" && told(99'950) == "a;dur=0.1000", "carried on");
  check(told(999'950) == "a;dur=1.0000", "and into the whole");
  check(told(12'345'678) == "a;dur=12.3457", "with a whole part");
  check(told(3'600'000'000'000) == "a;dur=3600000.0000", "an hour");
  check(told(-1) == "a;dur=0.0000", "never less than nothing");
  std::string two = told(0);
  add_timing(two, "b", std::chrono::milliseconds(2));
  check(two == "a;dur=0.0000, b;dur=2.0000", "one after the other");
}

}  // namespace

int main() {
  a_full_ring_takes_no_more();
  a_closed_queue_gives_what_it_has();
  a_reset_forgets_every_count();
  what_a_full_queue_gives_back_is_of_before_the_reset();
  a_body_has_one_length();
  phases_are_told_in_ms_to_four_decimals();
}
