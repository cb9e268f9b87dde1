// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "base/name.h"
#include "base/result.h"
#include "base/units.h"
#include "model/residency.h"
#include "model/vitals.h"

namespace gpuledger {

// What the sample stage hands on: one look at the hardware, one timestamp. An empty optional means the
// GPU could not say, never zero.

enum class EnergySource { kCounter, kPowerIntegral };

struct MigInstance {
  Name uuid;  // "MIG-..."
  MigId id;
  Name profile;  // "1g.18gb"; empty where the driver gives no attributes
  uint32_t compute_slices = 0;
  std::optional<Bytes> memory_total;
  std::optional<Bytes> memory_used;
};

// What changes seldom; shared between batches.
struct DeviceDescription {
  GpuUuid uuid;
  uint32_t index = 0;
  std::optional<uint32_t> minor;  // /dev/nvidia<minor>: what GKE and DRA call a GPU by
  std::string model;
  std::string pci_bus_id;
  std::string driver;
  EnergySource energy_source = EnergySource::kCounter;
  std::optional<bool> mig_enabled;  // empty: a GPU that has no MIG, or nobody can say
  bool mig_known = true;            // false: whether it has MIG, nobody can say
  std::optional<bool> accounting_enabled;
  std::optional<Power> power_limit;
  std::vector<MigInstance> mig;
};

// Share of time each engine was busy for a process since the last batch.
struct EngineUse {
  Ratio sm;
  Ratio memory;
  Ratio encoder;
  Ratio decoder;
  Ratio jpeg;
  Ratio ofa;
  bool any() const { return sm.value > 0 || encoder.value > 0 || decoder.value > 0 || jpeg.value > 0 || ofa.value > 0; }
};

struct ProcessSample {
  Pid pid = 0;
  std::optional<MigId> mig;
  bool listed = false;  // in one of the driver's process lists; false: only a utilisation sample names it
  bool compute = false;
  bool graphics = false;
  bool mps_client = false;
  std::optional<Bytes> memory;
  // Where the lists are read more often than batches are made: the first that showed it and the first that did not,
  // since the last batch. Who left is in the batch once more, though not as listed.
  std::optional<Nanoseconds> came;
  std::optional<Nanoseconds> left;
  EngineUse use;  // meaningful only while DeviceSample::utilization is kKnown
};

// How busy the parts of a GPU or of a MIG instance were since the last batch, from its own performance monitors
// (GPM: Hopper and newer). For all processes together, never for one; but without the sampling noise that
// utilisation has.
struct Activity {
  enum Part { kSm, kOccupancy, kTensor, kDram, kFp32, kFp64 };
  static constexpr size_t kParts = 6;
  std::optional<Ratio> graphics;                        // any kernel at all
  std::array<std::optional<Ratio>, kParts> parts = {};  // empty where the driver gave no number
  Traffic traffic;
};

// Between two batches, about ten a second; all times are steady.
struct ActivityReading {
  Nanoseconds at{0};
  Activity activity;  // since the reading before, as the driver had it: a refresh of the monitors ago
  std::optional<double> sm_clock_mhz;
};
struct PowerReading {
  Nanoseconds at{0};
  Power power;
};

enum class UtilizationState {
  kKnown,        // who is not named was not caught working
  kUnsupported,  // MIG, old GPUs
  kFailed,       // this time
};

struct DeviceSample {
  std::shared_ptr<const DeviceDescription> description;
  bool up = false;                   // false: lost or not answering; everything below but the Xids is empty
  std::optional<Timestamp> read_at;  // when its energy was read; empty: with the batch
  std::optional<Energy> energy_counter;
  std::optional<Power> power;
  std::optional<Ratio> gpu_utilization;
  std::optional<Ratio> memory_utilization;
  std::optional<Bytes> memory_used;
  std::optional<Bytes> memory_total;
  std::optional<Bytes> memory_free;
  std::optional<Bytes> memory_reserved;  // the driver's own, in neither of the others
  std::optional<double> temperature_celsius;
  std::optional<double> sm_clock_mhz;
  Vitals vitals;
  Traffic traffic;
  std::optional<Activity> activity;
  std::map<uint32_t, Activity> instance_activity;  // MIG, by GPU instance
  std::vector<ActivityReading> activity_readings;  // since the last batch; empty where nobody looks so often
  std::vector<PowerReading> power_readings;        // likewise; the driver's own samples
  UtilizationState utilization = UtilizationState::kFailed;
  std::vector<ProcessSample> processes;  // by pid; at most one entry per pid and MIG instance
  std::vector<uint64_t> xids;            // seen since the last batch
  // Every complete bin since the last batch, by time; the newest are about 120 ms old. Empty: not traced.
  std::vector<ResidencyBin> residency;
  std::optional<ExactTime> exact_time;  // empty: nobody asked for it
};

struct SourceHealth {
  std::string source;  // "nvml"
  bool up = false;
  std::string reason;                      // why not
  std::map<std::string, uint64_t> errors;  // since start, by code name
  bool undecided = false;                  // asked for the first time, and has not answered yet
};

// Cumulative histogram of call or cycle times. Bounds are shared by all, so that they add up. They are few because each
// is a series for each of thirty driver calls on every node: enough to tell a call of its usual milliseconds from one
// that waits for a lock or a GPU that hangs; the mean is in sum and count.
struct DurationHistogram {
  static constexpr double kBounds[] = {0.001, 0.005, 0.025, 0.1, 1.0};
  static constexpr size_t kBuckets = sizeof(kBounds) / sizeof(kBounds[0]);
  uint64_t counts[kBuckets + 1] = {};  // not cumulative; the last is +Inf
  double sum_seconds = 0;

  void observe(double seconds) {
    size_t i = 0;
    while (i < kBuckets && seconds > kBounds[i]) ++i;
    ++counts[i];
    sum_seconds += seconds;
  }
};

struct SampleBatch {
  Timestamp at;                    // no GPU was read later
  bool processes_scanned = false;  // the process lists were read anew for this batch
  std::vector<DeviceSample> devices;
  // Of the GPUs that --gpu-devices names, those that were never there. Empty: it names none, or nobody can say.
  std::optional<std::vector<std::string>> missing_gpus;
  SourceHealth health;
  std::vector<SourceHealth> more_health;                    // of who only adds to it
  std::map<std::string, DurationHistogram> call_durations;  // by driver call, since start
};

}  // namespace gpuledger
