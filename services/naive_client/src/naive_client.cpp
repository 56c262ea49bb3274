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
#include <iostream>
#include <map>
#include <mutex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
using Instant = Clock::time_point;
using Seconds = std::chrono::duration<double>;

constexpr std::string_view request =
    "POST /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    "Content-Length: 61\r\n\r\n"
    R"({"client": "a", "metrics": [{"name": "cpu.0", "value": 0.5}]})";
// Between two looks at a connection from which, unknown to the client, nothing more can come.
constexpr std::chrono::milliseconds look_again{10};
constexpr const char* running = R"({"status": "running"})";

Clock::duration ticks(Seconds seconds) {
  return std::chrono::duration_cast<Clock::duration>(seconds);
}

/// What the client is started with, as service.toml has it; the lab has checked the values.
struct Settings {
  std::map<std::string, std::string> words{
      {"port", "8000"}, {"target_port", "8001"}, {"clients", "100"}, {"rate", "2000"},
      {"duration_s", "10"}, {"timeout_ms", "1000"}, {"connection", "per_request"}};

  Settings(int count, char** given) {
    for (int at = 1; at < count; ++at) {
      const std::string word = given[at];
      const auto equals = word.find('=');
      const auto known = words.find(word.substr(0, equals));
      if (known == words.end()) throw std::invalid_argument("unknown setting '" + word + "'");
      known->second = word.substr(equals + 1);
    }
  }

  double number(const std::string& name) const { return std::stod(words.at(name)); }

  [[nodiscard]] std::string to_json() const {
    std::string json;
    for (const auto& [name, text] : words) {
      // Where it listens and what it loads is no setting: both are others after every start.
      if (name.ends_with("port")) continue;
      json += (json.empty() ? "{\"" : ", \"") + name + "\": ";
      json += name == "connection" ? '"' + text + '"' : text;
    }
    return json + "}";
  }
};

/// What became of requests: each ends in one way, so that the counts add up to all attempted.
struct Tally {
  std::map<std::string, std::uint64_t> ended{
      {"answered", 0}, {"status", 0}, {"reset", 0}, {"timed_out", 0}, {"closed_by_server", 0},
      {"other", 0}};
  std::uint64_t hung = 0;  ///< waited until their time-out, for whatever reason nothing came
  std::uint64_t connections = 0;
  Seconds in_answered{};
  Seconds in_connect{};

  void join(const Tally& one) {
    for (const auto& [how, count] : one.ended) ended[how] += count;
    hung += one.hung;
    connections += one.connections;
    in_answered += one.in_answered;
    in_connect += one.in_connect;
  }

  /// The results of a load that took so long, as the study's tools would have told them.
  [[nodiscard]] std::string to_json(double target_rate, Seconds took) const {
    const auto answered = ended.at("answered");
    const double achieved = static_cast<double>(answered) / took.count();
    std::uint64_t attempted = 0;
    std::string errors;
    for (const auto& [how, count] : ended) {
      attempted += count;
      if (how == "answered") continue;
      errors += (errors.empty() ? "\"" : ", \"") + how + "\": " + std::to_string(count);
    }
    std::ostringstream json;
    json << "{\"attempted\": " << attempted << ", \"answered\": " << answered
         << ", \"errors\": {" << errors << "}, \"hung\": " << hung
         << ", \"total_duration_s\": " << took.count() << ", \"target_rate\": " << target_rate
         << ", \"achieved_rate\": " << achieved << ", \"success_rate\": " << achieved / target_rate
         << ", \"mean_ms\": " << mean_ms(in_answered, answered)
         << ", \"connect_ms\": " << mean_ms(in_connect, connections) << "}";
    return json.str();
  }

  static std::string mean_ms(Seconds total, std::uint64_t count) {
    return count == 0 ? "null" : std::to_string(1000 * total.count() / static_cast<double>(count));
  }
};

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
  Client(const Settings& settings, Instant end)
      : end_(end),
        pause_(ticks(Seconds(settings.number("clients") / settings.number("rate")))),
        timeout_(settings.number("timeout_ms") / 1000),
        target_(address_of(settings.number("target_port"))),
        is_persistent_(settings.words.at("connection") == "persistent") {}

  Tally run() {
    while (Clock::now() < end_) {
      const auto began = Clock::now();
      const std::string how = ask(began + ticks(timeout_));
      ++tally_.ended[how];
      if (how == "answered") tally_.in_answered += Clock::now() - began;
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
    // With one connection for all it was opened once; whether it still stands is not asked.
    if (socket_ < 0 && !open()) return ended(word_of(errno));
    std::string lost;
    if (::send(socket_, request.data(), request.size(), MSG_NOSIGNAL) < 0) {
      lost = word_of(errno);
      // The client that keeps its connection does not look at what sending returned.
      if (!is_persistent_) return ended(lost);
    }
    std::array<char, 4096> piece;
    std::string read;
    while (!is_whole(read)) {
      const auto length = ::recv(socket_, piece.data(), piece.size(), 0);
      if (length > 0) {
        read.append(piece.data(), static_cast<std::size_t>(length));
        continue;
      }
      const std::string why = length < 0 ? word_of(errno) : "closed_by_server";
      if (why == "timed_out" || (is_persistent_ && Clock::now() >= until)) {
        ++tally_.hung;
        return lost.empty() ? why : lost;
      }
      if (lost.empty()) lost = why;
      if (!is_persistent_) return lost;
      // The client that keeps its connection takes its end for "nothing yet", and waits on.
      std::this_thread::sleep_until(std::min(Clock::now() + look_again, until));
    }
    return read.starts_with("HTTP/1.1 2") ? "answered" : "status";
  }

  std::string ended(const std::string& why) {
    tally_.hung += why == "timed_out";
    return why;
  }

  bool open() {
    const auto began = Clock::now();
    socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    limit_waits(socket_, timeout_);
    if (::connect(socket_, reinterpret_cast<const sockaddr*>(&target_), sizeof target_) != 0) {
      const int why = errno;
      close();
      errno = why;
      return false;
    }
    ++tally_.connections;
    tally_.in_connect += Clock::now() - began;
    return true;
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
std::string loaded(const Settings& settings) {
  const auto began = Clock::now();
  const auto end = began + ticks(Seconds(settings.number("duration_s")));
  std::vector<Tally> tallies(static_cast<std::size_t>(settings.number("clients")));
  std::vector<std::thread> threads;
  for (auto& tally : tallies) {
    threads.emplace_back([&] { tally = Client(settings, end).run(); });
  }
  for (auto& thread : threads) thread.join();
  Tally all;
  for (const auto& tally : tallies) all.join(tally);
  const auto results = all.to_json(settings.number("rate"), Clock::now() - began);
  return R"({"status": "completed", "results": )" + results + "}";
}

/// Answers requests by their first line; loads go on beside, one at a time.
class Control {
 public:
  explicit Control(const Settings& settings) : settings_(settings) {}

  std::string answer(std::string_view line) {
    const std::lock_guard lock(mutex_);
    if (line.starts_with("POST /load ")) {
      if (known_ == running) return bytes("409 Conflict", R"({"error": "a load goes on"})");
      known_ = running;
      std::thread([this] {
        const auto results = loaded(settings_);
        const std::lock_guard done(mutex_);
        known_ = results;
      }).detach();
      return bytes("202 Accepted", R"({"status": "running", "results": "/results"})");
    }
    if (line.starts_with("GET /results ") && !known_.empty()) return bytes("200 OK", known_);
    if (line.starts_with("GET /settings ")) return bytes("200 OK", settings_.to_json());
    if (line.starts_with("GET /health ")) return bytes("200 OK", R"({"status": "ok"})");
    return bytes("404 Not Found", R"({"error": "POST /load; then GET /results"})");
  }

 private:
  static std::string bytes(const std::string& status, const std::string& json) {
    return "HTTP/1.1 " + status + "\r\nContent-Type: application/json\r\nContent-Length: " +
           std::to_string(json.size()) + "\r\nConnection: close\r\n\r\n" + json;
  }

  const Settings& settings_;
  std::mutex mutex_;
  std::string known_;  ///< of the last load, as JSON
};

/// Serve one visitor after the other, each one request.
void serve(const Settings& settings) {
  Control control(settings);
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  ::setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  const auto address = address_of(settings.number("port"));
  if (::bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(listener, 64) != 0) {
    throw std::system_error(errno, std::generic_category(), "listen");
  }
  std::array<char, 4096> piece;
  while (true) {
    const int visitor = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (visitor < 0) {
      std::this_thread::sleep_for(look_again);
      continue;
    }
    limit_waits(visitor, Seconds(2));
    const auto length = ::recv(visitor, piece.data(), piece.size(), 0);
    if (length > 0) {
      const std::string_view asked(piece.data(), static_cast<std::size_t>(length));
      const auto told = control.answer(asked.substr(0, asked.find('\r')));
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
  try {
    const Settings settings(count, words);
    serve(settings);
  } catch (const std::exception& error) {
    std::cerr << "naive_client: " << error.what() << '\n';
    return 2;
  }
}
