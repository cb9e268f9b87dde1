// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "sample/dcgm/dcgm_engine_thread.h"
#include "sample/gpu_source.h"

namespace gpuledger::dcgm {

struct DcgmSourceOptions {
  std::string library;  // empty: libdcgm.so.4 or libdcgm.so.3
  Where where;
  std::vector<std::string> gpu_devices;  // indexes or UUIDs; empty: all
  Nanoseconds sample_interval = std::chrono::seconds(1);
};

// Hardware through NVML and DCGM together. NVML has priority; DCGM adds what NVML lacks on this GPU: the performance
// monitors of GPUs before Hopper and of their MIG instances, and processes that started and exited between two samples.
// Without NVML, which is decided once at the start, everything comes from DCGM, and the utilization of single processes
// is unknown. The choice never changes: the two read the same energy counter at different times, so a change would look
// like a counter that fell.
class DcgmSource final : public GpuSource {
 public:
  // nvml: empty if the driver's library cannot be used here. The error is the library's, in one line; an engine that is
  // down is no error.
  static Result<std::unique_ptr<DcgmSource>> open(const DcgmSourceOptions& options, std::unique_ptr<GpuSource> nvml,
                                                  const Clock& clock);

  // The engine's GPUs, for the start without NVML; waits for them up to that long.
  Result<std::vector<DeviceDescription>> wait_for_gpus(Nanoseconds patience);

  SampleBatch sample(bool scan_processes) override;
  std::vector<Pid> glance() override;
  void change_interval(Nanoseconds sample_interval) override;
  void change_readings(const Readings& wanted) override;
  void release() override;
  void resume() override;

 private:
  DcgmSource(std::unique_ptr<GpuSource> nvml, std::unique_ptr<EngineThread> engine, const DcgmSourceOptions& options,
             const Clock& clock);
  SampleBatch sample_alone();
  void add_activity(const View& view, SampleBatch& batch) const;
  void add_lives(const std::vector<Life>& lives, SampleBatch& batch);
  void note_seen(const SampleBatch& batch);
  bool remember(const DeviceSample& device);

  const std::unique_ptr<GpuSource> nvml_;
  const std::unique_ptr<EngineThread> engine_;
  const Clock& clock_;
  Nanoseconds interval_;
  const std::vector<std::string> gpu_devices_;
  std::optional<Timestamp> last_at_;
  std::map<GpuUuid, int> without_activity_;                      // for how many batches in a row
  std::vector<std::shared_ptr<const DeviceDescription>> known_;  // without NVML: all GPUs ever seen, up to a limit
  uint64_t too_many_gpus_ = 0;                                   // how often one more was there
  std::map<std::pair<GpuUuid, Pid>, Nanoseconds> seen_;          // when a batch last had it, since 1970
};

}  // namespace gpuledger::dcgm
