// SPDX-License-Identifier: Apache-2.0
#include "node_example.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace gpuledger::expose {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

Owner trainer_pod() {
  Owner owner;
  owner.kind = OwnerKind::kPod;
  owner.name_space = "ml";
  owner.pod = "train-0";
  owner.container = "pytorch";
  owner.pod_uid = "0b6f1c52-91ab-4c2c-8a0f-0d5a4d6a1f10";
  return owner;
}

Owner docker_container() {
  Owner owner;
  owner.kind = OwnerKind::kContainer;
  owner.container = "jupyter";
  owner.runtime = "docker";
  owner.container_id = "9f3c";
  return owner;
}

Owner slurm_job() {
  Owner owner;
  owner.kind = OwnerKind::kSlurmJob;
  owner.job = "4711";
  owner.step = "0";
  return owner;
}

std::shared_ptr<DeviceDescription> describe(uint32_t index, const std::string& model) {
  auto description = std::make_shared<DeviceDescription>();
  description->index = index;
  description->uuid.text = "GPU-000" + std::to_string(index);
  description->model = model;
  description->pci_bus_id = "00000000:0" + std::to_string(index) + ":00.0";
  description->driver = "570.133.20";
  description->accounting_enabled = true;
  description->serial = "165302" + std::to_string(index);
  description->vbios_version = "96.00.A5.00.0" + std::to_string(index);
  description->power_limit = Power::watts(700);
  return description;
}

Owner host_service() {
  Owner owner;
  owner.unit = "triton.service";
  owner.user = "998";
  return owner;
}

ProcessAccount account(uint32_t gpu, Pid pid, const std::string& name, const Owner& owner) {
  ProcessAccount process;
  process.gpu.text = "GPU-000" + std::to_string(gpu);
  process.gpu_index = gpu;
  process.identity.key = {pid, pid * 10};
  process.identity.name = name;
  process.identity.start_time_seconds = 1700000000.25;
  process.identity.container_id = owner.container_id;
  process.identity.owner = owner;
  return process;
}

DeviceAccount& add_device(Cycle& cycle, std::shared_ptr<DeviceDescription> description, bool up) {
  DeviceSample sample;
  sample.description = description;
  sample.up = up;
  if (up) {
    sample.power = Power::milliwatts(312'500);
    sample.gpu_utilization = Ratio{0.93};
    sample.memory_used = Bytes{40 * kGiB};
    sample.memory_total = Bytes{80 * kGiB};
    sample.temperature_celsius = 61;
    sample.utilization = UtilizationState::kKnown;
  }
  cycle.batch.devices.push_back(sample);
  DeviceAccount device;
  device.description = std::move(description);
  device.up = up;
  return cycle.ledger.devices.emplace_back(device);
}

// A reading of every kind; one GPU would not have both retired pages and remapped rows.
void add_vitals(DeviceSample& sample) {
  for (size_t i = 0; i < kVitalCount; ++i) sample.vitals.values[i] = i + 1;
  sample.vitals[Vital::kMemoryClock] = 3201;
  sample.vitals[Vital::kMemoryTemperature] = 70;
  sample.vitals[Vital::kFan] = 35;
  sample.vitals[Vital::kThrottleReasons] = kThrottleSwPowerCap | kThrottleHwThermal | 1;
  sample.vitals[Vital::kPowerViolation] = 12'500'000'001;
  sample.vitals[Vital::kRetiredPagesPending] = 0;
  sample.sm_clock_mhz = 1755;
}

void add_h200(Cycle& cycle) {
  auto description = describe(0, "NVIDIA H200");
  description->mig_enabled = false;
  DeviceAccount& device = add_device(cycle, description, true);
  device.measured = Energy::microjoules(6'000'000'123);
  device.unattributed[static_cast<size_t>(Reason::kIdle)] = Energy::microjoules(1'000'000'001);
  device.unattributed[static_cast<size_t>(Reason::kUnseen)] = Energy::microjoules(500'000'022);
  device.idle_power = Power::watts(75.5);
  device.xids = {{31, 2}, {79, 1}};
  device.xid_seen = {{31, seconds(1'700'000'000) + milliseconds(250)}, {79, seconds(1'700'000'090)}};
  device.opening = {seconds(1'699'999'000) + milliseconds(250), 3};
  device.counted_before = Energy::millijoules(1'000'000);
  device.refused_readings = 3;
  device.last_step = Energy::millijoules(312'500);
  device.gpu_time_source = GpuTimeSource::kTrace;
  device.attribution_error = 0.0425;
  device.attribution_comparisons = 12;
  add_vitals(cycle.batch.devices.back());
  ExactTime exact;
  exact.trusted = true;
  exact.records_read = 20'000;
  exact.records_lost = 3;
  exact.switches = 10'000;
  exact.switches_by_process = {{90, 500}, {100, 6'000}, {200, 3'500}};
  exact.switching = milliseconds(850);
  cycle.batch.devices.back().exact_time = exact;

  ProcessAccount trainer = account(0, 100, "python3", trainer_pod());
  trainer.identity.container_id = "c0ffee";
  trainer.booked = {Energy::microjoules(1'234'567'891), Energy::microjoules(700'000'000), milliseconds(12'345)};
  trainer.standard_error_joules = 3.5;
  trainer.sm = Ratio{0.85};
  trainer.memory_utilization = Ratio{0.07};
  trainer.memory = Bytes{2048 * kMiB};
  trainer.memory_peak = Bytes{3072 * kMiB};
  trainer.encoder = Ratio{0.25};
  trainer.compute = true;
  trainer.identity.uid = "1000";
  trainer.identity.user_name = "ana";
  trainer.idle = {true, false, Nanoseconds(0), Ratio{0.85}};
  ProcessAccount exited = trainer;
  exited.identity.key = {90, 900};
  exited.active = false;
  exited.booked = {Energy::microjoules(65'432'109), Energy(), seconds(1)};
  exited.standard_error_joules = 0;
  exited.sm.reset();
  exited.memory_utilization.reset();
  exited.memory.reset();
  exited.encoder.reset();
  exited.idle = {};
  exited.gone_for = seconds(45);
  ProcessAccount holder = account(0, 200, "notebook", {});
  holder.booked = {Energy(), Energy::microjoules(1'500'000'100), seconds(2)};
  holder.standard_error_joules = 1.25;
  holder.sm = Ratio{0};
  holder.memory_utilization = Ratio{0};
  holder.memory = Bytes{20 * kGiB};
  holder.memory_peak = Bytes{21 * kGiB};
  holder.compute = holder.graphics = true;
  holder.identity.uid = "1001";
  holder.idle = {true, true, seconds(700), 0};
  cycle.ledger.processes.insert(cycle.ledger.processes.end(), {exited, trainer, holder});

  const Booked pod{Energy::microjoules(2'300'000'000), Energy::microjoules(700'000'000), seconds(20)};
  cycle.ledger.owners.push_back({trainer_pod(), {"GPU-0000"}, 0, pod, 0.5, Bytes{}});
  cycle.ledger.owners.push_back({Owner{}, {"GPU-0000"}, 0, holder.booked, 0.5, Bytes{20 * kGiB}});
}

void add_mig(Cycle& cycle) {
  auto description = describe(1, "NVIDIA A100-SXM4-80GB");
  description->mig_enabled = true;
  MigInstance slice;
  slice.uuid = "MIG-0001";
  slice.id = {7, 0};
  slice.profile = "1g.10gb";
  slice.memory_total = Bytes{10 * kGiB};
  slice.compute_slices = 1;
  description->mig.push_back(slice);
  DeviceAccount& device = add_device(cycle, description, true);
  device.measured = Energy::millijoules(90'001);
  device.unattributed[static_cast<size_t>(Reason::kExporterDown)] = Energy::millijoules(1);
  DeviceSample& sample = cycle.batch.devices.back();
  sample.utilization = UtilizationState::kUnsupported;
  sample.exact_time = ExactTime{};
  sample.exact_time->reason = "MIG";
  sample.exact_time->switches_by_process = {{300, 1}};
  sample.gpu_utilization.reset();

  ProcessAccount process = account(1, 300, "tritonserver", host_service());
  process.mig = slice;
  process.booked = {Energy(), Energy::millijoules(60'000), seconds(30)};
  process.standard_error_joules = 9;
  process.memory = Bytes{5 * kGiB};
  cycle.ledger.processes.push_back(process);
  cycle.ledger.owners.push_back({host_service(), {"GPU-0001"}, 1, process.booked, 0.5, Bytes{}});
  const Booked job{Energy::millijoules(20'000), Energy::millijoules(10'000), seconds(9)};
  cycle.ledger.owners.push_back(
      {slurm_job(), {"GPU-0001"}, 1, job, 2.5, {}, Bytes{4 * kGiB}, "2001", "ana", {"physics", "gpu", 2, 940.5}});
}

void add_lost(Cycle& cycle) {
  DeviceAccount& device = add_device(cycle, describe(2, "NVIDIA L40S"), false);
  device.measured = Energy::millijoules(560);
  device.idle_power = Power::watts(30);
  device.unattributed[static_cast<size_t>(Reason::kAnomaly)] = Energy::millijoules(100);
  ProcessAccount process = account(2, 400, "jupyter", docker_container());
  process.booked = {Energy::millijoules(300), Energy::millijoules(100), seconds(1)};
  process.standard_error_joules = 0.03;
  cycle.ledger.processes.push_back(process);
  cycle.ledger.owners.push_back({docker_container(), {"GPU-0002"}, 2, process.booked, 0.03, Bytes{}});
  Owner unknown;
  unknown.kind = OwnerKind::kUnknown;
  const Booked unread{Energy::millijoules(40), Energy::millijoules(20), seconds(1)};
  cycle.ledger.owners.push_back({unknown, {"GPU-0002"}, 2, unread, 0.01, {}});
}

void add_t4(Cycle& cycle) {
  auto description = describe(3, "Tesla T4");
  description->energy_source = EnergySource::kPowerIntegral;
  description->accounting_enabled.reset();
  DeviceAccount& device = add_device(cycle, description, true);
  device.measured = Energy::microjoules(3'000'007);
  device.unattributed[static_cast<size_t>(Reason::kIdle)] = Energy::microjoules(7);
  const Booked closed{Energy::millijoules(1'000), Energy::millijoules(2'000), seconds(4)};
  cycle.ledger.closed.push_back({OwnerKind::kPod, "ml", {"GPU-0003"}, 3, closed});
  cycle.ledger.folded = {.processes_over_limit = 12, .owners_over_time = 1, .owners_over_limit = 0};
  cycle.batch.devices.back().temperature_celsius.reset();
  cycle.batch.devices.back().power.reset();
}

}  // namespace

Cycle node_example() {
  Cycle cycle;
  cycle.number = 42;
  cycle.batch.at.wall = Nanoseconds(1'700'000'100'250'000'000);
  cycle.batch.health = {"nvml", true, "", {{"timeout", 3}}};
  cycle.batch.call_durations["nvmlDeviceGetTotalEnergyConsumption"].observe(0.0002);
  cycle.batch.call_durations["nvmlDeviceGetProcessUtilization"].observe(5);
  cycle.cycle_durations.observe(0.002);
  cycle.cycle_durations.observe(0.9);
  cycle.sources.push_back(cycle.batch.health);
  cycle.sources.push_back({"pod-resources", false, "no socket", {}});
  cycle.gpus_expected = 5;
  cycle.booted_at = 1'699'990'000;
  cycle.batch.missing_gpus = {"7"};
  auto identities = std::make_shared<IdentityMap>();
  identities->without_owner = 1;
  identities->allocatable = 8;
  identities->pods.push_back({"ml",
                              "train-0",
                              "uid-1",
                              "apiserver",
                              {{"app.kubernetes.io/name", "train \"x\""}},
                              {{"pytorch", "nvidia.com/gpu.shared", 2}, {"pytorch", "nvidia.com/mig-1g.10gb", 1}}});
  identities->slurm_holders["7"] = {{"physics", "gpu", 1, {}}, "2001", "ana"};
  cycle.identities = std::move(identities);
  Allocation by_slurm;
  by_slurm.gpu.text = "GPU-h200";
  by_slurm.job = "7";
  cycle.ledger.slurm_allocations.push_back({by_slurm, std::chrono::seconds(61)});
  Allocation given;
  given.gpu.text = "GPU-h200";
  given.name_space = "ml";
  given.pod = "train-0";
  given.container = "pytorch";
  given.pod_uid = "uid-1";
  given.resource = "nvidia.com/gpu.shared";
  for (const uint32_t replica : {0u, 1u}) {
    given.replica = replica;
    cycle.ledger.allocations.push_back({given, std::chrono::milliseconds(61500)});
  }
  given.replica.reset();
  given.gpu_index = 1;
  given.mig_uuid = "MIG-1";
  cycle.ledger.allocations.push_back({given, std::chrono::seconds(0)});
  cycle.self = {12.5, 1700000000.5, 20 * kMiB, 200 * kMiB, 12, 1024, 5};
  cycle.push = {5000, 20, 30, 10, 700, 8192, cycle.batch.at.wall - std::chrono::seconds(45), cycle.batch.at.wall};
  cycle.simulated = true;
  add_h200(cycle);
  add_mig(cycle);
  add_lost(cycle);
  add_t4(cycle);
  return cycle;
}

ExposeOptions example_options() {
  ExposeOptions options;
  options.version = "1.2.3";
  options.revision = "0123abc";
  return options;
}

Exposition expose(const Cycle& cycle, const ExposeOptions& options) {
  auto parsed = parse_exposition(write_text(cycle, options), Format::kText);
  EXPECT_TRUE(parsed.ok()) << parsed.error().message;
  return parsed.value_or({});
}

ProcessAccount& process_of(Cycle& cycle, Pid pid) {
  for (ProcessAccount& process : cycle.ledger.processes) {
    if (process.identity.key.pid == pid) return process;
  }
  throw std::out_of_range("no such process in the example");
}

}  // namespace gpuledger::expose
