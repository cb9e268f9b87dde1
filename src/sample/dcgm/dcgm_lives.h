// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <set>
#include <vector>

#include "base/clock.h"
#include "model/sample.h"
#include "sample/dcgm/dcgm_connection.h"

namespace gpuledger::dcgm {

// An exited process, from the driver's accounting through the engine.
struct Life {
  GpuUuid gpu;
  Pid pid = 0;
  Nanoseconds began{0};  // since 1970
  Nanoseconds ended{0};
  double busy_seconds = 0;  // on the GPU
  std::optional<Bytes> memory;
};

// Processes that exited since the last read. Two answers of the engine must agree on each: the accounting records in
// its cache (field 205), which list the processes, and its answer for that pid. The second alone is not reliable:
// without accounting in the driver it claims that any pid, even a nonexistent one, ran on every GPU.
class LifeReader {
 public:
  // Processes that exited before this moment are ignored.
  explicit LifeReader(Nanoseconds since_1970);

  // Starts the records. If accounting is off, an engine that runs as root enables it.
  Return watch(Connection& engine, Nanoseconds every);

  std::vector<Life> read(Connection& engine, const std::map<unsigned, GpuUuid>& gpus, Nanoseconds now_1970);

 private:
  static std::set<unsigned> without_accounting(Connection& engine, const std::map<unsigned, GpuUuid>& gpus);
  std::optional<Life> confirm(Connection& engine, unsigned gpu, const AccountingStats& stats, Nanoseconds now_1970);

  Nanoseconds since_;
  bool watched_ = false;
  std::map<unsigned, int64_t> read_until_us_;                    // by GPU
  std::map<unsigned, std::map<Pid, uint64_t>> told_;             // by GPU: start of the last one reported
  std::unique_ptr<PidInfo> info_ = std::make_unique<PidInfo>();  // 17 KiB
};

}  // namespace gpuledger::dcgm
