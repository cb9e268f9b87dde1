// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <deque>

namespace gpuledger::sim {

// The newest kCapacity entries, oldest first.
template <typename T, size_t kCapacity>
class Ring {
 public:
  void push(const T& entry) {
    if (entries_.size() == kCapacity) entries_.pop_front();
    entries_.push_back(entry);
  }
  void clear() { entries_.clear(); }
  bool empty() const { return entries_.empty(); }
  size_t size() const { return entries_.size(); }
  const T& newest() const { return entries_.back(); }
  const T& operator[](size_t i) const { return entries_[i]; }
  auto begin() const { return entries_.begin(); }
  auto end() const { return entries_.end(); }

 private:
  std::deque<T> entries_;
};

}  // namespace gpuledger::sim
