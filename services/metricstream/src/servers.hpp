#pragma once

#include "connection.hpp"
#include "sockets.hpp"

namespace metricstream {

/// Open the socket that clients connect to; throws std::system_error where that cannot be.
FileDescriptor listen_at(const Settings& settings);

/// Each serves what connects to `listener`, for as long as the process lives.
[[noreturn]] void serve_by_threads(const FileDescriptor& listener, const Shared& shared);
[[noreturn]] void serve_by_pool(const FileDescriptor& listener, const Shared& shared);
[[noreturn]] void serve_by_epoll(const FileDescriptor& listener, const Shared& shared);

}  // namespace metricstream
