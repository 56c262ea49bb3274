#include "handler.hpp"

#include <utility>

#include "json.hpp"

namespace metricstream {
namespace {

constexpr std::size_t max_name_bytes = 128;

/// Thrown within this file alone: the body is not what it must be.
struct Misfit {
  std::string why;
};

template <typename Kind>
Kind& member(JsonValue& value, std::string_view name, const char* kind) {
  if (auto* object = std::get_if<JsonValue::Object>(&value.held)) {
    for (auto& [each, held] : *object) {
      auto* fitting = each == name ? std::get_if<Kind>(&held.held) : nullptr;
      if (fitting) return *fitting;
    }
  }
  throw Misfit{"'" + std::string(name) + "' must be there and be " + kind};
}

std::string&& name_in(JsonValue& value, std::string_view name) {
  auto& text = member<std::string>(value, name, "a string");
  if (text.empty() || text.size() > max_name_bytes) {
    throw Misfit{"'" + std::string(name) + "' must have 1 to 128 bytes"};
  }
  return std::move(text);
}

/// Read `{"client": "a", "metrics": [{"name": "cpu", "value": 0.5}]}`; other members are passed over.
Batch read_batch(ParserKind parser, std::string_view body) {
  auto value = parse_json(parser, body);
  if (!value) throw Misfit{"the body is no JSON, or a number in it is out of range"};
  Batch batch{name_in(*value, "client"), {}};
  auto& metrics = member<JsonValue::Array>(*value, "metrics", "an array");
  batch.samples.reserve(metrics.size());
  for (auto& metric : metrics) {
    batch.samples.push_back({name_in(metric, "name"), member<double>(metric, "value", "a number")});
  }
  return batch;
}

Response take_metrics(const Request& request, const Shared& shared, std::string& timing) {
  const auto began = Clock::now();
  Batch batch;
  try {
    batch = read_batch(shared.settings.parser, request.body);
  } catch (const Misfit& misfit) {
    return problem(400, misfit.why);
  }
  add_timing(timing, "parse", Clock::now() - began);
  const auto samples = batch.samples.size();
  PutTimes times;
  if (!shared.store.put(std::move(batch), times)) return problem(503, "the queue is full");
  shared.counters.samples_taken += samples;
  add_timing(timing, "lock", times.waited);
  add_timing(timing, "store", times.stored);
  return {202, "{\"accepted\": " + std::to_string(samples) + "}"};
}

}  // namespace

Response answer(const Request& request, const Shared& shared, std::string& timing) {
  const auto& path = request.path;
  const bool posts = path == "/metrics" || path == "/reset";
  if (!posts && path != "/health" && path != "/counts" && path != "/settings") {
    return problem(404, "there is nothing here");
  }
  if (request.method != (posts ? "POST" : "GET")) return problem(405, posts ? "POST it" : "GET it");
  if (path == "/metrics") return take_metrics(request, shared, timing);
  if (path == "/settings") return {200, to_json(shared.settings)};
  if (path == "/counts") return {200, shared.counters.to_json()};
  if (path == "/health") return {200, R"({"status": "ok"})"};
  shared.store.clear();
  shared.counters.reset();
  return {200, R"({"status": "reset"})"};
}

}  // namespace metricstream
