// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include "task/leavable_thread.h"

namespace gpuledger::task {

// A thread that runs tasks one by one; any of them may never return. While it is idle, the effects of its tasks are
// visible to the caller, so data used only by tasks and by the owner of an idle worker needs no lock.
class Worker {
 public:
  using Task = std::function<void()>;

  Worker();
  ~Worker() { (void)end(Nanoseconds(0)); }

  // Makes the thread, unless there is one. Error: none can be made now; it can be called again. Tasks wait for it.
  Status start();

  // Returns at once. The task must own all it uses, and is freed before the worker is idle.
  void post(Task task);
  bool idle() const;
  // True: idle.
  bool wait_until(std::chrono::steady_clock::time_point deadline) const;
  bool wait(Nanoseconds patience) const { return wait_until(std::chrono::steady_clock::now() + patience); }
  void drop_waiting();
  // Runs the waiting tasks; later posts are dropped. False: a task hangs, and the thread is left behind. An idle worker
  // always ends.
  bool end(Nanoseconds patience);

 private:
  struct Shared;
  static void run(Shared& shared);

  std::shared_ptr<Shared> shared_;
  LeavableThread thread_;
  bool started_ = false;
};

}  // namespace gpuledger::task
