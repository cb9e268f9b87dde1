// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "expose/expose.h"
#include "exposition_parser.h"

// A crowded node is scraped all the same: the biggest spenders stay, the books balance, and what is missing is counted.
namespace gpuledger::expose {
namespace {

constexpr uint32_t kGpus = 2;
constexpr uint32_t kPods = 1500;  // on each

Allocation allocation_of(const OwnerAccount& account) {
  Allocation allocation;
  allocation.gpu = account.gpu;
  allocation.gpu_index = account.gpu_index;
  allocation.name_space = account.owner.name_space;
  allocation.pod = account.owner.pod;
  allocation.container = account.owner.container;
  allocation.resource = "nvidia.com/gpu.shared";
  return allocation;
}

// Pod n of a GPU spent n + 1 joules, in a namespace of its own where there are so many.
void add_pod(uint32_t gpu, uint32_t number, uint32_t namespaces, DeviceAccount& device, IdentityMap& identities,
             Ledger& ledger) {
  OwnerAccount& owner = ledger.owners.emplace_back();
  owner.owner.kind = OwnerKind::kPod;
  owner.owner.name_space = "team-" + std::to_string(number % namespaces);
  owner.owner.pod = "pod-" + std::to_string(number);
  owner.owner.pod_uid = "uid-" + std::to_string(gpu) + "-" + std::to_string(number);
  owner.gpu = device.description->uuid;
  owner.gpu_index = gpu;
  owner.booked.shared = Energy::millijoules(1000 * (number + 1));
  owner.booked.gpu_time = std::chrono::seconds(number);
  owner.idle_memory = Bytes{0};
  device.measured += owner.booked.total();
  ProcessAccount& process = ledger.processes.emplace_back();
  process.gpu = owner.gpu;
  process.gpu_index = gpu;
  process.identity.key = {1000 + gpu * kPods + number, 1};
  process.identity.name = "python3";
  process.identity.start_time_seconds = 1.7e9;
  process.identity.owner = owner.owner;
  process.booked = owner.booked;
  process.sm = process.memory_utilization = Ratio{0.1};
  process.memory = Bytes{1 << 20};
  process.idle.evaluated = true;
  ledger.allocations.push_back({allocation_of(owner), Nanoseconds(0)});
  identities.pods.push_back({owner.owner.name_space, owner.owner.pod, owner.owner.pod_uid, "apiserver", {}});
}

Cycle crowd(uint32_t namespaces = 10) {
  Cycle cycle;
  auto identities = std::make_shared<IdentityMap>();
  for (uint32_t gpu = 0; gpu < kGpus; ++gpu) {
    auto description = std::make_shared<DeviceDescription>();
    description->uuid = {"GPU-" + std::to_string(gpu)};
    description->index = gpu;
    DeviceSample& sample = cycle.batch.devices.emplace_back();
    sample.description = description;
    sample.up = true;
    sample.utilization = UtilizationState::kKnown;
    sample.memory_total = Bytes{1ull << 37};
    sample.power = Power::watts(500);
    sample.memory_used = Bytes{1ull << 36};
    DeviceAccount& device = cycle.ledger.devices.emplace_back();
    device.description = description;
    device.up = true;
    device.unattributed[0] = device.measured = Energy::millijoules(5'000);
    device.counted_before = Energy();
    for (uint32_t number = 0; number < kPods; ++number) {
      add_pod(gpu, number, namespaces, device, *identities, cycle.ledger);
    }
    ClosedAccount closed{OwnerKind::kPod, "team-0", description->uuid, gpu, {}};
    closed.booked.shared = Energy::millijoules(7'000);
    device.measured += closed.booked.total();
    cycle.ledger.closed.push_back(closed);
  }
  cycle.identities = identities;
  return cycle;
}

Exposition exposed(const Cycle& cycle, const ExposeOptions& options) {
  auto parsed = parse_exposition(write_text(cycle, options), Format::kText);
  EXPECT_TRUE(parsed.ok()) << parsed.error().message;
  return parsed.value_or({});
}

void expect_balanced(const Exposition& out) {
  for (const char* gpu : {"0", "1"}) {
    const Labels of{{"gpu", gpu}};
    EXPECT_EQ(out.micro_sum("gpu_ledger_device_energy_joules_total", of),
              out.micro_sum("gpu_ledger_pod_energy_joules_total", of) +
                  out.micro_sum("gpu_ledger_closed_energy_joules", of) +
                  out.micro_sum("gpu_ledger_device_unattributed_joules_total", of));
  }
}

TEST(SeriesLimit, IsNotReachedByDefaultWithAFewProcesses) {
  ExposeOptions options;
  EXPECT_LT(options.max_series, 20'000u);
  Cycle cycle = crowd();
  cycle.ledger.processes.resize(3);
  cycle.ledger.owners.resize(3);
  cycle.ledger.allocations.clear();
  const Exposition out = exposed(cycle, options);
  EXPECT_EQ(out.micro_sum("gpu_ledger_series_left_out"), 0);
  EXPECT_EQ(out.find("my_gpu_process_active").size(), 3u);
}

TEST(SeriesLimit, HoldsForEveryNumberAndTheBooksBalance) {
  const Cycle cycle = crowd();
  ExposeOptions all;
  all.max_series = 0;
  const size_t without = exposed(cycle, all).samples.size();
  ASSERT_GT(without, 50'000u);
  for (const size_t most : {size_t{1'000}, size_t{5'000}, size_t{15'000}, size_t{40'000}, without}) {
    ExposeOptions options;
    options.max_series = most;
    const Exposition out = exposed(cycle, options);
    EXPECT_LE(out.samples.size(), most);
    EXPECT_GE(out.samples.size(), most * 9 / 10) << "room is used";
    EXPECT_EQ(out.value("gpu_ledger_series"), std::to_string(out.samples.size()));
    expect_balanced(out);
    EXPECT_EQ(out.value("gpu_process_count", {{"gpu", "0"}}), std::to_string(kPods)) << "counts are of all";
    EXPECT_EQ(out.micro_sum("gpu_ledger_series_left_out") > 0, most < without);
  }
}

TEST(SeriesLimit, TheBiggestSpendersStay) {
  ExposeOptions options;
  const Exposition out = exposed(crowd(), options);
  const auto shown = out.find("gpu_ledger_pod_gpu_seconds_total", {{"gpu", "1"}}).size();
  ASSERT_GT(shown, 100u);
  ASSERT_LT(shown, kPods);
  for (uint32_t number = 0; number < kPods; ++number) {
    const Labels of{{"gpu", "1"}, {"pod", "pod-" + std::to_string(number)}};
    EXPECT_EQ(out.find("gpu_ledger_pod_gpu_seconds_total", of).size(), number >= kPods - shown ? 1u : 0u) << number;
  }
}

TEST(SeriesLimit, SumsPerNamespaceStayRight) {
  ExposeOptions options;
  const Cycle cycle = crowd();
  const Exposition some = exposed(cycle, options);
  options.max_series = 0;
  const Exposition all = exposed(cycle, options);
  for (int team = 0; team < 10; ++team) {
    const Labels of{{"namespace", "team-" + std::to_string(team)}};
    const auto sum = [&](const Exposition& out) {
      return out.micro_sum("gpu_ledger_pod_energy_joules_total", of) +
             out.micro_sum("gpu_ledger_closed_energy_joules", of);
    };
    EXPECT_EQ(sum(some), sum(all)) << team;
  }
}

TEST(SeriesLimit, HoldsWithANamespaceForEachPod) {
  ExposeOptions options;
  options.max_series = 5'000;
  const Exposition out = exposed(crowd(kPods), options);
  EXPECT_LE(out.samples.size(), options.max_series);
  expect_balanced(out);
}

TEST(SeriesLimit, HoldsForTheNamesOfDcgmAndTheirPowerAddsUp) {
  ExposeOptions options;
  options.collectors = {"dcgm", "dcgm-modern"};
  options.max_series = 5'000;
  const auto out = parse_exposition(write_gpu_text(crowd(), options), Format::kText);
  ASSERT_TRUE(out.ok()) << out.error().message;
  EXPECT_LE(out->samples.size(), options.max_series);
  EXPECT_GT(out->find("dcgm_power_usage", {{"gpu", "1"}}).size(), 2u);
  EXPECT_EQ(out->micro_sum("dcgm_power_usage", {{"gpu", "1"}}), 500'000'000);
}

}  // namespace
}  // namespace gpuledger::expose
