// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "sample/nvml/nvml_library.h"

namespace gpuledger::nvml {

// A GPU or a MIG instance, whatever its handle points to.
struct FakeGpu {
  std::string uuid = "GPU-0";
  std::string name = "NVIDIA Fake";
  unsigned long long energy_mj = 1000;
  unsigned power_mw = 70'000;
  unsigned limit_mw = 700'000;
  unsigned busy_percent = 40;  // of the whole
  Memory_v2 memory{0, 1000, 100, 600, 300};
  bool mig_enabled = false;
  std::vector<std::shared_ptr<FakeGpu>> migs;  // nullptr: a hole
  unsigned gi = 0, ci = 0;
  DeviceAttributes attributes{};
  std::vector<ProcessInfo> compute, graphics, mps;
  unsigned stride = 24;                 // of the process lists' entries
  unsigned grows_by = 0;                // processes that start during every call
  std::map<std::string, Return> fails;  // by symbol; "*": all

  struct Ticket {
    int64_t at_us;
    unsigned pid;  // 0: nobody
    unsigned sm;
  };
  std::vector<Ticket> ring;  // what the driver's sampler saw
  std::vector<ProcessUtilizationInfo> junk;

  bool gpm = true;
  std::map<unsigned, double> activity = {{1, 90}, {2, 80}, {3, 40}, {5, 30}, {10, 20}, {11, 0}, {12, 10}};
  std::map<unsigned, FieldValue> fields;  // type, return code and value by id; others are not supported
  unsigned pcie_kilobytes = 5000;
  std::optional<unsigned> fan_percent;
  std::string serial = "1653022041234";
  std::string vbios = "96.00.A5.00.01";
  unsigned performance_state = 2;
  unsigned link_generation = 5;
  unsigned link_width = 16;
  unsigned long long clock_reasons = 0;
  bool accounting_on = true;
  std::map<unsigned, AccountingStats> accounting;  // by pid
};

// What nvmlGpmSampleAlloc hands out.
struct FakeGpmSample {
  const FakeGpu* of = nullptr;  // nullptr: not yet filled
  Nanoseconds at{0};
};

// A driver in memory, behind the same function table as the real one. One at a time: C functions carry no state.
class FakeNvml {
 public:
  FakeNvml();
  ~FakeNvml();
  FakeGpu& add_gpu(const std::string& uuid);
  FunctionTable table() const;
  LibraryLoader loader();
  int called(const std::string& symbol);
  Return enter(const char* symbol, const FakeGpu* gpu);
  void note_asked(int64_t since);
  // The next call of this symbol on this GPU does not return before let_go().
  void hang(const FakeGpu& gpu, const std::string& symbol);
  void let_go();
  // Until a call hangs; false: none did in five seconds.
  bool wait_for_hang();

  std::vector<std::shared_ptr<FakeGpu>> gpus;
  std::map<std::string, Return> fails;  // of the whole driver, by symbol
  std::set<std::string> missing;        // symbols this driver has not
  std::map<std::string, int> calls;
  std::deque<std::pair<FakeGpu*, unsigned long long>> events;
  std::set<FakeGpu*> watched;
  int loads = 0;
  int initialized = 0;
  int event_sets = 0;
  bool loadable = true;
  std::vector<int64_t> asked_since;      // of the utilization calls
  std::map<unsigned, int> asked_fields;  // by id
  std::set<FakeGpmSample*> gpm_samples;
  Nanoseconds gpm_refresh = std::chrono::milliseconds(100);
  const Clock* clock = nullptr;
  // For all of the above: GPUs are asked by threads of their own.
  std::recursive_mutex mutex;

  static FakeNvml* current;

 private:
  std::condition_variable_any changed_;
  std::pair<const FakeGpu*, std::string> hang_at_;
  bool hangs_ = false;
};

}  // namespace gpuledger::nvml
