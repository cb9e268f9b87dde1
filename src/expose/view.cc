// SPDX-License-Identifier: Apache-2.0
#include "expose/view.h"

#include <algorithm>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "expose/numbers.h"

namespace gpuledger::expose {
namespace {

constexpr Nanoseconds kIdleForgets = std::chrono::seconds(30);

void merge_into(ProcessSeries& series, const ProcessAccount& account) {
  // The ledger sorts by start time, but that can be unknown. A running process is always the newest.
  if (series.newest == nullptr || account.active || !series.newest->active) series.newest = &account;
  series.booked += account.booked;
  series.variance += account.standard_error_joules * account.standard_error_joules;
  series.memory_peak = higher(series.memory_peak, account.memory_peak);
  if (account.active && account.memory) {
    series.memory = Bytes{(series.memory ? series.memory->count : 0) + account.memory->count};
  }
}

void merge_into(OwnerSeries& series, const View& view, const OwnerAccount& account) {
  series.booked += account.booked;
  series.variance += account.standard_error_joules * account.standard_error_joules;
  series.memory_peak = higher(series.memory_peak, account.memory_peak);
  const DeviceSeries* device = view.find_device(account.gpu);
  if (device != nullptr && device->idle_known && account.idle_memory) {
    series.idle_memory = Bytes{series.idle_memory.value_or(Bytes()).count + account.idle_memory->count};
  }
}

template <typename Wanted, typename Write>
std::vector<ProcessSeries> merge_processes(const View& view, Wanted wanted, Write write_labels) {
  const Ledger& ledger = view.cycle.ledger;
  std::vector<ProcessSeries> merged;
  merged.reserve(ledger.processes.size());  // the keys below point into it
  std::unordered_map<std::string_view, size_t> places;
  places.reserve(ledger.processes.size());
  for (const ProcessAccount& account : ledger.processes) {
    if (!wanted(account)) continue;
    std::string labels = write_labels(account);
    if (const auto known = places.find(labels); known != places.end()) {
      merge_into(merged[known->second], account);
      continue;
    }
    ProcessSeries& series = merged.emplace_back();
    series.labels = std::move(labels);
    series.device = view.find_device(account.gpu);
    places.emplace(series.labels, merged.size() - 1);
    merge_into(series, account);
  }
  return merged;
}

std::string process_labels(const View& view, const ProcessAccount& account) {
  const Owner& owner = account.identity.owner;
  LabelText labels = view.labels();
  labels.add("pid", account.identity.key.pid)
      .add("gpu", account.gpu_index)
      .add("process_name", account.identity.name)
      .add("pod", owner.pod)
      .add("namespace", owner.name_space)
      .add("container", owner.container)
      .add("pod_uid", owner.pod_uid)
      .add("container_id", account.identity.container_id);
  if (account.mig) labels.add("mig_uuid", account.mig->uuid).add("mig_profile", account.mig->profile);
  return labels.take();
}

std::string holder_labels(const View& view, const ProcessAccount& account) {
  const Owner& owner = account.identity.owner;
  return view.idle_labels()
      .add("gpu", account.gpu_index)
      .add("pid", account.identity.key.pid)
      .add("process", account.identity.name)
      .add("pod", owner.pod)
      .add("namespace", owner.name_space)
      .add("container", owner.container)
      .take();
}

// "gpu1_12345": the older exporter's form for a process on several GPUs. Dashboards use it.
std::string listed_labels(const View& view, const ProcessAccount& account) {
  std::string pid = "gpu";
  append_number(pid, uint64_t{account.gpu_index});
  pid += '_';
  append_number(pid, uint64_t{account.identity.key.pid});
  const Owner& owner = account.identity.owner;
  LabelText labels = view.labels();
  labels.add("gpu", account.gpu_index)
      .add("pid", pid)
      .add("command", account.identity.name)
      .add("pod", owner.pod)
      .add("namespace", owner.name_space);
  if (account.mig) labels.add("gi_id", account.mig->id.gpu_instance).add("ci_id", account.mig->id.compute_instance);
  return labels.take();
}

std::string owner_labels(const View& view, const OwnerAccount& account) {
  const Owner& owner = account.owner;
  LabelText labels = view.labels();
  for (const OwnerField& field : owner_kind(owner.kind).fields) labels.add(field.name, owner.*field.value);
  return labels.add("gpu", account.gpu_index).take();
}

// Two GPUs can have had one index (a card was swapped). Then owners have equal labels and are merged like processes.
// Errors on two GPUs are independent, so their variances add up.
std::vector<OwnerSeries> merge_owners(const View& view) {
  std::vector<OwnerSeries> merged;
  std::unordered_map<std::string, size_t> places;
  for (const OwnerAccount* one : owners_in_order(view.cycle.ledger)) {
    const OwnerAccount& account = *one;
    std::string labels = owner_labels(view, account);
    const std::string key = std::to_string(static_cast<int>(account.owner.kind)) + labels;
    const auto [place, added] = places.emplace(key, merged.size());
    if (added) merged.push_back({std::move(labels), one, {}, 0, {}, {}});
    merge_into(merged[place->second], view, account);
  }
  return merged;
}

DeviceSeries join_device(const View& view, const DeviceAccount& account) {
  const DeviceDescription& description = *account.description;
  DeviceSeries series;
  series.account = &account;
  series.labels = view.labels().add("gpu", description.index).add("uuid", description.uuid.text).take();
  series.gpu_labels = view.labels().add("gpu", description.index).take();
  series.idle_gpu_labels = view.idle_labels().add("gpu", description.index).take();
  series.idle_labels = view.idle_labels()
                           .add("gpu", description.index)
                           .add("model", description.model)
                           .add("uuid", description.uuid.text)
                           .take();
  for (const DeviceSample& sample : view.cycle.batch.devices) {
    const bool same = sample.description && sample.description->uuid == description.uuid;
    if (same && sample.up && account.up) series.sample = &sample;
  }
  if (series.sample != nullptr) {
    bool anyone = false;
    for (const ProcessAccount& process : view.cycle.ledger.processes) {
      if (!process.active || process.gpu != description.uuid || process.only_draws()) continue;
      anyone = true;
      series.idle_known |= process.idle.evaluated;
    }
    series.idle_known |= !anyone && series.sample->utilization == UtilizationState::kKnown;
  }
  return series;
}

}  // namespace

ProcessSeries series_of(const View& view, const ProcessAccount& account) {
  ProcessSeries series;
  series.device = view.find_device(account.gpu);
  merge_into(series, account);
  return series;
}

OwnerSeries series_of(const View& view, const OwnerAccount& account) {
  OwnerSeries series;
  series.account = &account;
  merge_into(series, view, account);
  return series;
}

LabelText place_labels(const View& view, const Allocation& allocation) {
  LabelText labels = view.labels();
  labels.add("gpu", allocation.gpu_index)
      .add("uuid", allocation.gpu.text)
      .add("mig_uuid", allocation.mig_uuid)
      .add("namespace", allocation.name_space)
      .add("pod", allocation.pod)
      .add("container", allocation.container)
      .add("pod_uid", allocation.pod_uid);
  return labels;
}

std::string request_labels(const View& view, std::string_view name_space, std::string_view pod,
                           std::string_view container, std::string_view resource) {
  LabelText labels = view.labels();
  labels.add("namespace", name_space).add("pod", pod).add("container", container).add("resource", resource);
  return labels.take();
}

std::vector<const OwnerAccount*> owners_in_order(const Ledger& ledger) {
  std::vector<const OwnerAccount*> order;
  order.reserve(ledger.owners.size());
  for (const OwnerAccount& account : ledger.owners) order.push_back(&account);
  std::stable_sort(order.begin(), order.end(), [](const OwnerAccount* a, const OwnerAccount* b) {
    return std::tie(a->owner, a->gpu_index) < std::tie(b->owner, b->gpu_index);
  });
  return order;
}

View::View(const Cycle& source, const ExposeOptions& settings) : View(source, settings, true) {}

View::View(const Cycle& source, const ExposeOptions& settings, bool with_series) : cycle(source), options(settings) {
  constants = {{"node", options.node}};
  idle_constants = {{"node", options.node}, {"pod", options.pod}, {"namespace", options.name_space}};

  for (const DeviceAccount& account : cycle.ledger.devices) {
    if (account.description) devices.push_back(join_device(*this, account));
  }
  if (with_series) add_series();

  // One entry per name. The batch's own health is last, for cycles without it in the list.
  const auto add_source = [&](const SourceHealth& health) {
    const auto same = [&](const SourceHealth& other) { return other.source == health.source; };
    if (!health.source.empty() && std::none_of(sources.begin(), sources.end(), same)) sources.push_back(health);
  };
  for (const SourceHealth& health : cycle.sources) add_source(health);
  add_source(cycle.batch.health);
}

void View::add_series() {
  processes = merge_processes(
      *this, [](const ProcessAccount&) { return true; },
      [&](const ProcessAccount& account) { return process_labels(*this, account); });
  holders = merge_processes(
      *this,
      [](const ProcessAccount& account) {
        return account.active || (account.gone_for && *account.gone_for < kIdleForgets);
      },
      [&](const ProcessAccount& account) { return holder_labels(*this, account); });
  listed = merge_processes(
      *this,
      [&](const ProcessAccount& account) {
        const DeviceSeries* device = find_device(account.gpu);
        return account.active && device != nullptr && device->sample != nullptr;
      },
      [&](const ProcessAccount& account) { return listed_labels(*this, account); });
  count_switches();
  owners = merge_owners(*this);
  for (const ClosedAccount& account : cycle.ledger.closed) {
    closed[{account.gpu_index, account.kind, account.name_space}] += account.booked;
  }
  for (const AllocationAccount& account : cycle.ledger.allocations) {
    AllocationSeries series{place_labels(*this, account.allocation).take(), &account};
    series.first_of_place = allocations.empty() || allocations.back().labels != series.labels;
    allocations.push_back(std::move(series));
  }
  for (const AllocationAccount& account : cycle.ledger.slurm_allocations) {
    LabelText text = labels();
    text.add("gpu", account.allocation.gpu_index)
        .add("uuid", account.allocation.gpu.text)
        .add("slurm_job_id", account.allocation.job);
    slurm_allocations.push_back({text.take(), &account});
  }
  count_given();
  for (const PodFacts& pod : cycle.identities->pods) pods.push_back(&pod);
  // Sums over all series, also those that --max-series leaves out.
  for (DeviceSeries& device : devices) {
    const GpuUuid& uuid = device.account->description->uuid;
    for (const auto& series : listed) device.listed += series.newest->gpu == uuid;
    for (const auto& series : holders) {
      const ProcessAccount& process = *series.newest;
      const bool idle = process.active && process.idle.evaluated && process.idle.idle;
      if (idle && series.memory && process.gpu == uuid) device.idle_memory.count += series.memory->count;
    }
  }
}

const DeviceSeries* View::find_device(const GpuUuid& uuid) const {
  for (const DeviceSeries& series : devices) {
    if (series.account->description->uuid == uuid) return &series;
  }
  return nullptr;
}

void View::count_given() {
  using Key = std::tuple<std::string_view, std::string_view, std::string_view, std::string_view>;
  std::map<Key, AllocationSeries*> first;
  for (AllocationSeries& series : allocations) {
    const Allocation& one = series.account->allocation;
    ++first.try_emplace({one.name_space, one.pod, one.container, one.resource}, &series).first->second->given;
  }
}

void View::count_switches() {
  std::map<std::pair<std::string_view, Pid>, uint64_t> newest;
  for (const ProcessSeries& series : processes) {
    const ProcKey& key = series.newest->identity.key;
    uint64_t& start = newest[{series.newest->gpu.text, key.pid}];
    start = std::max(start, key.start_ticks);
  }
  for (ProcessSeries& series : processes) {
    const ProcKey& key = series.newest->identity.key;
    if (series.device == nullptr || !series.device->reading().exact_time) continue;
    if (newest[{series.newest->gpu.text, key.pid}] != key.start_ticks) continue;
    const auto& counts = series.device->reading().exact_time->switches_by_process;
    if (const auto count = counts.find(key.pid); count != counts.end()) series.switches = count->second;
  }
}

}  // namespace gpuledger::expose
