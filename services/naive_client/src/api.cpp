#include "api.hpp"

#include <system_error>

namespace naive_client {
namespace {

constexpr std::string_view results_path = "/results/";

std::string_view phrase_of(int status) {
  switch (status) {
    case 200: return "OK";
    case 202: return "Accepted";
    case 400: return "Bad Request";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 408: return "Request Timeout";
    case 409: return "Conflict";
    case 411: return "Length Required";
    case 413: return "Content Too Large";
    case 415: return "Unsupported Media Type";
    case 422: return "Unprocessable Content";
    case 431: return "Request Header Fields Too Large";
    case 503: return "Service Unavailable";
    default: return "Unknown";
  }
}

Response start(const ControlRequest& request, Runs& runs, const Settings& settings) {
  // A page of another site can make a browser post a form, but not JSON.
  if (request.content_type != "application/json") {
    return refused({415, "bad_content_type", "send it as Content-Type: application/json"});
  }
  if (const auto* run = runs.running()) {
    return refused({409, "workload_running", "run " + run->id() + " goes on; one at a time"});
  }
  auto read = read_workload(request.body, settings);
  if (const auto* refusal = std::get_if<Refusal>(&read)) return refused(*refusal);
  try {
    const auto& run = runs.start(std::get<Workload>(std::move(read)));
    const auto path = std::string(results_path) + run.id();
    JsonObject object;
    object.add("run_id", run.id()).add("status", "running").add("results", path);
    return {202, object.text(), "Location: " + path + "\r\n"};
  } catch (const std::system_error& error) {
    return refused({503, "no_thread", error.what()});
  }
}

Response look(std::string_view id, const Runs& runs) {
  if (const auto* run = runs.find(id)) return {200, run->to_json(), ""};
  return refused({404, "unknown_run", "no such run, or none of the last 20 of this process"});
}

}  // namespace

Response refused(const Refusal& refusal) {
  JsonObject inner;
  inner.add("code", refusal.code).add("reason", refusal.reason);
  JsonObject object;
  object.add("error", inner);
  return {refusal.status, object.text(), ""};
}

Response answer(const ControlRequest& request, Runs& runs, const Settings& settings) {
  const auto& path = request.path;
  const bool posts = path == "/workload";
  const bool looks = path.starts_with(results_path);
  if (!posts && !looks && path != "/health" && path != "/settings") {
    return refused({404, "not_found", "there is nothing here"});
  }
  const std::string method = posts ? "POST" : "GET";
  if (request.method != method) {
    auto response = refused({405, "bad_method", method + " it"});
    response.headers = "Allow: " + method + "\r\n";
    return response;
  }
  if (posts) return start(request, runs, settings);
  if (looks) return look(std::string_view(path).substr(results_path.size()), runs);
  if (path == "/settings") return {200, to_json(settings), ""};
  return {200, R"({"status": "ok"})", ""};
}

std::string to_bytes(const Response& response) {
  std::string bytes = "HTTP/1.1 " + std::to_string(response.status) + ' ';
  bytes += phrase_of(response.status);
  bytes += "\r\nContent-Type: application/json\r\nContent-Length: ";
  bytes += std::to_string(response.body.size());
  bytes += "\r\nConnection: close\r\n" + response.headers + "\r\n" + response.body;
  return bytes;
}

}  // namespace naive_client
