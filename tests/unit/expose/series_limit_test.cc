// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "expose/expose.h"
#include "expose/families.h"
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

// With as many allocations by Slurm: job n of a GPU spent n + 1 joules.
Cycle crowd_of_jobs() {
  Cycle cycle = crowd();
  for (const DeviceAccount& device : cycle.ledger.devices) {
    for (uint32_t number = 0; number < kPods; ++number) {
      OwnerAccount& owner = cycle.ledger.owners.emplace_back();
      owner.owner.kind = OwnerKind::kSlurmJob;
      owner.owner.job = std::to_string(number);
      owner.gpu = device.description->uuid;
      owner.gpu_index = device.description->index;
      owner.booked.shared = Energy::millijoules(1000 * (number + 1));
      Allocation given;
      given.gpu = owner.gpu;
      given.gpu_index = owner.gpu_index;
      given.job = owner.owner.job;
      cycle.ledger.slurm_allocations.push_back({given, Nanoseconds(0)});
    }
  }
  return cycle;
}

TEST(SeriesLimit, HoldsForAllocationsBySlurm) {
  constexpr const char* kInfo = "gpu_ledger_slurm_allocation_info";
  const Cycle cycle = crowd_of_jobs();
  for (const size_t most : {size_t{2'000}, size_t{15'000}}) {
    ExposeOptions options;
    options.max_series = most;
    const Exposition out = exposed(cycle, options);
    EXPECT_LE(out.samples.size(), most);
    EXPECT_GE(out.samples.size(), most * 9 / 10) << "room is used";
    EXPECT_GT(out.micro_sum("gpu_ledger_series_left_out", {{"collector", "device"}}), 0);
    EXPECT_EQ(out.find(kInfo, {{"slurm_job_id", std::to_string(kPods - 1)}}).size(), kGpus) << "the biggest spender";
    EXPECT_EQ(out.find(kInfo, {{"slurm_job_id", "0"}}).size(), 0u);
  }
}

constexpr Row<ProcessSeries> kMadeUpOfProcesses[] = {
    {"made_up_processes", kGauge, "", "", [](const ProcessSeries&) { return uint64_t{1}; }}};
constexpr Row<OwnerSeries> kMadeUpOfOwners[] = {
    {"made_up_owners", kGauge, "", "", [](const OwnerSeries&) { return uint64_t{1}; }}};
constexpr Row<AllocationSeries> kMadeUpOfAllocations[] = {
    {"made_up_allocations", kGauge, "part", "", [](const AllocationSeries&, Samples& samples) {
       for (const char* part : {"part=\"a\"", "part=\"b\"", "part=\"c\""}) samples.add(uint64_t{1}, part);
     }}};
constexpr Row<PodSeries> kMadeUpOfPods[] = {
    {"made_up_pods", kGauge, "", "", [](const PodSeries&) { return uint64_t{1}; }}};

// A table needs no second register: its rows are enough.
TEST(SeriesLimit, HoldsForATableThatNobodyKnows) {
  CatalogBuilder made_up("made-up");
  made_up.add(rows_of(kMadeUpOfProcesses), "", &View::processes);
  made_up.add(rows_of(kMadeUpOfOwners), "", &View::owners);
  made_up.add(rows_of(kMadeUpOfAllocations), "", &View::slurm_allocations);
  made_up.add(rows_of(kMadeUpOfPods), "", [](const View& view, const auto& visit) {
    for (const PodSeries& pod : view.pods) visit(pod, "");
  });
  std::vector<Family> families(catalog().begin(), catalog().end());
  for (Family& family : made_up.take()) families.push_back(std::move(family));
  const Cycle cycle = crowd_of_jobs();
  for (const bool alone : {true, false}) {
    ExposeOptions options;
    if (alone) options.collectors.clear();
    options.collectors.insert("made-up");
    options.max_series = 3'000;
    View view(cycle, options);
    limit(view, families);
    EXPECT_GT(view.left_out.at("made-up"), 1000u);
    CountingSink sink;
    write_families(view, sink, families);
    EXPECT_LE(sink.samples(), options.max_series);
    EXPECT_GE(sink.samples(), options.max_series * 9 / 10) << "room is used";
  }
}

using Document = nlohmann::json;
Document listed(const Cycle& cycle, size_t most) {
  ExposeOptions options;
  options.max_series = most;
  return Document::parse(write_json(cycle, options));
}

size_t entries_of(const Document& document) {
  size_t entries = 0;
  for (const char* list : {"allocations", "closed", "owners", "processes"}) entries += document.at(list).size();
  return entries;
}

TEST(JsonLimit, HoldsAndSaysWhatIsLeftOut) {
  const Cycle cycle = crowd();
  const Document all = listed(cycle, 0);
  EXPECT_EQ(entries_of(all), 3 * kGpus * kPods + kGpus);
  EXPECT_FALSE(all.contains("left_out"));
  EXPECT_EQ(listed(cycle, entries_of(all)), all);
  for (const size_t most : {size_t{100}, size_t{1'000}, size_t{5'000}}) {
    const Document some = listed(cycle, most);
    EXPECT_LE(entries_of(some), most);
    EXPECT_GE(entries_of(some), most * 2 / 3) << "room is used";
    EXPECT_EQ(some.at("gpus"), all.at("gpus"));
    for (const char* list : {"allocations", "owners", "processes"}) {
      const size_t left_out = all.at(list).size() - some.at(list).size();
      EXPECT_EQ(some.at("left_out").value(list, size_t{0}), left_out) << list;
    }
  }
}

TEST(JsonLimit, TheBooksBalance) {
  for (const uint32_t namespaces : {10u, kPods}) {
    const Cycle cycle = crowd(namespaces);
    for (const size_t most : {1'000, 5'000}) {
      const Document some = listed(cycle, most);
      EXPECT_LE(entries_of(some), most);
      for (const Document& gpu : some.at("gpus")) {
        double joules = gpu.at("unattributed_joules").at("anomaly").get<double>();
        for (const char* reason : {"exporter_down", "idle", "static", "unseen"})
          joules += gpu.at("unattributed_joules").at(reason).get<double>();
        for (const char* list : {"owners", "closed"}) {
          for (const Document& entry : some.at(list)) {
            if (entry.at("gpu_uuid") == gpu.at("uuid")) joules += entry.at("energy_joules").at("total").get<double>();
          }
        }
        EXPECT_NEAR(joules, gpu.at("energy_joules").get<double>(), 1e-6);
      }
    }
  }
}

TEST(JsonLimit, AJobWithoutSomeOfItsStepsSaysSo) {
  Cycle cycle = crowd();
  for (const int64_t joules : {1, 5'000}) {
    OwnerAccount step = cycle.ledger.owners.front();
    step.owner = {};
    step.owner.kind = OwnerKind::kSlurmJob;
    step.owner.job = "7";
    step.owner.step = std::to_string(joules);
    step.booked.shared = Energy::millijoules(1000 * joules);
    cycle.ledger.owners.push_back(step);
  }
  for (const size_t most : {0, 1'000}) {
    const Document shown = listed(cycle, most);
    size_t steps = 0;
    for (const Document& owner : shown.at("owners")) {
      if (owner.value("slurm_job_id", "") != "7") continue;
      ++steps;
      EXPECT_EQ(owner.contains("job_steps_closed"), most != 0);
    }
    EXPECT_EQ(steps, most == 0 ? 2u : 1u);
  }
}

TEST(JsonLimit, LivingProcessesAndBigSpendersStay) {
  Cycle cycle = crowd();
  for (ProcessAccount& process : cycle.ledger.processes) process.active = process.identity.key.pid == 1000;
  const Document some = listed(cycle, 300);
  const auto has = [&](const char* list, const char* field, const Document& value) {
    const Document& entries = some.at(list);
    return std::any_of(entries.begin(), entries.end(), [&](const Document& entry) { return entry.at(field) == value; });
  };
  EXPECT_TRUE(has("processes", "pid", 1000)) << "it lives, and has spent least";
  EXPECT_FALSE(has("processes", "pid", 1001));
  const std::string biggest = "pod-" + std::to_string(kPods - 1);
  EXPECT_TRUE(has("processes", "pod", biggest));
  EXPECT_TRUE(has("owners", "pod", biggest));
  EXPECT_TRUE(has("allocations", "pod", biggest));
  EXPECT_FALSE(has("owners", "pod", "pod-0"));
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
