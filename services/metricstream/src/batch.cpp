#include "batch.hpp"

#include <optional>
#include <utility>

#include "parsers.hpp"

namespace metricstream {
namespace {

/// Thrown within this file alone: a member is missing or not what it must be.
struct Misfit {
  std::string why;
};

template <typename Kind>
Kind& member(JsonValue& value, std::string_view name, const char* kind) {
  auto* object = std::get_if<JsonValue::Object>(&value.held);
  if (!object) throw Misfit{"an object is expected around '" + std::string(name) + "'"};
  JsonValue* found = nullptr;
  for (auto& [each, held] : *object) {
    if (each != name) continue;
    if (found) throw Misfit{"'" + std::string(name) + "' comes twice"};
    found = &held;
  }
  auto* fitting = found ? std::get_if<Kind>(&found->held) : nullptr;
  if (!fitting) throw Misfit{"'" + std::string(name) + "' must be " + kind};
  return *fitting;
}

std::string& name_in(JsonValue& value, std::string_view name) {
  auto& text = member<std::string>(value, name, "a string");
  if (text.empty() || text.size() > max_name_bytes) {
    throw Misfit{"'" + std::string(name) + "' must have 1 to " + std::to_string(max_name_bytes) +
                 " bytes"};
  }
  return text;
}

Batch batch_of(JsonValue& value) {
  Batch batch;
  batch.client = std::move(name_in(value, "client"));
  auto& metrics = member<JsonValue::Array>(value, "metrics", "an array");
  batch.samples.reserve(metrics.size());
  for (auto& metric : metrics) {
    const double number = member<double>(metric, "value", "a number");
    batch.samples.push_back({std::move(name_in(metric, "name")), number});
  }
  return batch;
}

}  // namespace

std::variant<Batch, std::string> read_batch(ParserKind parser, std::string_view body) {
  auto value = parse_json(parser, body);
  if (!value) return std::string("the body is no JSON, or a number in it is out of range");
  try {
    return batch_of(*value);
  } catch (const Misfit& misfit) {
    return misfit.why;
  }
}

}  // namespace metricstream
