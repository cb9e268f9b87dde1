// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "model/identity.h"
#include "model/sample.h"

namespace gpuledger::testing {

// Hand-made batches for tests of the attribute stage: a history is a list of calls.
class BatchBuilder {
 public:
  explicit BatchBuilder(double at_seconds) {
    batch_.at.steady = to_ns(at_seconds);
    batch_.at.wall = to_ns(1'700'000'000 + at_seconds);
    batch_.processes_scanned = true;
    batch_.health = {.source = "nvml", .up = true, .reason = {}, .errors = {}};
  }

  static Nanoseconds to_ns(double seconds) { return Nanoseconds(static_cast<int64_t>(seconds * 1e9 + 0.5)); }

  BatchBuilder& gpu(uint32_t index, int64_t counter_mj, double power_limit_watts = 700) {
    auto description = std::make_shared<DeviceDescription>();
    description->uuid = {"GPU-" + std::to_string(index)};
    description->index = index;
    description->model = "Test GPU";
    description->power_limit = Power::watts(power_limit_watts);
    DeviceSample device;
    device.description = description;
    device.up = true;
    device.energy_counter = Energy::millijoules(counter_mj);
    device.gpu_utilization = Ratio{0};
    device.utilization = UtilizationState::kKnown;
    batch_.devices.push_back(std::move(device));
    description_ = std::move(description);
    return *this;
  }

  BatchBuilder& process(Pid pid, double sm, uint64_t start = 0, Owner owner = {}) {
    ProcessSample process;
    process.pid = pid;
    process.listed = process.compute = true;
    process.memory = Bytes{1 << 30};
    process.use.sm = Ratio{sm};
    if (sm > 0) device().gpu_utilization = Ratio{1};
    device().processes.push_back(process);
    ProcessIdentity identity;
    identity.key = {pid, start == 0 ? pid * 10 : start};
    identity.name = "p" + std::to_string(pid);
    identity.owner = std::move(owner);
    identities_.by_pid[pid] = std::move(identity);
    return *this;
  }

  // A ticket or list entry for a pid that /proc no longer has.
  BatchBuilder& gone_process(Pid pid, double sm) {
    ProcessSample process;
    process.pid = pid;
    process.use.sm = Ratio{sm};
    device().processes.push_back(process);
    return *this;
  }

  DeviceSample& device() { return batch_.devices.back(); }
  DeviceDescription& description() { return *description_; }
  ProcessSample& last() { return device().processes.back(); }
  ProcessIdentity& identity(Pid pid) { return identities_.by_pid[pid]; }
  const SampleBatch& batch() const { return batch_; }
  const IdentityMap& identities() const { return identities_; }

 private:
  SampleBatch batch_;
  IdentityMap identities_;
  std::shared_ptr<DeviceDescription> description_;
};

inline Owner pod_owner(const std::string& pod, const std::string& name_space = "ml") {
  Owner owner;
  owner.kind = OwnerKind::kPod;
  owner.name_space = name_space;
  owner.pod = pod;
  owner.pod_uid = "uid-" + pod;
  return owner;
}

}  // namespace gpuledger::testing
