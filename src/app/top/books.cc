// SPDX-License-Identifier: Apache-2.0
#include "app/top/books.h"

#include <nlohmann/json.hpp>

namespace gpuledger::app::top {
namespace {

using Json = nlohmann::json;

// A field of the wrong type counts as absent: the server may be another program. So does a number too large for watts,
// joules, bytes or seconds: sums of such numbers would be infinite.
std::optional<double> number(const Json& object, const char* name) {
  constexpr double kMost = 1e18;
  const auto found = object.find(name);
  if (found == object.end() || !found->is_number()) return std::nullopt;
  const double value = found->get<double>();
  return value > -kMost && value < kMost ? std::optional(value) : std::nullopt;
}

// For values that become whole numbers later. Values that a double cannot hold exactly are ignored.
std::optional<double> whole_number(const Json& object, const char* name) {
  constexpr double kFirstInexact = 9007199254740992;  // 2^53
  const auto found = number(object, name);
  return found && *found >= 0 && *found < kFirstInexact ? found : std::nullopt;
}

// As microjoules it must fit into 64 bits. 10 kW for three years.
double joules(const Json& object, const char* name) {
  constexpr double kMost = 1e12;
  const double found = number(object, name).value_or(0);
  return found >= 0 && found < kMost ? found : 0;
}

template <typename Number>
Number count(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_number_integer() ? found->get<Number>() : Number{0};
}

std::string text(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

bool truth(const Json& object, const char* name, bool otherwise = false) {
  const auto found = object.find(name);
  return found != object.end() && found->is_boolean() ? found->get<bool>() : otherwise;
}

// The objects in a list of that name.
template <typename Take>
void for_each(const Json& object, const char* name, Take take) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_array()) return;
  for (const Json& item : *found) {
    if (item.is_object()) take(item);
  }
}

Books::Gpu gpu_of(const Json& json) {
  Books::Gpu gpu;
  gpu.index = count<uint32_t>(json, "index");
  gpu.uuid = text(json, "uuid");
  gpu.model = text(json, "model");
  gpu.up = truth(json, "up");
  gpu.joules = number(json, "energy_joules").value_or(0);
  gpu.integrates = text(json, "energy_source") == "power_integral";
  gpu.watts = number(json, "power_watts");
  gpu.limit_watts = number(json, "power_limit_watts");
  gpu.busy = number(json, "utilization_ratio");
  gpu.memory_used = number(json, "memory_used_bytes");
  gpu.memory_total = number(json, "memory_total_bytes");
  gpu.celsius = number(json, "temperature_celsius");
  gpu.attribution_error = number(json, "attribution_error_ratio");
  gpu.attribution_comparisons = count<uint64_t>(json, "attribution_comparisons");
  if (const auto health = json.find("health"); health != json.end() && health->is_array()) {
    for (const Json& trouble : *health) {
      if (trouble.is_string()) gpu.health.push_back(trouble.get<std::string>());
    }
  }
  return gpu;
}

void fill_account(const Json& json, Books::Account& account) {
  account.gpu = count<uint32_t>(json, "gpu");
  account.gpu_uuid = text(json, "gpu_uuid");
  account.owner_kind = text(json, "owner");
  account.owner = text(json, "owner_text");
  account.pod_uid = text(json, "pod_uid");
  account.container = text(json, "container");
  account.container_id = text(json, "container_id");
  if (const auto energy = json.find("energy_joules"); energy != json.end() && energy->is_object()) {
    account.joules = number(*energy, "total").value_or(0);
    account.alone_joules = joules(*energy, "alone");
    account.shared_joules = joules(*energy, "shared");
  }
  account.error_joules = number(json, "energy_standard_error_joules").value_or(0);
}

Books::OwnerSum owner_of(const Json& json) {
  Books::OwnerSum owner;
  fill_account(json, owner);
  owner.gpu_seconds = number(json, "gpu_seconds");
  owner.memory_peak = whole_number(json, "memory_peak_bytes");
  owner.gone_seconds = number(json, "gone_seconds");
  owner.job = text(json, "slurm_job_id");
  owner.step = text(json, "step");
  owner.account = text(json, "account");
  owner.partition = text(json, "partition");
  owner.uid = text(json, "uid");
  owner.user_name = text(json, "user_name");
  owner.job_gpus = whole_number(json, "job_gpus");
  owner.job_started = number(json, "job_start_time_seconds");
  owner.job_restarted = truth(json, "job_restarted");
  owner.job_steps_closed = truth(json, "job_steps_closed");
  return owner;
}

Books::Process process_of(const Json& json) {
  Books::Process process;
  fill_account(json, process);
  if (const auto mig = json.find("mig"); mig != json.end() && mig->is_object()) process.mig_uuid = text(*mig, "uuid");
  process.pid = count<int64_t>(json, "pid");
  process.started = number(json, "start_time_seconds").value_or(0);
  process.name = text(json, "name");
  process.active = truth(json, "active");
  process.share = number(json, "sm_utilization_ratio");
  process.memory = number(json, "memory_used_bytes");
  if (truth(json, "idle")) process.idle_seconds = number(json, "idle_seconds");
  return process;
}

}  // namespace

Result<Books> parse_books(std::string_view json) {
  const Json all = Json::parse(json, nullptr, /*allow_exceptions=*/false);
  const auto at = all.is_object() ? number(all, "at") : std::nullopt;
  const bool ours =
      at && all.contains("gpus") && all["gpus"].is_array() && all.contains("processes") && all["processes"].is_array();
  if (!ours) return Error{Code::kMalformed, "not gpu-ledger's JSON"};
  Books books;
  books.at = *at;
  books.cycle = count<uint64_t>(all, "cycle");
  books.simulated = truth(all, "simulated");
  books.node = text(all, "node");
  books.version = text(all, "version");
  for_each(all, "gpus", [&](const Json& gpu) { books.gpus.push_back(gpu_of(gpu)); });
  for_each(all, "processes", [&](const Json& process) { books.processes.push_back(process_of(process)); });
  for_each(all, "owners", [&](const Json& owner) { books.owners.push_back(owner_of(owner)); });
  for_each(all, "sources", [&](const Json& source) {
    if (!truth(source, "up") && truth(source, "needed", true))
      books.troubles.push_back({text(source, "source"), text(source, "reason")});
  });
  if (const auto left_out = all.find("left_out"); left_out != all.end() && left_out->is_object()) {
    const auto processes = count<uint64_t>(*left_out, "processes");
    const auto owners = count<uint64_t>(*left_out, "owners");
    books.some_left_out = processes + owners > 0;
    if (books.some_left_out)
      books.troubles.push_back(
          {"--max-series", "processes left out: " + std::to_string(processes) + ", owners: " + std::to_string(owners)});
  }
  return books;
}

}  // namespace gpuledger::app::top
