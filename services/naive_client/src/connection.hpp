#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "answer_reader.hpp"
#include "attempt.hpp"
#include "file_descriptor.hpp"
#include "stop.hpp"

namespace naive_client {

/// What ended a step; nothing where it went well.
using Fault = std::optional<Outcome>;

/// A connection to a port of 127.0.0.1. Each step ends at the instant that it is given, or with the
/// wish to stop.
class Connection {
 public:
  explicit Connection(const Stop& stop) : stop_(stop) {}

  [[nodiscard]] bool is_open() const { return socket_.is_open(); }
  void close() { socket_.reset(); }

  Fault open(std::uint16_t port, Instant until);
  Fault send(std::string_view text, Instant until);
  /// Wait for bytes and hand them over.
  Fault receive(AnswerReader& into, Instant until);

 private:
  [[nodiscard]] Fault waited_for(short events, Instant until) const;

  const Stop& stop_;
  FileDescriptor socket_;
};

}  // namespace naive_client
