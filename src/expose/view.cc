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
  // The ledger orders by start time, but a start time can be unknown: who lives is certainly the newest.
  if (series.newest == nullptr || account.active || !series.newest->active) series.newest = &account;
  series.booked += account.booked;
  series.variance += account.standard_error_joules * account.standard_error_joules;
  if (account.active && account.memory) {
    series.memory = Bytes{(series.memory ? series.memory->count : 0) + account.memory->count};
  }
}

template <typename Wanted, typename Write>
std::vector<ProcessSeries> merge_processes(const Ledger& ledger, Wanted wanted, Write write_labels) {
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

// "gpu1_12345": the older exporter's way to keep a process on two GPUs apart, which dashboards look for.
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
  switch (owner.kind) {
    case OwnerKind::kPod:
      labels.add("namespace", owner.name_space)
          .add("pod", owner.pod)
          .add("container", owner.container)
          .add("pod_uid", owner.pod_uid);
      break;
    case OwnerKind::kSlurmJob: labels.add("job", owner.job).add("step", owner.step); break;
    case OwnerKind::kContainer:
      labels.add("runtime", owner.runtime).add("container_id", owner.container_id).add("container", owner.container);
      break;
    case OwnerKind::kHost: labels.add("unit", owner.unit).add("user", owner.user); break;
    case OwnerKind::kUnknown: break;
  }
  return labels.add("gpu", account.gpu_index).take();
}

// Two GPUs can have had one index (a card was swapped), which makes owners equal: merged like processes. Errors on two
// GPUs have nothing to do with each other, so their variances add up.
std::vector<OwnerSeries> merge_owners(const View& view) {
  std::vector<OwnerSeries> merged;
  std::unordered_map<std::string, size_t> places;
  for (const OwnerAccount* one : owners_in_order(view.cycle.ledger)) {
    const OwnerAccount& account = *one;
    std::string labels = owner_labels(view, account);
    const std::string key = std::to_string(static_cast<int>(account.owner.kind)) + labels;
    const auto [place, added] = places.emplace(key, merged.size());
    if (added) {
      merged.push_back({std::move(labels), account.owner.kind, account.owner.name_space, account.gpu_index, {}, 0, {}});
    }
    OwnerSeries& series = merged[place->second];
    series.booked += account.booked;
    series.variance += account.standard_error_joules * account.standard_error_joules;
    const DeviceSeries* device = view.find_device(account.gpu);
    if (device != nullptr && device->idle_known && account.idle_memory) {
      series.idle_memory = Bytes{series.idle_memory.value_or(Bytes()).count + account.idle_memory->count};
    }
  }
  return merged;
}

DeviceSeries join_device(const View& view, const DeviceAccount& account) {
  const DeviceDescription& description = *account.description;
  DeviceSeries series;
  series.account = &account;
  series.labels = view.labels().add("gpu", description.index).add("uuid", description.uuid.text).take();
  series.gpu_labels = view.labels().add("gpu", description.index).take();
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
      if (!process.active || process.gpu != description.uuid) continue;
      anyone = true;
      series.idle_known |= process.idle.evaluated;
    }
    series.idle_known |= !anyone && series.sample->utilization == UtilizationState::kKnown;
  }
  return series;
}

}  // namespace

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

  // One entry per name: the driver's own word comes last, for cycles whose list does not have it.
  const auto add_source = [&](const SourceHealth& health) {
    const auto same = [&](const SourceHealth& other) { return other.source == health.source; };
    if (!health.source.empty() && std::none_of(sources.begin(), sources.end(), same)) sources.push_back(health);
  };
  for (const SourceHealth& health : cycle.sources) add_source(health);
  add_source(cycle.batch.health);
}

void View::add_series() {
  processes = merge_processes(
      cycle.ledger, [](const ProcessAccount&) { return true; },
      [&](const ProcessAccount& account) { return process_labels(*this, account); });
  holders = merge_processes(
      cycle.ledger,
      [](const ProcessAccount& account) {
        return account.active || (account.gone_for && *account.gone_for < kIdleForgets);
      },
      [&](const ProcessAccount& account) { return holder_labels(*this, account); });
  listed = merge_processes(
      cycle.ledger,
      [&](const ProcessAccount& account) {
        const DeviceSeries* device = find_device(account.gpu);
        return account.active && device != nullptr && device->sample != nullptr;
      },
      [&](const ProcessAccount& account) { return listed_labels(*this, account); });
  owners = merge_owners(*this);
  for (const ClosedAccount& account : cycle.ledger.closed) {
    closed[{account.gpu_index, account.kind, account.name_space}] += account.booked;
  }
  for (const AllocationAccount& account : cycle.ledger.allocations) allocations.push_back(&account);
  for (const PodFacts& pod : cycle.identities->pods) pods.push_back(&pod);
  // Sums of what is there, whatever of it --max-series leaves out.
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

size_t View::expected_bytes() const {
  constexpr size_t kNameAndValue = 64;
  size_t bytes = 64 * 1024;
  for (const auto& series : processes) bytes += 9 * (series.labels.size() + kNameAndValue);
  for (const auto& series : holders) bytes += 4 * (series.labels.size() + kNameAndValue);
  for (const auto& series : listed) bytes += 3 * (series.labels.size() + kNameAndValue);
  for (const auto& series : owners) bytes += 5 * (series.labels.size() + kNameAndValue);
  constexpr size_t kLabels = 220;
  bytes += (2 * allocations.size() + pods.size() + 3 * closed.size()) * (kLabels + kNameAndValue);
  return bytes;
}

}  // namespace gpuledger::expose
