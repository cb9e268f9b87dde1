#pragma once

#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "sample/nvml/nvml_library.h"

namespace gpuledger::nvml {

class FakeClock final : public Clock {
 public:
  Timestamp now() const override { return at; }
  void advance(Nanoseconds by) {
    at.steady += by;
    at.wall += by;
  }
  int64_t wall_us() const { return at.wall.count() / 1000; }
  Timestamp at{std::chrono::seconds(5000), std::chrono::seconds(1'700'000'000)};
};

// A GPU or a MIG instance, whatever its handle points to.
struct FakeGpu {
  std::string uuid = "GPU-0";
  std::string name = "NVIDIA Fake";
  unsigned long long energy_mj = 1000;
  unsigned power_mw = 70'000;
  unsigned limit_mw = 700'000;
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
};

// A driver in memory, behind the same function table as the real one. One at a time: C functions carry no state.
class FakeNvml {
 public:
  FakeNvml();
  ~FakeNvml();
  FakeGpu& add_gpu(const std::string& uuid);
  FunctionTable table() const;
  LibraryLoader loader();
  int called(const std::string& symbol) const;
  Return enter(const char* symbol, const FakeGpu* gpu);

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
  std::vector<int64_t> asked_since;  // of the utilisation calls

  static FakeNvml* current;
};

}  // namespace gpuledger::nvml
