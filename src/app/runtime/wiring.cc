// SPDX-License-Identifier: Apache-2.0
#include "app/runtime/wiring.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>

#include "app/push/push_queue.h"
#include "app/runtime/directory.h"
#include "app/runtime/exact_time.h"
#include "base/version.h"
#include "identity/resolver.h"
#include "sample/patient_source.h"

namespace gpuledger::app {
namespace {

constexpr const char* kGpusFolder = "/driver/nvidia/gpus";  // below --proc-root

// After this, the first cycle runs without names.
constexpr Nanoseconds kPatienceWithNames = std::chrono::seconds(3);

// Longer than a driver takes to wake its GPUs one after the other.
constexpr Nanoseconds kPatienceWithDriverAtStart = std::chrono::seconds(10);

// For GPUs with a model, from any source.
template <typename Gpus>
std::string summarise(const Gpus& gpus, const std::string& driver) {
  std::map<std::string, int> models;
  for (const auto& gpu : gpus) ++models[gpu.model];
  std::string summary = std::to_string(gpus.size()) + (gpus.size() == 1 ? " GPU (" : " GPUs (");
  const char* separator = "";
  for (const auto& [model, count] : models) {
    summary += separator + (count > 1 ? std::to_string(count) + " x " : std::string()) + model;
    separator = ", ";
  }
  return summary + "), driver " + driver;
}

Error driver_error(const Config& config, const SimNode* sim, Error error) {
  if (sim) {
    const std::string why = sim->scenario_error();
    if (!why.empty()) error = {Code::kMalformed, "--sim-scenario: " + why};
  } else if (config.backend == Backend::kAuto) {
    error.message += "; without a GPU, try --backend=sim";
  }
  return error;
}

// In add-on mode the other exporter's metrics replace ours, so ours need not be read. Uses the settings in force, not
// those of a changed file: collectors change at SIGHUP, but add-on mode needs a restart.
std::set<std::string> shown_collectors(const Config& config) {
  std::set<std::string> shown = config.collectors;
  if (upstream_options(config)) {
    shown.erase("dcgm");
    shown.erase("dcgm-modern");
  }
  return shown;
}

Readings readings_for(const Config& config) {
  const auto collectors = shown_collectors(config);
  const auto shown = [&](const char* collector) { return collectors.contains(collector); };
  Readings readings;
  readings.vitals = shown("device") || shown("device-detail") || shown("dcgm") || shown("dcgm-modern");
  readings.pcie_traffic = config.dcgm_pcie_throughput && shown("dcgm");
  return readings;
}

struct OpenSource {
  std::unique_ptr<SimNode> sim;
  std::unique_ptr<GpuSource> source;
  std::string summary;
};

// An engine that does not answer is waited for only if no other source has the GPUs.
Result<OpenSource> open_dcgm(const Config& config, Result<OpenSource> driver, const Clock& clock) {
  std::unique_ptr<GpuSource> nvml;
  if (driver.ok()) nvml = std::move(driver->source);
  GL_TRY(source, dcgm::DcgmSource::open(dcgm_options(config), std::move(nvml), clock));
  OpenSource open;
  if (driver.ok()) {
    open.summary = driver->summary;
  } else {
    const auto gpus = source->wait_for_gpus(kPatienceWithEngine);
    if (!gpus.ok()) {
      return Error{gpus.error().code, "no GPU, neither by DCGM (" + gpus.error().message + ") nor by NVML (" +
                                          driver.error().message + ")"};
    }
    open.summary = summarise(*gpus, gpus->front().driver) + ", by DCGM alone";
  }
  open.source = std::move(source);
  return open;
}

struct DriverLibrary {
  std::unique_ptr<SimNode> sim;
  std::string path;  // empty: found by the loader
};

Result<DriverLibrary> find_library(const Config& config) {
  DriverLibrary library{nullptr, config.nvml_library};
  if (config.backend == Backend::kSim) {
    GL_TRY(sim, SimNode::prepare(config.sim_scenario, config.nvml_library));
    library.sim = std::move(sim);
    library.path = library.sim->library();
  }
  return library;
}

nvml::NvmlSourceOptions nvml_options(const Config& config, const std::string& library) {
  nvml::NvmlSourceOptions options;
  options.library = library;
  options.gpu_devices = config.gpu_devices;
  options.sample_interval = config.sample_interval;
  options.readings = readings_for(config);
  return options;
}

// A driver that hangs does not stop serving: the rest runs while it is waited for.
Result<OpenSource> open_patiently(const Config& config, const Clock& clock) {
  GL_TRY(library, find_library(config));
  const auto make = [&](const Clock& own) { return nvml::make_nvml_source(nvml_options(config, library.path), own); };
  GL_TRY(source, PatientSource::open(make, "nvml", config.sample_interval, clock));
  const auto probe = std::make_shared<std::optional<Result<nvml::NvmlProbe>>>();
  const bool answered =
      source->attempt([probe](GpuSource& nvml) { probe->emplace(static_cast<nvml::NvmlSource&>(nvml).probe()); },
                      kPatienceWithDriverAtStart);
  OpenSource open;
  if (!answered) {
    open.summary = "not known yet: the driver does not answer";
  } else if (!(*probe)->ok()) {
    return driver_error(config, library.sim.get(), (*probe)->error());
  } else {
    open.summary = summarise((**probe)->gpus, (**probe)->driver);
  }
  open.sim = std::move(library.sim);
  open.source = std::move(source);
  return open;
}

Result<OpenSource> open_source(const Config& config, const Clock& clock) {
  auto driver = open_patiently(config, clock);
  return config.backend == Backend::kDcgm ? open_dcgm(config, std::move(driver), clock) : std::move(driver);
}

Result<OpenSource> open_source_with_exact_time(const Config& config, const Clock& clock) {
  lay_aside_rights_for_exact_time(config);
  GL_TRY(open, open_source(config, clock));
  const std::string library = open.sim ? open.sim->library() : "";
  GL_TRY(source, add_exact_time(config, library, std::move(open.source), clock));
  open.source = std::move(source);
  return open;
}

// As DCGM's exporter: the machine's name if the node's is not given.
std::string host_name(const Config& config) {
  if (!config.node_name.empty()) return config.node_name;
  char name[HOST_NAME_MAX + 1] = {};
  return ::gethostname(name, sizeof(name) - 1) == 0 ? name : "";
}

// A simulated process is not in the real /proc; a scenario with real pids sets /proc itself.
std::string proc_root(const Config& config, const SimNode* sim) {
  return sim && config.proc_root == Config{}.proc_root ? sim->proc_root() : config.proc_root;
}

}  // namespace

BookingRules booking_rules(const Config& config) {
  BookingRules rules;
  rules.attribution = config.attribution;
  rules.static_power = config.static_power;
  rules.idle_power = config.gpu_idle_power;
  rules.sample_interval = config.sample_interval;
  rules.idle_interval = config.idle_interval;
  rules.retention = config.metric_retention;
  rules.owner_retention = config.owner_retention;
  rules.most_exited_processes = config.max_exited_processes;
  rules.most_ended_owners = config.max_ended_owners;
  return rules;
}

PipelineOptions pipeline_options(const Config& config) {
  PipelineOptions options;
  options.sample_interval = config.sample_interval;
  options.process_scan_interval = config.process_scan_interval;
  options.simulated = config.backend == Backend::kSim;
  options.textfile = config.textfile;
  options.textfile_mode = config.textfile_mode;
  options.textfile_dcgm = config.textfile_dcgm;
  options.readings = readings_for(config);
  options.expose.process_prefix = config.metric_prefix;
  options.expose.max_series = config.max_series;
  options.expose.collectors = shown_collectors(config);
  options.expose.node = config.node_name;
  options.expose.host_name = host_name(config);
  options.expose.pod = config.pod_name;
  options.expose.name_space = config.pod_namespace;
  options.expose.version = version();
  options.expose.revision = config.revision;
  return options;
}

std::optional<UpstreamOptions> upstream_options(const Config& config) {
  UpstreamOptions options;
  options.url = config.dcgm_exporter_url;
  options.file = config.dcgm_exporter_file;
  return options.url || !options.file.empty() ? std::optional(std::move(options)) : std::nullopt;
}

static_assert(PushQueue::Limits{}.in_memory == kLargestPushQueueInMemory);

std::optional<PushOptions> push_options(const Config& config) {
  if (!config.push_url) return std::nullopt;
  PushOptions options;
  options.receiver.url = config.push_url->http;
  options.receiver.credentials = {config.push_url->user_password, config.push_password_file,
                                  config.push_bearer_token_file};
  options.receiver.ca_file = config.push_ca_file;
  options.receiver.headers = config.push_headers;
  options.interval = config.push_interval;
  options.queue_folder = config.push_queue_dir;
  options.queue_bytes = config.push_queue_size;
  options.labels = config.push_labels;
  // A scraper adds these two; a receiver does not.
  const auto add = [&](const std::string& name, const std::string& value) {
    const auto given = [&](const auto& label) { return label.first == name; };
    if (!value.empty() && std::none_of(options.labels.begin(), options.labels.end(), given))
      options.labels.emplace_back(name, value);
  };
  add("job", "gpu-ledger");
  add("instance", host_name(config));
  return options;
}

dcgm::DcgmSourceOptions dcgm_options(const Config& config) {
  dcgm::DcgmSourceOptions options;
  options.library = config.dcgm_library;
  options.where.address = config.dcgm_address;
  options.where.embedded = config.dcgm_embedded;
  options.gpu_devices = config.gpu_devices;
  options.sample_interval = config.sample_interval;
  return options;
}

Result<OpenDriver> open_driver(const Config& config, const Clock& clock) {
  GL_TRY(library, find_library(config));
  OpenDriver driver;
  driver.sim = std::move(library.sim);
  driver.library = library.path;
  driver.source = nvml::make_nvml_source(nvml_options(config, driver.library), clock);
  auto probe = driver.source->probe();
  if (!probe.ok()) return driver_error(config, driver.sim.get(), probe.error());
  driver.probe = std::move(*probe);
  return driver;
}

Result<std::unique_ptr<IdentitySource>> open_resolver(const Config& config, const SimNode* sim) {
  if (!config.passwd_file.empty() && ::access(config.passwd_file.c_str(), R_OK) != 0) {
    return Error{Code::kNotFound, "--passwd-file: " + config.passwd_file + ": " + std::strerror(errno)};
  }
  identity::ProcReader proc(proc_root(config, sim), config.passwd_file);
  GL_TRY_STATUS(proc.check());
  GL_TRY(directory, open_directory(config, sim));
  auto resolver = std::make_unique<identity::Resolver>(std::move(proc), std::move(directory));
  resolver->wait_for_names(kPatienceWithNames);
  return std::unique_ptr<IdentitySource>(std::move(resolver));
}

Result<Node> open_node(const Config& config, const Clock& clock) {
  GL_TRY(hardware, open_source_with_exact_time(config, clock));
  Node node;
  node.sim = std::move(hardware.sim);
  node.summary = std::move(hardware.summary);
  GL_TRY(resolver, open_resolver(config, node.sim.get()));
  node.pipeline = std::make_unique<Pipeline>(std::move(hardware.source), std::move(resolver), booking_rules(config),
                                             pipeline_options(config), clock);
  const std::string proc = proc_root(config, node.sim.get());
  node.pipeline->read_boot_time_in(proc);
  // With --gpu-devices other GPUs do not count as missing, and a container sees only its own.
  const char* given = std::getenv("NVIDIA_VISIBLE_DEVICES");
  const bool all = config.gpu_devices.empty() && (given == nullptr || std::string_view(given) == "all");
  if (all) node.pipeline->count_gpus_in(proc + kGpusFolder);
  if (!config.state_file.empty()) {
    GL_TRY(keeper, StateKeeper::open(config.state_file, config.state_file_mode, clock).about("--state-file"));
    node.pipeline->keep_state(std::move(keeper), read_boot_id());
  }
  return node;
}

}  // namespace gpuledger::app
