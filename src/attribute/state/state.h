// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "attribute/books/idle_tracker.h"
#include "attribute/books/power_floor.h"
#include "attribute/estimate/estimator.h"
#include "base/clock.h"
#include "base/ids.h"
#include "base/units.h"
#include "model/identity.h"
#include "model/ledger.h"
#include "model/sample.h"

namespace gpuledger::attribute {

// What the books remember over a restart: every counter, what was learned, and since when each process is quiet. Not
// the steps that could still be estimated again.

struct OwnerState {
  Owner owner;
  Booked booked;
  double error = 0;                     // joules, of the estimate
  std::optional<Nanoseconds> gone_for;  // empty: it has processes, or a state of version 1 or 2
};

struct ClosedState {
  OwnerKind kind = OwnerKind::kHost;
  Name name_space;
  Booked booked;
};

struct AccountState {
  ProcessIdentity identity;
  std::optional<MigId> mig_id;  // of the account; the instance may never have been described
  std::optional<MigInstance> mig;
  Booked booked;
  Booked inherited;
  Energy static_energy;
  double claimed = 0;                       // joules above the static watts, of the estimate
  double error = 0;                         // of these
  std::optional<Nanoseconds> gone_for;      // empty: alive
  std::optional<IdleTracker::Memory> idle;  // empty: gone, or a state of an older program
};

struct DeviceState {
  GpuUuid uuid;
  std::string boot_id;            // start ticks, steady time and the counter compare only within one boot
  Timestamp read_at;              // when the counter was
  std::optional<Energy> counter;  // empty: never read, or a GPU that has none
  Energy measured;
  std::optional<Energy> counted_before;  // as the ledger's; empty also in states of older programs
  std::array<Energy, kReasonCount> unattributed{};
  std::map<uint64_t, uint64_t> xids;
  std::map<uint64_t, Nanoseconds> xid_seen;
  std::vector<OwnerState> owners;
  std::vector<ClosedState> closed;  // from version 3 on
  std::vector<AccountState> accounts;
  PowerFloor::Memory idle_floor;
  PowerFloor::Memory resident_floor;
  EstimatorMemory learned;
};

struct EngineState {
  uint64_t number = 0;  // of the save; of two states the one with the higher is the younger
  std::vector<DeviceState> devices;
};

}  // namespace gpuledger::attribute
