// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include "task/leavable_thread.h"

namespace gpuledger::task {

// A thread that does one task after the other, any of which may never return. While it is idle, all that its tasks did
// is there to see for whoever asked; so what only tasks and the owner of an idle worker touch needs no lock.
class Worker {
 public:
  using Task = std::function<void()>;

  Worker();
  ~Worker() { (void)end(Nanoseconds(0)); }

  // Returns at once. The task must own all it touches, and is freed before the worker is idle.
  void post(Task task);
  bool idle() const;
  // True: idle.
  bool wait_until(std::chrono::steady_clock::time_point deadline) const;
  bool wait(Nanoseconds patience) const { return wait_until(std::chrono::steady_clock::now() + patience); }
  // What has not begun.
  void drop_waiting();
  // Does what waits; what is posted afterwards is dropped. False: a task hangs, and the thread is left to it. An idle
  // worker ends whatever the patience.
  bool end(Nanoseconds patience);

 private:
  struct Shared;
  static void run(Shared& shared);

  std::shared_ptr<Shared> shared_;
  LeavableThread thread_;
};

}  // namespace gpuledger::task
