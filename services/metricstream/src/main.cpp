#include <csignal>
#include <exception>
#include <iostream>
#include <memory>
#include <span>
#include <thread>

#include "admission.hpp"
#include "counters.hpp"
#include "handler.hpp"
#include "server.hpp"
#include "settings.hpp"
#include "stop.hpp"
#include "store.hpp"

namespace metricstream {
namespace {

sigset_t ending_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  return set;
}

/// Ask for the end when the process is told to; only this thread hears signals.
class SignalWatch {
 public:
  explicit SignalWatch(Stop& stop) : thread_([&stop] { watch(stop); }) {}
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;
  ~SignalWatch() {
    // Wakes it where the server ends for another reason.
    ::pthread_kill(thread_.native_handle(), SIGTERM);
    thread_.join();
  }

 private:
  static void watch(Stop& stop) {
    const auto set = ending_signals();
    int number = 0;
    sigwait(&set, &number);
    stop.ask();
  }

  std::thread thread_;
};

void serve(const Settings& settings) {
  Counters counters;
  Stop stop;
  Admission admission(settings.max_connections);
  auto store = make_store(settings, counters);
  if (settings.threading == Threading::ProducerConsumer) {
    store = make_queued(settings, counters, std::move(store));
  }
  const Handler handler(settings, counters, *store, admission);
  const Shared shared{settings, counters, handler, stop, admission};
  const Listener listener(settings);
  const SignalWatch watch(stop);
  switch (settings.threading) {
    case Threading::Thread:
    case Threading::ProducerConsumer: return serve_by_threads(listener, shared);
    case Threading::Pool: return serve_by_pool(listener, shared);
    case Threading::Epoll: return serve_by_epoll(listener, shared);
  }
}

}  // namespace
}  // namespace metricstream

int main(int count, char** words) {
  using namespace metricstream;
  // Before any thread is made: all inherit it.
  const auto blocked = ending_signals();
  ::pthread_sigmask(SIG_BLOCK, &blocked, nullptr);
  try {
    serve(read_settings(std::span(words, static_cast<std::size_t>(count)).subspan(1)));
    return 0;
  } catch (const SettingError& error) {
    std::cerr << "metricstream: " << error.what() << '\n';
    return 2;
  } catch (const std::exception& error) {
    std::cerr << "metricstream: " << error.what() << '\n';
    return 1;
  }
}
