#include "control_request.hpp"

#include <algorithm>
#include <charconv>

namespace naive_client {
namespace {

constexpr std::size_t most_head_bytes = 8192;
constexpr std::size_t most_body_bytes = 65536;
constexpr std::string_view head_end = "\r\n\r\n";

/// Thrown within this file alone.
struct Wrong {
  Refusal refusal;
};

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

std::size_t length_of(std::string_view value) {
  std::size_t length = 0;
  const auto* end = value.data() + value.size();
  const auto [stopped, error] = std::from_chars(value.data(), end, length);
  if (error != std::errc() || stopped != end) {
    throw Wrong{{400, "bad_http", "Content-Length is no number"}};
  }
  if (length > most_body_bytes) {
    throw Wrong{{413, "too_large", "a body may have 65,536 bytes"}};
  }
  return length;
}

/// Read a head without its end; return how long its body is.
std::size_t read_head(ControlRequest& into, std::string_view head) {
  auto line = cut(head, "\r\n");
  into.method = cut(line, " ");
  into.path = cut(line, " ");
  if (into.method.empty() || !into.path.starts_with('/') || !line.starts_with("HTTP/1.")) {
    throw Wrong{{400, "bad_http", "the request line is wrong"}};
  }
  std::optional<std::size_t> length;
  while (!head.empty()) {
    auto value = cut(head, "\r\n");
    const auto name = lowered(cut(value, ":"));
    if (name == "transfer-encoding") {
      throw Wrong{{411, "length_required", "a body needs a Content-Length"}};
    }
    if (name == "content-type") into.content_type = lowered(trimmed(cut(value, ";")));
    if (name != "content-length") continue;
    if (length) throw Wrong{{400, "bad_http", "Content-Length comes more than once"}};
    length = length_of(trimmed(value));
  }
  return length.value_or(0);
}

}  // namespace

std::optional<std::variant<ControlRequest, Refusal>> read_control_request(std::string_view text) {
  const auto end = text.find(head_end);
  try {
    if (std::min(end, text.size()) > most_head_bytes) {
      throw Wrong{{431, "too_large", "the head is too long"}};
    }
    if (end == std::string_view::npos) return std::nullopt;
    ControlRequest request;
    const auto length = read_head(request, text.substr(0, end));
    const auto body = text.substr(end + head_end.size());
    if (body.size() < length) return std::nullopt;
    request.body = body.substr(0, length);
    return request;
  } catch (const Wrong& wrong) {
    return wrong.refusal;
  }
}

}  // namespace naive_client
