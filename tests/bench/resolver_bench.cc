// SPDX-License-Identifier: Apache-2.0
#include <benchmark/benchmark.h>

#include "identity/resolver.h"
#include "support/sleepers.h"

namespace gpuledger::identity {
namespace {

// Cycles of one second, a scan every ten, as the program has them.
void BM_ResolveKnownProcesses(benchmark::State& state) {
  const testing::Sleepers sleepers(static_cast<size_t>(state.range(0)));
  SampleBatch batch;
  DeviceSample device;
  device.description = std::make_shared<DeviceDescription>();
  for (const pid_t pid : sleepers.pids()) {
    ProcessSample process;
    process.pid = static_cast<Pid>(pid);
    device.processes.push_back(process);
  }
  batch.devices.push_back(device);
  Resolver resolver(ProcReader("/proc"), NodeDirectory{});
  int second = 0;
  const auto cycle = [&] {
    batch.at.steady = std::chrono::seconds(second);
    batch.processes_scanned = second++ % 10 == 0;
    return resolver.resolve(batch);
  };
  for (int i = 0; i < 30; ++i) (void)cycle();  // nobody is young any more
  for (auto _ : state) benchmark::DoNotOptimize(cycle());
}
BENCHMARK(BM_ResolveKnownProcesses)->Arg(128)->Arg(1024)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace gpuledger::identity
