#pragma once

#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/units.h"
#include "model/policy.h"

namespace gpuledger::app {

enum class Command { kServe, kOnce };
enum class Backend { kAuto, kNvml, kDcgm, kSim };

// Every setting, with its default. Filled by read_config from flags, environment, config file.
struct Config {
  Command command = Command::kServe;
  std::vector<std::string> listen_addresses = {":9400"};
  std::string metrics_path = "/metrics";
  Nanoseconds sample_interval = std::chrono::seconds(1);
  Nanoseconds process_scan_interval = std::chrono::seconds(10);
  Nanoseconds idle_interval = std::chrono::seconds(5);
  Nanoseconds metric_retention = std::chrono::minutes(5);
  std::string metric_prefix = "my_gpu_process";
  std::set<std::string> collectors = {"process", "idle", "processlist", "device", "dcgm", "pod", "self"};
  Attribution attribution = Attribution::kAdaptive;
  StaticPower static_power = StaticPower::kProportional;
  std::optional<Power> gpu_idle_power;
  Backend backend = Backend::kAuto;
  std::string nvml_library;  // empty: libnvidia-ml.so.1 as the loader finds it
  std::string sim_scenario;  // empty: the built-in mixed node
  std::vector<std::string> gpu_devices;  // indexes or UUIDs; empty: all
  std::string proc_root = "/proc";
  std::string textfile;
  std::string node_name;
  std::string pod_name;       // the exporter's own, for gpu_idle_* only
  std::string pod_namespace;  // likewise
  std::string web_config_file;
  std::string config_file;
  std::string log_level = "info";
  std::string log_format = "text";
  // Settings given that this version reads but does not act on yet; each gets one warning at start.
  std::vector<std::string> without_effect;
};

}  // namespace gpuledger::app
