// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <functional>
#include <vector>

#include "app/runtime/pipeline.h"
#include "base/mutex.h"
#include "model/snapshot.h"
#include "task/thread.h"

namespace gpuledger::app {

// The only thread that writes: runs the pipeline every interval, first after one interval, and publishes the snapshots.
class Sampler {
 public:
  Sampler(Pipeline& pipeline, Nanoseconds interval, SnapshotCell& cell);
  ~Sampler();

  // Once. Error: its thread cannot be made.
  Status start();

  // Runs between two cycles, on the sampler's thread; the next cycle follows at once.
  void post(std::function<void(Pipeline&)> task);
  void change_interval(Nanoseconds interval);
  // False: a driver call hangs and blocks the thread.
  bool stop(Nanoseconds patience);

 private:
  void run(const std::stop_token& stop);

  Pipeline& pipeline_;
  SnapshotCell& cell_;
  Mutex mutex_;
  std::condition_variable_any wake_;
  Nanoseconds interval_ GL_GUARDED_BY(mutex_);
  std::vector<std::function<void(Pipeline&)>> tasks_ GL_GUARDED_BY(mutex_);
  bool ended_ GL_GUARDED_BY(mutex_) = false;
  task::Thread thread_;  // last: it uses the others
};

}  // namespace gpuledger::app
