#include "head_parser.hpp"

#include <algorithm>
#include <charconv>
#include <string>
#include <utility>

namespace metricstream {
namespace {

/// Thrown within this file alone.
struct Wrong {
  int status;
  const char* reason;
};

constexpr std::string_view line_end = "\r\n";

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

bool is_token(std::string_view text) {
  static constexpr std::string_view marks = "!#$%&'*+-.^_`|~";
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return is_letter(c) || c == '-' || is_digit(c) || marks.find(c) != std::string_view::npos;
  });
}

bool is_visible(std::string_view text, bool with_blanks) {
  return std::ranges::all_of(text, [with_blanks](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte > 0x20 && byte != 0x7F) || (with_blanks && (c == ' ' || c == '\t'));
  });
}

std::string lowered(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return out;
}

std::string_view trimmed(std::string_view text) {
  const auto from = text.find_first_not_of(" \t");
  if (from == std::string_view::npos) return {};
  return text.substr(from, text.find_last_not_of(" \t") - from + 1);
}

/// Cut a text's first part off, up to a mark that goes too.
std::string_view cut(std::string_view& text, std::string_view mark) {
  const auto at = text.find(mark);
  const auto part = text.substr(0, at);
  text.remove_prefix(at == std::string_view::npos ? text.size() : at + mark.size());
  return part;
}

/// What the lines say before it is known whether they agree.
struct Lines {
  Head head;
  bool is_1_0 = false;
  int hosts = 0;
  int lengths = 0;
  int codings = 0;
};

void read_request_line(Lines& into, std::string_view line) {
  const auto method = cut(line, " ");
  const auto target = cut(line, " ");
  if (!is_token(method)) throw Wrong{400, "the method is wrong"};
  if (target.empty() || !is_visible(target, false)) throw Wrong{400, "the target is wrong"};
  if (line.size() != 8 || !line.starts_with("HTTP/") || !is_digit(line[5]) || line[6] != '.' ||
      !is_digit(line[7])) {
    throw Wrong{400, "the request line is wrong"};
  }
  if (line[5] != '1') throw Wrong{505, "only HTTP/1 is spoken here"};
  into.is_1_0 = line[7] == '0';
  into.head.request.keeps_alive = !into.is_1_0;
  into.head.request.method = method;
  into.head.request.path = target.substr(0, target.find('?'));
}

void read_length(Lines& into, std::string_view value) {
  ++into.lengths;
  const auto* end = value.data() + value.size();
  const auto [stopped, error] = std::from_chars(value.data(), end, into.head.length);
  if (error == std::errc::result_out_of_range && stopped == end) {
    throw Wrong{413, "the body is too long"};
  }
  if (value.empty() || error != std::errc() || stopped != end) {
    throw Wrong{400, "Content-Length is no number"};
  }
}

void read_coding(Lines& into, std::string_view value) {
  ++into.codings;
  if (lowered(value) != "chunked") throw Wrong{501, "only the coding 'chunked' is known"};
  into.head.chunked = true;
}

void read_connection(Lines& into, std::string_view value) {
  auto& keeps_alive = into.head.request.keeps_alive;
  while (!value.empty()) {
    const auto option = lowered(trimmed(cut(value, ",")));
    if (option == "close") keeps_alive = false;
    if (option == "keep-alive" && into.is_1_0) keeps_alive = true;
  }
}

void read_field(Lines& into, std::string_view line) {
  const auto colon = line.find(':');
  if (colon == std::string_view::npos || !is_token(line.substr(0, colon))) {
    throw Wrong{400, "a header line is wrong"};
  }
  const auto value = trimmed(line.substr(colon + 1));
  if (!is_visible(value, true)) throw Wrong{400, "a header holds a control character"};
  const auto name = lowered(line.substr(0, colon));
  if (name == "host") ++into.hosts;
  if (name == "content-length") read_length(into, value);
  if (name == "transfer-encoding") read_coding(into, value);
  if (name == "connection") read_connection(into, value);
  if (name == "expect") {
    if (lowered(value) != "100-continue") throw Wrong{417, "only 100-continue can be expected"};
    into.head.expects_continue = !into.is_1_0;
  }
}

void check(const Lines& lines) {
  if (lines.hosts > 1 || (lines.hosts == 0 && !lines.is_1_0)) {
    throw Wrong{400, "there must be one Host"};
  }
  if (lines.lengths > 1) throw Wrong{400, "Content-Length comes more than once"};
  if (lines.codings > 1) throw Wrong{400, "Transfer-Encoding comes more than once"};
  if (lines.codings && lines.lengths) throw Wrong{400, "Content-Length beside Transfer-Encoding"};
  if (lines.codings && lines.is_1_0) throw Wrong{400, "HTTP/1.0 has no Transfer-Encoding"};
}

}  // namespace

std::variant<Head, Refusal> parse_head(std::string_view text) {
  Lines lines;
  try {
    read_request_line(lines, cut(text, line_end));
    while (!text.empty()) {
      const auto line = cut(text, line_end);
      if (!line.empty()) read_field(lines, line);
    }
    check(lines);
  } catch (const Wrong& wrong) {
    return Refusal{wrong.status, wrong.reason};
  }
  return std::move(lines.head);
}

}  // namespace metricstream
