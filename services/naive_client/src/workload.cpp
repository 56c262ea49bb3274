#include "workload.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "json_members.hpp"

namespace naive_client {
namespace {

constexpr double most_rate_per_s = 100'000;
constexpr double least_rate_per_s = 0.01;
constexpr std::size_t most_path_bytes = 1024;
constexpr std::array<std::string_view, 9> known{"target_host", "target_port", "path",
                                                "body",        "clients",     "rate",
                                                "duration_s",  "connection",  "timeout_ms"};

/// Thrown within this file alone.
struct Wrong {
  std::string reason;
};

/// The members of what was asked for, each taken by its name.
class Fields {
 public:
  explicit Fields(JsonMembers members) : members_(std::move(members)) {
    for (const auto& [name, value] : members_) {
      if (std::ranges::find(known, name) == known.end()) {
        throw Wrong{"unknown field '" + name.substr(0, 40) + "'; fields: " + names()};
      }
    }
  }

  [[nodiscard]] bool has(const std::string& name) const { return members_.contains(name); }

  [[nodiscard]] double number(const std::string& name, double least, double most) const {
    const auto found = members_.find(name);
    const auto* value = found == members_.end() ? nullptr : std::get_if<double>(&found->second);
    if (!value || *value < least || *value > most) {
      throw Wrong{name + " must be a number from " + shown(least) + " to " + shown(most)};
    }
    return *value;
  }

  [[nodiscard]] std::int64_t whole(const std::string& name, std::int64_t least,
                                   std::int64_t most) const {
    const double value = number(name, static_cast<double>(least), static_cast<double>(most));
    if (std::trunc(value) != value) throw Wrong{name + " must be a whole number"};
    return static_cast<std::int64_t>(value);
  }

  [[nodiscard]] std::optional<std::string> text(const std::string& name) const {
    const auto found = members_.find(name);
    if (found == members_.end()) return std::nullopt;
    if (const auto* value = std::get_if<std::string>(&found->second)) return *value;
    throw Wrong{name + " must be a string"};
  }

 private:
  static std::string names() {
    std::string all;
    for (const auto name : known) all += (all.empty() ? "" : ", ") + std::string(name);
    return all;
  }

  static std::string shown(double number) {
    const auto text = std::to_string(number);
    const auto last = text.find_last_not_of('0');
    return text.substr(0, text[last] == '.' ? last : last + 1);
  }

  JsonMembers members_;
};

void check_host(const Fields& fields) {
  if (fields.text("target_host").value_or(loopback) != loopback) {
    throw Wrong{"target_host must be 127.0.0.1: load goes nowhere else"};
  }
}

std::uint16_t port_of(const Fields& fields, const Settings& settings) {
  const auto wired = settings.target_port;
  if (wired != 0 && !fields.has("target_port")) return static_cast<std::uint16_t>(wired);
  const auto port = fields.whole("target_port", 1024, 65535);
  if (wired != 0 && port != wired) {
    throw Wrong{"target_port must be " + std::to_string(wired) + ", which it was started for"};
  }
  if (port == settings.port) throw Wrong{"target_port is this client's own port"};
  return static_cast<std::uint16_t>(port);
}

std::string path_of(const Fields& fields) {
  auto path = fields.text("path").value_or("");
  // A blank or the end of a line would let the text go on as another request.
  const bool is_visible = std::ranges::all_of(path, [](char c) { return c > ' ' && c <= '~'; });
  if (!path.starts_with('/') || !is_visible || path.size() > most_path_bytes) {
    throw Wrong{"path must begin with '/', be of visible ASCII and have at most 1024 bytes"};
  }
  return path;
}

bool is_persistent(const Fields& fields) {
  const auto connection = fields.text("connection").value_or("");
  if (connection != "per_request" && connection != "persistent") {
    throw Wrong{"connection must be 'per_request' or 'persistent'"};
  }
  return connection == "persistent";
}

Workload workload_of(const Fields& fields, const Settings& settings) {
  check_host(fields);
  Workload workload;
  workload.target_port = port_of(fields, settings);
  workload.path = path_of(fields);
  workload.body = fields.text("body");
  workload.clients = static_cast<std::size_t>(fields.whole("clients", 1, settings.max_clients));
  workload.rate_per_s = fields.number("rate", 0, most_rate_per_s);
  if (workload.rate_per_s > 0 && workload.rate_per_s < least_rate_per_s) {
    throw Wrong{"rate must be 0 (as fast as possible), or 0.01 and more"};
  }
  workload.duration =
      of_s(fields.number("duration_s", 0.1, static_cast<double>(settings.max_duration_s)));
  workload.persistent = is_persistent(fields);
  workload.timeout = milliseconds(fields.whole("timeout_ms", 10, 60'000));
  workload.most_requests = static_cast<std::uint64_t>(settings.max_requests);
  return workload;
}

}  // namespace

std::variant<Workload, Refusal> read_workload(std::string_view text, const Settings& settings) {
  auto members = read_members(text);
  if (!members) {
    return Refusal{400, "bad_json",
                   "it must be one JSON object of strings and numbers; 'body' is a string too"};
  }
  try {
    return workload_of(Fields(std::move(*members)), settings);
  } catch (const Wrong& wrong) {
    return Refusal{422, "bad_request", wrong.reason};
  }
}

std::string request_text(const Workload& workload) {
  std::string text = workload.body ? "POST " : "GET ";
  text += workload.path + " HTTP/1.1\r\nHost: " + loopback + ":" +
          std::to_string(workload.target_port) + "\r\n";
  if (workload.body) {
    text += "Content-Type: application/json\r\nContent-Length: " +
            std::to_string(workload.body->size()) + "\r\n";
  }
  return text + "\r\n" + workload.body.value_or("");
}

JsonObject to_json(const Workload& workload) {
  JsonObject object;
  object.add("target_port", std::uint64_t{workload.target_port})
      .add("path", workload.path)
      .add("body_bytes", std::uint64_t{workload.body ? workload.body->size() : 0})
      .add("clients", std::uint64_t{workload.clients})
      .add("rate", std::optional(workload.rate_per_s))
      .add("duration_s", std::optional(to_s(workload.duration)))
      .add("connection", workload.persistent ? "persistent" : "per_request")
      .add("timeout_ms", static_cast<std::uint64_t>(workload.timeout.count()))
      .add("most_requests", workload.most_requests);
  return object;
}

}  // namespace naive_client
