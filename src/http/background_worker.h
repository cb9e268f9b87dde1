// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "task/leavable_thread.h"

namespace gpuledger::http {

// One thread for work that would block the io thread: password hashes and file checks.
class BackgroundWorker {
 public:
  BackgroundWorker(size_t max_queue, size_t max_per_peer);
  ~BackgroundWorker();

  // Once. tick runs every interval (0: never). It may hang in a dead file system and outlive this object, so it must
  // own what it uses. Error: no thread can be made.
  Status start(Nanoseconds interval, std::function<void()> tick);

  // Runs work (which must own what it uses), then done with its result, both on the worker thread. Peers take turns.
  // False if too much is waiting. done is not called after stop().
  bool submit(const std::string& peer, std::function<bool()> work, std::function<void(bool)> done);

  // Waits briefly for the running work; a thread still busy then ends by itself later.
  void stop();

 private:
  struct Shared;
  static void run(Shared& shared, Nanoseconds interval, const std::function<void()>& tick);

  std::shared_ptr<Shared> shared_;
  task::LeavableThread thread_;
};

}  // namespace gpuledger::http
