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

// The output of the sample stage: one sample of the hardware, one timestamp. An empty optional is an
// unknown value, never zero.

enum class EnergySource { kCounter, kPowerIntegral };

struct MigInstance {
  Name uuid;  // "MIG-..."
  MigId id;
  Name profile;  // "1g.18gb"; empty where the driver gives no attributes
  uint32_t compute_slices = 0;
  std::optional<Bytes> memory_total;
  std::optional<Bytes> memory_used;
};

// Rarely changes; shared between batches.
struct DeviceDescription {
  GpuUuid uuid;
  uint32_t index = 0;
  std::optional<uint32_t> minor;  // /dev/nvidia<minor>: GKE and DRA name GPUs by it
  std::string model;
  std::string pci_bus_id;
  std::string driver;
  std::string serial;         // empty: not reported (GeForce)
  std::string vbios_version;  // likewise
  EnergySource energy_source = EnergySource::kCounter;
  std::optional<bool> mig_enabled;  // empty: a GPU without MIG, or not known
  bool mig_known = true;            // false: not known whether it has MIG
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
  bool listed = false;  // in one of the driver's process lists; false: only a utilization sample names it
  bool compute = false;
  bool graphics = false;
  bool mps_client = false;
  std::optional<Bytes> memory;
  // By glances since the last batch: the time of the first list with the process and of the first one without it. A
  // process that left is in one more batch, but not as listed.
  std::optional<Nanoseconds> came;
  std::optional<Nanoseconds> left;
  EngineUse use;  // meaningful only while DeviceSample::utilization is kKnown
};

// Activity of the parts of a GPU or of a MIG instance since the last batch, from its performance monitors
// (GPM: Hopper and newer). For all processes together; without the sampling noise of utilization.
struct Activity {
  enum Part { kSm, kOccupancy, kTensor, kDram, kFp32, kFp64 };
  static constexpr size_t kParts = 6;
  std::optional<Ratio> graphics;                        // any kernel
  std::array<std::optional<Ratio>, kParts> parts = {};  // empty: no value from the driver
  Traffic traffic;
};

// Between two batches, about ten a second; all times are steady.
struct ActivityReading {
  Nanoseconds at{0};
  Activity activity;  // since the reading before; one refresh of the monitors old
  std::optional<double> sm_clock_mhz;
};
struct PowerReading {
  Nanoseconds at{0};
  Power power;
};

enum class UtilizationState {
  kKnown,        // processes not named have no samples
  kUnsupported,  // MIG, old GPUs
  kFailed,       // this time
};

struct DeviceSample {
  std::shared_ptr<const DeviceDescription> description;
  bool up = false;                   // false: lost; everything below but the Xids is empty
  std::optional<Timestamp> read_at;  // when its energy was read; empty: with the batch
  std::optional<Energy> energy_counter;
  std::optional<Power> power;
  std::optional<Ratio> gpu_utilization;
  std::optional<Ratio> memory_utilization;
  std::optional<Bytes> memory_used;
  std::optional<Bytes> memory_total;
  std::optional<Bytes> memory_free;
  std::optional<Bytes> memory_reserved;  // by the driver; neither used nor free
  std::optional<double> temperature_celsius;
  std::optional<double> sm_clock_mhz;
  Vitals vitals;
  Traffic traffic;
  std::optional<Activity> activity;
  std::map<uint32_t, Activity> instance_activity;  // MIG, by GPU instance
  std::vector<ActivityReading> activity_readings;  // since the last batch; empty without glances
  std::vector<PowerReading> power_readings;        // likewise; the driver's own samples
  UtilizationState utilization = UtilizationState::kFailed;
  std::vector<ProcessSample> processes;  // by pid; at most one entry per pid and MIG instance
  std::vector<uint64_t> xids;            // since the last batch
  uint64_t refused_readings = 0;         // likewise: values that cannot be true, and are left out
  // Every complete bin since the last batch, by time; the newest are about 120 ms old. Empty: not traced.
  std::vector<ResidencyBin> residency;
  std::optional<ExactTime> exact_time;  // empty: off
};

struct SourceHealth {
  std::string source;  // "nvml"
  bool up = false;
  std::string reason;                      // why not
  std::map<std::string, uint64_t> errors;  // since start, by code name
  bool undecided = false;                  // the first request has no answer yet
  bool needed = true;                      // false: nothing on this node needs its data

  // Down, and something needs it.
  bool missed() const { return !up && needed; }
};

// Histogram of call or cycle times. All have the same bounds, so that they can be summed. The bounds are few because
// each is a series for each of thirty driver calls on every node: enough to tell a normal call (milliseconds) from one
// that waits for a lock or a hanging GPU; the mean is in sum and count.
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
  bool processes_scanned = false;  // the process lists were read for this batch
  std::vector<DeviceSample> devices;
  // GPUs that --gpu-devices names and that were never found. Empty: it names none, or they are not known.
  std::optional<std::vector<std::string>> missing_gpus;
  SourceHealth health;
  std::vector<SourceHealth> more_health;                    // of additional sources
  std::map<std::string, DurationHistogram> call_durations;  // by driver call, since start
};

}  // namespace gpuledger
