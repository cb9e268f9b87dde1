// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "sample/dcgm/dcgm_connection.h"
#include "sample/dcgm/dcgm_reader.h"
#include "task/leavable_thread.h"

namespace gpuledger::dcgm {

// The engine's last data.
struct Findings {
  std::shared_ptr<const View> view;  // the newest, if not stale; empty: none
  std::vector<Life> lives;           // each given once
  std::vector<XidSeen> xids;
  SourceHealth health;
  std::map<std::string, DurationHistogram> durations;  // by call, since start
};

// The only thread that calls the engine: it connects, with a back-off on failure, reads when asked, and connects again
// when the engine died. Callers never wait for it, or only up to a given time. An engine that hangs keeps the thread
// and the library.
class EngineThread {
 public:
  // Error: its thread cannot be made.
  static Result<std::unique_ptr<EngineThread>> start(std::shared_ptr<Library> library, Where where,
                                                     ReaderOptions options, const Clock& clock);
  ~EngineThread();
  EngineThread(const EngineThread&) = delete;
  EngineThread& operator=(const EngineThread&) = delete;

  // Starts one read, unless one is running.
  void ask(std::set<GpuUuid> without_activity);
  // Waits until the read is done or not possible for now.
  void wait(Nanoseconds patience);
  // At the start: until the first read succeeded or failed.
  void wait_for_first(Nanoseconds patience);
  Findings take();

  // Sets how often reads are requested; reconnects, so that the engine's watches match.
  void change_interval(Nanoseconds interval);
  // Closes the connection, and with it all our watches.
  void release();
  void resume();

 private:
  struct Shared;
  explicit EngineThread(std::shared_ptr<Shared> shared);
  static void run(Shared& shared);

  std::shared_ptr<Shared> shared_;
  task::LeavableThread thread_;
};

}  // namespace gpuledger::dcgm
