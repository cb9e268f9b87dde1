// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/clock.h"
#include "base/mutex.h"

namespace gpuledger {

// Another object's clock, valid as long as that object lives: a driver call that hangs may outlive its source and the
// source's clock.
class BorrowedClock final : public Clock {
 public:
  explicit BorrowedClock(const Clock& clock) : clock_(&clock) {}
  Timestamp now() const override {
    const MutexLock lock(mutex_);
    return clock_ ? clock_->now() : Timestamp{};
  }
  void give_back() {
    const MutexLock lock(mutex_);
    clock_ = nullptr;
  }

 private:
  mutable Mutex mutex_;
  const Clock* clock_ GL_GUARDED_BY(mutex_);
};

}  // namespace gpuledger
