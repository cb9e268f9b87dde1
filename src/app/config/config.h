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
#include <utility>
#include <variant>
#include <vector>

#include "app/config/exporter_url.h"
#include "app/config/url_user.h"
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
  std::string_view argument;  // the word after the name: FILE, one of status|on|off, or [COMMAND]; empty: none
  std::string_view summary;   // one line, for the list of commands
  std::string_view about;     // details, for its own --help
  std::string_view example;
  std::string_view failure;  // what exit code 1 means
  // Runs the command. An error is one line for stderr; the exit code is then 1.
  Status (*run)(const Config& config, const ConfigSources& sources);
  // The settings that it uses, for its flags, its --help and completions: names of groups and of settings; !name leaves
  // one out. Empty: all settings except those of other commands.
  std::string_view takes = {};
  // In place of run: only prints. No settings are read, so a wrong setting is no error.
  std::string (*print)(const ConfigSources& sources, const std::string& argument) = nullptr;
  // Called before run: checks the argument, and settings that must fit together. An error is wrong use; the exit code
  // is then 2.
  Status (*check)(const Config& config) = nullptr;
};

enum class Backend { kAuto, kNvml, kDcgm, kSim };

// auto: on where possible; on: warns if not possible
enum class ExactTimeMode { kOff, kAuto, kOn };
// How a recording names processes and owners. hashed: equal texts of one recording stay equal, nothing else is told.
enum class RecordNames { kHashed, kPlain, kNone };
// Sets of collectors: every older exporter's names, or our own names only and few series.
enum class Preset { kCompatible, kLean };
enum class PodSourceName { kAuto, kPodsApi, kApiServer, kKubelet, kCri, kNone };

// What --push-queue-size can be without --push-queue-dir.
inline constexpr uint64_t kLargestPushQueueInMemory = 16 << 20;

// Every setting, with its default. Filled by read_config from flags, environment, config file.
struct Config {
  const Command* command = nullptr;
  std::string argument;                   // of the command
  std::optional<Nanoseconds> record_for;  // empty: until a signal
  bool replay_series = false;             // print the books after each step too
  bool top_batch = false;                 // print the table once
  std::optional<ExporterUrl> url;         // of top and job; empty: the exporter on this machine, if one answers
  std::string url_ca_file;                // empty: the distribution's
  std::string format;                     // of bill and job; empty: the command's first
  Nanoseconds job_wait{0};                // for the last joules of a job that ends
  RecordNames record_names = RecordNames::kHashed;
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
  Preset preset = Preset::kCompatible;
  std::set<std::string> collectors = {"process",       "process-info", "idle", "processlist", "device",
                                      "device-detail", "dcgm",         "pod",  "self"};
  Attribution attribution = Attribution::kAdaptive;
  StaticPower static_power = StaticPower::kProportional;
  ExactTimeMode exact_time = ExactTimeMode::kAuto;
  double exact_time_budget = 0.005;  // share of the traced work that the trace may cost
  std::optional<Power> gpu_idle_power;
  Backend backend = Backend::kAuto;
  std::string nvml_library;  // empty: the loader's libnvidia-ml.so.1
  std::string dcgm_library;  // empty: libdcgm.so.4, else libdcgm.so.3
  std::string dcgm_address;  // empty: 127.0.0.1:5555
  bool dcgm_embedded = false;
  std::string sim_scenario;              // empty: the built-in mixed node
  std::vector<std::string> gpu_devices;  // indexes or UUIDs; empty: all
  std::string proc_root = "/proc";
  std::string passwd_file;  // empty: found where it can be
  std::string slurm_job_dir = "/run/gpu-ledger-jobs";
  std::optional<bool> kubernetes;  // empty: if a kubelet or a cluster is found
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
  std::optional<PushUrl> push_url;  // empty: nothing is pushed
  Nanoseconds push_interval = std::chrono::seconds(15);
  std::string push_queue_dir;  // empty: in memory
  uint64_t push_queue_size = 256 << 20;
  std::vector<std::pair<std::string, std::string>> push_labels;   // beside job and instance
  std::vector<std::pair<std::string, std::string>> push_headers;  // of its requests
  std::string push_password_file;
  std::string push_bearer_token_file;
  std::string push_ca_file;  // empty: the distribution's
  std::string node_name;
  std::string pod_name;       // our own pod's, for gpu_idle_* only
  std::string pod_namespace;  // same
  std::string web_config_file;
  std::vector<std::string> allowed_hosts;
  // Of bill, down to query_timeout.
  std::optional<ExporterUrl> prometheus_url;
  std::string prometheus_ca_file;        // empty: the distribution's
  std::string prometheus_token_file;     // empty: no bearer token
  std::string prometheus_password_file;  // empty: the URL's
  std::vector<std::pair<std::string, std::string>> prometheus_headers;
  std::optional<std::chrono::year_month> bill_month;
  std::optional<std::chrono::sys_seconds> bill_from;
  std::optional<std::chrono::sys_seconds> bill_to;
  std::optional<Nanoseconds> bill_last;
  std::optional<Nanoseconds> bill_step;  // empty: by the length of the span
  std::vector<std::string> bill_by = {"namespace"};
  std::string bill_match;
  std::string bill_spread = "keep";
  std::string bill_allocated = "whole";
  std::string bill_per;
  double price_per_kwh = 0;                          // 0: none
  std::map<std::string, double> price_per_gpu_hour;  // by model
  std::string currency = "EUR";
  double pue = 1;
  std::string price_list;                    // a file
  std::optional<double> co2e_grams_per_kwh;  // at most one of the two
  std::string co2e_series;
  std::string bill_output;  // empty: stdout
  bool allow_gaps = false;
  std::string bill_site;
  bool bill_serve = false;
  std::vector<std::string> serve_addresses = {"127.0.0.1:9003"};
  Nanoseconds query_timeout = std::chrono::minutes(1);
  std::string config_file;
  std::string log_level = "info";
  std::string log_format = "text";
  // Variables named GPU_LEDGER_... that are no setting: probably misspelt. Each gets a warning, never an error, because
  // Kubernetes sets such variables for a Service called gpu-ledger.
  std::vector<std::string> unknown_environment;
  std::string revision;  // of ConfigSources
};

// Kept, so that SIGHUP can apply the same flags and environment to a changed config file.
struct ConfigSources {
  std::vector<std::string> arguments;  // without the program's name
  std::map<std::string, std::string> environment;
  std::span<const Command> commands;  // all of them; the first is the default
  std::string revision = {};          // the commit this program was built from; empty: not known
};
ConfigSources read_sources(int argc, const char* const* argv, std::span<const Command> commands);

// For --help, --version and commands that only print: printed on stdout, exit 0.
struct PrintAndExit {
  std::string text;
};
using ParseOutcome = std::variant<Config, PrintAndExit>;

// Order: flag, GPU_LEDGER_<FLAG>, the older environment name, the config file, the default. Only the value that wins is
// checked, so that an unrelated variable does no harm next to a flag. An empty variable counts as not set. The error's
// message is one line for stderr, without the program's name; exit 2.
Result<ParseOutcome> read_config(const ConfigSources& sources);

// The same for SIGHUP: a wrong config file is an error, and the program keeps its settings.
Result<Config> reread_config(const ConfigSources& sources);

// Names of changed settings that need a restart.
std::vector<std::string> changes_needing_restart(const Config& old, const Config& fresh);
// The others, which take effect at SIGHUP, as do the contents (not the path) of the web config file.
void take_live_changes(Config& config, const Config& fresh);

}  // namespace gpuledger::app
