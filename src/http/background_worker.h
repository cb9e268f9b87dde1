// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "task/leavable_thread.h"

namespace gpuledger::http {

// One thread for what would hold the io thread up: password hashes and looking at files.
class BackgroundWorker {
 public:
  // tick runs every interval (0: never). It may outlive this object if it hangs in a dead file system, so it
  // must own what it uses.
  BackgroundWorker(Nanoseconds interval, std::function<void()> tick, size_t max_queue, size_t max_per_peer);
  ~BackgroundWorker();

  // Runs work (which must own what it uses), then done with its result, both on the worker thread.
  // Peers take turns. False when too much is waiting already. done is not called once stop() was.
  bool submit(const std::string& peer, std::function<bool()> work, std::function<void(bool)> done);

  // Waits a short while for what is under way; a thread still busy then ends by itself later.
  void stop();

 private:
  struct Shared;
  static void run(Shared& shared, Nanoseconds interval, const std::function<void()>& tick);

  std::shared_ptr<Shared> shared_;
  task::LeavableThread thread_;
};

}  // namespace gpuledger::http
