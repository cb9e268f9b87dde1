#include "app/config/config.h"

#include <unistd.h>

#include <utility>

#include "app/config/config_given.h"
#include "app/config/config_help.h"
#include "app/config/config_values.h"
#include "base/duration.h"
#include "base/file.h"
#include "base/version.h"

namespace gpuledger::app {
namespace {

constexpr size_t kLargestConfigFile = 1 << 20;

Error wrong(std::string message) {
  return {Code::kMalformed, std::move(message)};
}

// Where the user set it, or empty: the default stands.
std::string origin_of(std::string_view name, const GivenSettings& given) {
  const auto found = given.find(find_setting(name));
  return found == given.end() ? std::string() : found->second.origin;
}

Status apply_one(const Setting& setting, const Given& given, Config& config) {
  if (Status status = setting.apply(given.values, config); !status.ok()) {
    return Error{status.error().code, given.origin + ": " + status.error().message};
  }
  return ok_status();
}

// Every look at processes or idleness is made of samples, so their intervals cannot be shorter. A default gives way
// to what was given, so that POLL_INTERVAL=500ms or --dcgm-update-frequency=30s alone go on working; two wishes that
// contradict each other are an error.
Status reconcile_intervals(const GivenSettings& given, Config& config) {
  struct Follower {
    std::string_view name;
    Nanoseconds Config::*value;
  };
  constexpr Follower kFollowers[] = {{"process-scan-interval", &Config::process_scan_interval},
                                     {"idle-interval", &Config::idle_interval}};
  const std::string sample_origin = origin_of("sample-interval", given);
  for (const Follower& follower : kFollowers) {
    const std::string origin = origin_of(follower.name, given);
    if (config.*follower.value >= config.sample_interval) continue;
    if (origin.empty()) {
      config.*follower.value = config.sample_interval;
    } else if (sample_origin.empty()) {
      config.sample_interval = config.*follower.value;
    } else {
      return wrong(origin + ": " + write_duration(config.*follower.value) + " is shorter than " + sample_origin + " (" +
                   write_duration(config.sample_interval) + ")");
    }
  }
  return ok_status();
}

Status check_together(const GivenSettings& given, Config& config) {
  if (!config.sim_scenario.empty() && config.backend != Backend::kSim) {
    return wrong(origin_of("sim-scenario", given) + ": needs --backend=sim");
  }
  const std::pair<const char*, bool> for_dcgm[] = {{"dcgm-library", !config.dcgm_library.empty()},
                                                   {"dcgm-address", !config.dcgm_address.empty()},
                                                   {"dcgm-embedded", config.dcgm_embedded}};
  for (const auto& [name, is_set] : for_dcgm) {
    if (is_set && config.backend != Backend::kDcgm) return wrong(origin_of(name, given) + ": needs --backend=dcgm");
  }
  if (config.dcgm_embedded && !config.dcgm_address.empty()) {
    return wrong(origin_of("dcgm-embedded", given) + ": not together with " + origin_of("dcgm-address", given));
  }
  if (config.record_for && config.command != Command::kRecord) {
    return wrong(origin_of("for", given) + ": needs the command record");
  }
  if (config.replay_series && config.command != Command::kReplay) {
    return wrong(origin_of("series", given) + ": needs the command replay");
  }
  if (config.top_batch && config.command != Command::kTop) {
    return wrong(origin_of("batch", given) + ": needs the command top");
  }
  const bool exact_time = config.exact_time.value_or(ExactTimeMode::kOff) != ExactTimeMode::kOff;
  if (config.exact_time_burst != Config{}.exact_time_burst && !exact_time) {
    return wrong(origin_of("exact-time-duty", given) + ": needs --exact-time=on or auto");
  }
  if (config.dcgm_exporter_url && !config.dcgm_exporter_file.empty()) {
    return wrong(origin_of("dcgm-exporter-file", given) + ": not together with " +
                 origin_of("dcgm-exporter-url", given));
  }
  // The other exporter's metrics take the place of ours, so nobody needs to read them.
  if (config.dcgm_exporter_url || !config.dcgm_exporter_file.empty()) {
    if (config.textfile_dcgm) {
      return wrong(origin_of("textfile-dcgm", given) +
                   ": not in add-on mode, where /gpu/metrics is another exporter's");
    }
    config.collectors.erase("dcgm");
    config.collectors.erase("dcgm-modern");
  }
  return reconcile_intervals(given, config);
}

Status add_config_file(const std::string& path, GivenSettings& given) {
  const Result<std::string> text = read_file(path, kLargestConfigFile);
  if (!text.ok()) return Error{text.error().code, origin_of("config", given) + ": " + text.error().message};
  Result<GivenSettings> from_file = parse_yaml_settings(*text, path);
  if (!from_file.ok()) return from_file.error();
  given.merge(*from_file);  // keeps what is there already
  return ok_status();
}

Result<Config> resolve_config(Arguments arguments, const std::map<std::string, std::string>& environment) {
  GivenSettings given = std::move(arguments.given);
  add_environment(environment, given);
  if (Status status = add_older_environment(environment, given); !status.ok()) return status.error();
  if (const auto file = given.find(find_setting("config")); file != given.end()) {
    const std::string path = file->second.values.front();
    if (path.empty()) return wrong(file->second.origin + ": needs a path");
    if (Status status = add_config_file(path, given); !status.ok()) return status.error();
  }
  Config config;
  config.command = arguments.command;
  config.accounting = arguments.accounting;
  config.trace_file = std::move(arguments.trace_file);
  for (const Setting& setting : settings()) {  // in the table's order, so that the first of several errors is stable
    const auto found = given.find(&setting);
    if (found == given.end()) continue;
    if (Status status = apply_one(setting, found->second, config); !status.ok()) return status.error();
  }
  if (Status status = check_together(given, config); !status.ok()) return status.error();
  config.unknown_environment = unknown_environment(environment);
  return config;
}

}  // namespace

ConfigSources read_sources(int argc, const char* const* argv) {
  ConfigSources sources;
  for (int i = 1; i < argc; ++i) sources.arguments.emplace_back(argv[i]);
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    const std::string_view text(*variable);
    const size_t equals = text.find('=');
    if (equals == text.npos) continue;
    sources.environment.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return sources;
}

Result<ParseOutcome> read_config(const ConfigSources& sources) {
  Result<Arguments> arguments = parse_arguments(sources.arguments);
  if (!arguments.ok()) return arguments.error();
  Result<ParseOutcome> outcome{ParseOutcome()};  // filled in place: g++ 12 warns falsely when it is moved in
  if (arguments->help) {
    *outcome = PrintAndExit{write_help()};
  } else if (arguments->version) {
    *outcome = PrintAndExit{std::string("gpu-ledger ") + version() + "\n"};
  } else {
    Result<Config> config = resolve_config(std::move(arguments).value(), sources.environment);
    if (!config.ok()) return config.error();
    *outcome = std::move(config).value();
  }
  return outcome;
}

Result<Config> reread_config(const ConfigSources& sources) {
  Result<ParseOutcome> outcome = read_config(sources);
  if (!outcome.ok()) return outcome.error();
  Config* config = std::get_if<Config>(&outcome.value());
  if (config == nullptr) return Error{Code::kInternal, "--help and --version have nothing to read again"};
  return std::move(*config);
}

std::vector<std::string> changes_needing_restart(const Config& old, const Config& fresh) {
  const std::pair<const char*, bool> same[] = {
      {"listen-address", old.listen_addresses == fresh.listen_addresses},
      {"metrics-path", old.metrics_path == fresh.metrics_path},
      {"metric-prefix", old.metric_prefix == fresh.metric_prefix},
      {"textfile", old.textfile == fresh.textfile},
      {"textfile-dcgm", old.textfile_dcgm == fresh.textfile_dcgm},
      {"textfile-mode", old.textfile_mode == fresh.textfile_mode},
      {"state-file", old.state_file == fresh.state_file},
      {"state-file-mode", old.state_file_mode == fresh.state_file_mode},
      {"web-config-file", old.web_config_file == fresh.web_config_file},
      {"allowed-hosts", old.allowed_hosts == fresh.allowed_hosts},
      {"node-name", old.node_name == fresh.node_name},
      {"pod-name", old.pod_name == fresh.pod_name},
      {"pod-namespace", old.pod_namespace == fresh.pod_namespace},
      {"attribution", old.attribution == fresh.attribution},
      {"static-power", old.static_power == fresh.static_power},
      {"exact-time", old.exact_time.value_or(ExactTimeMode::kOff) == fresh.exact_time.value_or(ExactTimeMode::kOff)},
      {"exact-time-duty", old.exact_time_burst == fresh.exact_time_burst},
      {"backend", old.backend == fresh.backend},
      {"nvml-library", old.nvml_library == fresh.nvml_library},
      {"dcgm-library", old.dcgm_library == fresh.dcgm_library},
      {"dcgm-address", old.dcgm_address == fresh.dcgm_address},
      {"dcgm-embedded", old.dcgm_embedded == fresh.dcgm_embedded},
      {"sim-scenario", old.sim_scenario == fresh.sim_scenario},
      {"gpu-devices", old.gpu_devices == fresh.gpu_devices},
      {"proc-root", old.proc_root == fresh.proc_root},
      {"dcgm-exporter-url", old.dcgm_exporter_url == fresh.dcgm_exporter_url},
      {"dcgm-exporter-file", old.dcgm_exporter_file == fresh.dcgm_exporter_file},
      {"dcgm-pcie-throughput", old.dcgm_pcie_throughput == fresh.dcgm_pcie_throughput},
      {"kubernetes-enabled", old.kubernetes == fresh.kubernetes},
      {"pod-source", old.pod_source == fresh.pod_source},
      {"pod-labels", old.pod_labels == fresh.pod_labels},
      {"gpu-resources", old.gpu_resources == fresh.gpu_resources},
      {"pod-resources-socket", old.pod_resources_socket == fresh.pod_resources_socket},
      {"pods-api-socket", old.pods_api_socket == fresh.pods_api_socket},
      {"kubelet-address", old.kubelet_address == fresh.kubelet_address},
      {"kubelet-ca-file", old.kubelet_ca_file == fresh.kubelet_ca_file},
      {"kubelet-insecure", old.kubelet_insecure == fresh.kubelet_insecure},
      {"cri-socket", old.cri_socket == fresh.cri_socket},
      {"docker-socket", old.docker_socket == fresh.docker_socket},
      {"podman-socket", old.podman_socket == fresh.podman_socket},
  };
  std::vector<std::string> changed;
  for (const auto& [name, equal] : same) {
    if (!equal) changed.emplace_back(name);
  }
  return changed;
}

}  // namespace gpuledger::app
