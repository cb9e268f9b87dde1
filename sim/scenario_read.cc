// SPDX-License-Identifier: Apache-2.0
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include "mixed_node.h"
#include "scenario.h"
#include "trace.h"

namespace gpuledger::sim {
namespace {

bool ends_with(const std::string& text, std::string_view end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

// The GPU in the recording becomes the GPU of the scenario.
Status load_recording(unsigned index, Scenario* scenario) {
  GpuSpec& gpu = scenario->gpus[index];
  GL_TRY(trace, read_trace(gpu.trace));
  auto recording = std::make_shared<const Trace>(std::move(trace));
  const GpuModel* model = find_gpu_model_by_name(recording->name);
  gpu.model = model ? *model : *find_gpu_model("H200");
  gpu.model.name = recording->name;
  gpu.model.memory_mib = recording->memory_total >> 20;
  gpu.model.limit_watts = recording->limit_mw / 1000.0;
  gpu.uuid = recording->uuid;
  if (scenario->gpus.size() == 1) scenario->driver = recording->driver;
  for (ProcessSpec& process : trace_processes(*recording, index, gpu.loop)) {
    scenario->processes.push_back(std::move(process));
  }
  gpu.recording = std::move(recording);
  return ok_status();
}

Result<Scenario> parse_file(const std::string& path) {
  if (path.empty()) return parse_scenario(kMixedNode, "built-in mixed_node.yaml");
  if (ends_with(path, ".jsonl") || ends_with(path, ".jsonl.gz")) {
    Scenario scenario;
    scenario.source = path;
    GpuSpec gpu;
    gpu.trace = path;
    gpu.pci_bus_id = "00000000:07:00.0";
    gpu.pci_bus = 7;
    gpu.serial = "1652021000000";
    scenario.gpus.push_back(gpu);
    return scenario;
  }
  errno = 0;
  std::ifstream file(path);
  std::stringstream text;
  if (!file || !(text << file.rdbuf())) {
    const std::string why = errno ? std::strerror(errno) : "cannot be read or is empty";
    return Error{Code::kNotFound, path + ": " + why};
  }
  return parse_scenario(text.str(), path);
}

}  // namespace

Result<Scenario> read_scenario(const std::string& path) {
  GL_TRY(scenario, parse_file(path));
  for (unsigned i = 0; i < scenario.gpus.size(); ++i) {
    if (!scenario.gpus[i].trace.empty()) GL_TRY_STATUS(load_recording(i, &scenario));
  }
  return scenario;
}

// splitmix64: random enough for this, and the same on every machine.
uint64_t mix_hash(uint64_t seed, uint64_t a, uint64_t b) {
  uint64_t z =
      seed * 0x9E3779B97F4A7C15ull + a * 0xD1B54A32D192ED03ull + b * 0x8CB92BA72F3D8DD7ull + 0x2545F4914F6CDD1Dull;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}

namespace {

std::string derived_hex(const std::string& of, unsigned words) {
  uint64_t state = 14695981039346656037ull;
  for (const char c : of) state = (state ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  std::string hex;
  for (unsigned i = 0; i < words; ++i) {
    char word[17];
    snprintf(word, sizeof word, "%016llx", static_cast<unsigned long long>(mix_hash(state, i)));
    hex += word;
  }
  return hex;
}

}  // namespace

std::string derived_uuid(const std::string& of) {
  const std::string hex = derived_hex(of, 2);
  return hex.substr(0, 8) + "-" + hex.substr(8, 4) + "-4" + hex.substr(13, 3) + "-8" + hex.substr(17, 3) + "-" +
         hex.substr(20, 12);
}

std::string derived_container_id(const std::string& of) {
  return derived_hex(of, 4);
}

}  // namespace gpuledger::sim
