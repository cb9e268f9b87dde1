#include <nlohmann/json.hpp>
#include <string>

#include "expose/expose.h"
#include "expose/view.h"
#include "expose/words.h"

namespace gpuledger::expose {
namespace {

using nlohmann::json;

// By way of whole microseconds, which a double holds exactly since 1970; nanoseconds it does not.
double seconds_of(Nanoseconds time) {
  return static_cast<double>(time.count() / 1000) / 1e6;
}

void add_text(json& object, const char* name, const std::string& value) {
  if (!value.empty()) object[name] = value;
}

json energy_of(const Booked& booked) {
  return {{"alone", booked.alone.joules()}, {"shared", booked.shared.joules()}, {"total", booked.total().joules()}};
}

void add_owner(json& object, const Owner& owner) {
  object["owner"] = owner_kind_name(owner.kind);
  add_text(object, "namespace", owner.name_space);
  add_text(object, "pod", owner.pod);
  add_text(object, "container", owner.container);
  add_text(object, "pod_uid", owner.pod_uid);
  add_text(object, "runtime", owner.runtime);
  add_text(object, "container_id", owner.container_id);
  add_text(object, "job", owner.job);
  add_text(object, "step", owner.step);
}

json mig_json(const MigInstance& instance) {
  json object{{"gi_id", instance.id.gpu_instance}, {"ci_id", instance.id.compute_instance}};
  add_text(object, "uuid", instance.uuid);
  add_text(object, "profile", instance.profile);
  if (instance.memory_total) object["memory_total_bytes"] = instance.memory_total->count;
  if (instance.memory_used) object["memory_used_bytes"] = instance.memory_used->count;
  return object;
}

json device_json(const DeviceSeries& device) {
  const DeviceAccount& account = *device.account;
  const DeviceDescription& description = *account.description;
  json object{{"index", description.index},
              {"uuid", description.uuid.text},
              {"model", description.model},
              {"up", account.up},
              {"mig_mode", mig_mode_name(description)},
              {"energy_source", energy_source_name(description.energy_source)},
              {"energy_joules", account.measured.joules()}};
  add_text(object, "pci_bus_id", description.pci_bus_id);
  add_text(object, "driver", description.driver);
  if (description.accounting_enabled) object["accounting_enabled"] = *description.accounting_enabled;
  if (description.power_limit) object["power_limit_watts"] = description.power_limit->watts();
  json& unattributed = object["unattributed_joules"];
  for (size_t i = 0; i < kReasonCount; ++i) {
    unattributed[std::string(reason_name(static_cast<Reason>(i)))] = account.unattributed[i].joules();
  }
  for (const auto& [xid, count] : account.xids) object["xid_errors"][std::to_string(xid)] = count;
  for (const MigInstance& instance : description.mig) object["mig"].push_back(mig_json(instance));
  if (device.sample == nullptr) return object;

  const DeviceSample& sample = *device.sample;
  if (sample.power) object["power_watts"] = sample.power->watts();
  if (account.idle_power) object["idle_power_watts"] = account.idle_power->watts();
  if (sample.gpu_utilization) object["utilization_ratio"] = sample.gpu_utilization->value;
  if (sample.memory_utilization) object["memory_utilization_ratio"] = sample.memory_utilization->value;
  if (sample.memory_used) object["memory_used_bytes"] = sample.memory_used->count;
  if (sample.memory_total) object["memory_total_bytes"] = sample.memory_total->count;
  if (sample.temperature_celsius) object["temperature_celsius"] = *sample.temperature_celsius;
  return object;
}

json process_json(const ProcessAccount& account) {
  json object{{"pid", account.identity.key.pid}, {"name", account.identity.name},
              {"gpu", account.gpu_index},        {"gpu_uuid", account.gpu.text},
              {"active", account.active},        {"energy_joules", energy_of(account.booked)}};
  if (account.booked.gpu_time) object["gpu_seconds"] = seconds_of(*account.booked.gpu_time);
  add_owner(object, account.identity.owner);
  add_text(object, "container_id", account.identity.container_id);
  if (account.identity.start_time_seconds) object["start_time_seconds"] = *account.identity.start_time_seconds;
  if (account.booked.shared > Energy()) object["energy_standard_error_joules"] = account.standard_error_joules;
  if (account.mig) object["mig"] = mig_json(*account.mig);
  if (account.gone_for) object["gone_seconds"] = seconds_of(*account.gone_for);
  if (!account.active) return object;

  if (account.sm) object["sm_utilization_ratio"] = account.sm->value;
  if (account.memory_utilization) object["memory_utilization_ratio"] = account.memory_utilization->value;
  if (account.memory) object["memory_used_bytes"] = account.memory->count;
  if (account.idle.evaluated) {
    object["idle"] = account.idle.idle;
    object["idle_seconds"] = account.idle.idle ? seconds_of(account.idle.idle_for) : 0.0;
  }
  return object;
}

json owner_json(const View& view, const OwnerAccount& account) {
  json object{{"gpu", account.gpu_index}, {"gpu_uuid", account.gpu.text}, {"energy_joules", energy_of(account.booked)}};
  if (account.booked.gpu_time) object["gpu_seconds"] = seconds_of(*account.booked.gpu_time);
  add_owner(object, account.owner);
  const DeviceSeries* device = view.find_device(account.gpu);
  if (device != nullptr && device->idle_known) object["idle_memory_bytes"] = account.idle_memory.count;
  return object;
}

}  // namespace

// Unlike the metrics this lists every account by itself: nothing here has to be unique by its labels.
std::string write_json(const Cycle& cycle, const ExposeOptions& options) {
  const View view(cycle, options);
  json document{{"at", seconds_of(cycle.batch.at.wall)},
                {"cycle", cycle.number},
                {"simulated", cycle.simulated},
                {"gpus", json::array()},
                {"processes", json::array()},
                {"owners", json::array()},
                {"sources", json::array()},
                {"processes_without_owner", cycle.identities->without_owner}};
  add_text(document, "node", options.node);
  add_text(document, "version", options.version);
  for (const DeviceSeries& device : view.devices) document["gpus"].push_back(device_json(device));
  for (const ProcessAccount& account : cycle.ledger.processes) document["processes"].push_back(process_json(account));
  for (const OwnerAccount& account : cycle.ledger.owners) document["owners"].push_back(owner_json(view, account));
  for (const SourceHealth& health : view.sources) {
    json object{{"source", health.source}, {"up", health.up}};
    add_text(object, "reason", health.reason);
    document["sources"].push_back(std::move(object));
  }
  // replace: a name that is not UTF-8 must not throw.
  return document.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace gpuledger::expose
