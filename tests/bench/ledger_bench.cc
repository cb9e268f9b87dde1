// SPDX-License-Identifier: Apache-2.0
#include <benchmark/benchmark.h>

#include "attribute/state/state_text.h"
#include "crowded_node.h"
#include "expose/expose.h"

// What a cycle costs beyond the driver's calls, on a node of eight GPUs by processes per GPU.
namespace gpuledger::bench {
namespace {

constexpr uint32_t kGpus = 8;

uint32_t processes_of(const benchmark::State& state) {
  return static_cast<uint32_t>(state.range(0));
}

void advance(benchmark::State& state) {
  attribute::Engine engine((BookingRules()));
  CrowdedNode node = CrowdedNode::settled(kGpus, processes_of(state), engine);
  double slowest = 0;
  for (auto _ : state) {
    const SampleBatch& batch = node.next();
    const double began = cpu_seconds();
    benchmark::DoNotOptimize(engine.advance(batch, node.identities()));
    const double took = cpu_seconds() - began;
    slowest = std::max(slowest, took);
    state.SetIterationTime(took);
  }
  state.counters["slowest_ms"] = slowest * 1e3;
}

// While they come one after another: every arrival is a new company, and knowledge of it changes the past.
void arrivals(benchmark::State& state) {
  attribute::Engine engine((BookingRules()));
  CrowdedNode node(kGpus, processes_of(state));
  double slowest = 0;
  for (auto _ : state) {
    const SampleBatch& batch = node.next();
    const double began = cpu_seconds();
    benchmark::DoNotOptimize(engine.advance(batch, node.identities()));
    const double took = cpu_seconds() - began;
    slowest = std::max(slowest, took);
    state.SetIterationTime(took);
  }
  state.counters["slowest_ms"] = slowest * 1e3;
}

template <auto Write>
void write(benchmark::State& state) {
  attribute::Engine engine((BookingRules()));
  CrowdedNode node = CrowdedNode::settled(kGpus, processes_of(state), engine);
  const Cycle cycle = node.cycle(engine);
  const expose::ExposeOptions options;
  size_t bytes = 0;
  for (auto _ : state) {
    const double began = cpu_seconds();
    bytes = Write(cycle, options).size();
    state.SetIterationTime(cpu_seconds() - began);
  }
  state.counters["bytes"] = static_cast<double>(bytes);
}

void remember(benchmark::State& state) {
  attribute::Engine engine((BookingRules()));
  CrowdedNode node = CrowdedNode::settled(kGpus, processes_of(state), engine);
  for (auto _ : state) {
    const double began = cpu_seconds();
    benchmark::DoNotOptimize(attribute::write_state(engine.state()));
    state.SetIterationTime(cpu_seconds() - began);
  }
}

constexpr auto kMilliseconds = benchmark::kMillisecond;
BENCHMARK(advance)->Arg(16)->Arg(32)->Arg(64)->Arg(128)->UseManualTime()->Unit(kMilliseconds);
BENCHMARK(arrivals)->Arg(128)->UseManualTime()->Unit(kMilliseconds)->Iterations(900);
BENCHMARK(write<expose::write_text>)->Name("write_text")->Arg(128)->UseManualTime()->Unit(kMilliseconds);
BENCHMARK(write<expose::write_openmetrics>)->Name("write_openmetrics")->Arg(128)->UseManualTime()->Unit(kMilliseconds);
BENCHMARK(write<expose::write_json>)->Name("write_json")->Arg(128)->UseManualTime()->Unit(kMilliseconds);
BENCHMARK(remember)->Name("state")->Arg(128)->UseManualTime()->Unit(kMilliseconds);

}  // namespace
}  // namespace gpuledger::bench

BENCHMARK_MAIN();
