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

// What the engine said lately.
struct Findings {
  std::shared_ptr<const View> view;  // the newest that is not too old; empty: none
  std::vector<Life> lives;           // each given once
  std::vector<XidSeen> xids;
  SourceHealth health;
  std::map<std::string, DurationHistogram> durations;  // by call, since start
};

// The one thread that talks to the engine: connects, with a back-off while nobody answers, reads when it is asked to,
// and connects anew when the engine died. Whoever asks never waits for it, or only as long as he says. An engine that
// hangs keeps the thread, and the library, for itself.
class EngineThread {
 public:
  EngineThread(std::shared_ptr<Library> library, Where where, ReaderOptions options, const Clock& clock);
  ~EngineThread();
  EngineThread(const EngineThread&) = delete;
  EngineThread& operator=(const EngineThread&) = delete;

  // Starts one look, unless one is under way.
  void ask(std::set<GpuUuid> without_activity);
  // Until the look asked for is done, or cannot be for now.
  void wait(Nanoseconds patience);
  // At the start: until the first look succeeded or failed.
  void wait_for_first(Nanoseconds patience);
  Findings take();

  // How often looks are asked for from now on; connects anew, so that the engine watches as often.
  void change_interval(Nanoseconds interval);
  // Closes the connection, and with it all that the engine does for us.
  void release();
  void resume();

 private:
  struct Shared;
  static void run(Shared& shared);

  std::shared_ptr<Shared> shared_;
  task::LeavableThread thread_;
};

}  // namespace gpuledger::dcgm
