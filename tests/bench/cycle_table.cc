// SPDX-License-Identifier: Apache-2.0
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "crowded_node.h"
#include "expose/expose.h"
#include "identity/resolver.h"
#include "support/sleepers.h"

// What one cycle and one scrape cost, by how crowded the node is: a table. Every process has a pod of its own. All
// figures are CPU time of this thread beyond the driver's calls; of many cycles the median.
namespace gpuledger::bench {
namespace {

struct Size {
  uint32_t gpus;
  uint32_t processes;  // on each
};
const std::vector<Size> kSizes = {{8, 16}, {8, 128}, {8, 512}, {16, 512}};
constexpr int kCycles = 21;

struct Costs {
  double resolve = 0;  // milliseconds
  double books = 0;
  double scrape = 0;
  double resident_megabytes = 0;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

template <typename Work>
double milliseconds_of(Work work) {
  const double began = cpu_seconds();
  work();
  return (cpu_seconds() - began) * 1e3;
}

double resident_megabytes() {
  std::ifstream file("/proc/self/statm");
  double pages = 0;
  file >> pages >> pages;
  return pages * static_cast<double>(::sysconf(_SC_PAGESIZE)) / 1e6;
}

// The pids of real processes, which the resolver watches; the books get pods from the crowded node.
double resolver_milliseconds(const testing::Sleepers& sleepers) {
  SampleBatch batch;
  DeviceSample& device = batch.devices.emplace_back();
  device.description = std::make_shared<DeviceDescription>();
  for (const pid_t pid : sleepers.pids()) device.processes.emplace_back().pid = static_cast<Pid>(pid);
  identity::Resolver resolver(identity::ProcReader("/proc"), identity::NodeDirectory{});
  int second = 0;
  const auto cycle = [&] {
    batch.at.steady = std::chrono::seconds(second);
    batch.processes_scanned = second++ % 10 == 0;
    (void)resolver.resolve(batch);
  };
  for (int i = 0; i < 25; ++i) cycle();  // nobody is young any more
  std::vector<double> taken;
  for (int i = 0; i < kCycles; ++i) taken.push_back(milliseconds_of(cycle));
  return median(std::move(taken));
}

Costs measure(const Size& size) {
  Costs costs;
  {
    const testing::Sleepers sleepers(size_t{size.gpus} * size.processes);
    if (sleepers.pids().size() == size_t{size.gpus} * size.processes) costs.resolve = resolver_milliseconds(sleepers);
  }
  attribute::Engine engine((BookingRules()));
  CrowdedNode node = CrowdedNode::settled(size.gpus, size.processes, engine);
  std::optional<Cycle> shown = node.cycle(engine);
  std::vector<double> books;
  std::vector<double> scrapes;
  std::string text;
  for (int i = 0; i < kCycles; ++i) {
    const SampleBatch& batch = node.next();
    Ledger ledger;
    books.push_back(milliseconds_of([&] { ledger = engine.advance(batch, node.identities()); }));
    shown->ledger = std::move(ledger);  // the one before goes, as with the snapshots
    scrapes.push_back(milliseconds_of([&] { text = expose::write_text(*shown, expose::ExposeOptions()); }));
  }
  costs.books = median(std::move(books));
  costs.scrape = median(std::move(scrapes));
  costs.resident_megabytes = resident_megabytes();
  return costs;
}

// Each size in a process of its own, so that none finds the memory of another.
std::optional<Costs> measure_alone(const Size& size) {
  int ends[2];
  if (::pipe(ends) != 0) return std::nullopt;
  const pid_t child = ::fork();
  if (child == 0) {
    const Costs costs = measure(size);
    ::_exit(::write(ends[1], &costs, sizeof costs) == sizeof costs ? 0 : 1);
  }
  ::close(ends[1]);
  Costs costs;
  const bool whole = child > 0 && ::read(ends[0], &costs, sizeof costs) == sizeof costs;
  ::close(ends[0]);
  if (child > 0) ::waitpid(child, nullptr, 0);
  return whole ? std::optional(costs) : std::nullopt;
}

int print_table(const std::vector<Size>& sizes) {
  // One descriptor for each process that is watched.
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
  std::printf("CPU milliseconds per cycle beyond the driver, one pod per process\n");
  std::printf("%12s %10s %10s %10s %14s %16s %10s\n", "GPUs x each", "resolve", "books", "cycle", "us per process",
              "scrape (text)", "MB");
  for (const Size& size : sizes) {
    const auto costs = measure_alone(size);
    if (!costs) return 1;
    const double cycle = costs->resolve + costs->books;
    std::printf("%5u x %4u %10.2f %10.2f %10.2f %14.2f %16.2f %10.1f\n", size.gpus, size.processes, costs->resolve,
                costs->books, cycle, cycle * 1e3 / (size.gpus * size.processes), costs->scrape,
                costs->resident_megabytes);
  }
  return 0;
}

}  // namespace
}  // namespace gpuledger::bench

// Without arguments the whole table, with GPUS PROCESSES one line of it.
int main(int argc, char** argv) {
  using namespace gpuledger::bench;
  if (argc != 3) return print_table(kSizes);
  return print_table({{static_cast<uint32_t>(std::atoi(argv[1])), static_cast<uint32_t>(std::atoi(argv[2]))}});
}
