#pragma once

#include "connection.hpp"
#include "listener.hpp"

namespace metricstream {

/// How long requests in hand may still take when the server was asked to stop.
inline constexpr milliseconds stop_patience{3000};

/// How often connections are looked at whose time may be over.
inline constexpr milliseconds look_every{100};

/// Each serves until `shared.stop` is asked and what was in hand is answered.
void serve_by_threads(const Listener& listener, const Shared& shared);
void serve_by_pool(const Listener& listener, const Shared& shared);
void serve_by_epoll(const Listener& listener, const Shared& shared);

}  // namespace metricstream
