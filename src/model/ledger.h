// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "base/units.h"
#include "model/identity.h"
#include "model/sample.h"

namespace gpuledger {

// Why a joule belongs to no process.
enum class Reason {
  kIdle,          // no process held the GPU
  kStatic,        // idle and resident watts under --static-power=separate
  kUnseen,        // somebody worked, but the driver named nobody we may charge
  kExporterDown,  // spent while nobody looked
  kAnomaly,       // more than the GPU can draw: a glitch of the counter, booked but charged to nobody
};
inline constexpr size_t kReasonCount = 5;

// Joules booked while the process was alone on the GPU are measured; the rest are estimated.
struct Booked {
  Energy alone;
  Energy shared;
  std::optional<Nanoseconds> gpu_time;  // empty: no GPU ever said (MIG)
  Energy total() const { return alone + shared; }
  void add_gpu_time(Nanoseconds time) { gpu_time = gpu_time.value_or(Nanoseconds(0)) + time; }
  Booked& operator+=(const Booked& other) {
    alone += other.alone;
    shared += other.shared;
    if (other.gpu_time) add_gpu_time(*other.gpu_time);
    return *this;
  }
};

// What tells how long each process worked.
enum class GpuTimeSource {
  kNone,     // nothing, or nobody was there
  kSamples,  // the driver's samples
  kTrace,    // its context-switch trace
};

struct DeviceAccount {
  std::shared_ptr<const DeviceDescription> description;
  bool up = false;
  Energy measured;  // since the ledger began; always owners + closed + unattributed
  std::array<Energy, kReasonCount> unattributed{};
  // What the hardware's counter had counted before the ledger began: this and measured are what it shows, and go on
  // where it starts again (a driver reload). Empty: it was never read, or there is none.
  std::optional<Energy> counted_before;
  Energy last_step;                                      // of measured
  GpuTimeSource gpu_time_source = GpuTimeSource::kNone;  // of the last step
  std::optional<Power> idle_power;                       // given or learned
  std::map<uint64_t, uint64_t> xids;
  std::map<uint64_t, Nanoseconds> xid_seen;  // since 1970, the last of each; no two the same, so that one is the last
};

struct IdleState {
  bool evaluated = false;  // false: nobody can say yet, or the GPU never can, so nobody is called idle
  bool idle = false;
  Nanoseconds idle_for{0};
  Ratio highest_sm;  // since the last evaluation
};

struct ProcessAccount {
  GpuUuid gpu;
  uint32_t gpu_index = 0;
  std::optional<MigInstance> mig;
  ProcessIdentity identity;
  bool active = true;  // false: exited and retained
  Booked booked;
  Energy last_step;                  // of what is booked, with the device's last step
  Energy static_energy;              // of what is booked: idle and resident watts
  double standard_error_joules = 0;  // one standard deviation of booked.shared
  std::optional<Ratio> sm;           // empty where utilisation is unknown, or after exit
  std::optional<Ratio> memory_utilization;
  std::optional<Bytes> memory;
  IdleState idle;
  std::optional<Nanoseconds> gone_for;  // since exit
};

struct OwnerAccount {
  Owner owner;
  GpuUuid gpu;
  uint32_t gpu_index = 0;
  Booked booked;                     // living and gone processes alike
  double standard_error_joules = 0;  // one standard deviation of booked.shared; no sum of the processes' own
  std::optional<Bytes> idle_memory;  // empty: none of its processes is listed any more
};

// What ended owners used whose own accounts are closed: --owner-retention is over, or there were too many of them.
// Namespaces that were too many to keep apart stand under a name that none can have.
inline constexpr std::string_view kOtherNamespaces = "(others)";
struct ClosedAccount {
  OwnerKind kind = OwnerKind::kHost;
  Name name_space;  // of pods; empty where their names were never known
  GpuUuid gpu;
  uint32_t gpu_index = 0;
  Booked booked;
};

// How many accounts were given up since the program started, by why.
struct FoldedAccounts {
  uint64_t processes_over_limit = 0;  // --max-exited-processes; their joules stay their owners'
  uint64_t owners_over_time = 0;      // --owner-retention; theirs are in the closed accounts
  uint64_t owners_over_limit = 0;     // --max-ended-owners; likewise
};

struct AllocationAccount {
  Allocation allocation;
  // How long nobody whom it was given to has worked on it. Empty: the GPU cannot say who works.
  std::optional<Nanoseconds> idle_for;
};

// One immutable state of the books.
struct Ledger {
  std::vector<DeviceAccount> devices;     // by index
  std::vector<ProcessAccount> processes;  // by GPU index, then pid, then start
  std::vector<OwnerAccount> owners;       // by GPU index, then owner
  std::vector<ClosedAccount> closed;      // by GPU index, then kind and namespace
  FoldedAccounts folded;
  std::vector<AllocationAccount> allocations;
};

}  // namespace gpuledger
