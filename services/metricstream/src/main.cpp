#include <csignal>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <span>

#include "servers.hpp"

namespace metricstream {
namespace {

[[noreturn]] void serve(const Settings& settings) {
  Counters counters;
  const auto store = make_store(settings, counters);
  const Shared shared{settings, counters, *store};
  const auto listener = listen_at(settings);
  switch (settings.threading) {
    case Threading::Pool: serve_by_pool(listener, shared);
    case Threading::Epoll: serve_by_epoll(listener, shared);
    default: serve_by_threads(listener, shared);
  }
}

}  // namespace
}  // namespace metricstream

int main(int count, char** words) {
  // All that it keeps is in memory: there is nothing to be brought to an end.
  for (const int number : {SIGTERM, SIGINT}) std::signal(number, [](int) { std::_Exit(0); });
  try {
    metricstream::serve(metricstream::read_settings(
        std::span(words, static_cast<std::size_t>(count)).subspan(1)));
  } catch (const std::exception& error) {
    std::cerr << "metricstream: " << error.what() << '\n';
    return 2;
  }
}
