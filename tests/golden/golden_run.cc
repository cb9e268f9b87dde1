// SPDX-License-Identifier: Apache-2.0
// usage: golden_run LIBRARY SCENARIO SECONDS text|openmetrics|json|dcgm|dcgm-modern|dcgm-openmetrics
//        EXPECTED_WITHOUT_ENDING
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

#include "app/runtime/pipeline.h"
#include "app/runtime/sim_node_files.h"
#include "base/log.h"
#include "identity/resolver.h"
#include "sample/nvml/nvml_source.h"

namespace {

using namespace gpuledger;

class ManualClock final : public Clock {
 public:
  Timestamp now() const override { return {seconds_, std::chrono::seconds(1'767'225'600) + seconds_}; }
  void set(int seconds) { seconds_ = std::chrono::seconds(seconds); }

 private:
  Nanoseconds seconds_{0};
};

// Call times depend on the machine the test runs on.
bool is_volatile(const std::string& line) {
  for (const char* name :
       {"gpu_ledger_driver_call_duration_seconds", "gpu_ledger_sample_duration_seconds", "gpu_ledger_series"}) {
    if (line.starts_with(name)) return true;
  }
  return false;
}

std::string without_volatile_lines(const std::string& text) {
  std::istringstream lines(text);
  std::string kept, line;
  while (std::getline(lines, line)) {
    if (!is_volatile(line)) kept += line + "\n";
  }
  return kept;
}

std::string show(const Cycle& cycle, const std::string& format) {
  expose::ExposeOptions options;
  options.version = "test";
  options.own_process_metrics = false;
  options.host_name = "node-7";
  if (format.starts_with("dcgm")) {
    options.collectors = {format == "dcgm-modern" ? "dcgm-modern" : "dcgm"};
    return format == "dcgm-openmetrics" ? expose::write_gpu_openmetrics(cycle, options)
                                        : expose::write_gpu_text(cycle, options);
  }
  if (format == "json") return expose::write_json(cycle, options) + "\n";
  return without_volatile_lines(format == "text" ? expose::write_text(cycle, options)
                                                 : expose::write_openmetrics(cycle, options));
}

Result<std::string> run(const std::string& library, int seconds, const std::string& format) {
  const std::string root = std::getenv("GPU_LEDGER_SIM_ROOT");
  void* simulator = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!simulator) return Error{Code::kNotFound, std::string("cannot load the simulator: ") + ::dlerror()};
  const auto set_time = reinterpret_cast<void (*)(double)>(::dlsym(simulator, "gpu_ledger_sim_set_time"));
  set_time(0);

  ManualClock clock;
  nvml::NvmlSourceOptions source_options;
  source_options.library = library;
  source_options.readings.pcie_traffic = true;
  auto source = nvml::make_nvml_source(source_options, clock);
  if (const auto probe = source->probe(); !probe.ok()) return probe.error();
  identity::NodeDirectory directory;
  directory.pods = std::make_unique<app::PodFile>(root + "/kubelet/pods.json", identity::PodLabelList{"app"});
  directory.allocations = std::make_unique<app::AllocationFile>(root + "/kubelet/pod-resources.json");
  directory.containers.push_back(std::make_unique<app::ContainerFile>(root + "/docker/containers.json"));
  directory.slurm_jobs = identity::SlurmJobs(root + "/slurm");
  auto resolver = std::make_unique<identity::Resolver>(identity::ProcReader(root + "/proc"), std::move(directory));
  app::PipelineOptions options;
  options.simulated = true;
  app::Pipeline pipeline(std::move(source), std::move(resolver), BookingRules{}, options, clock);
  pipeline.count_gpus_in(root + "/proc/driver/nvidia/gpus");
  std::shared_ptr<const Snapshot> snapshot;
  for (int second = 0; second <= seconds; ++second) {
    clock.set(second);
    set_time(second);
    snapshot = pipeline.run_cycle();
  }
  return show(*snapshot->cycle, format);
}

std::string ending(const std::string& format) {
  if (format == "text") return ".prom";
  if (format == "openmetrics") return ".om";
  if (format == "json") return ".json";
  return "." + format + (format.ends_with("openmetrics") ? ".om" : ".prom");
}

// JSON comes in one line. With a line for every field a difference can be read.
std::string in_lines(const std::string& json) {
  std::string lines;
  bool quoted = false;
  for (size_t i = 0; i < json.size(); ++i) {
    lines += json[i];
    if (json[i] == '\\' && quoted && i + 1 < json.size()) {
      lines += json[++i];
    } else if (json[i] == '"') {
      quoted = !quoted;
    } else if (!quoted && (json[i] == ',' || json[i] == '{' || json[i] == '[')) {
      lines += '\n';
    }
  }
  return lines;
}

// All of it, as diff writes it.
void show_difference(const std::string& file, const std::string& actual) {
  std::string pattern = (std::filesystem::temp_directory_path() / "gpu-ledger-golden-XXXXXX").string();
  const std::string folder = ::mkdtemp(pattern.data());
  const std::string made = folder + "/made";
  std::ofstream(made) << actual;
  const std::string command = "diff -u '" + file + "' '" + made + "' >&2";
  if (std::system(command.c_str()) == -1) std::cerr << file << " differs\n";
  std::filesystem::remove_all(folder);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) return 2;
  const std::string format = argv[4];
  const std::string file = std::string(argv[5]) + ending(format);
  std::string pattern = (std::filesystem::temp_directory_path() / "gpu-ledger-golden-XXXXXX").string();
  const std::string root = ::mkdtemp(pattern.data());
  ::setenv("GPU_LEDGER_SIM_ROOT", root.c_str(), 1);
  ::setenv("GPU_LEDGER_SIM_CLOCK", "virtual", 1);
  ::setenv("GPU_LEDGER_SIM_SCENARIO", argv[2], 1);
  (void)configure_log("error", "text");
  const auto outcome = run(argv[1], std::atoi(argv[3]), format);
  std::filesystem::remove_all(root);
  if (!outcome.ok()) {
    std::cerr << argv[2] << ": " << outcome.error().message << "\n";
    return 1;
  }
  const std::string actual = format == "json" ? in_lines(*outcome) : *outcome;

  if (std::getenv("GPU_LEDGER_UPDATE_GOLDEN")) {
    std::ofstream(file) << actual;
    return 0;
  }
  std::ifstream stream(file);
  if (!stream) {
    std::cerr << "no " << file << "; make it with GPU_LEDGER_UPDATE_GOLDEN=1\n";
    return 1;
  }
  std::stringstream expected;
  expected << stream.rdbuf();
  if (expected.str() == actual) return 0;
  show_difference(file, actual);
  return 1;
}
