// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "sample/gpu_source.h"
#include "task/worker.h"

namespace gpuledger {

// A source whose calls may hang as a whole: opening the driver, or finding its GPUs. It runs on its own thread. A
// caller waits for a limited time and then goes on: the known GPUs are down, the health says why, and once the call has
// returned the source is used again. A call that never returns keeps the thread and the source.
class PatientSource final : public GpuSource {
 public:
  using Make = std::function<std::unique_ptr<GpuSource>(const Clock&)>;

  // Longer than a source waits for one of its GPUs, which is 2 s or two intervals. Three intervals may be longer still.
  static constexpr Nanoseconds kLeastPatience = std::chrono::seconds(5);

  // name: in its health. Error: its thread cannot be made.
  static Result<std::unique_ptr<PatientSource>> open(const Make& make, std::string name, Nanoseconds sample_interval,
                                                     const Clock& clock, Nanoseconds least_patience = kLeastPatience);
  ~PatientSource() override;

  // Runs the task on the source's thread. False: it has not ended in time and goes on.
  bool attempt(std::function<void(GpuSource&)> task, Nanoseconds patience);

  SampleBatch sample(bool scan_processes) override;
  std::vector<Pid> glance() override;
  void change_interval(Nanoseconds sample_interval) override;
  void change_readings(const Readings& wanted) override;
  void release() override;
  void resume() override;

 private:
  struct Shared;
  PatientSource(const Make& make, std::string name, Nanoseconds sample_interval, const Clock& clock,
                Nanoseconds least_patience);
  // Does not wait; runs before later tasks.
  void post(std::function<void(GpuSource&)> task);
  void note_hang();
  SampleBatch without_answer();

  Nanoseconds patience_for(Nanoseconds sample_interval) const { return std::max(least_patience_, 3 * sample_interval); }

  std::shared_ptr<Shared> shared_;
  const Nanoseconds least_patience_;
  Nanoseconds patience_;
  const Clock& clock_;
  std::vector<std::shared_ptr<const DeviceDescription>> known_;
  SourceHealth health_;  // last known
  std::map<std::string, DurationHistogram> durations_;
  uint64_t hangs_ = 0;
  bool hanging_ = false;
  task::Worker worker_;
};

}  // namespace gpuledger
