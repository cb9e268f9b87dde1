// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "sample/switch_trace/trace_loop.h"
#include "task/leavable_thread.h"

namespace gpuledger::switch_trace {

// A TraceLoop on its own thread: its calls may wait for the driver's locks, and the sampler must not. Used by one
// thread.
class TracerThread {
 public:
  // Error: its thread cannot be made now.
  static Result<std::unique_ptr<TracerThread>> start(std::shared_ptr<DriverDoor> door, TraceOptions options,
                                                     const Clock& clock);
  // Waits until the GPU is released. A driver that hangs is left behind after a while; it is released when it returns.
  ~TracerThread();
  TracerThread(const TracerThread&) = delete;
  TracerThread& operator=(const TracerThread&) = delete;

  // Requests the end without waiting: many can then be awaited at once.
  void ask_to_end();
  // Reads the ring now and not at the next step, so that the next report is fresh. Does not wait.
  void look_now();
  // Whether it has looked since it was told to, and waits for the next time.
  bool at_rest() const;
  void suspect_silence();
  TraceReport take_report();

 private:
  struct Shared;
  explicit TracerThread(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}
  static void run(Shared& shared, TraceLoop loop);

  std::shared_ptr<Shared> shared_;
  task::LeavableThread thread_;
};

}  // namespace gpuledger::switch_trace
