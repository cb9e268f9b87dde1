// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>

#include "base/clock.h"
#include "base/result.h"
#include "task/thread.h"

namespace gpuledger::task {

// A thread whose calls may never return: into a driver that hangs, or a dead file system. Its owner waits for a while
// and then leaves it behind, so its body must own all it uses; data for other threads is in shared state.
class LeavableThread {
 public:
  LeavableThread() = default;
  ~LeavableThread() { (void)end(Nanoseconds(0)); }
  LeavableThread(const LeavableThread&) = delete;
  LeavableThread& operator=(const LeavableThread&) = delete;

  // Once. Error: no thread can be made now; it can be called again.
  Status start(std::function<void()> body);
  // Call it after the body was told to end. False: it did not, and is left behind.
  bool end(Nanoseconds patience);

 private:
  struct Over;
  std::shared_ptr<Over> over_;  // null: not started
  Thread thread_;
};

// Whether any thread of this program was left behind. Its call may return at any moment, also while exit() destroys
// statics and ends libraries: the thread then closes the driver's library at the same time, which crashes. Such a
// program ends by _Exit.
bool any_left_behind();

}  // namespace gpuledger::task
