#include "chunked_body.hpp"

#include <algorithm>
#include <charconv>

namespace metricstream {
namespace {

constexpr std::size_t longest_line = 256;
constexpr std::size_t longest_trailer = 2048;

bool is_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return (byte < 0x20 && c != '\t') || byte == 0x7F;
}

}  // namespace

ChunkedBody::State ChunkedBody::read(std::string& buffer) {
  std::string_view rest = buffer;
  State state = State::NeedsMore;
  bool moved = true;
  while (state == State::NeedsMore && moved) state = step(rest, moved);
  buffer.erase(0, buffer.size() - rest.size());
  return state;
}

ChunkedBody::State ChunkedBody::step(std::string_view& rest, bool& moved) {
  moved = false;
  if (part_ == Part::Size || part_ == Part::Trailer) return read_line(rest, moved);
  if (part_ == Part::Data) {
    const auto length = std::min(left_, rest.size());
    body_ += rest.substr(0, length);
    rest.remove_prefix(length);
    left_ -= length;
    if (left_ == 0) part_ = Part::DataEnd;
    moved = length > 0;
    return State::NeedsMore;
  }
  if (rest.size() < 2) return State::NeedsMore;
  if (!rest.starts_with("\r\n")) return State::Wrong;
  rest.remove_prefix(2);
  part_ = Part::Size;
  moved = true;
  return State::NeedsMore;
}

ChunkedBody::State ChunkedBody::read_line(std::string_view& rest, bool& moved) {
  const auto end = rest.find("\r\n");
  const auto line = rest.substr(0, end);
  if (line.size() > longest_line) return State::Wrong;
  if (end == std::string_view::npos) return State::NeedsMore;
  if (std::ranges::any_of(line, is_control)) return State::Wrong;
  rest.remove_prefix(end + 2);
  moved = true;
  if (part_ == Part::Size) return read_size(line);
  if (line.empty()) return State::Whole;
  trailer_bytes_ += line.size();
  return trailer_bytes_ > longest_trailer ? State::Wrong : State::NeedsMore;
}

ChunkedBody::State ChunkedBody::read_size(std::string_view line) {
  const auto size = line.substr(0, line.find(';'));
  const auto* end = size.data() + size.size();
  const auto [stopped, error] = std::from_chars(size.data(), end, left_, 16);
  if (error == std::errc::result_out_of_range && stopped == end) return State::TooLong;
  if (error != std::errc() || stopped != end) return State::Wrong;
  if (left_ > most_bytes_ - body_.size()) return State::TooLong;
  part_ = left_ == 0 ? Part::Trailer : Part::Data;
  return State::NeedsMore;
}

}  // namespace metricstream
