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
#include <cmath>
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

constexpr std::string_view loopback = "127.0.0.1";
constexpr std::string_view body =
    R"({"client": "a", "metrics": [{"name": "cpu.0", "value": 0.5}]})";
// Between two looks at a connection from which, unknown to the client, nothing more can come.
constexpr std::chrono::milliseconds look_again{10};
constexpr Seconds control_patience{2};

Clock::duration ticks(Seconds seconds) {
  return std::chrono::duration_cast<Clock::duration>(seconds);
}

/// What the client is started with: where it listens, whom it loads, and how.
struct Settings {
  std::uint16_t port = 0;
  std::uint16_t target_port = 0;
  std::size_t clients = 100;
  double rate = 2000;  ///< of all clients together, a second
  Seconds duration{10};
  Seconds timeout{1};
  bool persistent = false;
  std::string json;  ///< as they were given
};

double positive(const std::string& name, const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (*end == '\0' && value > 0 && std::isfinite(value)) return value;
  throw std::invalid_argument(name + ": '" + text + "' must be a number above 0");
}

/// Read the port of an address, which must be one of this host.
std::uint16_t port_at(const std::string& name, const std::string& address) {
  const std::string here = std::string(loopback) + ":";
  if (address.starts_with(here)) {
    return static_cast<std::uint16_t>(positive(name, address.substr(here.size())));
  }
  throw std::invalid_argument(name + ": '" + address + "' must be a port of 127.0.0.1");
}

void read_word(Settings& into, const std::string& name, const std::string& text) {
  if (name == "listen") into.port = port_at(name, text);
  else if (name == "target") into.target_port = port_at(name, text);
  else if (name == "clients") into.clients = static_cast<std::size_t>(positive(name, text));
  else if (name == "rate") into.rate = positive(name, text);
  else if (name == "duration_s") into.duration = Seconds(positive(name, text));
  else if (name == "timeout_ms") into.timeout = Seconds(positive(name, text) / 1000);
  else if (name == "connection" && text == "persistent") into.persistent = true;
  else if (name != "connection") throw std::invalid_argument(name + ": no such setting");
  else if (text != "per_request") {
    throw std::invalid_argument("connection: must be per_request or persistent");
  }
  // Where it listens is no setting, nor is what it loads: both are others after every start.
  if (name == "listen" || name == "target") return;
  into.json += (into.json.empty() ? "\"" : ", \"") + name + "\": ";
  into.json += name == "connection" ? '"' + text + '"' : text;
}

Settings read_settings(int count, char** words) {
  Settings settings;
  for (int at = 1; at < count; ++at) {
    const std::string word = words[at];
    const auto equals = std::min(word.find('='), word.size());
    read_word(settings, word.substr(0, equals), word.substr(std::min(equals + 1, word.size())));
  }
  return settings;
}

/// What became of requests: each ends in one way, so that the counts add up to all attempted.
struct Tally {
  std::map<std::string, std::uint64_t> ended{
      {"answered", 0}, {"status", 0}, {"connect_refused", 0}, {"reset", 0}, {"timed_out", 0},
      {"closed_by_server", 0}, {"short", 0}, {"no_port", 0}, {"other", 0}};
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

const char* word_of(int error) {
  switch (error) {
    case ECONNREFUSED: return "connect_refused";
    case ECONNRESET:
    case EPIPE: return "reset";
    // What a call returns that waited as long as SO_RCVTIMEO or SO_SNDTIMEO let it.
    case EAGAIN:
    case EINPROGRESS:
    case ETIMEDOUT: return "timed_out";
    case EADDRNOTAVAIL: return "no_port";
    default: return "other";
  }
}

sockaddr_in address_of(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
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
bool is_whole(std::string_view read) {
  constexpr std::string_view length_name = "\r\nContent-Length: ";
  const auto end = read.find("\r\n\r\n");
  if (end == std::string_view::npos) return false;
  const auto at = read.substr(0, end).find(length_name);
  const auto length = at == std::string_view::npos
                          ? 0
                          : std::strtoul(read.data() + at + length_name.size(), nullptr, 10);
  return read.size() - end - 4 >= length;
}

/// One client of the load, as the study's tests had them: it asks, sleeps, and asks again.
class Client {
 public:
  Client(const Settings& settings, Instant end)
      : settings_(settings),
        end_(end),
        pause_(ticks(Seconds(static_cast<double>(settings.clients) / settings.rate))),
        request_("POST /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                 "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
                 std::string(body)) {}

  Tally run() {
    while (Clock::now() < end_) {
      const auto began = Clock::now();
      const std::string how = ask(began + ticks(settings_.timeout));
      ++tally_.ended[how];
      if (how == "answered") tally_.in_answered += Clock::now() - began;
      if (!settings_.persistent) close();
      // The naive pace: what the request took is not subtracted, so the rate is never reached.
      std::this_thread::sleep_until(std::min(Clock::now() + pause_, end_));
    }
    close();
    return tally_;
  }

 private:
  /// Send a request and read its answer; return how it ended.
  std::string ask(Instant until) {
    // With `persistent` it was opened once; whether it still stands is not asked.
    if (socket_ < 0 && !open()) {
      const auto* why = word_of(errno);
      close();
      return ended(why);
    }
    std::string lost;
    if (::send(socket_, request_.data(), request_.size(), MSG_NOSIGNAL) < 0) {
      lost = word_of(errno);
      // The client that keeps its connection does not look at what sending returned.
      if (!settings_.persistent) return ended(lost);
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
      if (why == "timed_out" || (settings_.persistent && Clock::now() >= until)) {
        ++tally_.hung;
        return lost.empty() ? why : lost;
      }
      if (lost.empty()) lost = read.empty() ? why : "short";
      if (!settings_.persistent) return lost;
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
    limit_waits(socket_, settings_.timeout);
    const auto address = address_of(settings_.target_port);
    if (::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
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

  const Settings& settings_;
  Instant end_;
  Clock::duration pause_;
  std::string request_;
  Tally tally_;
  int socket_ = -1;
};

/// The loads of this process, one at a time; what is known of the last one.
class Loads {
 public:
  explicit Loads(const Settings& settings) : settings_(settings) {}

  /// Start one; false where one goes on.
  bool start() {
    if (shown() == running) return false;
    show(running);
    std::thread([this] { run(); }).detach();
    return true;
  }

  /// JSON; empty before the first load.
  [[nodiscard]] std::string shown() {
    const std::lock_guard lock(mutex_);
    return shown_;
  }

 private:
  static constexpr const char* running = R"({"status": "running"})";

  void show(const std::string& json) {
    const std::lock_guard lock(mutex_);
    shown_ = json;
  }

  void run() {
    const auto began = Clock::now();
    const auto end = began + ticks(settings_.duration);
    std::vector<Tally> tallies(settings_.clients);
    std::vector<std::thread> threads;
    std::string problem;
    try {
      for (auto& tally : tallies) {
        threads.emplace_back([&] { tally = Client(settings_, end).run(); });
      }
    } catch (const std::system_error& error) {
      problem = error.what();
    }
    for (auto& thread : threads) thread.join();
    Tally all;
    for (const auto& tally : tallies) all.join(tally);
    const auto results = all.to_json(settings_.rate, Clock::now() - began);
    show(problem.empty() ? R"({"status": "completed", "results": )" + results + "}"
                         : R"({"status": "failed", "problem": ")" + problem + "\"}");
  }

  const Settings& settings_;
  std::mutex mutex_;
  std::string shown_;
};

/// Answer a request by its first line.
std::string answer(std::string_view line, Loads& loads, const Settings& settings) {
  std::string status = "200 OK";
  std::string json;
  if (line.starts_with("POST /load ")) {
    const bool began = loads.start();
    status = began ? "202 Accepted" : "409 Conflict";
    json = began ? R"({"status": "running", "results": "/results"})"
                 : R"({"error": "a load goes on; one at a time"})";
  } else if (line.starts_with("GET /results ") && !loads.shown().empty()) {
    json = loads.shown();
  } else if (line.starts_with("GET /settings ")) {
    json = "{" + settings.json + "}";
  } else if (line.starts_with("GET /health ")) {
    json = R"({"status": "ok"})";
  } else {
    status = "404 Not Found";
    json = R"({"error": "POST /load; then GET /results, /settings or /health"})";
  }
  return "HTTP/1.1 " + status + "\r\nContent-Type: application/json\r\nContent-Length: " +
         std::to_string(json.size()) + "\r\nConnection: close\r\n\r\n" + json;
}

/// Serve one visitor after the other, each one request.
void serve(const Settings& settings) {
  Loads loads(settings);
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  ::setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  const auto address = address_of(settings.port);
  if (::bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(listener, 64) != 0) {
    throw std::system_error(errno, std::generic_category(), "port " + std::to_string(settings.port));
  }
  std::array<char, 4096> piece;
  while (true) {
    const int visitor = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (visitor < 0) {
      std::this_thread::sleep_for(look_again);
      continue;
    }
    limit_waits(visitor, control_patience);
    const auto length = ::recv(visitor, piece.data(), piece.size(), 0);
    if (length > 0) {
      const std::string_view asked(piece.data(), static_cast<std::size_t>(length));
      const auto told = answer(asked.substr(0, asked.find('\r')), loads, settings);
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
    serve(read_settings(count, words));
  } catch (const std::invalid_argument& error) {
    std::cerr << "naive_client: " << error.what() << '\n';
    return 2;
  } catch (const std::exception& error) {
    std::cerr << "naive_client: " << error.what() << '\n';
    return 1;
  }
}
