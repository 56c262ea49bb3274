// The MetricStream study's own load test, built anew: a bad load generator, on purpose (README.md).

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <future>
#include <iostream>
#include <map>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
using Instant = Clock::time_point;
using Seconds = std::chrono::duration<double>;
/// Name to text: the settings that the lab gives and has checked, or the fields of a JSON object.
using Texts = std::map<std::string, std::string>;

constexpr std::string_view request =
    "POST /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    "Content-Length: 61\r\n\r\n"
    R"({"client": "a", "metrics": [{"name": "cpu.0", "value": 0.5}]})";
// Between two looks at a connection from which, unknown to the client, nothing more can come.
constexpr std::chrono::milliseconds look_again{10};

Clock::duration ticks(Seconds seconds) {
  return std::chrono::duration_cast<Clock::duration>(seconds);
}

double number(const Texts& settings, const std::string& name) {
  return std::stod(settings.at(name));
}

std::string object(const Texts& fields) {
  std::string json;
  for (const auto& [name, text] : fields) {
    json += (json.empty() ? "{\"" : ", \"") + name + "\": " + text;
  }
  return json + "}";
}

/// Counts, and seconds in requests and connects, by name; each request ends in one way.
using Tally = std::map<std::string, double>;
constexpr std::array errors{"status", "reset", "timed_out", "closed_by_server", "other"};

std::string whole(double count) { return std::to_string(static_cast<long>(count)); }

std::string mean_ms(double total_s, double count) {
  return count > 0 ? std::to_string(1000 * total_s / count) : "null";
}

/// The results of a load that took so long, as the study's tools would have told them.
std::string results(Tally tally, double target_rate, Seconds took) {
  const double answered = tally["answered"];
  const double achieved = answered / took.count();
  double attempted = answered;
  Texts failed;
  for (const auto* error : errors) {
    attempted += tally[error];
    failed[error] = whole(tally[error]);
  }
  return object({{"attempted", whole(attempted)},
                 {"answered", whole(answered)},
                 {"errors", object(failed)},
                 {"hung", whole(tally["hung"])},
                 {"total_duration_s", std::to_string(took.count())},
                 {"achieved_rate", std::to_string(achieved)},
                 {"success_rate", std::to_string(achieved / target_rate)},
                 {"mean_ms", mean_ms(tally["in_answered_s"], answered)},
                 {"connect_ms", mean_ms(tally["in_connect_s"], tally["connections"])}});
}

double seconds_since(Instant began) { return Seconds(Clock::now() - began).count(); }

std::string word_of(int error) {
  if (error == ECONNRESET || error == EPIPE) return "reset";
  // What a call returns that waited as long as SO_RCVTIMEO or SO_SNDTIMEO let it.
  const bool waited = error == EAGAIN || error == EINPROGRESS || error == ETIMEDOUT;
  return waited ? "timed_out" : "other";
}

sockaddr_in address_of(double port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  // The one place where an address is made: this program knows no host but its own.
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

void limit_waits(int socket, Seconds longest) {
  const auto us = static_cast<long>(longest.count() * 1e6);
  const timeval limit{us / 1'000'000, us % 1'000'000};
  ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  ::setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

/// Whether an answer is there, with as many bytes as Content-Length says.
bool is_whole(const std::string& read) {
  const std::string length_name = "\r\nContent-Length: ";
  const auto end = read.find("\r\n\r\n");
  const auto at = read.find(length_name);
  if (end == std::string::npos || at == std::string::npos) return false;
  return read.size() - end - 4 >= std::stoul(read.substr(at + length_name.size()));
}

/// One client of the load, as the study's tests had them: it asks, sleeps, and asks again.
class Client {
 public:
  Client(const Texts& settings, Instant end)
      : end_(end),
        pause_(ticks(Seconds(number(settings, "clients") / number(settings, "rate")))),
        timeout_(number(settings, "timeout_ms") / 1000),
        target_(address_of(number(settings, "target_port"))),
        is_persistent_(settings.at("connection") == "persistent") {}

  Tally run() {
    while (Clock::now() < end_) {
      const auto began = Clock::now();
      const std::string how = ask(began + ticks(timeout_));
      ++tally_[how];
      if (how == "answered") tally_["in_answered_s"] += seconds_since(began);
      if (!is_persistent_) close();
      // The naive pace: what the request took is not subtracted, so the rate is never reached.
      std::this_thread::sleep_until(std::min(Clock::now() + pause_, end_));
    }
    close();
    return tally_;
  }

 private:
  /// Send a request and read its answer; return how it ended.
  std::string ask(Instant until) {
    std::string lost = socket_ < 0 ? open() : "";
    if (socket_ < 0) {
      tally_["hung"] += lost == "timed_out";
      return lost;
    }
    // Whether the connection still stands is not asked.
    if (::send(socket_, request.data(), request.size(), MSG_NOSIGNAL) < 0) lost = word_of(errno);
    std::array<char, 4096> piece;
    std::string read;
    while (!is_whole(read)) {
      const auto length = ::recv(socket_, piece.data(), piece.size(), 0);
      if (length > 0) {
        read.append(piece.data(), static_cast<std::size_t>(length));
        continue;
      }
      const std::string why = length < 0 ? word_of(errno) : "closed_by_server";
      if (lost.empty()) lost = why;
      const bool is_late = why == "timed_out" || (is_persistent_ && Clock::now() >= until);
      tally_["hung"] += is_late;
      if (is_late || !is_persistent_) return lost;
      // The client that keeps its connection takes its end for "nothing yet", and waits on.
      std::this_thread::sleep_until(std::min(Clock::now() + look_again, until));
    }
    return read.starts_with("HTTP/1.1 2") ? "answered" : "status";
  }

  /// Connect; return what went wrong, or nothing.
  std::string open() {
    const auto began = Clock::now();
    socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    limit_waits(socket_, timeout_);
    if (::connect(socket_, reinterpret_cast<const sockaddr*>(&target_), sizeof target_) != 0) {
      const std::string why = word_of(errno);
      close();
      return why;
    }
    ++tally_["connections"];
    tally_["in_connect_s"] += seconds_since(began);
    return "";
  }

  void close() {
    if (socket_ >= 0) ::close(socket_);
    socket_ = -1;
  }

  Instant end_;
  Clock::duration pause_;
  Seconds timeout_;
  sockaddr_in target_;
  bool is_persistent_;
  Tally tally_;
  int socket_ = -1;
};

/// Have one load done, and return its results as JSON.
std::string loaded(const Texts& settings) {
  const auto began = Clock::now();
  const auto end = began + ticks(Seconds(number(settings, "duration_s")));
  std::vector<std::future<Tally>> clients;
  for (double count = number(settings, "clients"); count > 0; --count) {
    clients.push_back(std::async(std::launch::async, [&] { return Client(settings, end).run(); }));
  }
  Tally all;
  for (auto& client : clients) {
    for (const auto& [name, count] : client.get()) all[name] += count;
  }
  return results(all, number(settings, "rate"), Clock::now() - began);
}

/// The settings in force: where it listens and what it loads are others after every start.
std::string settings_in_force(Texts settings) {
  settings.erase("port");
  settings.erase("target_port");
  settings["connection"] = '"' + settings["connection"] + '"';
  return object(settings);
}

/// Answer a request by its first line with JSON, or nothing; `load` has the last load's results.
std::string answer(std::string_view line, const Texts& settings,
                   std::shared_future<std::string>& load) {
  const bool is_running = load.valid() && load.wait_for(Seconds(0)) != std::future_status::ready;
  if (line.starts_with("POST /load ")) {
    if (!is_running) load = std::async(std::launch::async, loaded, std::cref(settings)).share();
    return R"({"status": "running", "results": "/results"})";
  }
  if (line.starts_with("GET /results ") && load.valid()) {
    if (is_running) return R"({"status": "running"})";
    return object({{"status", "\"completed\""}, {"results", load.get()}});
  }
  if (line.starts_with("GET /settings ")) return settings_in_force(settings);
  return line.starts_with("GET /health ") ? R"({"status": "ok"})" : "";
}

/// Serve one visitor after the other, each one request.
void serve(const Texts& settings) {
  std::shared_future<std::string> load;
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  ::setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  const auto address = address_of(number(settings, "port"));
  if (::bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(listener, 64) != 0) {
    throw std::system_error(errno, std::generic_category(), "listen");
  }
  std::array<char, 4096> piece;
  while (true) {
    const int visitor = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    limit_waits(visitor, Seconds(2));
    const auto length = ::recv(visitor, piece.data(), piece.size(), 0);
    if (length > 0) {
      const std::string_view asked(piece.data(), static_cast<std::size_t>(length));
      const auto json = answer(asked.substr(0, asked.find('\r')), settings, load);
      const std::string told = (json.empty() ? "HTTP/1.1 404 Not Found" : "HTTP/1.1 200 OK") +
                               std::string("\r\nConnection: close\r\n\r\n") + json;
      ::send(visitor, told.data(), told.size(), MSG_NOSIGNAL);
      // To close on unread bytes would reset the connection under the answer.
      ::shutdown(visitor, SHUT_WR);
      while (::recv(visitor, piece.data(), piece.size(), 0) > 0) {
      }
    }
    ::close(visitor);
  }
}

}  // namespace

int main(int count, char** words) {
  for (const int number : {SIGTERM, SIGINT}) std::signal(number, [](int) { std::_Exit(0); });
  Texts settings;
  for (int at = 1; at < count; ++at) {
    const std::string word = words[at];
    settings[word.substr(0, word.find('='))] = word.substr(word.find('=') + 1);
  }
  try {
    serve(settings);
  } catch (const std::exception& error) {
    std::cerr << "naive_client: " << error.what() << '\n';
    return 2;
  }
}
