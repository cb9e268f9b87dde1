// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "attribute/books/energy_meter.h"
#include "attribute/books/idle_tracker.h"
#include "attribute/books/power_floor.h"
#include "attribute/books/self_check.h"
#include "attribute/estimate/estimator.h"
#include "base/clock.h"
#include "base/ids.h"
#include "base/units.h"
#include "model/identity.h"
#include "model/ledger.h"
#include "model/sample.h"

namespace gpuledger::attribute {

// What the books keep over a restart: all counters, signatures and idle times of processes. Not kept: the windows that
// could be estimated again.

struct OwnerState {
  Owner owner;
  Booked booked;
  double error = 0;                          // joules, of the estimate
  std::optional<Nanoseconds> gone_for = {};  // empty: it has processes, or a state of version 1 or 2
  std::optional<Bytes> memory_peak = {};
  Name uid = {};
  Name user_name = {};
  bool users_differ = false;
  JobFacts job = {};
  bool steps_closed = false;
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
  std::optional<Bytes> memory_peak;
  bool compute = false;
  bool graphics = false;
  bool has_encoded = false;
  bool has_decoded = false;
  double claimed = 0;                       // joules above the static watts, of the estimate
  double error = 0;                         // of these
  std::optional<Nanoseconds> gone_for;      // empty: it runs
  std::optional<IdleTracker::Memory> idle;  // empty: exited, or an older state
};

struct DeviceState {
  GpuUuid uuid;
  std::string boot_id;            // start ticks, steady time and the counter are only valid within one boot
  Timestamp read_at;              // of the counter
  std::optional<Energy> counter;  // empty: never read, or a GPU without one
  std::optional<Power> power;     // of a GPU without a counter; empty also in older states
  std::optional<EnergyMeter::Course> doubted;  // without its time
  Energy measured;
  std::optional<BooksOpening> opening;   // empty in older states
  std::optional<Energy> counted_before;  // as in the ledger; empty also in older states
  std::array<Energy, kReasonCount> unattributed{};
  std::map<uint64_t, uint64_t> xids;
  std::map<uint64_t, Nanoseconds> xid_seen;
  std::vector<OwnerState> owners;
  std::vector<ClosedState> closed;  // from version 3 on
  std::vector<AccountState> accounts;
  PowerFloor::Memory idle_floor;
  PowerFloor::Memory resident_floor;
  SelfCheck::Memory self_check;  // nothing in older states
  EstimatorMemory learned;
};

struct EngineState {
  uint64_t number = 0;  // of the save; a newer state has a higher number
  std::vector<DeviceState> devices;
};

}  // namespace gpuledger::attribute
