// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>

#include "base/mutex.h"
#include "base/result.h"
#include "model/sample.h"

namespace gpuledger::task {

// The code of a source that has no thread to ask with.
inline constexpr const char* kNoThread = "no_thread";

// Health of a source that runs on its own thread, readable from any other.
class HealthCell {
 public:
  explicit HealthCell(std::string source) {
    health_.source = std::move(source);
    health_.reason = "not asked yet";
    health_.undecided = true;
  }

  void works() {
    const MutexLock lock(mutex_);
    health_.up = true;
    health_.undecided = false;
    health_.reason.clear();
  }
  // code: a short name for the counter ("unavailable", "http_403"); reason: problem and remedy in one line.
  void fails(const std::string& code, std::string reason) {
    const MutexLock lock(mutex_);
    health_.up = health_.undecided = false;
    health_.reason = std::move(reason);
    ++health_.errors[code];
  }
  // Without its thread the source stays down.
  void needs_thread(const Status& started) {
    if (!started.ok()) fails(kNoThread, started.error().message);
  }
  // An error that does not stop the source.
  void counts(const std::string& code) {
    const MutexLock lock(mutex_);
    ++health_.errors[code];
  }

  SourceHealth get() const {
    const MutexLock lock(mutex_);
    return health_;
  }

 private:
  mutable Mutex mutex_;
  SourceHealth health_ GL_GUARDED_BY(mutex_);
};

}  // namespace gpuledger::task
