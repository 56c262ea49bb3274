#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

namespace metricstream {

/// A queue between threads that never holds more than it may: who finds it full is told so.
template <typename Item>
class BoundedQueue {
 public:
  explicit BoundedQueue(std::size_t depth) : depth_(depth) {}

  /// Put an item in; false, and the item is left as it was, where the queue is full or closed.
  bool try_push(Item&& item) {
    {
      const std::lock_guard lock(mutex_);
      if (closed_ || items_.size() >= depth_) return false;
      items_.push_back(std::move(item));
    }
    filled_.notify_one();
    return true;
  }

  /// Wait for an item; nothing once the queue is closed and empty.
  std::optional<Item> pop() {
    std::unique_lock lock(mutex_);
    filled_.wait(lock, [this] { return closed_ || !items_.empty(); });
    if (items_.empty()) return std::nullopt;
    std::optional<Item> item(std::move(items_.front()));
    items_.pop_front();
    return item;
  }

  /// Take no more; what is in it can still be had.
  void close() {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
    }
    filled_.notify_all();
  }

 private:
  const std::size_t depth_;
  std::mutex mutex_;
  std::condition_variable filled_;
  std::deque<Item> items_;
  bool closed_ = false;
};

}  // namespace metricstream
