// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "model/sample.h"
#include "sample/dcgm/dcgm_connection.h"
#include "sample/dcgm/dcgm_lists.h"
#include "sample/dcgm/dcgm_lives.h"
#include "sample/steady_counters.h"

namespace gpuledger::dcgm {

struct ReaderOptions {
  bool whole = false;                    // read the GPUs' own values too: no NVML
  std::vector<std::string> gpu_devices;  // indexes or UUIDs; empty: all
  Nanoseconds interval = std::chrono::seconds(1);
};

struct GpuActivity {
  std::optional<Activity> whole;
  std::map<uint32_t, Activity> instances;  // MIG, by GPU instance
};

struct XidSeen {
  GpuUuid gpu;
  uint64_t xid = 0;
};

// One read of the engine.
struct View {
  Timestamp at;
  std::vector<DeviceSample> devices;  // by index; empty unless ReaderOptions::whole
  std::map<GpuUuid, GpuActivity> activity;
  std::vector<Life> lives;  // both since the last read
  std::vector<XidSeen> xids;
};

// What we need from one connection: sets up the watches and reads them. Lives as long as the connection and its
// watches. For one thread.
class Reader {
 public:
  Reader(Connection& engine, ReaderOptions options, const Clock& clock);

  // without_activity: GPUs whose performance monitors NVML does not read. Error: nothing could be read, and why. The
  // engine may be gone or have no GPU.
  Result<View> read(const std::set<GpuUuid>& without_activity);

 private:
  struct Known {
    DeviceDescription description;
    std::map<unsigned, uint32_t> instances;  // MIG: entity to GPU instance
  };

  Status find_gpus();
  void describe_gpus(const std::vector<unsigned>& ids);
  void find_instances();
  void watch_devices();
  void watch_activity(const std::set<GpuUuid>& wanted);
  void read_devices(View& view);
  void read_activity(View& view);
  void read_xids(View& view);

  Connection& engine_;
  const ReaderOptions options_;
  const Clock& clock_;
  LifeReader lives_;
  ProcessLists lists_;
  std::map<unsigned, Known> gpus_;               // by the engine's id
  std::map<unsigned, SteadyCounters> counters_;  // likewise
  std::map<unsigned, GpuUuid> uuids_;
  std::optional<Nanoseconds> found_at_;  // steady
  bool watching_ = false;
  std::set<unsigned> counting_;  // GPUs that have an energy counter
  std::map<unsigned, int64_t> xids_until_us_;

  struct Profiling {
    std::vector<Entity> entities;
    std::vector<FieldId> fields;  // empty: they cannot be watched
    Group group = 0;
    FieldGroup field_group = 0;
  };
  Profiling profiling_;
};

}  // namespace gpuledger::dcgm
