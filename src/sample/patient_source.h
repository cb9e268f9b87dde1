// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "sample/gpu_source.h"
#include "task/worker.h"

namespace gpuledger {

// A source whose calls may hang as a whole: opening the driver, or finding its GPUs. It has a thread of its own, so
// that whoever asks waits for a while and then goes on: the GPUs it knew are down, its health says why, and once the
// call has returned it is asked again. A call that never returns keeps the thread and the source for itself.
class PatientSource final : public GpuSource {
 public:
  using Make = std::function<std::unique_ptr<GpuSource>(const Clock&)>;

  // name: of its health.
  PatientSource(const Make& make, std::string name, Nanoseconds sample_interval, const Clock& clock);
  ~PatientSource() override;

  // Runs the task on the source's thread. False: it has not ended in time, and goes on.
  bool attempt(std::function<void(GpuSource&)> task, Nanoseconds patience);

  SampleBatch sample(bool scan_processes) override;
  std::vector<Pid> glance() override;
  void change_interval(Nanoseconds sample_interval) override;
  void change_readings(const Readings& wanted) override;
  void release() override;
  void resume() override;

 private:
  struct Shared;
  // Not waited for; runs before anything that is asked later.
  void post(std::function<void(GpuSource&)> task);
  SampleBatch without_answer();

  std::shared_ptr<Shared> shared_;
  Nanoseconds patience_;
  const Clock& clock_;
  std::vector<std::shared_ptr<const DeviceDescription>> known_;
  SourceHealth health_;  // as last heard
  std::map<std::string, DurationHistogram> durations_;
  uint64_t hangs_ = 0;
  bool hanging_ = false;
  task::Worker worker_;
};

}  // namespace gpuledger
