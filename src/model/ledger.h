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

// Why energy belongs to no process.
enum class Reason {
  kIdle,          // no process held the GPU
  kStatic,        // idle and resident watts under --static-power=separate
  kUnseen,        // the GPU worked, but the driver named no process to charge
  kExporterDown,  // used while there were no samples
  kAnomaly,       // more than its power limit allows, but not impossible: charged to no process
};
inline constexpr size_t kReasonCount = 5;

// Joules booked while the process was alone on the GPU are measured; the rest are estimated.
struct Booked {
  Energy alone;
  Energy shared;
  std::optional<Nanoseconds> gpu_time;  // empty: not known (MIG)
  Energy total() const { return alone + shared; }
  void add_gpu_time(Nanoseconds time) { gpu_time = gpu_time.value_or(Nanoseconds(0)) + time; }
  Booked& operator+=(const Booked& other) {
    alone += other.alone;
    shared += other.shared;
    if (other.gpu_time) add_gpu_time(*other.gpu_time);
    return *this;
  }
};

// The source of the processes' GPU time.
enum class GpuTimeSource {
  kNone,     // none, or no process
  kSamples,  // the driver's samples
  kTrace,    // its context-switch trace
};

struct BooksOpening {
  Nanoseconds at{0};  // wall time of the batch in which all counters were 0, in whole milliseconds
  uint64_t run = 1;   // one more each time a program reads the books back from a state file
};

struct DeviceAccount {
  std::shared_ptr<const DeviceDescription> description;
  bool up = false;
  Energy measured;                      // since the ledger began; always owners + closed + unattributed
  std::optional<BooksOpening> opening;  // empty: the books come from an older state, which does not have it
  std::array<Energy, kReasonCount> unattributed{};
  // The hardware counter when the ledger began. This + measured is the hardware counter, but does not restart with it
  // (a driver reload). Empty: never read, or there is none.
  std::optional<Energy> counted_before;
  uint64_t refused_readings = 0;                         // since the start of the program
  Energy last_step;                                      // of measured
  GpuTimeSource gpu_time_source = GpuTimeSource::kNone;  // of the last step
  std::optional<Power> idle_power;                       // set or learned
  std::optional<double> attribution_error;               // misattributed share of shared energy; empty: not compared
  uint64_t attribution_comparisons = 0;                  // of charged and measured power
  std::map<uint64_t, uint64_t> xids;
  std::map<uint64_t, Nanoseconds> xid_seen;  // last time of each, since 1970; all different, so one is the last
};

struct IdleState {
  bool evaluated = false;  // false: not known yet, or the GPU cannot tell; then `idle` is false
  bool idle = false;
  Nanoseconds idle_for{0};
  Ratio highest_sm;    // since the last evaluation
  bool works = false;  // likewise: work on any engine
};

struct ProcessAccount {
  GpuUuid gpu;
  uint32_t gpu_index = 0;
  std::optional<MigInstance> mig;
  ProcessIdentity identity;
  bool active = true;  // false: exited and retained
  Booked booked;
  Energy last_step;                  // of `booked`, in the device's last step
  Energy static_energy;              // of `booked`: idle and resident watts
  double standard_error_joules = 0;  // one standard error of booked.shared
  std::optional<Ratio> sm;           // empty where utilization is unknown, or after exit
  std::optional<Ratio> memory_utilization;
  std::optional<Ratio> encoder;  // empty also before its first use
  std::optional<Ratio> decoder;  // likewise
  std::optional<Bytes> memory;
  std::optional<Bytes> memory_peak;  // since it was first seen; stays after exit
  bool compute = false;              // in which of the driver's lists it was last
  bool graphics = false;
  IdleState idle;

  // Xorg, a desktop: it holds memory to draw with, and drawing is not in the driver's samples.
  bool only_draws() const { return graphics && !compute; }
  std::optional<Nanoseconds> gone_for;  // since exit
};

struct OwnerAccount {
  Owner owner;
  GpuUuid gpu;
  uint32_t gpu_index = 0;
  Booked booked;                          // running and exited processes
  double standard_error_joules = 0;       // one standard error of booked.shared; not the sum of the processes'
  std::optional<Bytes> idle_memory;       // empty: it has no process accounts
  std::optional<Bytes> memory_peak = {};  // the most that its processes held at one time on this GPU
  Name uid = {};                          // of its processes; empty: not known, or different ones
  Name user_name = {};
  JobFacts job = {};                         // of a Slurm job; kept when its file is gone
  bool steps_closed = false;                 // of a Slurm job: some of its other steps are in closed accounts
  std::optional<Nanoseconds> gone_for = {};  // since its last process; empty: one runs
};

// The sum of closed accounts of ended owners: --owner-retention is over, or there were too many of them. The smallest
// of too many namespaces are added up under a name that no namespace can have.
inline constexpr std::string_view kOtherNamespaces = "(others)";
struct ClosedAccount {
  OwnerKind kind = OwnerKind::kHost;
  Name name_space;  // of pods; empty: their names were not known
  GpuUuid gpu;
  uint32_t gpu_index = 0;
  Booked booked;
};

// Numbers of dropped and closed accounts since the start.
struct FoldedAccounts {
  uint64_t processes_over_limit = 0;  // --max-exited-processes; their owners keep the joules
  uint64_t owners_over_time = 0;      // --owner-retention; their joules are in the closed accounts
  uint64_t owners_over_limit = 0;     // --max-ended-owners; same
};

struct AllocationAccount {
  Allocation allocation;
  // Time since its container or job last worked on it. Empty: not known.
  std::optional<Nanoseconds> idle_for;
};

// One immutable state of the books.
struct Ledger {
  std::vector<DeviceAccount> devices;     // by index
  std::vector<ProcessAccount> processes;  // by GPU index, then pid, then start
  std::vector<OwnerAccount> owners;       // by GPU index, then owner
  std::vector<ClosedAccount> closed;      // by GPU index, then kind and namespace
  FoldedAccounts folded;
  std::vector<AllocationAccount> allocations;        // by Kubernetes
  std::vector<AllocationAccount> slurm_allocations;  // by Slurm
};

}  // namespace gpuledger
