// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "expose/collectors/collectors.h"
#include "expose/expose.h"
#include "expose/json_fields.h"
#include "expose/json_limit.h"
#include "expose/troubles.h"
#include "expose/words.h"

// /api/v1/snapshot. Unlike the metrics it merges no accounts, because labels need not be unique here.
namespace gpuledger::expose {
namespace {

// Raised by a change that an older reader would misread: a field is removed or gets another meaning. New fields do not
// raise it. docs/snapshot.md describes them all.
constexpr int kSchemaVersion = 1;

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

void write_mig_instances(JsonText& json, const DeviceSeries& device) {
  if (device.account->description->mig.empty()) return;
  json.name("mig");
  json.open('[');
  for (const MigInstance& instance : device.account->description->mig) write_mig(json, instance);
  json.close(']');
}

void write_unattributed(JsonText& json, const DeviceSeries& device) {
  json.name("unattributed_joules");
  json.open('{');
  for (Reason reason : {Reason::kAnomaly, Reason::kExporterDown, Reason::kIdle, Reason::kStatic, Reason::kUnseen}) {
    json.field(reason_name(reason), device.account->unattributed[static_cast<size_t>(reason)]);
  }
  json.close('}');
}

void write_exact_time(JsonText& json, const DeviceSeries& device) {
  if (!device.reading().exact_time) return;
  const ExactTime& exact = *device.reading().exact_time;
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

void write_xids(JsonText& json, const DeviceSeries& device) {
  if (device.account->xids.empty()) return;
  json.name("xid_errors");
  json.open('{');
  for (const auto& [xid, count] : device.account->xids) json.field(std::to_string(xid), count);
  json.close('}');
}

void write_troubles(JsonText& json, const DeviceSeries& device, Nanoseconds now) {
  const auto troubles = list_troubles(device, now);
  if (troubles.empty()) return;
  json.name("health");
  json.open('[');
  for (const std::string& trouble : troubles) json.value(trouble);
  json.close(']');
}

std::string_view time_source(const DeviceSeries& device) {
  const GpuTimeSource source = device.account->gpu_time_source;
  return device.up() && source != GpuTimeSource::kNone ? gpu_time_source_name(source) : std::string_view();
}

JsonFields<DeviceSeries> device_fields(Nanoseconds now) {
  using Gpu = DeviceSeries;
  const auto described = [](const Gpu& gpu) -> const DeviceDescription& { return *gpu.account->description; };
  return JsonFields<Gpu>()
      .add(device_rows())
      .add("accounting_enabled", [=](const Gpu& gpu) { return described(gpu).accounting_enabled; })
      .add("driver", [=](const Gpu& gpu) { return described(gpu).driver; })
      .add("energy_source", [=](const Gpu& gpu) { return energy_source_name(described(gpu).energy_source); })
      .add("exact_time", write_exact_time)
      .add("gpu_seconds_source", time_source)
      .add("health", [now](JsonText& json, const Gpu& gpu) { write_troubles(json, gpu, now); })
      .add("index", [=](const Gpu& gpu) { return described(gpu).index; })
      .add("memory_utilization_ratio", [](const Gpu& gpu) { return gpu.reading().memory_utilization; })
      .add("mig", write_mig_instances)
      .add("mig_mode", [=](const Gpu& gpu) { return mig_mode_name(described(gpu)); })
      .add("model", [=](const Gpu& gpu) { return described(gpu).model; })
      .add("pci_bus_id", [=](const Gpu& gpu) { return described(gpu).pci_bus_id; })
      .add("performance_state", [](const Gpu& gpu) { return gpu.reading().vitals[Vital::kPerformanceState]; })
      .add("serial", [=](const Gpu& gpu) { return described(gpu).serial; })
      .add("temperature_celsius", [](const Gpu& gpu) { return gpu.reading().temperature_celsius; })
      .add("unattributed_joules", write_unattributed)
      .add("uuid", [=](const Gpu& gpu) { return described(gpu).uuid.text; })
      .add("vbios_version", [=](const Gpu& gpu) { return described(gpu).vbios_version; })
      .add("xid_errors", write_xids)
      .sorted();
}

template <typename Entry, typename OwnerOf>
JsonFields<Entry> fields_of_owner(OwnerOf owner_of) {
  JsonFields<Entry> fields;
  for (const OwnerField& field : kOwnerFields) {
    fields.add(field.name, [=](const Entry& entry) -> std::string_view { return owner_of(entry).*field.value; });
  }
  for (const OwnerField& alias : kOwnerFieldAliases) {
    fields.add(alias.name, [=](const Entry& entry) -> std::string_view {
      const Owner& owner = owner_of(entry);
      for (const OwnerField& own : owner_kind(owner.kind).fields) {
        if (own.name == alias.name) return owner.*alias.value;
      }
      return {};  // of another kind
    });
  }
  return fields.add("owner", [=](const Entry& entry) { return owner_kind(owner_of(entry).kind).word; })
      .add("owner_text", [=](const Entry& entry) { return owner_text(owner_of(entry)); })
      .add("energy_joules", [](JsonText& json, const Entry& entry) { write_energy(json, entry.booked); });
}

const JsonFields<ProcessSeries>& process_fields() {
  using Series = ProcessSeries;
  static const JsonFields<Series> fields =
      fields_of_owner<Series>([](const Series& series) -> const Owner& { return series.newest->identity.owner; })
          .add(process_rows())
          .add(process_info_rows())
          .add("container_id",  // for every kind of owner
               [](const Series& series) -> std::string_view {
                 const ProcessIdentity& identity = series.newest->identity;
                 return identity.container_id.empty() ? identity.owner.container_id : identity.container_id;
               })
          .add("gone_seconds", [](const Series& series) { return series.newest->gone_for; })
          .add("gpu", [](const Series& series) { return series.newest->gpu_index; })
          .add("gpu_uuid", [](const Series& series) -> std::string_view { return series.newest->gpu.text; })
          .add("idle",
               [](const Series& series) {
                 const ProcessAccount& process = *series.newest;
                 return process.active && process.idle.evaluated ? std::optional(process.idle.idle) : std::nullopt;
               })
          .add("idle_seconds",
               [](const Series& series) {
                 return series.newest->active ? idle_time(series.newest->idle) : std::nullopt;
               })
          .add("mig",
               [](JsonText& json, const Series& series) {
                 if (!series.newest->mig) return;
                 json.name("mig");
                 write_mig(json, *series.newest->mig);
               })
          .add("name", [](const Series& series) -> std::string_view { return series.newest->identity.name; })
          .add("owner_inferred",
               [](const Series& series) {
                 return series.newest->identity.owner_inferred ? std::optional(true) : std::nullopt;
               })
          .add("pid", [](const Series& series) { return series.newest->identity.key.pid; })
          .add("type", [](const Series& series) { return process_type_name(*series.newest); })
          .add("uid", [](const Series& series) -> std::string_view { return series.newest->identity.uid; })
          .add("user_name", [](const Series& series) -> std::string_view { return series.newest->identity.user_name; })
          .sorted();
  return fields;
}

const JsonFields<OwnerSeries>& owner_fields() {
  using Series = OwnerSeries;
  static const JsonFields<Series> fields =
      fields_of_owner<Series>([](const Series& series) -> const Owner& { return series.account->owner; })
          .add(owner_rows())
          .add("account", [](const Series& series) -> std::string_view { return series.account->job.account; })
          .add("gone_seconds", [](const Series& series) { return series.account->gone_for; })
          .add("gpu", [](const Series& series) { return series.account->gpu_index; })
          .add("gpu_uuid", [](const Series& series) -> std::string_view { return series.account->gpu.text; })
          .add("idle_memory_bytes", [](const Series& series) { return series.idle_memory; })
          .add("job_gpus", [](const Series& series) { return series.account->job.gpus; })
          .add("job_restarted",
               [](const Series& series) { return series.account->job.restarted ? std::optional(true) : std::nullopt; })
          .add("job_start_time_seconds", [](const Series& series) { return series.account->job.started; })
          .add("job_steps_closed",
               [](const Series& series) { return series.steps_missing ? std::optional(true) : std::nullopt; })
          .add("partition", [](const Series& series) -> std::string_view { return series.account->job.partition; })
          .add("uid", [](const Series& series) -> std::string_view { return series.account->uid; })
          .add("user_name", [](const Series& series) -> std::string_view { return series.account->user_name; })
          .sorted();
  return fields;
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
  json.field("owner", owner_kind(account.kind).word);
  json.close('}');
}

void write_source(JsonText& json, const SourceHealth& health) {
  json.open('{');
  json.field("needed", health.needed);
  json.field_if_any("reason", health.reason);
  json.field("source", std::string_view(health.source));
  json.field("up", health.up);
  json.close('}');
}

void write_left_out(JsonText& json, const JsonAccounts& accounts) {
  if (accounts.allocations_left_out + accounts.owners_left_out + accounts.processes_left_out == 0) return;
  json.name("left_out");
  json.open('{');
  json.field("allocations", accounts.allocations_left_out);
  json.field("owners", accounts.owners_left_out);
  json.field("processes", accounts.processes_left_out);
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

std::string write_json(const Cycle& cycle, const ExposeOptions& options) {
  const View view = View::of_devices(cycle, options);
  const JsonAccounts accounts(cycle.ledger, options.max_series);
  constexpr size_t kUsualAccount = 800;
  JsonText json(64 * 1024 + kUsualAccount * (accounts.processes.size() + accounts.owners.size()));
  json.open('{');
  json.field("schema_version", kSchemaVersion);
  write_list(json, "allocations", accounts.allocations,
             [&](const AllocationAccount* account) { write_allocation(json, *account); });
  json.field("at", seconds_of(cycle.batch.at.wall));
  write_list(json, "closed", accounts.closed, [&](const ClosedAccount& account) { write_closed(json, account); });
  json.field("cycle", cycle.number);
  write_list(json, "gpus", view.devices, [&, fields = device_fields(cycle.batch.at.wall)](const DeviceSeries& device) {
    fields.write(view, json, device);
  });
  write_left_out(json, accounts);
  json.field_if_any("node", options.node);
  write_list(json, "owners", accounts.owners, [&](const OwnerAccount* account) {
    OwnerSeries series = series_of(view, *account);
    series.steps_missing = account->steps_closed || accounts.jobs_left_out.contains(account->owner.job);
    owner_fields().write(view, json, series);
  });
  write_list(json, "processes", accounts.processes,
             [&](const ProcessAccount* account) { process_fields().write(view, json, series_of(view, *account)); });
  json.field("processes_without_owner", cycle.identities->without_owner);
  json.field("simulated", cycle.simulated);
  write_list(json, "sources", view.sources, [&](const SourceHealth& health) { write_source(json, health); });
  json.field_if_any("version", options.version);
  json.close('}');
  return json.take() + "\n";
}

}  // namespace gpuledger::expose
