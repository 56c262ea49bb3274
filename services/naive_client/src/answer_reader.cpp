#include "answer_reader.hpp"

#include <algorithm>
#include <charconv>

namespace naive_client {
namespace {

constexpr std::size_t most_head_bytes = 65536;
constexpr std::string_view head_end = "\r\n\r\n";
constexpr std::string_view length_name = "\r\ncontent-length:";

char lowered(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

template <typename Number>
std::optional<Number> leading_number(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  Number number{};
  const auto [stopped, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() ? std::optional(number) : std::nullopt;
}

}  // namespace

void AnswerReader::feed(std::string_view bytes) {
  if (has_head_) {
    body_bytes_ += bytes.size();
    return;
  }
  head_ += bytes;
  const auto end = head_.find(head_end);
  if (end == std::string::npos) {
    is_wrong_ = is_wrong_ || head_.size() > most_head_bytes;
    return;
  }
  body_bytes_ = head_.size() - end - head_end.size();
  head_.resize(end);
  has_head_ = true;
  read_head();
}

void AnswerReader::read_head() {
  const std::string_view head = head_;
  const auto status = leading_number<int>(head.substr(std::min(head.find(' '), head.size())));
  is_wrong_ = !head.starts_with("HTTP/1.") || !status;
  status_ = status.value_or(0);
  const auto found = std::ranges::search(
      head, length_name, [](char ours, char theirs) { return lowered(ours) == theirs; });
  if (found.empty()) return;
  const auto at = static_cast<std::size_t>(found.end() - head.begin());
  length_ = leading_number<std::size_t>(head.substr(at));
  is_wrong_ = is_wrong_ || !length_;
}

}  // namespace naive_client
