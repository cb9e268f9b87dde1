// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "gpu_model.h"

// The contents of a scenario file, checked and with all defaults. Times are milliseconds since the start of the
// simulation.
namespace gpuledger::sim {

using Millis = int64_t;
inline constexpr Millis kForever = std::numeric_limits<Millis>::max() / 4;

struct MigSpec {
  unsigned gpu_instance = 0;
  unsigned compute_instance = 0;
  std::string profile;  // "1g.10gb"
  unsigned slices = 1;
  uint64_t memory_mb = 0;
  std::string uuid;
  Millis from = 0;
  Millis until = kForever;
};

struct Trace;

struct GpuSpec {
  GpuModel model;
  std::string uuid;
  std::string pci_bus_id;
  unsigned pci_bus = 0;
  std::string serial;
  std::string vbios;  // empty: the model's
  bool mig = false;
  std::vector<MigSpec> instances;  // position is the MIG index; a destroyed one leaves a hole
  bool accounting = false;
  uint64_t counter_start_mj = 0;
  std::optional<double> temperature;     // replaces the value computed from the load
  std::optional<unsigned> memory_clock;  // likewise
  std::string trace;                     // empty: computed from the processes
  bool loop = false;
  std::shared_ptr<const Trace> recording;
};

struct Duty {
  bool idle = false;
  Millis period = 0;  // 0: always on
  Millis on = 0;
  Millis phase = 0;
  double jitter = 0;  // random delay of each period's work, as a share of its idle time, 0 to 1
};

struct Load {
  double watts = 0;   // above idle and resident watts, at a full share of the GPU
  double busy = 0;    // share of SM time wanted while on, 0 to 1
  double memory = 0;  // memory utilization at a full share
  double weight = 1;  // relative to the others if together they want more than 100 %
  double encoder = 0;
  double decoder = 0;
  Duty duty;
  GpmMix gpm{};
};

enum class OwnerKind { kNone, kPod, kDocker, kSlurm, kSystemd, kCgroup };

struct OwnerSpec {
  OwnerKind kind = OwnerKind::kNone;
  std::string name_space, pod, container, pod_uid, container_id;
  std::map<std::string, std::string> labels;
  std::string job, step;
  std::string account, partition;  // empty: no prolog wrote them
  std::string unit;
  std::string cgroup;
};

enum class MpsRole { kNone, kServer, kClient };

struct ProcessSpec {
  unsigned pid = 0;
  std::string name;
  std::string command;
  std::vector<unsigned> gpus;
  bool compute = true;
  bool graphics = false;
  MpsRole mps = MpsRole::kNone;
  Millis start = 0;
  Millis end = kForever;
  Millis every = 0;  // 0: it runs once; else it starts again every so often, each time with a new pid
  Millis lives = 0;
  unsigned pid_step = 1;
  std::optional<uint64_t> memory = 0;  // empty: the driver does not report it
  std::optional<unsigned> gpu_instance, compute_instance;
  Load load;
  OwnerSpec owner;
  unsigned uid = 1000;
  bool real = false;  // a real process of this machine: it is in the real /proc, so nothing is written for it
};

// A whole GPU that is allocated to a pod without processes. Pods with processes have the GPUs of their processes.
struct AllocationSpec {
  unsigned gpu = 0;
  OwnerSpec owner;
  Millis start = 0;
  Millis end = kForever;
};

struct Reload {
  Millis at = 0;
  Millis back = 0;
  std::string driver;  // the new version; empty: the same
};

// A wrong result of a call, on one GPU or on all.
struct CallFault {
  std::string call;
  std::optional<unsigned> gpu;
  int code = 0;
  Millis from = 0;
  Millis until = kForever;
};

// A false answer of a call for one number, on one GPU or on all.
struct FalseAnswer {
  std::string call;
  std::optional<unsigned> gpu;
  uint64_t value = 0;
  Millis from = 0;
  Millis until = kForever;
};

struct CallLatency {
  std::string call;
  std::optional<unsigned> gpu;  // empty: on all
  double ms = 0;
  bool hangs = false;  // the call does not return while this holds
  bool told = false;   // the call is noted where a test sees it
  Millis from = 0;
  Millis until = kForever;
};

struct XidEvent {
  unsigned gpu = 0;
  uint64_t xid = 0;
  Millis at = 0;
};

// A field of nvmlDeviceGetFieldValues has this value from then on.
struct FieldChange {
  unsigned gpu = 0;
  unsigned field = 0;
  uint64_t value = 0;
  Millis at = 0;
};

struct GpuMoment {
  unsigned gpu = 0;
  Millis at = 0;
  bool on = false;
};

struct Quirks {
  unsigned process_entry_size = 24;
  bool utilization_garbage = false;
  bool list_grows_between_calls = false;
};

struct Scenario {
  std::string source;  // for messages
  uint64_t seed = 1;
  double noise = 0.003;  // of the power, relative
  std::string driver = "580.159.04";
  int cuda = 13000;
  std::vector<GpuSpec> gpus;
  std::vector<ProcessSpec> processes;
  std::vector<AllocationSpec> allocations;
  std::vector<Reload> reloads;
  std::vector<CallFault> faults;
  std::vector<FalseAnswer> false_answers;
  std::vector<CallLatency> latencies;
  std::vector<std::string> missing_symbols;
  std::vector<XidEvent> xids;
  std::vector<FieldChange> field_changes;
  std::vector<GpuMoment> counter_resets;
  std::vector<GpuMoment> accounting_changes;
  Quirks quirks;
};

// The error is one line: file, line, what is wrong.
Result<Scenario> parse_scenario(const std::string& text, const std::string& source);
// A scenario, or a recorded trace (.jsonl, .jsonl.gz). Empty: the built-in mixed node.
Result<Scenario> read_scenario(const std::string& path);

// Stable pseudo-random values for what a scenario leaves out.
uint64_t mix_hash(uint64_t seed, uint64_t a, uint64_t b = 0);
std::string derived_uuid(const std::string& of);
std::string derived_container_id(const std::string& of);

}  // namespace gpuledger::sim
