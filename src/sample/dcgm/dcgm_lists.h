// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "model/sample.h"
#include "sample/dcgm/dcgm_connection.h"

namespace gpuledger::dcgm {

// The processes on a GPU, from the lists in the engine's cache: those that run now, and once more those that left since
// the last read. Start and end times are as fine as the engine's period.
class ProcessLists {
 public:
  // How often the engine should read if we read every interval.
  static Nanoseconds period(Nanoseconds interval);
  static std::span<const FieldId> fields();

  // engine_us: the engine's time of this read, which is `at` on our steady clock. By pid.
  std::vector<ProcessSample> read(Connection& engine, unsigned gpu, int64_t engine_us, Nanoseconds at,
                                  Nanoseconds interval);

 private:
  static constexpr size_t kFields = 2;
  struct Seen {
    ProcessSample process;
    int64_t first_us = 0;
    std::array<int64_t, kFields> last_us{};  // by list
    bool told = false;                       // came reported
  };
  struct Gpu {
    std::map<Pid, Seen> seen;
    std::array<int64_t, kFields> newest_us{};  // where the newest list begins
    std::array<int64_t, kFields> until_us{};   // each was read up to here
    bool looked = false;
  };

  static void read_list(Connection& engine, unsigned gpu, size_t list, int64_t since_us, int64_t until_us, Gpu& known);
  static void note(const Reading& reading, size_t list, Gpu& known);
  static std::vector<ProcessSample> tell(Gpu& known, bool first, int64_t engine_us, Nanoseconds at,
                                         Nanoseconds interval);

  std::map<unsigned, Gpu> gpus_;
};

}  // namespace gpuledger::dcgm
