#pragma once

#include "connection.hpp"
#include "file_descriptor.hpp"

#include <memory>
#include <optional>

namespace metricstream {

/// The socket that clients connect to. Several threads may accept from it at once.
class Listener {
 public:
  /// Throws std::system_error where the address cannot be had.
  explicit Listener(const Settings& settings);

  [[nodiscard]] int descriptor() const { return socket_.number(); }

 private:
  FileDescriptor socket_;
};

/// Takes connections from a listener; each thread that accepts has one of its own.
class Acceptor {
 public:
  Acceptor(const Listener& listener, const Shared& shared);

  /// A socket with its place; nothing where none waits, or where it had to be turned away.
  struct Accepted {
    FileDescriptor socket;
    Admission::Slot slot;
  };
  std::optional<Accepted> accept();

 private:
  void give_up_one();

  const Listener& listener_;
  const Shared& shared_;
  // Kept for when no descriptor is left: with its number a connection can be closed in order.
  FileDescriptor spare_;
};

}  // namespace metricstream
