// Reads hexadecimal lines from its input, parses each as JSON with both parsers and as a batch, and
// prints for each: what it is worth to either parser, and whether the two agree.

#include <charconv>
#include <iostream>
#include <string>

#include "batch.hpp"
#include "parsers.hpp"

namespace {

using namespace metricstream;

std::string from_hex(const std::string& line) {
  std::string bytes;
  for (std::size_t at = 0; at + 1 < line.size(); at += 2) {
    unsigned value = 0;
    std::from_chars(line.data() + at, line.data() + at + 2, value, 16);
    bytes += static_cast<char>(value);
  }
  return bytes;
}

const char* word_for(const std::string& text) {
  const auto linear = parse_linear(text);
  const auto quadratic = parse_quadratic(text);
  if (linear != quadratic) return "differ";
  if (read_batch(ParserKind::Linear, text) != read_batch(ParserKind::Quadratic, text)) {
    return "batches differ";
  }
  if (!linear) return "no json";
  return read_batch(ParserKind::Linear, text).index() == 0 ? "batch" : "json";
}

}  // namespace

int main() {
  std::string line;
  while (std::getline(std::cin, line)) std::cout << word_for(from_hex(line)) << '\n' << std::flush;
}
