#include "handler.hpp"

#include <utility>
#include <variant>

#include "batch.hpp"

namespace metricstream {

Response Handler::answer(const Request& request, std::string& timing) const {
  const bool posts = request.path == "/metrics" || request.path == "/reset";
  const bool gets =
      request.path == "/health" || request.path == "/counts" || request.path == "/settings";
  if (!posts && !gets) return problem(404, "there is nothing here");
  if (posts && request.method != "POST") {
    return {405, problem(405, "POST it").body, "Allow: POST\r\n"};
  }
  if (gets && request.method != "GET" && request.method != "HEAD") {
    return {405, problem(405, "GET it").body, "Allow: GET, HEAD\r\n"};
  }
  if (request.path == "/metrics") return take_metrics(request, timing);
  if (request.path == "/reset") return reset();
  if (request.path == "/settings") return {200, to_json(settings_), ""};
  if (request.path == "/counts") {
    return {200, counters_.to_json(store_.series(), admission_.open()), ""};
  }
  return {200, R"({"status": "ok"})", ""};
}

Response Handler::take_metrics(const Request& request, std::string& timing) const {
  const auto began = Clock::now();
  auto read = read_batch(settings_.parser, request.body);
  add_timing(timing, "parse", Clock::now() - began);
  if (const auto* why = std::get_if<std::string>(&read)) return problem(400, *why);
  auto& batch = std::get<Batch>(read);
  const auto samples = batch.samples.size();
  // Counted before it is put: a thread of the store may have stored it before this one goes on.
  const auto era = counters_.samples_taken.take(samples);
  PutTimes times;
  if (!store_.put(std::move(batch), times)) {
    counters_.samples_taken.give_back(samples, era);
    auto full = problem(503, "the queue is full");
    full.headers = "Retry-After: 1\r\n";
    return full;
  }
  add_timing(timing, "lock", times.waited);
  add_timing(timing, "store", times.stored);
  return {202, "{\"accepted\": " + std::to_string(samples) + "}", ""};
}

Response Handler::reset() const {
  store_.clear();
  counters_.reset();
  return {200, R"({"status": "reset"})", ""};
}

}  // namespace metricstream
