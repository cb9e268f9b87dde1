// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <tuple>

#include "model/ledger.h"

namespace gpuledger::testing {

// The books balance, for every GPU, to the microjoule: device = owners + closed accounts + reasons, and an owner has at
// least the charges of its listed processes.
inline void expect_balanced(const Ledger& ledger) {
  std::map<GpuUuid, Energy> booked;
  std::map<std::pair<Owner, GpuUuid>, Energy> by_owner;
  for (const OwnerAccount& owner : ledger.owners) {
    booked[owner.gpu] += owner.booked.total();
    by_owner[{owner.owner, owner.gpu}] += owner.booked.total();
  }
  for (const ClosedAccount& closed : ledger.closed) booked[closed.gpu] += closed.booked.total();
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

// No counter ever falls. Remembers the highest value of each; of owners only while they are listed, because an owner
// that returns after its account was closed begins at zero. An exited process never becomes active again, except one
// without a start time, which may be another process.
class NeverFalls {
 public:
  void check(const Ledger& ledger) {
    for (const DeviceAccount& device : ledger.devices) {
      const std::string& gpu = device.description->uuid.text;
      rise(gpu + "/measured", device.measured.microjoules());
      // The value that is shown as the GPU's own counter.
      if (device.counted_before) rise(gpu + "/shown", (*device.counted_before + device.measured).microjoules());
      for (size_t i = 0; i < kReasonCount; ++i) {
        rise(gpu + "/reason" + std::to_string(i), device.unattributed[i].microjoules());
      }
    }
    std::map<std::string, int64_t> listed;
    for (const OwnerAccount& owner : ledger.owners) {
      const std::string name = owner.gpu.text + "/owner/" + std::to_string(static_cast<int>(owner.owner.kind)) +
                               owner.owner.pod_uid + owner.owner.job + owner.owner.container_id;
      listed[name + "/alone"] = owner.booked.alone.microjoules();
      listed[name + "/shared"] = owner.booked.shared.microjoules();
      listed[name + "/time"] = owner.booked.gpu_time.value_or(Nanoseconds(0)).count();
    }
    for (const ProcessAccount& process : ledger.processes) {
      const std::string name = process.gpu.text + "/" + std::to_string(process.identity.key.pid) + "/" +
                               std::to_string(process.identity.key.start_ticks) + process.identity.owner.pod_uid;
      const auto note = [&](const std::string& what, int64_t value) {
        if (process.identity.key.start_ticks == 0) {
          listed[name + what] = value;
        } else {
          rise(name + what, value);
        }
      };
      note("/alone", process.booked.alone.microjoules());
      note("/shared", process.booked.shared.microjoules());
      note("/time", process.booked.gpu_time.value_or(Nanoseconds(0)).count());
    }
    for (const auto& [name, value] : listed) {
      const auto before = listed_.find(name);
      if (before != listed_.end()) { ASSERT_GE(value, before->second) << name << " fell"; }
    }
    listed_ = std::move(listed);
  }

 private:
  void rise(const std::string& name, int64_t value) {
    int64_t& highest = highest_[name];
    ASSERT_GE(value, highest) << name << " fell";
    highest = value;
  }
  std::map<std::string, int64_t> highest_;
  std::map<std::string, int64_t> listed_;
};

// For every step, Prometheus' increase() over all counters equals the energy of the GPUs: no joule counts twice, even
// if accounts end or come back. A new series counts from zero.
class IncreasesAreWhatWasSpent {
 public:
  void check(const Ledger& ledger) {
    std::map<GpuUuid, int64_t> booked;
    std::map<std::pair<Owner, GpuUuid>, int64_t> owners;
    std::map<GpuUuid, std::pair<int64_t, int64_t>> devices;
    // After a restart a GPU may be missing for a while; its series then continue.
    std::set<GpuUuid> here;
    for (const DeviceAccount& device : ledger.devices) here.insert(device.description->uuid);
    for (const auto& [key, energy] : owners_) {
      if (!here.contains(key.second)) owners[key] = energy;
    }
    for (const OwnerAccount& owner : ledger.owners) {
      const int64_t now = owner.booked.total().microjoules();
      const auto before = owners_.find({owner.owner, owner.gpu});
      booked[owner.gpu] += now - (before == owners_.end() ? 0 : before->second);
      owners[{owner.owner, owner.gpu}] = now;
    }
    for (const DeviceAccount& device : ledger.devices) {
      const GpuUuid& gpu = device.description->uuid;
      int64_t unattributed = 0;
      for (Energy part : device.unattributed) unattributed += part.microjoules();
      const auto before = devices_[gpu];
      ASSERT_EQ(booked[gpu] + unattributed - before.second, device.measured.microjoules() - before.first) << gpu.text;
      devices[gpu] = {device.measured.microjoules(), unattributed};
    }
    owners_ = std::move(owners);
    for (const auto& [gpu, values] : devices) devices_[gpu] = values;
  }

 private:
  std::map<std::pair<Owner, GpuUuid>, int64_t> owners_;
  std::map<GpuUuid, std::pair<int64_t, int64_t>> devices_;  // measured, unattributed
};

}  // namespace gpuledger::testing
