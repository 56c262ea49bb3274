#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "settings.hpp"

namespace metricstream {

struct Sample {
  std::string name;
  double value = 0;

  bool operator==(const Sample&) const = default;
};

/// What one request brings: the samples of one client.
struct Batch {
  std::string client;
  std::vector<Sample> samples;

  bool operator==(const Batch&) const = default;
};

inline constexpr std::size_t max_name_bytes = 128;

/// Read a request's body; where it holds no batch, a text says why.
///
/// `{"client": "a", "metrics": [{"name": "cpu", "value": 0.5}]}`; members of other names are passed
/// over, one that comes twice is refused.
std::variant<Batch, std::string> read_batch(ParserKind parser, std::string_view body);

}  // namespace metricstream
