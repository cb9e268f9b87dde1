// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <set>

#include "trace.h"
#include "yaml_reader.h"

namespace gpuledger::sim {
namespace {

void parse_instance_spec(const YAML::Node& node, ParseFailure* failure, const GpuSpec& gpu, MigSpec* out) {
  MapReader reader(node, "MIG instance", failure);
  reader.require("gi");
  reader.require("profile");
  reader.whole("gi", &out->gpu_instance, 255);
  reader.whole("ci", &out->compute_instance, 255);
  reader.text("profile", &out->profile);
  if (!reader.failed()) parse_profile(&reader, out);
  out->uuid = "MIG-" + derived_uuid(gpu.uuid + "/" + std::to_string(out->gpu_instance) + "/" +
                                    std::to_string(out->compute_instance));
  reader.text("uuid", &out->uuid);
  reader.finish();
}

void parse_mig(const YAML::Node& node, ParseFailure* failure, GpuSpec* out) {
  for (const auto& item : node) {
    MigSpec instance;
    parse_instance_spec(item, failure, *out, &instance);
    out->instances.push_back(std::move(instance));
  }
  out->mig = true;
}

void parse_overrides(MapReader* reader, GpuModel* model) {
  std::optional<uint64_t> memory;
  reader->bytes("memory", &memory);
  if (memory) model->memory_mib = *memory >> 20;
  reader->text("name", &model->name);
  reader->number("limit_watts", &model->limit_watts, 1, 5000);
  reader->number("idle_watts", &model->idle_watts, 0, 5000);
  reader->number("resident_watts", &model->resident_watts, 0, 5000);
  reader->flag("energy_counter", &model->energy_counter);
  reader->flag("gpm", &model->gpm);
  reader->flag("encoder", &model->encoder);
}

void fill_addresses(unsigned index, GpuSpec* out) {
  out->uuid = "GPU-" + derived_uuid("gpu/" + std::to_string(index));
  char text[32];
  out->pci_bus = 0x07 + index * 0x10;
  snprintf(text, sizeof text, "00000000:%02X:00.0", out->pci_bus & 0xFF);
  out->pci_bus_id = text;
  snprintf(text, sizeof text, "165202100%04u", index);
  out->serial = text;
}

void parse_gpu(const YAML::Node& node, const std::string& folder, unsigned index, ParseFailure* failure, GpuSpec* out) {
  MapReader reader(node, "gpu", failure);
  fill_addresses(index, out);
  reader.text("trace", &out->trace);
  reader.flag("loop", &out->loop);
  if (!out->trace.empty()) {
    if (out->trace[0] != '/') out->trace = folder + out->trace;
    reader.finish();
    return;
  }
  reader.require("model");
  std::string key;
  reader.text("model", &key);
  const GpuModel* model = find_gpu_model(key);
  if (!model) return reader.refuse("model", "is not one of: " + gpu_model_keys());
  out->model = *model;
  reader.text("uuid", &out->uuid);
  reader.text("pci_bus_id", &out->pci_bus_id);
  reader.text("serial", &out->serial);
  reader.text("vbios", &out->vbios);
  reader.flag("accounting", &out->accounting);
  double joules = 0;
  reader.number("counter_start_joules", &joules, 0, 1e13);
  out->counter_start_mj = static_cast<uint64_t>(joules * 1000);
  if (reader.has("temperature")) reader.number("temperature", &out->temperature.emplace(), 0, 200);
  if (reader.has("memory_clock")) reader.whole("memory_clock", &out->memory_clock.emplace(), 100000);
  parse_overrides(&reader, &out->model);
  if (reader.has("mig")) {
    if (out->model.mig_slices == 0) return reader.refuse("mig", "is not something a " + key + " can do");
    parse_mig(reader.child_list("mig"), failure, out);
  }
  reader.finish();
}

void parse_quirks(const YAML::Node& node, ParseFailure* failure, Quirks* quirks) {
  if (!node.IsDefined()) return;
  MapReader reader(node, "quirks", failure);
  reader.whole("process_entry_size", &quirks->process_entry_size);
  if (quirks->process_entry_size != 24 && quirks->process_entry_size != 32) {
    reader.refuse("process_entry_size", "must be 24 or 32");
  }
  reader.flag("utilization_garbage", &quirks->utilization_garbage);
  reader.flag("list_grows_between_calls", &quirks->list_grows_between_calls);
  reader.finish();
}

void parse_latencies(const YAML::Node& list, ParseFailure* failure, Scenario* out) {
  for (const auto& item : list) {
    MapReader reader(item, "latency", failure);
    CallLatency latency;
    reader.require("call");
    reader.text("call", &latency.call);
    reader.number("ms", &latency.ms, 0, 60000);
    reader.seconds("from", &latency.from);
    reader.seconds("until", &latency.until);
    reader.finish();
    out->latencies.push_back(latency);
  }
}

void check_pids(const YAML::Node& list, const Scenario& scenario, ParseFailure* failure) {
  std::set<std::pair<unsigned, unsigned>> seen;  // pid and GPU; the same pid may use several GPUs in several entries
  for (size_t i = 0; i < scenario.processes.size(); ++i) {
    for (unsigned gpu : scenario.processes[i].gpus) {
      const ProcessSpec& process = scenario.processes[i];
      const bool on_mig = process.gpu_instance.has_value();
      if (on_mig || process.end != kForever || process.start != 0) continue;
      if (!seen.insert({process.pid, gpu}).second) {
        failure->report(list[i],
                        "process: pid " + std::to_string(process.pid) + " is twice on GPU " + std::to_string(gpu));
      }
    }
  }
}

void parse_root(const YAML::Node& root, const std::string& folder, ParseFailure* failure, Scenario* out) {
  MapReader reader(root, "scenario", failure);
  reader.whole("seed", &out->seed, 1ull << 52);
  reader.number("noise", &out->noise, 0, 0.5);
  reader.text("driver", &out->driver);
  unsigned cuda = static_cast<unsigned>(out->cuda);
  reader.whole("cuda", &cuda, 99999);
  out->cuda = static_cast<int>(cuda);
  reader.require("gpus");
  for (const auto& item : reader.child_list("gpus")) {
    GpuSpec gpu;
    parse_gpu(item, folder, static_cast<unsigned>(out->gpus.size()), failure, &gpu);
    out->gpus.push_back(std::move(gpu));
  }
  if (out->gpus.size() > 16) reader.refuse("gpus", "are more than 16");
  // Events come first: a process may live on a MIG instance that an event creates.
  for (const auto& item : reader.child_list("events")) {
    if (!failure->failed()) parse_event(item, failure, out);
  }
  const YAML::Node processes = reader.child_list("processes");
  for (const auto& item : processes) {
    if (failure->failed()) break;
    ProcessSpec process;
    parse_process(item, out->gpus, failure, &process);
    out->processes.push_back(std::move(process));
  }
  if (!failure->failed()) check_pids(processes, *out, failure);
  for (const auto& item : reader.child_list("allocations")) {
    if (failure->failed()) break;
    AllocationSpec allocation;
    parse_allocation(item, out->gpus, failure, &allocation);
    out->allocations.push_back(std::move(allocation));
  }
  parse_latencies(reader.child_list("latencies"), failure, out);
  for (const auto& item : reader.child_list("missing_symbols")) {
    if (item.IsScalar()) out->missing_symbols.push_back(item.Scalar());
  }
  parse_quirks(reader.child_map("quirks"), failure, &out->quirks);
  reader.finish();
}

}  // namespace

Result<Scenario> parse_scenario(const std::string& text, const std::string& source) {
  Scenario scenario;
  scenario.source = source;
  ParseFailure failure(source);
  try {
    const YAML::Node root = YAML::Load(text);
    const size_t slash = source.rfind('/');
    const std::string folder = slash == std::string::npos ? "" : source.substr(0, slash + 1);
    parse_root(root, folder, &failure, &scenario);
  } catch (const YAML::Exception& error) {
    const std::string line = error.mark.line >= 0 ? ":" + std::to_string(error.mark.line + 1) : "";
    return Error{Code::kMalformed, source + line + ": not YAML: " + error.msg};
  }
  if (failure.failed()) return Error{Code::kMalformed, failure.message()};
  return scenario;
}

}  // namespace gpuledger::sim
