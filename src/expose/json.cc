#include <string>

#include "expose/expose.h"
#include "expose/json_text.h"
#include "expose/numbers.h"
#include "expose/troubles.h"
#include "expose/view.h"
#include "expose/words.h"

// Names are in the order of the alphabet, so that two documents are easily compared.
namespace gpuledger::expose {
namespace {

// By way of whole microseconds, which a double holds exactly since 1970; nanoseconds it does not.
double seconds_of(Nanoseconds time) {
  return static_cast<double>(time.count() / 1000) / 1e6;
}

void write_energy(JsonText& json, const Booked& booked) {
  json.name("energy_joules");
  json.open('{');
  json.field("alone", booked.alone);
  json.field("shared", booked.shared);
  json.field("total", booked.total());
  json.close('}');
}

void write_mig(JsonText& json, const MigInstance& instance) {
  json.open('{');
  json.field("ci_id", instance.id.compute_instance);
  json.field("gi_id", instance.id.gpu_instance);
  if (instance.memory_total) json.field("memory_total_bytes", instance.memory_total->count);
  if (instance.memory_used) json.field("memory_used_bytes", instance.memory_used->count);
  json.field_if_any("profile", instance.profile);
  json.field_if_any("uuid", instance.uuid);
  json.close('}');
}

void write_device_counts(JsonText& json, const DeviceAccount& account) {
  json.name("unattributed_joules");
  json.open('{');
  for (Reason reason : {Reason::kAnomaly, Reason::kExporterDown, Reason::kIdle, Reason::kStatic, Reason::kUnseen}) {
    json.field(reason_name(reason), account.unattributed[static_cast<size_t>(reason)]);
  }
  json.close('}');
}

void write_exact_time(JsonText& json, const ExactTime& exact) {
  json.name("exact_time");
  json.open('{');
  json.field("lost_records", exact.records_lost);
  json.field_if_any("reason", exact.reason);
  json.field("records", exact.records_read);
  json.field("switch_seconds", seconds_of(exact.switching));
  json.field("switches", exact.switches);
  json.field("trusted", exact.trusted);
  json.field("unknown_seconds", seconds_of(exact.unknown));
  json.close('}');
}

void write_device(JsonText& json, const DeviceSeries& device, Nanoseconds now) {
  const DeviceAccount& account = *device.account;
  const DeviceDescription& description = *account.description;
  static const DeviceSample nothing_said;
  const bool here = device.sample != nullptr;
  const DeviceSample& sample = here ? *device.sample : nothing_said;
  json.open('{');
  if (description.accounting_enabled) json.field("accounting_enabled", *description.accounting_enabled);
  json.field_if_any("driver", description.driver);
  json.field("energy_joules", account.measured);
  json.field("energy_source", energy_source_name(description.energy_source));
  if (sample.exact_time) write_exact_time(json, *sample.exact_time);
  if (const auto troubles = list_troubles(device, now); !troubles.empty()) {
    json.name("health");
    json.open('[');
    for (const std::string& trouble : troubles) json.value(trouble);
    json.close(']');
  }
  if (here && account.idle_power) json.field("idle_power_watts", account.idle_power->watts());
  json.field("index", description.index);
  if (here && account.gpu_time_source != GpuTimeSource::kNone)
    json.field("gpu_seconds_source", gpu_time_source_name(account.gpu_time_source));
  if (sample.memory_total) json.field("memory_total_bytes", sample.memory_total->count);
  if (sample.memory_used) json.field("memory_used_bytes", sample.memory_used->count);
  if (sample.memory_utilization) json.field("memory_utilization_ratio", sample.memory_utilization->value);
  if (!description.mig.empty()) {
    json.name("mig");
    json.open('[');
    for (const MigInstance& instance : description.mig) write_mig(json, instance);
    json.close(']');
  }
  json.field_if_any("mig_mode", mig_mode_name(description));
  json.field("model", std::string_view(description.model));
  json.field_if_any("pci_bus_id", description.pci_bus_id);
  if (description.power_limit) json.field("power_limit_watts", description.power_limit->watts());
  if (sample.power) json.field("power_watts", sample.power->watts());
  if (sample.temperature_celsius) json.field("temperature_celsius", *sample.temperature_celsius);
  write_device_counts(json, account);
  json.field("up", account.up);
  if (sample.gpu_utilization) json.field("utilization_ratio", sample.gpu_utilization->value);
  json.field("uuid", std::string_view(description.uuid.text));
  if (!account.xids.empty()) {
    json.name("xid_errors");
    json.open('{');
    for (const auto& [xid, count] : account.xids) json.field(std::to_string(xid), count);
    json.close('}');
  }
  json.close('}');
}

void write_process(JsonText& json, const ProcessAccount& account) {
  const ProcessIdentity& identity = account.identity;
  const Owner& owner = identity.owner;
  const bool active = account.active;
  json.open('{');
  json.field("active", active);
  json.field_if_any("container", owner.container);
  json.field_if_any("container_id", identity.container_id.empty() ? owner.container_id : identity.container_id);
  write_energy(json, account.booked);
  if (account.booked.shared > Energy()) json.field("energy_standard_error_joules", account.standard_error_joules);
  if (account.gone_for) json.field("gone_seconds", seconds_of(*account.gone_for));
  json.field("gpu", account.gpu_index);
  if (account.booked.gpu_time) json.field("gpu_seconds", seconds_of(*account.booked.gpu_time));
  json.field("gpu_uuid", std::string_view(account.gpu.text));
  if (active && account.idle.evaluated) {
    json.field("idle", account.idle.idle);
    json.field("idle_seconds", account.idle.idle ? seconds_of(account.idle.idle_for) : 0.0);
  }
  json.field_if_any("job", owner.job);
  if (active && account.memory) json.field("memory_used_bytes", account.memory->count);
  if (active && account.memory_utilization) json.field("memory_utilization_ratio", account.memory_utilization->value);
  if (account.mig) {
    json.name("mig");
    write_mig(json, *account.mig);
  }
  json.field("name", std::string_view(identity.name));
  json.field_if_any("namespace", owner.name_space);
  json.field("owner", owner_kind_name(owner.kind));
  if (identity.owner_inferred) json.field("owner_inferred", true);
  json.field("pid", identity.key.pid);
  json.field_if_any("pod", owner.pod);
  json.field_if_any("pod_uid", owner.pod_uid);
  json.field_if_any("runtime", owner.runtime);
  if (active && account.sm) json.field("sm_utilization_ratio", account.sm->value);
  if (identity.start_time_seconds) json.field("start_time_seconds", *identity.start_time_seconds);
  json.field_if_any("step", owner.step);
  json.field_if_any("unit", owner.unit);
  json.field_if_any("user", owner.user);
  json.close('}');
}

void write_owner(JsonText& json, const View& view, const OwnerAccount& account) {
  const Owner& owner = account.owner;
  json.open('{');
  json.field_if_any("container", owner.container);
  json.field_if_any("container_id", owner.container_id);
  write_energy(json, account.booked);
  if (account.booked.shared > Energy()) {
    json.field("energy_standard_error_joules", whole_microjoules(account.standard_error_joules));
  }
  json.field("gpu", account.gpu_index);
  if (account.booked.gpu_time) json.field("gpu_seconds", seconds_of(*account.booked.gpu_time));
  json.field("gpu_uuid", std::string_view(account.gpu.text));
  const DeviceSeries* device = view.find_device(account.gpu);
  if (device != nullptr && device->idle_known && account.idle_memory) {
    json.field("idle_memory_bytes", account.idle_memory->count);
  }
  json.field_if_any("job", owner.job);
  json.field_if_any("namespace", owner.name_space);
  json.field("owner", owner_kind_name(owner.kind));
  json.field_if_any("pod", owner.pod);
  json.field_if_any("pod_uid", owner.pod_uid);
  json.field_if_any("runtime", owner.runtime);
  json.field_if_any("step", owner.step);
  json.field_if_any("unit", owner.unit);
  json.field_if_any("user", owner.user);
  json.close('}');
}

void write_allocation(JsonText& json, const AllocationAccount& account) {
  const Allocation& given = account.allocation;
  json.open('{');
  json.field_if_any("container", given.container);
  json.field("gpu", given.gpu_index);
  json.field("gpu_uuid", std::string_view(given.gpu.text));
  if (account.idle_for) json.field("idle_seconds", seconds_of(*account.idle_for));
  json.field_if_any("mig_uuid", given.mig_uuid);
  json.field_if_any("namespace", given.name_space);
  json.field_if_any("pod", given.pod);
  if (given.replica) json.field("replica", *given.replica);
  json.field_if_any("resource", given.resource);
  json.close('}');
}

void write_closed(JsonText& json, const ClosedAccount& account) {
  json.open('{');
  write_energy(json, account.booked);
  json.field("gpu", account.gpu_index);
  if (account.booked.gpu_time) json.field("gpu_seconds", seconds_of(*account.booked.gpu_time));
  json.field("gpu_uuid", std::string_view(account.gpu.text));
  json.field_if_any("namespace", account.name_space);
  json.field("owner", owner_kind_name(account.kind));
  json.close('}');
}

void write_source(JsonText& json, const SourceHealth& health) {
  json.open('{');
  json.field_if_any("reason", health.reason);
  json.field("source", std::string_view(health.source));
  json.field("up", health.up);
  json.close('}');
}

template <typename List, typename Write>
void write_list(JsonText& json, std::string_view key, const List& list, Write write_one) {
  json.name(key);
  json.open('[');
  for (const auto& item : list) write_one(item);
  json.close(']');
}

}  // namespace

// Unlike the metrics this lists every account by itself: nothing here has to be unique by its labels.
std::string write_json(const Cycle& cycle, const ExposeOptions& options) {
  const View view = View::of_devices(cycle, options);
  constexpr size_t kUsualAccount = 700;
  JsonText json(64 * 1024 + kUsualAccount * (cycle.ledger.processes.size() + cycle.ledger.owners.size()));
  json.open('{');
  write_list(json, "allocations", cycle.ledger.allocations,
             [&](const auto& account) { write_allocation(json, account); });
  json.field("at", seconds_of(cycle.batch.at.wall));
  write_list(json, "closed", cycle.ledger.closed, [&](const auto& account) { write_closed(json, account); });
  json.field("cycle", cycle.number);
  write_list(json, "gpus", view.devices,
             [&](const DeviceSeries& device) { write_device(json, device, cycle.batch.at.wall); });
  json.field_if_any("node", options.node);
  write_list(json, "owners", owners_in_order(cycle.ledger),
             [&](const auto* account) { write_owner(json, view, *account); });
  write_list(json, "processes", cycle.ledger.processes, [&](const auto& account) { write_process(json, account); });
  json.field("processes_without_owner", cycle.identities->without_owner);
  json.field("simulated", cycle.simulated);
  write_list(json, "sources", view.sources, [&](const SourceHealth& health) { write_source(json, health); });
  json.field_if_any("version", options.version);
  json.close('}');
  return json.take() + "\n";
}

}  // namespace gpuledger::expose
