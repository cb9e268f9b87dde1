// SPDX-License-Identifier: Apache-2.0
#include "crowded_node.h"

#include <malloc.h>

#include <algorithm>
#include <ctime>
#include <string>

namespace gpuledger::bench {
namespace {

// Alone for a second of whole work: watts above the static ones, then the activity of the parts.
struct Kind {
  double watts;
  std::array<double, Activity::kParts> parts;
};
constexpr Kind kKinds[] = {
    {560, {0.85, 0.12, 0.74, 0.05, 0.00, 0.00}},  // matrix products
    {320, {0.92, 0.87, 0.00, 0.80, 0.00, 0.00}},  // copies
    {350, {0.98, 0.60, 0.00, 0.02, 0.90, 0.00}},  // FP32
    {10, {0.01, 0.00, 0.00, 0.00, 0.00, 0.00}},   // tiny kernels
};
constexpr double kStaticWatts = 124;
constexpr double kLimitWatts = 700;
// A newcomer is known by what the others leave over after five seconds.
constexpr uint64_t kSecondsBetweenArrivals = 6;
constexpr uint64_t kSecondsTogether = 100;
constexpr uint64_t kSecondsBetweenOddities = 10;
constexpr int kTicketsPerSecond = 5;

std::string hex_of(uint64_t number, size_t digits) {
  std::string text;
  for (size_t i = 0; i < digits; ++i) text += "0123456789abcdef"[(number * 2654435761u >> (i % 16) * 4) & 15];
  return text;
}

ProcessIdentity identity_of(Pid pid) {
  const std::string number = std::to_string(pid);
  ProcessIdentity identity;
  identity.key = {pid, uint64_t{pid} * 100};
  identity.name = "python3";
  identity.start_time_seconds = 1.7e9 + pid;
  identity.container_id = hex_of(pid, 64);
  identity.owner.kind = OwnerKind::kPod;
  identity.owner.name_space = "team-" + std::to_string(pid % 10);
  identity.owner.pod = "worker-" + number + "-" + hex_of(pid, 5);
  identity.owner.container = "main";
  identity.owner.pod_uid = hex_of(pid, 8) + "-1f8f-4a5e-9d0c-" + hex_of(pid + 7, 12);
  return identity;
}

}  // namespace

CrowdedNode::CrowdedNode(uint32_t gpus, uint32_t processes_per_gpu) : processes_per_gpu_(processes_per_gpu) {
  batch_.health = {.source = "nvml", .up = true, .reason = {}, .errors = {}};
  for (uint32_t i = 0; i < gpus; ++i) {
    auto description = std::make_shared<DeviceDescription>();
    description->uuid = {"GPU-" + hex_of(i, 8) + "-0000-0000-0000-000000000000"};
    description->index = i;
    description->model = "NVIDIA H200";
    description->power_limit = Power::watts(kLimitWatts);
    DeviceSample& device = batch_.devices.emplace_back();
    device.description = std::move(description);
    device.up = true;
    device.energy_counter = Energy();
    device.utilization = UtilizationState::kKnown;
    device.sm_clock_mhz = 1980;
    device.memory_total = Bytes{141ull << 30};
    device.memory_used = Bytes{100ull << 30};
    device.temperature_celsius = 60;
  }
}

CrowdedNode CrowdedNode::settled(uint32_t gpus, uint32_t processes_per_gpu, attribute::Engine& engine) {
  CrowdedNode node(gpus, processes_per_gpu);
  engine.restore(node.what_each_costs(), "boot");
  while (!node.everybody_is_there()) node.admit();
  node.put_in_order();
  for (uint64_t second = 0; second < kSecondsTogether; ++second) (void)engine.advance(node.next(), node.identities());
  return node;
}

// As if each had been alone for long in an earlier life of the program.
attribute::EngineState CrowdedNode::what_each_costs() const {
  constexpr double kCertain = 1e4;  // to a hundredth
  attribute::EngineState state;
  for (const DeviceSample& device : batch_.devices) {
    attribute::DeviceState& saved = state.devices.emplace_back();
    saved.uuid = device.description->uuid;
    saved.boot_id = "boot";
    for (uint32_t place = 0; place < processes_per_gpu_; ++place) {
      const Pid pid = pid_of(device.description->index, place);
      const Kind& kind = kKinds[pid % std::size(kKinds)];
      attribute::SignatureMemory& memory = saved.learned.signatures[identity_of(pid).key];
      size_t next = 0;
      for (int row = 0; row < attribute::kFeatures; ++row) {
        for (int column = 0; column <= row; ++column) memory.precision[next++] = row == column ? kCertain : 0;
        const double mean = row == 0 ? kind.watts / kLimitWatts : kind.parts[static_cast<size_t>(row - 1)];
        memory.shift[static_cast<size_t>(row)] = kCertain * mean;
      }
      memory.share = 1.0 / processes_per_gpu_;
    }
  }
  return state;
}

void CrowdedNode::admit() {
  for (DeviceSample& device : batch_.devices) {
    ProcessSample& process = device.processes.emplace_back();
    process.pid = pid_of(device.description->index, present_);
    process.listed = process.compute = true;
    process.memory = Bytes{700ull << 20};
    const ProcessIdentity& identity = identities_.by_pid[process.pid] = identity_of(process.pid);
    Allocation given;
    given.gpu = device.description->uuid;
    given.gpu_index = device.description->index;
    given.name_space = identity.owner.name_space;
    given.pod = identity.owner.pod;
    given.container = identity.owner.container;
    given.resource = "nvidia.com/gpu.shared";
    given.replica = present_;
    identities_.allocations.push_back(std::move(given));
    identities_.pods.push_back(
        {identity.owner.name_space, identity.owner.pod, identity.owner.pod_uid, "apiserver", {{"app", "worker"}}});
  }
  shared_identities_.reset();
  ++present_;
}

void CrowdedNode::put_in_order() {
  std::sort(identities_.allocations.begin(), identities_.allocations.end());
  std::sort(identities_.pods.begin(), identities_.pods.end());
}

const SampleBatch& CrowdedNode::next() {
  if (!everybody_is_there() && seconds_ % kSecondsBetweenArrivals == 0) {
    admit();
    put_in_order();
  }
  ++seconds_;
  batch_.at.steady = std::chrono::seconds(seconds_);
  batch_.at.wall = std::chrono::seconds(1'700'000'000 + seconds_);
  for (DeviceSample& device : batch_.devices) sample(device);
  return batch_;
}

void CrowdedNode::sample(DeviceSample& device) {
  Activity activity;
  std::array<double, Activity::kParts> shown{};
  double watts = kStaticWatts;
  const double share = 1.0 / present_;
  for (ProcessSample& process : device.processes) {
    process.use = {};
    const double worked = share * (0.9 + 0.2 * fraction());
    const Kind& kind = kKinds[process.pid % std::size(kKinds)];
    watts += worked * kind.watts;
    for (size_t part = 0; part < shown.size(); ++part) shown[part] += worked * kind.parts[part];
  }
  // One of them does something else for once: the most work that a single step can be.
  if (seconds_ % kSecondsBetweenOddities == 0) shown[Activity::kFp64] += 0.5;
  for (int ticket = 0; ticket < kTicketsPerSecond; ++ticket) {
    device.processes[random_() % present_].use.sm.value += 1.0 / kTicketsPerSecond;
  }
  for (size_t part = 0; part < shown.size(); ++part) activity.parts[part] = Ratio{std::min(1.0, shown[part])};
  activity.graphics = Ratio{1};
  device.activity = activity;
  device.gpu_utilization = Ratio{1};
  device.power = Power::watts(watts);
  *device.energy_counter += Energy::millijoules(static_cast<int64_t>(watts * 1000));
}

Cycle CrowdedNode::cycle(attribute::Engine& engine) {
  if (!shared_identities_) shared_identities_ = std::make_shared<const IdentityMap>(identities_);
  Cycle cycle;
  cycle.number = seconds_;
  cycle.batch = next();
  cycle.identities = shared_identities_;
  cycle.ledger = engine.advance(cycle.batch, *cycle.identities);
  return cycle;
}

size_t allocated_bytes() {
  return ::mallinfo2().uordblks;
}

double cpu_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

}  // namespace gpuledger::bench
