// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "identity/pod_source.h"
#include "task/thread.h"
#include "task/timer.h"

namespace gpuledger::identity {

// One source of pods that may be available on this node.
struct PodChoice {
  std::string name;                                  // "pods-api"
  std::function<std::string()> why_not;              // why it cannot be tried; empty: it can
  std::function<std::unique_ptr<PodSource>()> open;  // starts it
};

// --pod-source=auto: uses the first choice that works. Better choices are tried again every minute. If the one in use
// fails for a minute, all are tried; its names stay until another has answered.
class AutoPods final : public PodSource {
 public:
  struct Timing {
    std::chrono::milliseconds patience{10'000};  // for the first answer of a choice
    std::chrono::milliseconds again{60'000};     // between two searches
    std::chrono::milliseconds step{100};
    const task::Timer* timer = &task::system_timer();
  };

  // Error: its thread cannot be made.
  static Result<std::unique_ptr<AutoPods>> start(std::vector<PodChoice> choices, Timing timing);
  static Result<std::unique_ptr<AutoPods>> start(std::vector<PodChoice> choices) {
    return start(std::move(choices), Timing{});
  }

  std::shared_ptr<const PodView> view() const override;
  SourceHealth health() const override;
  // The source in use; if there is none, all that were tried. Undecided until all were tried, because one may still
  // answer.
  std::vector<SourceHealth> healths() const override;
  void look_again() override;

 private:
  AutoPods(std::vector<PodChoice> choices, Timing timing);
  void run(const std::stop_token& stop);
  bool search(const std::stop_token& stop, size_t end);
  std::shared_ptr<PodSource> try_choice(const std::stop_token& stop, size_t index);
  SourceHealth nobody() const GL_REQUIRES(mutex_);
  std::shared_ptr<PodSource> active() const;

  const std::vector<PodChoice> choices_;
  const Timing timing_;
  size_t active_index_;  // the thread's own: that of active_
  mutable Mutex mutex_;
  std::map<size_t, SourceHealth> tried_ GL_GUARDED_BY(mutex_);  // by choice; errors add up over all tries
  bool searched_ GL_GUARDED_BY(mutex_) = false;                 // all of them, once
  std::shared_ptr<PodSource> active_ GL_GUARDED_BY(mutex_);
  task::Thread thread_;  // last: it uses the others
};

}  // namespace gpuledger::identity
