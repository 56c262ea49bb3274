#include <sys/signalfd.h>

#include <csignal>
#include <exception>
#include <iostream>
#include <span>

#include "control_server.hpp"
#include "settings.hpp"

namespace naive_client {
namespace {

/// A descriptor that can be read once the process is told to end.
FileDescriptor watch_for_end() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  // Before any thread is made: all inherit it.
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  return checked(::signalfd(-1, &set, SFD_CLOEXEC), "signalfd");
}

}  // namespace
}  // namespace naive_client

int main(int count, char** words) {
  using namespace naive_client;
  try {
    const auto told_to_end = watch_for_end();
    const auto settings =
        read_settings(std::span(words, static_cast<std::size_t>(count)).subspan(1));
    // Whatever load goes on ends with the server that it belongs to.
    ControlServer(settings).serve_until(told_to_end.number());
    return 0;
  } catch (const SettingError& error) {
    std::cerr << "naive_client: " << error.what() << '\n';
    return 2;
  } catch (const std::exception& error) {
    std::cerr << "naive_client: " << error.what() << '\n';
    return 1;
  }
}
