// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <thread>

#include "base/clock.h"

namespace gpuledger::task {

// A thread whose calls may never return: into a driver that hangs, or a dead file system. Whoever ends it waits for a
// while and then leaves it to itself; so its body must own all it touches, with shared state where others look at it.
class LeavableThread {
 public:
  explicit LeavableThread(std::function<void()> body);
  ~LeavableThread() { (void)end(Nanoseconds(0)); }
  LeavableThread(const LeavableThread&) = delete;
  LeavableThread& operator=(const LeavableThread&) = delete;

  // After the body was told to end, in whatever way it is told. False: it does not, and is left to itself.
  bool end(Nanoseconds patience);

 private:
  struct Over;
  std::shared_ptr<Over> over_;
  std::thread thread_;
};

}  // namespace gpuledger::task
