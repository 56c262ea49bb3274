#pragma once

#include <atomic>
#include <bit>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <utility>
#include <vector>

namespace metricstream {

/// Of the pool's queue, of the consumers' queue, and of the ring.
constexpr std::size_t queue_depth = 1024;

/// A queue between threads that never holds more than it may: who finds it full is told so.
template <typename Item>
class BoundedQueue {
 public:
  explicit BoundedQueue(std::size_t depth) : depth_(depth) {}

  /// Put an item in; false, and the item is left as it was, where the queue is full.
  bool try_push(Item&& item) {
    {
      const std::lock_guard lock(mutex_);
      if (items_.size() >= depth_) return false;
      items_.push_back(std::move(item));
    }
    filled_.notify_one();
    return true;
  }

  /// Wait for an item.
  Item pop() {
    std::unique_lock lock(mutex_);
    filled_.wait(lock, [this] { return !items_.empty(); });
    Item item = std::move(items_.front());
    items_.pop_front();
    return item;
  }

 private:
  const std::size_t depth_;
  std::mutex mutex_;
  std::condition_variable filled_;
  std::deque<Item> items_;
};

/// A bounded ring that many threads fill and empty without a lock.
///
/// Each cell has a turn that says whether it waits to be filled or to be emptied.
/// Source: D. Vyukov, Bounded MPMC queue.
template <typename Item>
class Ring {
 public:
  /// `depth` is rounded up to a power of two.
  explicit Ring(std::size_t depth)
      : cells_(std::bit_ceil(depth < 2 ? 2 : depth)), mask_(cells_.size() - 1) {
    for (std::size_t at = 0; at < cells_.size(); ++at) {
      cells_[at].turn.store(at, std::memory_order_relaxed);
    }
  }

  /// Put an item in; false, and the item is left as it was, where the ring is full.
  bool try_push(Item&& item) {
    std::size_t at = head_.load(std::memory_order_relaxed);
    for (;;) {
      Cell& cell = cells_[at & mask_];
      const auto turn = cell.turn.load(std::memory_order_acquire);
      if (turn == at) {
        if (head_.compare_exchange_weak(at, at + 1, std::memory_order_relaxed)) {
          cell.item = std::move(item);
          cell.turn.store(at + 1, std::memory_order_release);
          return true;
        }
      } else if (static_cast<std::intptr_t>(turn - at) < 0) {
        return false;
      } else {
        at = head_.load(std::memory_order_relaxed);
      }
    }
  }

  /// Take an item out; false where the ring is empty.
  bool try_pop(Item& item) {
    std::size_t at = tail_.load(std::memory_order_relaxed);
    for (;;) {
      Cell& cell = cells_[at & mask_];
      const auto turn = cell.turn.load(std::memory_order_acquire);
      if (turn == at + 1) {
        if (tail_.compare_exchange_weak(at, at + 1, std::memory_order_relaxed)) {
          item = std::exchange(cell.item, Item{});
          cell.turn.store(at + cells_.size(), std::memory_order_release);
          return true;
        }
      } else if (static_cast<std::intptr_t>(turn - (at + 1)) < 0) {
        return false;
      } else {
        at = tail_.load(std::memory_order_relaxed);
      }
    }
  }

 private:
  // Threads that fill and threads that empty shall not take each other's cache line.
  static constexpr std::size_t line = 64;
  struct alignas(line) Cell {
    std::atomic<std::size_t> turn{0};
    Item item{};
  };

  std::vector<Cell> cells_;
  const std::size_t mask_;
  alignas(line) std::atomic<std::size_t> head_{0};
  alignas(line) std::atomic<std::size_t> tail_{0};
};

}  // namespace metricstream
