// Feeds mutated requests to the reader of HTTP and mutated bodies to both parsers.
//
// With libFuzzer (clang++ -fsanitize=fuzzer -DWITH_LIBFUZZER) that chooses the inputs; else `main`
// mutates known ones, so many times as its first word says, from the seed of its second.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <random>
#include <string>
#include <string_view>

#include "batch.hpp"
#include "check.hpp"
#include "parsers.hpp"
#include "request_reader.hpp"

namespace {

using namespace metricstream;

struct Reading {
  std::size_t requests = 0;
  std::string seen;
  int refusal = 0;

  bool operator==(const Reading&) const = default;
};

/// Read bytes that come in pieces of a length; what is read must not depend on the pieces.
Reading read_in_pieces(std::string_view bytes, std::size_t piece) {
  Settings settings;
  settings.max_body_bytes = 4096;
  settings.max_head_bytes = 1024;
  RequestReader reader(settings);
  Reading reading;
  while (!bytes.empty()) {
    reader.feed(bytes.substr(0, piece));
    bytes.remove_prefix(std::min(piece, bytes.size()));
    for (;;) {
      const auto outcome = reader.next();
      if (outcome == RequestReader::Outcome::NeedsMore) break;
      if (outcome == RequestReader::Outcome::Refused) {
        reading.refusal = reader.refusal().status;
        return reading;
      }
      const auto request = reader.take_request();
      check(request.body.size() <= settings.max_body_bytes, "a body is within its bound");
      ++reading.requests;
      reading.seen += request.method + ' ' + request.path + ' ' + request.body + '\n';
    }
  }
  return reading;
}

void try_one(std::string_view bytes) {
  const auto whole = read_in_pieces(bytes, bytes.size() + 1);
  const auto pieces = read_in_pieces(bytes, 1);
  check(whole.requests == pieces.requests && whole.seen == pieces.seen,
        "the same requests are read, however they come");
  check((whole.refusal == 0) == (pieces.refusal == 0), "the same are refused, however they come");
  check(parse_linear(bytes) == parse_quadratic(bytes), "both parsers agree");
  check(read_batch(ParserKind::Linear, bytes) == read_batch(ParserKind::Quadratic, bytes),
        "both give the same batch");
}

}  // namespace

#ifdef WITH_LIBFUZZER

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try_one({reinterpret_cast<const char*>(data), size});
  return 0;
}

#else

namespace {

constexpr std::array<std::string_view, 6> known{
    "POST /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabcGET /health HTTP/1.1\r\n"
    "Host: a\r\n\r\n",
    "POST /metrics HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n"
    "\r\n5;x=y\r\nhello\r\n0A\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\n",
    "GET /counts?x=1 HTTP/1.0\r\nConnection: keep-alive, Upgrade\r\n\r\n",
    R"({"client": "a\u00e9\ud83d\ude00\n", "metrics": [{"name": "cpu", "value": -1.5e-3}]})",
    R"([[[[]]], {"a": {"b": [true, false, null]}}, 1e308, -0, 0.1, "\\\"\/\b"])",
    "\r\n\r\nHEAD / HTTP/1.1\r\nHost: a\r\nContent-Length: 00\r\n\r\n"};

// What separates and ends things: random bytes alone would seldom meet them.
constexpr std::array<std::string_view, 14> marks{
    "\r\n", "\r\n\r\n", "\n", ": ", "Content-Length: 5\r\n", "Transfer-Encoding: chunked\r\n",
    "0\r\n\r\n", "\"", "\\u", "[", "]}", "1e999", "FFFFFFFFFFFFFFFFF", "\xED\xA0\x80"};

class Mutations {
 public:
  explicit Mutations(unsigned seed) : random_(seed) {}

  std::string next() {
    std::string text(known[below(known.size())]);
    for (auto changes = 1 + below(6); changes > 0; --changes) change(text);
    return text;
  }

 private:
  std::size_t below(std::size_t bound) { return random_() % bound; }

  void change(std::string& text) {
    const auto at = below(text.size() + 1);
    const auto length = below(8);
    switch (below(5)) {
      case 0: text.insert(at, marks[below(marks.size())]); break;
      case 1: text.erase(at, length); break;
      case 2: text.insert(at, 1, static_cast<char>(below(256))); break;
      case 3: text.insert(at, std::string(text.substr(below(text.size() + 1), 8 * length))); break;
      default: if (at < text.size()) text[at] = static_cast<char>(below(256));
    }
  }

  std::mt19937 random_;
};

}  // namespace

int main(int count, char** words) {
  const auto rounds = count > 1 ? std::stoul(words[1]) : 1000;
  Mutations mutations(count > 2 ? static_cast<unsigned>(std::stoul(words[2])) : 1U);
  for (const auto text : known) try_one(text);
  for (std::size_t round = 0; round < rounds; ++round) try_one(mutations.next());
  std::cout << rounds << '\n';
}

#endif
