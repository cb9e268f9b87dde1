// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/http_url.h"
#include "base/result.h"
#include "base/units.h"
#include "model/policy.h"

namespace gpuledger::app {

struct Config;
struct ConfigSources;

// One row of the table of commands. Arguments, --help, the man page and main() are made from it.
struct Command {
  std::string_view name;
  std::string_view argument;  // the word after the name: FILE, or status|on|off, one of these; empty: none
  std::string_view summary;   // one line, for the list of commands
  std::string_view about;     // what more there is to say, for its own --help
  std::string_view example;
  std::string_view failure;  // what exit code 1 means
  // Runs to its end. An error is one line for stderr; the program then exits with 1.
  Status (*run)(const Config& config, const ConfigSources& sources);
};

enum class Backend { kAuto, kNvml, kDcgm, kSim };

// off; auto: where it can be had; on: what is in the way is a warning
enum class ExactTimeMode { kOff, kAuto, kOn };
enum class PodSourceName { kAuto, kPodsApi, kApiServer, kKubelet, kCri, kNone };

// Every setting, with its default. Filled by read_config from flags, environment, config file.
struct Config {
  const Command* command = nullptr;
  std::string argument;                   // of the command
  std::optional<Nanoseconds> record_for;  // empty: until it is told to end
  bool replay_series = false;             // print the books after every step too
  bool top_batch = false;                 // print the table once
  std::vector<std::string> listen_addresses = {":9400"};
  std::string metrics_path = "/metrics";
  Nanoseconds sample_interval = std::chrono::seconds(1);
  Nanoseconds process_scan_interval = std::chrono::seconds(10);
  Nanoseconds idle_interval = std::chrono::seconds(5);
  Nanoseconds metric_retention = std::chrono::minutes(5);
  Nanoseconds owner_retention = std::chrono::hours(24);
  uint64_t max_exited_processes = 1000;
  uint64_t max_ended_owners = 1000;
  uint64_t max_series = 15000;
  std::string metric_prefix = "my_gpu_process";
  std::set<std::string> collectors = {"process", "idle", "processlist", "device", "dcgm", "pod", "self"};
  Attribution attribution = Attribution::kAdaptive;
  StaticPower static_power = StaticPower::kProportional;
  std::optional<ExactTimeMode> exact_time;                 // empty: off; a replay uses what its trace has
  Nanoseconds exact_time_burst = std::chrono::minutes(1);  // of every minute
  std::optional<Power> gpu_idle_power;
  Backend backend = Backend::kAuto;
  std::string nvml_library;  // empty: libnvidia-ml.so.1 as the loader finds it
  std::string dcgm_library;  // empty: libdcgm.so.4, else libdcgm.so.3
  std::string dcgm_address;  // empty: 127.0.0.1:5555
  bool dcgm_embedded = false;
  std::string sim_scenario;              // empty: the built-in mixed node
  std::vector<std::string> gpu_devices;  // indexes or UUIDs; empty: all
  std::string proc_root = "/proc";
  std::optional<bool> kubernetes;  // empty: where there is a kubelet or a cluster to be seen
  PodSourceName pod_source = PodSourceName::kAuto;
  std::vector<std::string> pod_labels;
  std::vector<std::string> gpu_resources;  // beside nvidia.com/gpu and nvidia.com/mig-*
  std::string pod_resources_socket = "/var/lib/kubelet/pod-resources/kubelet.sock";
  std::string pods_api_socket = "/var/lib/kubelet/pods-api/pods-api.sock";
  std::string kubelet_address;  // empty: NODE_IP, HOST_IP or 127.0.0.1, port 10250
  std::string kubelet_ca_file;  // empty: the cluster's
  bool kubelet_insecure = false;
  std::string cri_socket;  // empty: the first of the usual ones
  std::string docker_socket = "/var/run/docker.sock";
  std::string podman_socket = "/run/podman/podman.sock";
  std::optional<HttpUrl> dcgm_exporter_url;  // at most one of the two
  std::string dcgm_exporter_file;
  bool dcgm_pcie_throughput = false;
  std::string textfile;
  mode_t textfile_mode = 0644;
  bool textfile_dcgm = false;
  std::string state_file;
  mode_t state_file_mode = 0600;
  std::string node_name;
  std::string pod_name;       // the exporter's own, for gpu_idle_* only
  std::string pod_namespace;  // likewise
  std::string web_config_file;
  std::vector<std::string> allowed_hosts;
  std::string config_file;
  std::string log_level = "info";
  std::string log_format = "text";
  // Variables named GPU_LEDGER_... that are no setting: probably misspelt, so each gets a warning, but never an
  // error, because Kubernetes invents such variables for a Service called gpu-ledger.
  std::vector<std::string> unknown_environment;
};

// Kept by the program, so that SIGHUP can read the same flags and environment over a changed config file.
struct ConfigSources {
  std::vector<std::string> arguments;  // without the program's name
  std::map<std::string, std::string> environment;
  std::span<const Command> commands;  // that there are; the first runs when none is named
};
ConfigSources read_sources(int argc, const char* const* argv, std::span<const Command> commands);

// Answer of --help and --version: to be printed on stdout, exit 0.
struct PrintAndExit {
  std::string text;
};
using ParseOutcome = std::variant<Config, PrintAndExit>;

// Flag, else GPU_LEDGER_<FLAG>, else the older environment name, else the config file, else the default. Only the
// value that wins is checked, so that an odd variable of somebody else's does no harm next to a flag. A variable that
// is set but empty counts as not set. The error's message is one line for stderr, without the program's name; exit 2.
Result<ParseOutcome> read_config(const ConfigSources& sources);

// The same for SIGHUP: a config file that is wrong now is an error, and the program goes on with what it has.
Result<Config> reread_config(const ConfigSources& sources);

// Names of the settings that differ and take a restart.
std::vector<std::string> changes_needing_restart(const Config& old, const Config& fresh);
// The others, which take effect at SIGHUP; so do the contents (not the place) of the web config file.
void take_live_changes(Config& config, const Config& fresh);

}  // namespace gpuledger::app
