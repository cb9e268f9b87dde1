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

// A process that is over, as the driver's accounting tells it through the engine.
struct Life {
  GpuUuid gpu;
  Pid pid = 0;
  Nanoseconds began{0};  // since 1970
  Nanoseconds ended{0};
  double busy_seconds = 0;  // on the GPU
  std::optional<Bytes> memory;
};

// Processes that ended since the last read. Two of the engine's answers must agree on each: the accounting records in
// its memory (field 205), which name who there was, and what it says of that pid. The second alone would not do: where
// the driver has no accounting it claims that every pid there is, and some that are not, ran on every GPU.
class LifeReader {
 public:
  // Who ended before this moment is somebody else's concern.
  explicit LifeReader(Nanoseconds since_1970);

  // Asks for the records to be kept. If accounting is off, an engine that is root switches it on.
  Return watch(Connection& engine, Nanoseconds every);

  std::vector<Life> read(Connection& engine, const std::map<unsigned, GpuUuid>& gpus, Nanoseconds now_1970);

 private:
  static std::set<unsigned> without_accounting(Connection& engine, const std::map<unsigned, GpuUuid>& gpus);
  std::optional<Life> confirm(Connection& engine, unsigned gpu, const AccountingStats& stats, Nanoseconds now_1970);

  Nanoseconds since_;
  bool watched_ = false;
  std::map<unsigned, int64_t> read_until_us_;                    // by GPU
  std::map<unsigned, std::map<Pid, uint64_t>> told_;             // by GPU: the start of the last life told
  std::unique_ptr<PidInfo> info_ = std::make_unique<PidInfo>();  // 17 KiB
};

}  // namespace gpuledger::dcgm
