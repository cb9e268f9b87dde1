#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <tuple>

#include "model/ledger.h"

namespace gpuledger::testing {

// The books balance, for every GPU, to the microjoule: device = owners + reasons, and an owner holds at least
// what its listed processes were charged.
inline void expect_balanced(const Ledger& ledger) {
  std::map<GpuUuid, Energy> booked;
  std::map<std::pair<Owner, GpuUuid>, Energy> by_owner;
  for (const OwnerAccount& owner : ledger.owners) {
    booked[owner.gpu] += owner.booked.total();
    by_owner[{owner.owner, owner.gpu}] += owner.booked.total();
  }
  for (const DeviceAccount& device : ledger.devices) {
    Energy sum = booked[device.description->uuid];
    for (Energy part : device.unattributed) sum += part;
    ASSERT_EQ(sum.microjoules(), device.measured.microjoules()) << device.description->uuid.text;
  }
  std::map<std::pair<Owner, GpuUuid>, Energy> by_process;
  for (const ProcessAccount& process : ledger.processes) {
    by_process[{process.identity.owner, process.gpu}] += process.booked.total();
  }
  for (const auto& [key, energy] : by_process) {
    ASSERT_GE(by_owner[key].microjoules(), energy.microjoules()) << key.second.text;
  }
}

// Nothing that is a counter ever falls. Remembers the highest value of each; of processes only while they are
// listed: what comes back after it was forgotten rightly begins at zero.
class NeverFalls {
 public:
  void check(const Ledger& ledger) {
    for (const DeviceAccount& device : ledger.devices) {
      const std::string& gpu = device.description->uuid.text;
      rise(gpu + "/measured", device.measured.microjoules());
      // What is shown as the GPU's own counter.
      if (device.counted_before) rise(gpu + "/shown", (*device.counted_before + device.measured).microjoules());
      for (size_t i = 0; i < kReasonCount; ++i) {
        rise(gpu + "/reason" + std::to_string(i), device.unattributed[i].microjoules());
      }
    }
    for (const OwnerAccount& owner : ledger.owners) {
      const std::string name = owner.gpu.text + "/owner/" + std::to_string(static_cast<int>(owner.owner.kind)) +
                               owner.owner.pod_uid + owner.owner.job + owner.owner.container_id;
      rise(name + "/alone", owner.booked.alone.microjoules());
      rise(name + "/shared", owner.booked.shared.microjoules());
      rise(name + "/time", owner.booked.gpu_time.value_or(Nanoseconds(0)).count());
    }
    std::map<std::string, int64_t> listed;
    for (const ProcessAccount& process : ledger.processes) {
      const std::string name = process.gpu.text + "/" + std::to_string(process.identity.key.pid) + "/" +
                               std::to_string(process.identity.key.start_ticks) + process.identity.owner.pod_uid;
      listed[name + "/alone"] = process.booked.alone.microjoules();
      listed[name + "/shared"] = process.booked.shared.microjoules();
      listed[name + "/time"] = process.booked.gpu_time.value_or(Nanoseconds(0)).count();
    }
    for (const auto& [name, value] : listed) {
      const auto before = processes_.find(name);
      if (before != processes_.end()) { ASSERT_GE(value, before->second) << name << " fell"; }
    }
    processes_ = std::move(listed);
  }

 private:
  void rise(const std::string& name, int64_t value) {
    int64_t& highest = highest_[name];
    ASSERT_GE(value, highest) << name << " fell";
    highest = value;
  }
  std::map<std::string, int64_t> highest_;
  std::map<std::string, int64_t> processes_;
};

}  // namespace gpuledger::testing
