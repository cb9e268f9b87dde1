// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "app/config/config.h"
#include "base/clock.h"
#include "base/result.h"
#include "model/identity_source.h"
#include "sample/replay/trace.h"

namespace gpuledger::app {

// The lines of k "process" of a recording: what each process is called and whose it is, as far as kin depends on it.
class NameRecorder {
 public:
  // gpu: what is recorded. form: not kNone. Error: no key for the hashes.
  static Result<std::unique_ptr<NameRecorder>> open(std::unique_ptr<IdentitySource> identities, GpuUuid gpu,
                                                    RecordNames form);

  // Appends a line for each process that is new, or is called something else than before. Processes that cannot be read
  // have none. t: `at` in the recording.
  void record(const std::set<Pid>& pids, const Timestamp& at, Nanoseconds t, std::string& out);

 private:
  NameRecorder(std::unique_ptr<IdentitySource> identities, GpuUuid gpu, RecordNames form, std::string key);
  replay::Trace::Process named(const ProcessIdentity& identity) const;
  std::string hash(const char* use, const std::string& text) const;

  std::unique_ptr<IdentitySource> identities_;
  std::shared_ptr<const DeviceDescription> gpu_;
  RecordNames form_;
  std::string key_;  // of the hashes: random, and kept nowhere, so that nobody can try names
  std::set<Pid> asked_;
  std::optional<Nanoseconds> asked_at_;
  std::map<Pid, replay::Trace::Process> written_;  // of those that run
};

}  // namespace gpuledger::app
