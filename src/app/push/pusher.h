// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "app/push/receiver.h"
#include "base/clock.h"
#include "base/result.h"
#include "expose/expose.h"
#include "expose/remote_write.h"
#include "model/snapshot.h"
#include "net/backoff.h"
#include "task/leavable_thread.h"
#include "task/worker.h"

namespace gpuledger::app {

struct PushOptions {
  ReceiverOptions receiver;
  Nanoseconds interval = std::chrono::seconds(15);
  expose::ExtraLabels labels;  // of every series
  std::string queue_folder;    // empty: in memory
  uint64_t queue_bytes = 256 << 20;
  Nanoseconds patience_with_disk = std::chrono::seconds(1);  // at the end
  net::Backoff::Pace pace = {std::chrono::seconds(1), std::chrono::seconds(30), std::chrono::minutes(2)};
};

// Sends snapshots to a receiver of Prometheus' remote write: one thread writes them to the queue, another sends the
// queue. Both may be left behind by a disk that hangs.
class Pusher {
 public:
  using ShownOptions = std::shared_ptr<const expose::ExposeOptions>;

  // Error: the queue's folder cannot be used, or no thread can be made.
  static Result<std::unique_ptr<Pusher>> open(PushOptions options);
  ~Pusher();
  Pusher(const Pusher&) = delete;
  Pusher& operator=(const Pusher&) = delete;

  // Returns at once. While the disk hangs, snapshots are left out.
  void post(std::shared_ptr<const Cycle> cycle, ShownOptions shown);

  // Any thread.
  PushStats stats() const;
  std::vector<SourceHealth> health() const;
  Nanoseconds interval() const { return interval_; }

  // Queues the last snapshot and the end of all series, and sends what it can. Later posts are dropped.
  void finish(std::shared_ptr<const Cycle> last, ShownOptions shown, Nanoseconds patience);

 private:
  struct Shared;
  explicit Pusher(std::shared_ptr<Shared> shared);
  Status start();

  const Nanoseconds interval_;
  std::shared_ptr<Shared> shared_;
  task::Worker writer_;
  task::LeavableThread sender_;  // last: it uses the others
};

}  // namespace gpuledger::app
