#include "runs.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <random>
#include <utility>

namespace naive_client {
namespace {

constexpr std::size_t most_kept = 20;

/// A number that no other process of this program has given.
std::string new_id() {
  std::random_device source;
  std::array<char, 17> text{};
  std::snprintf(text.data(), text.size(), "%08x%08x", source(), source());
  return text.data();
}

}  // namespace

const Run* Runs::running() const {
  return !kept_.empty() && kept_.back()->is_running() ? kept_.back().get() : nullptr;
}

const Run& Runs::start(Workload workload) {
  kept_.push_back(std::make_unique<Run>(new_id(), std::move(workload)));
  if (kept_.size() > most_kept) kept_.pop_front();
  return *kept_.back();
}

const Run* Runs::find(std::string_view id) const {
  const auto found =
      std::ranges::find_if(kept_, [id](const auto& run) { return run->id() == id; });
  return found == kept_.end() ? nullptr : found->get();
}

}  // namespace naive_client
