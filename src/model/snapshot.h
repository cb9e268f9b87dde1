// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "model/identity.h"
#include "model/lazy_text.h"
#include "model/ledger.h"
#include "model/sample.h"

namespace gpuledger {

// The program's own use of the machine, read once a cycle.
struct SelfStats {
  double cpu_seconds = 0;
  double start_time_seconds = 0;
  uint64_t resident_bytes = 0;
  uint64_t virtual_bytes = 0;
  uint64_t open_fds = 0;
  std::optional<uint64_t> max_fds;  // empty: no limit
  uint64_t threads = 0;
};

// What --push-url has done since the start, and what waits for the receiver.
struct PushStats {
  uint64_t sent = 0;  // samples, as the other counts
  uint64_t rejected = 0;
  uint64_t over_limit = 0;
  uint64_t unreadable = 0;
  uint64_t waiting = 0;
  uint64_t waiting_bytes = 0;
  std::optional<Nanoseconds> oldest_waiting;  // wall
  std::optional<Nanoseconds> last_success;    // wall
};

// All data of one cycle. The exposition is made from it.
struct Cycle {
  uint64_t number = 0;
  bool simulated = false;
  SampleBatch batch;
  std::shared_ptr<const IdentityMap> identities = std::make_shared<const IdentityMap>();
  Ledger ledger;
  std::vector<SourceHealth> sources;
  std::optional<uint64_t> gpus_expected;  // empty: not known
  std::optional<double> booted_at;        // the node, since 1970; empty: not known
  DurationHistogram cycle_durations;
  SelfStats self;
  std::optional<PushStats> push;  // empty: nothing is pushed
};

// What readers get: a finished cycle and its bytes. Immutable once published.
struct Snapshot {
  std::shared_ptr<const Cycle> cycle;
  LazyText text;         // text format 0.0.4
  LazyText openmetrics;  // OpenMetrics 1.0
  LazyText json;         // /api/v1/snapshot
  LazyText history;      // /api/v1/history; many snapshots share one
  LazyText gpu_text;     // /gpu/metrics
  LazyText gpu_openmetrics;
  bool serves_gpu = false;  // false: /gpu/metrics is switched off
};

// One writer, many readers. A mutex and not std::atomic<std::shared_ptr>: g++ 12's has a race inside
// that ThreadSanitizer reports.
class SnapshotCell {
 public:
  std::shared_ptr<const Snapshot> load() const {
    MutexLock lock(mutex_);
    return snapshot_;
  }
  void store(std::shared_ptr<const Snapshot> snapshot) {
    MutexLock lock(mutex_);
    snapshot_.swap(snapshot);
  }

 private:
  mutable Mutex mutex_;
  std::shared_ptr<const Snapshot> snapshot_ GL_GUARDED_BY(mutex_);
};

}  // namespace gpuledger
