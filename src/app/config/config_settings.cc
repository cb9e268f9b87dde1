// SPDX-License-Identifier: Apache-2.0
#include "app/config/config_settings.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <string>

#include "app/config/config_bill_values.h"
#include "app/config/config_setting_members.h"
#include "app/config/config_values.h"
#include "base/quote.h"
#include "expose/pod_label.h"
#include "model/owner.h"

namespace gpuledger::app {
namespace {

using std::chrono::hours;

// The driver's energy counter moves every 100 ms: faster sampling shows no more.
constexpr int64_t kShortestIntervalMs = 100;
constexpr int64_t kShortestRecordingMs = 1000;
constexpr int64_t kShortestPushMs = 1000;
constexpr Nanoseconds kLongestInterval = hours(24);
constexpr Nanoseconds kLongestPush = hours(1);
constexpr Nanoseconds kLongestRetention = hours(24 * 365);
constexpr Nanoseconds kLongestWait = std::chrono::minutes(10);
constexpr Nanoseconds kLongestRecording = hours(24 * 7);
constexpr Nanoseconds kLongestBill = hours(24 * 366);

constexpr std::array<std::string_view, 3> kAttributions = {"adaptive", "utilization", "measured-only"};
constexpr std::array<std::string_view, 3> kStaticPowers = {"proportional", "equal", "separate"};
constexpr std::array<std::string_view, 6> kPodSources = {"auto", "pods-api", "apiserver", "kubelet", "cri", "none"};
constexpr std::array<std::string_view, 4> kBackends = {"auto", "nvml", "dcgm", "sim"};
constexpr std::array<std::string_view, 3> kExactTimeModes = {"off", "auto", "on"};
constexpr std::array<std::string_view, 3> kRecordNames = {"hashed", "plain", "none"};
constexpr std::array<std::string_view, 2> kPresets = {"compatible", "lean"};
constexpr std::array<std::string_view, 1> kPers = {"token"};
constexpr std::array<std::string_view, 3> kSpreads = {"keep", "use", "allocation"};
constexpr std::array<std::string_view, 2> kAllocatedRules = {"whole", "shared"};
constexpr auto kFormats = [] {
  std::array<std::string_view, std::size(kBillFormats) + std::size(kJobFormats)> all;
  std::copy(std::begin(kJobFormats), std::end(kJobFormats),
            std::copy(std::begin(kBillFormats), std::end(kBillFormats), all.begin()));
  return all;
}();
constexpr std::array<std::string_view, 4> kLogLevels = {"debug", "info", "warn", "error"};
constexpr std::array<std::string_view, 2> kLogFormats = {"text", "json"};

Status set_gpu_devices(const Values& values, Config& config) {
  std::vector<std::string> devices;
  for (const std::string& value : values) {
    if (value == "all" && values.size() == 1) break;
    GL_TRY(device, parse_gpu_device(value));
    devices.push_back(std::move(device));
  }
  config.gpu_devices = std::move(devices);
  return ok_status();
}

Status set_kubernetes(const Values& values, Config& config) {
  const Result<bool> on = parse_bool(values.front());
  if (!on.ok() && values.front() != "auto") {
    return Error{Code::kMalformed, in_quotes(values.front()) + " is not one of auto, true or false"};
  }
  config.kubernetes = on.ok() ? std::optional(*on) : std::nullopt;
  return ok_status();
}

Status set_pod_labels(const Values& values, Config& config) {
  std::map<std::string, std::string> taken;  // by the name of the label
  for (const std::string& value : values) {
    const auto [other, first] = taken.emplace(expose::pod_label_name(value), value);
    if (first || other->second == value) continue;
    return Error{Code::kMalformed,
                 in_quotes(other->second) + " and " + in_quotes(value) + " would both be the label " + other->first};
  }
  return kNames<&Config::pod_labels>.apply(values, config);
}

Status set_bill_by(const Values& values, Config& config) {
  for (const std::string& value : values) GL_TRY_STATUS(check_bill_by(value));
  if (values.empty()) return Error{Code::kMalformed, "needs what to group by (write namespace)"};
  config.bill_by = values;
  return ok_status();
}

Status set_gpu_hour_prices(const Values& values, Config& config) {
  for (const std::string& value : values) {
    GL_TRY(price, parse_gpu_hour_price(value));
    config.price_per_gpu_hour[price.first] = price.second;
  }
  return ok_status();
}

// Before the collectors in the table: each of them may differ from its preset.
Status set_preset(const Values& values, Config& config) {
  GL_TRY(place, parse_choice(values.front(), kPresets));
  config.preset = static_cast<Preset>(place);
  if (config.preset == Preset::kCompatible) {
    config.collectors = Config{}.collectors;
  } else {
    config.collectors = {"process-native", "process-info", "device", "pod", "self"};
  }
  return ok_status();
}

Status set_collector(const std::string& name, const Values& values, Config& config) {
  GL_TRY(on, parse_bool(values.front()));
  config.collectors.erase(name);
  if (on) config.collectors.insert(name);
  return ok_status();
}

using G = SettingGroup;
using F = SettingForm;
constexpr SettingEffect kLive = SettingEffect::kLive;

#define GL_COLLECTOR(NAME, DEFAULT, HELP)                                                              \
  {                                                                                                    \
    "collector." NAME, G::kCollectors, F::kSwitch, "", DEFAULT, HELP,                                  \
        kept_in<&Config::collectors>(                                                                  \
            [](const Values& values, Config& config) { return set_collector(NAME, values, config); }), \
        kLive                                                                                          \
  }

const std::string kBillByHelp = [] {
  std::string kinds;
  for (const OwnerKindRow& row : kOwnerKinds) {
    if (row.kind != OwnerKind::kUnknown) kinds.append(row.word).append(", ");
  }
  return "a line for each: namespace, user, slurm_account, " + kinds +
         "owner (the kind), node, cluster, gpu or label:NAME, a label of pods that --pod-labels names";
}();

const Setting kSettings[] = {
    {"listen-address", G::kServing, F::kList, "ADDRESS", ":9400",
     "where to serve HTTP: :PORT (IPv4 and IPv6), HOST:PORT, [IPV6]:PORT (IPv6 alone) or unix:/PATH; may be given "
     "several times",
     kept_in<&Config::listen_addresses>(set_listen_addresses<&Config::listen_addresses>)},
    {"metrics-path", G::kServing, F::kValue, "PATH", "/metrics", "path of the metrics",
     kParsed<&Config::metrics_path, parse_metrics_path>},
    {"metric-prefix", G::kServing, F::kValue, "PREFIX", "my_gpu_process", "prefix of the process metrics",
     kParsed<&Config::metric_prefix, parse_metric_prefix>},
    {"max-series", G::kServing, F::kValue, "COUNT", "15000",
     "limit of series in one scrape: the largest consumers are kept, and always the GPUs and the program itself; "
     "gpu_ledger_series_left_out counts the rest; it also limits another exporter's metrics on /gpu/metrics, the "
     "accounts in /api/v1/snapshot, and with --textfile-dcgm both documents together; 0: no limit",
     kParsed<&Config::max_series, parse_count>, kLive},
    {"textfile", G::kServing, F::kValue, "FILE", "",
     "also write the metrics to this file, for node_exporter's textfile collector (name it *.prom)",
     kText<&Config::textfile>},
    {"textfile-mode", G::kServing, F::kValue, "MODE", "0644",
     "mode of that file: node_exporter must be able to read it; every user who can read it sees the metrics without a "
     "password",
     kParsed<&Config::textfile_mode, parse_file_mode>},
    {"textfile-dcgm", G::kServing, F::kSwitch, "", "false",
     "add the metrics of /gpu/metrics to the textfile and to the output of once",
     kParsed<&Config::textfile_dcgm, parse_bool>},
    {"web-config-file", G::kServing, F::kValue, "FILE", "",
     "TLS and basic authentication, in the format of Prometheus' exporter-toolkit; changed contents take effect at "
     "once",
     kText<&Config::web_config_file>},
    {"allowed-hosts", G::kServing, F::kList, "LIST", "",
     "more host names that browsers may use, besides IP addresses, localhost, names without a dot, this machine's and "
     "those of Kubernetes services; *: any. Prometheus and other programs may use any name",
     kNames<&Config::allowed_hosts>},
    {"node-name", G::kServing, F::kValue, "NAME", "", "constant label node on every series", kText<&Config::node_name>},
    {"pod-name", G::kServing, F::kValue, "NAME", "", "constant label pod on the gpu_idle_* series",
     kText<&Config::pod_name>},
    {"pod-namespace", G::kServing, F::kValue, "NAME", "", "constant label namespace on the gpu_idle_* series",
     kText<&Config::pod_namespace>},

    {"push-url", G::kPush, F::kValue, "URL", "",
     "also send the metrics by remote write to this URL, for nodes that nothing can scrape: "
     "http://HOST:9090/api/v1/write, with the receiver's whole path; USER:PASSWORD@ before the host. A password is "
     "safer in the variable or in --push-password-file: every user can read flags. See docs/push.md",
     kParsed<&Config::push_url, parse_push_url>},
    {"push-interval", G::kPush, F::kValue, "DURATION", "15s", "how often, 1s or more",
     kDuration<&Config::push_interval, kShortestPushMs, kLongestPush>},
    {"push-queue-dir", G::kPush, F::kValue, "DIR", "",
     "keep samples that are not sent yet in this folder, across restarts; if not given, in memory, 16MiB at most",
     kText<&Config::push_queue_dir>},
    {"push-queue-size", G::kPush, F::kValue, "SIZE", "256MiB",
     "limit of that queue; above it the oldest samples are dropped; more than 16MiB needs --push-queue-dir",
     kParsed<&Config::push_queue_size, parse_size>},
    {"push-labels", G::kPush, F::kList, "LIST", "",
     "NAME=VALUE: more labels of every series that is sent; job=gpu-ledger and instance=the node's name if not given",
     kPairs<&Config::push_labels, parse_label>},
    {"push-headers", G::kPush, F::kList, "LIST", "",
     "NAME=VALUE: more headers of the requests: X-Scope-OrgID=TENANT for Mimir; a value with a comma needs a list in "
     "the config file",
     kPairs<&Config::push_headers, parse_header>},
    {"push-password-file", G::kPush, F::kValue, "FILE", "",
     "the password of the user in --push-url; read for every request", kText<&Config::push_password_file>},
    {"push-bearer-token-file", G::kPush, F::kValue, "FILE", "",
     "a bearer token, in place of user and password; read for every request", kText<&Config::push_bearer_token_file>},
    {"push-ca-file", G::kPush, F::kValue, "FILE", "",
     "CA of the receiver's certificate, or the certificate itself; else the distribution's CAs",
     kText<&Config::push_ca_file>},

    {"sample-interval", G::kSampling, F::kValue, "DURATION", "1s",
     "how often energy and utilization are read, 100ms or more; if not given, never longer than the two intervals "
     "below",
     kDuration<&Config::sample_interval, kShortestIntervalMs, kLongestInterval>, kLive},
    {"process-scan-interval", G::kSampling, F::kValue, "DURATION", "10s",
     "how often all processes and their owners are read; a new pid in a utilization sample is looked up at once",
     kDuration<&Config::process_scan_interval, kShortestIntervalMs, kLongestInterval>, kLive},
    {"idle-interval", G::kSampling, F::kValue, "DURATION", "5s", "how often idleness is evaluated",
     kDuration<&Config::idle_interval, kShortestIntervalMs, kLongestInterval>, kLive},
    {"metric-retention", G::kSampling, F::kValue, "DURATION", "5m",
     "how long an exited process stays in the metrics, with active 0",
     kDuration<&Config::metric_retention, 0, kLongestRetention>, kLive},
    {"owner-retention", G::kSampling, F::kValue, "DURATION", "24h",
     "how long a pod, job, container or service stays in the metrics after its last process; then its joules move to "
     "gpu_ledger_closed_energy_joules",
     kDuration<&Config::owner_retention, 0, kLongestRetention>, kLive},
    {"max-exited-processes", G::kSampling, F::kValue, "COUNT", "1000",
     "limit of exited processes in the metrics; beyond it the oldest are dropped early",
     kParsed<&Config::max_exited_processes, parse_count>, kLive},
    {"max-ended-owners", G::kSampling, F::kValue, "COUNT", "1000",
     "limit of ended pods, jobs, containers and services in the metrics; beyond it the oldest are closed early",
     kParsed<&Config::max_ended_owners, parse_count>, kLive},

    {"for", G::kSampling, F::kValue, "DURATION", "", "how long; if not given, until SIGINT or SIGTERM",
     kDuration<&Config::record_for, kShortestRecordingMs, kLongestRecording>, SettingEffect::kRestart, "record"},
    {"record-names", G::kSampling, F::kValue, "FORM", "hashed",
     "executable and owner of each process: hashed (equal names stay equal in this recording; nothing else can be read "
     "from them), plain or none; replay uses them for kin",
     kChoice<&Config::record_names, kRecordNames>, SettingEffect::kRestart, "record"},
    {"series", G::kSampling, F::kSwitch, "", "false", "first print the books of every step as lines of JSON",
     kParsed<&Config::replay_series, parse_bool>, SettingEffect::kRestart, "replay"},
    {"wait", G::kSampling, F::kValue, "DURATION", "0s",
     "wait until the job's processes have left the GPUs and their last joules are booked, but no longer than this",
     kDuration<&Config::job_wait, 0, kLongestWait>, SettingEffect::kRestart, "job"},
    {"batch", G::kSampling, F::kSwitch, "", "false", "print the table once and exit",
     kParsed<&Config::top_batch, parse_bool>, SettingEffect::kRestart, "top"},

    {"attribution", G::kLedger, F::kValue, "RULE", "adaptive",
     "who pays for shared time: adaptive, utilization (the plain formula) or measured-only (it stays unattributed)",
     kChoice<&Config::attribution, kAttributions>},
    {"static-power", G::kLedger, F::kValue, "RULE", "proportional",
     "who pays for the idle watts while processes exist: proportional, equal or separate",
     kChoice<&Config::static_power, kStaticPowers>},
    {"gpu-idle-power", G::kLedger, F::kValue, "WATTS", "learned", "fixed idle power of every GPU; 0: learned",
     kParsed<&Config::gpu_idle_power, parse_idle_power>, kLive},
    {"exact-time", G::kLedger, F::kValue, "MODE", "auto",
     "read the driver's context-switch trace (which process is on the GPU, to the microsecond): auto (if possible; "
     "needs CAP_SYS_ADMIN), on (with a warning if not possible) or off; see docs/exact-time.md. With the command "
     "replay: off ignores the recorded trace",
     kChoice<&Config::exact_time, kExactTimeModes>},
    {"exact-time-budget", G::kLedger, F::kValue, "PERCENT", "0.5%",
     "how much the trace may slow down the traced work, at 4.6 microseconds a switch; within it, all of the time is "
     "traced, else bursts of two seconds, at least one a minute",
     kParsed<&Config::exact_time_budget, parse_percent>},
    {"state-file", G::kLedger, F::kValue, "FILE", "", "keep the counters across restarts in FILE and FILE.recent",
     kText<&Config::state_file>},
    {"state-file-mode", G::kLedger, F::kValue, "MODE", "0600", "mode of those two files",
     kParsed<&Config::state_file_mode, parse_file_mode>},

    {"backend", G::kSource, F::kValue, "NAME", "auto",
     "auto, nvml, dcgm (NVML, and a running nv-hostengine for what NVML lacks) or sim (a simulated node)",
     kChoice<&Config::backend, kBackends>},
    {"nvml-library", G::kSource, F::kValue, "FILE", "", "the driver's library, if not the loader's libnvidia-ml.so.1",
     kText<&Config::nvml_library>},
    {"sim-scenario", G::kSource, F::kValue, "FILE", "",
     "with --backend=sim: a scenario or a recording; if not given, a mixed node that shows every feature",
     kText<&Config::sim_scenario>},
    {"gpu-devices", G::kSource, F::kList, "LIST", "all", "the GPUs to watch: indexes or UUIDs",
     kept_in<&Config::gpu_devices>(set_gpu_devices)},
    {"proc-root", G::kSource, F::kValue, "DIR", "/proc", "where the host's /proc is mounted",
     kPath<&Config::proc_root>},
    {"passwd-file", G::kSource, F::kValue, "FILE", "",
     "the host's passwd, for names of users; else that of the host's first process if it can be read, or /etc/passwd "
     "outside containers",
     kPath<&Config::passwd_file>},
    {"slurm-job-dir", G::kSource, F::kValue, "DIR", "/run/gpu-ledger-jobs",
     "where the site's Slurm prolog writes account and partition of each job (deploy/slurm); files that other users "
     "than root may write are ignored",
     kPath<&Config::slurm_job_dir>},
    {"url", G::kSource, F::kValue, "URL", "",
     "show the books of the exporter at this address: http://NODE:9400, https://USER:PASSWORD@NODE:9400 or unix:/PATH; "
     "none: top begins books of its own. If not given, the exporter of this machine, if one answers at "
     "--listen-address and --backend is not given. A password is safer in the variable: every user can read flags",
     kParsed<&Config::url, parse_exporter_url>, SettingEffect::kRestart, "top job"},
    {"url-ca-file", G::kSource, F::kValue, "FILE", "",
     "CA of that exporter's certificate, or the certificate itself; else the distribution's CAs",
     kText<&Config::url_ca_file>, SettingEffect::kRestart, "top job"},
    {"dcgm-library", G::kSource, F::kValue, "FILE", "",
     "with --backend=dcgm: DCGM's library, if not the loader's libdcgm.so.4 or libdcgm.so.3",
     kText<&Config::dcgm_library>},
    {"dcgm-address", G::kSource, F::kValue, "ADDRESS", "",
     "with --backend=dcgm: address of nv-hostengine: HOST, HOST:PORT or unix:/PATH; else 127.0.0.1:5555",
     kText<&Config::dcgm_address>},
    {"dcgm-embedded", G::kSource, F::kSwitch, "", "false",
     "with --backend=dcgm: run DCGM's engine in this process; not on a node where nv-hostengine runs",
     kParsed<&Config::dcgm_embedded, parse_bool>},
    {"dcgm-exporter-url", G::kSource, F::kValue, "URL", "",
     "add-on mode: serve this dcgm-exporter's metrics on /gpu/metrics, with pod labels, in place of our own",
     kParsed<&Config::dcgm_exporter_url, parse_http_url>},
    {"dcgm-exporter-file", G::kSource, F::kValue, "FILE", "",
     "the same from the file of the first dcgm-exporter, /run/prometheus/dcgm.prom",
     kPath<&Config::dcgm_exporter_file>},
    {"dcgm-pcie-throughput", G::kSource, F::kSwitch, "", "false",
     "read dcgm_pcie_*_throughput also from GPUs before Hopper; takes 42 ms of driver time in every process scan",
     kParsed<&Config::dcgm_pcie_throughput, parse_bool>},

    {"kubernetes-enabled", G::kKubernetes, F::kSwitch, "", "auto",
     "find pods: true, false or auto (if a kubelet or a cluster is found)",
     kept_in<&Config::kubernetes>(set_kubernetes)},
    {"pod-source", G::kKubernetes, F::kValue, "NAME", "auto",
     "where pod names come from: auto (pods-api, else apiserver), pods-api, apiserver, kubelet, cri or none",
     kChoice<&Config::pod_source, kPodSources>},
    {"pod-labels", G::kKubernetes, F::kList, "LIST", "", "pod labels to put on gpu_ledger_pod_info",
     kept_in<&Config::pod_labels>(set_pod_labels)},
    {"gpu-resources", G::kKubernetes, F::kList, "LIST", "",
     "more resources that are GPUs, beside nvidia.com/gpu and nvidia.com/mig-*", kNames<&Config::gpu_resources>},
    {"pod-resources-socket", G::kKubernetes, F::kValue, "FILE", "/var/lib/kubelet/pod-resources/kubelet.sock",
     "the kubelet's pod-resources socket: which pod has which GPU", kPath<&Config::pod_resources_socket>},
    {"pods-api-socket", G::kKubernetes, F::kValue, "FILE", "/var/lib/kubelet/pods-api/pods-api.sock",
     "the kubelet's Pods API socket, since Kubernetes 1.37 (1.36 with a feature gate)",
     kPath<&Config::pods_api_socket>},
    {"kubelet-address", G::kKubernetes, F::kValue, "ADDRESS", "",
     "with --pod-source=kubelet: its HOST:PORT; else NODE_IP, HOST_IP or 127.0.0.1 and port 10250",
     kText<&Config::kubelet_address>},
    {"kubelet-ca-file", G::kKubernetes, F::kValue, "FILE", "", "CA of the kubelet's certificate; else the cluster's CA",
     kText<&Config::kubelet_ca_file>},
    {"kubelet-insecure", G::kKubernetes, F::kSwitch, "", "false", "do not check the kubelet's certificate",
     kParsed<&Config::kubelet_insecure, parse_bool>},
    {"cri-socket", G::kKubernetes, F::kValue, "FILE", "",
     "with --pod-source=cri: the runtime's socket; else the first usual one found", kText<&Config::cri_socket>},
    {"docker-socket", G::kContainers, F::kValue, "FILE", "/var/run/docker.sock",
     "docker's socket, for names of containers; used if it exists; empty: never", kText<&Config::docker_socket>},
    {"podman-socket", G::kContainers, F::kValue, "FILE", "/run/podman/podman.sock", "the same for podman",
     kText<&Config::podman_socket>},

    {"collector.preset", G::kCollectors, F::kValue, "NAME", "compatible",
     "which collectors are on if they are not given: compatible (as listed below, with all older names) or lean "
     "(process-native, process-info, device, pod and self: names gpu_ledger_* only, few series)",
     with_words(kPresets, kept_in<&Config::preset>(set_preset)), kLive},
    GL_COLLECTOR("process", "true",
                 "my_gpu_process_*, or --metric-prefix: energy, time, utilization and memory of each process"),
    GL_COLLECTOR("process-native", "false",
                 "gpu_ledger_process_*: energy, time and memory of each process, in place of the collector process"),
    GL_COLLECTOR("process-info", "true",
                 "gpu_ledger_process_*: user, type and owner of each process, peak memory, video engines"),
    GL_COLLECTOR("idle", "true", "gpu_idle_*: processes that hold memory and are idle"),
    GL_COLLECTOR("processlist", "true", "gpu_process_*: the list of processes"),
    GL_COLLECTOR("device", "true",
                 "gpu_ledger_device_* and others: energy, power, memory, health and allocations of the GPUs"),
    GL_COLLECTOR("device-detail", "true",
                 "more of each GPU: clocks, fan, performance state, PCIe and NVLink traffic, video engines, time of "
                 "reduced clocks"),
    GL_COLLECTOR("dcgm", "true", "dcgm_* on /gpu/metrics"),
    GL_COLLECTOR("pod", "true", "gpu_ledger_pod_* and the other owners"),
    GL_COLLECTOR("self", "true", "gpu_ledger_build_info and the program's own state"),
    GL_COLLECTOR("driver-calls", "false",
                 "gpu_ledger_driver_call_duration_seconds: a histogram of each driver call, to see which one is slow"),
    GL_COLLECTOR("dcgm-modern", "false", "DCGM_FI_* on /gpu/metrics"),

    {"prometheus-url", G::kBill, F::kValue, "URL", "",
     "the server to ask: Prometheus, Thanos, Mimir or VictoriaMetrics; http://HOST:9090, "
     "https://USER:PASSWORD@HOST/PREFIX or unix:/PATH; /api/v1/query is added",
     kParsed<&Config::prometheus_url, parse_prometheus_url>, SettingEffect::kRestart, "bill"},
    {"prometheus-ca-file", G::kBill, F::kValue, "FILE", "",
     "CA of its certificate, or the certificate itself; else the distribution's CAs",
     kText<&Config::prometheus_ca_file>, SettingEffect::kRestart, "bill"},
    {"prometheus-token-file", G::kBill, F::kValue, "FILE", "", "a bearer token for it",
     kText<&Config::prometheus_token_file>, SettingEffect::kRestart, "bill"},
    {"prometheus-password-file", G::kBill, F::kValue, "FILE", "", "the password of the user in the URL",
     kText<&Config::prometheus_password_file>, SettingEffect::kRestart, "bill"},
    {"prometheus-headers", G::kBill, F::kList, "LIST", "",
     "NAME=VALUE: more headers of the requests: X-Scope-OrgID=TENANT for Mimir; a value with a comma needs a list in "
     "the config file",
     kPairs<&Config::prometheus_headers, parse_header>, SettingEffect::kRestart, "bill"},
    {"month", G::kBill, F::kValue, "MONTH", "", "a calendar month in UTC: 2026-10",
     kParsed<&Config::bill_month, parse_month>, SettingEffect::kRestart, "bill"},
    {"from", G::kBill, F::kValue, "TIME", "", "in place of --month: a date or a time, 2026-10-01T00:00:00Z",
     kParsed<&Config::bill_from, parse_time>, SettingEffect::kRestart, "bill"},
    {"to", G::kBill, F::kValue, "TIME", "", "with --from: the end, not included; else half a minute ago",
     kParsed<&Config::bill_to, parse_time>, SettingEffect::kRestart, "bill"},
    {"last", G::kBill, F::kValue, "DURATION", "", "in place of --month: this long until half a minute ago, 24h or 7d",
     kDuration<&Config::bill_last, 1000, kLongestBill>, SettingEffect::kRestart, "bill"},
    {"step", G::kBill, F::kValue, "DURATION", "",
     "interval at which the server is asked for all counters; else 1h, or 6h if the span is longer than 62 days",
     kDuration<&Config::bill_step, 1000, kLongestInterval>, SettingEffect::kRestart, "bill"},
    {"by", G::kBill, F::kList, "LIST", "namespace", kBillByHelp, kept_in<&Config::bill_by>(set_bill_by),
     SettingEffect::kRestart, "bill"},
    {"match", G::kBill, F::kValue, "MATCHERS", "", "only series with these labels: 'cluster=\"east\"'",
     kParsed<&Config::bill_match, parse_matchers>, SettingEffect::kRestart, "bill"},
    {"spread", G::kBill, F::kValue, "RULE", "keep",
     "unattributed energy (idle ...) and energy of unknown owners: keep (on separate lines), use or allocation (spread "
     "over the others by their energy or their allocated GPU hours)",
     kChoice<&Config::bill_spread, kSpreads>, SettingEffect::kRestart, "bill"},
    {"allocated", G::kBill, F::kValue, "RULE", "whole",
     "allocated hours of time slices of a GPU: whole (each counts as a GPU) or shared (those who hold slices of a GPU "
     "at a time share its hour)",
     kChoice<&Config::bill_allocated, kAllocatedRules>, SettingEffect::kRestart, "bill"},
    {"per", G::kBill, F::kValue, "UNIT", "",
     "token: show tokens of inference servers, and the energy, cost and CO2e of one; with --by=namespace, pod or "
     "cluster",
     kChoice<&Config::bill_per, kPers>, SettingEffect::kRestart, "bill"},
    {"price-per-kwh", G::kBill, F::kValue, "PRICE", "0", "price of a kWh; 0: no cost",
     kParsed<&Config::price_per_kwh, parse_amount>, SettingEffect::kRestart, "bill job"},
    {"price-per-gpu-hour", G::kBill, F::kList, "MODEL=PRICE", "",
     "price of an hour of a GPU, by its model, for hours that Kubernetes or Slurm allocated or else hours of work; may "
     "be given several times",
     kept_in<&Config::price_per_gpu_hour>(set_gpu_hour_prices), SettingEffect::kRestart, "bill"},
    {"price-list", G::kBill, F::kValue, "FILE", "",
     "prices that change, or differ by cluster: a YAML list of rows with from, to, cluster, per_kwh, pue and "
     "per_gpu_hour; the constant prices are for what it does not say",
     kText<&Config::price_list>, SettingEffect::kRestart, "bill"},
    {"currency", G::kBill, F::kValue, "CODE", "EUR", "of the prices, by ISO 4217",
     kParsed<&Config::currency, parse_currency>, SettingEffect::kRestart, "bill"},
    {"pue", G::kBill, F::kValue, "NUMBER", "1", "kWh of the building per kWh of a machine, for cost and CO2e",
     kParsed<&Config::pue, parse_pue>, SettingEffect::kRestart, "bill"},
    {"co2e-grams-per-kwh", G::kBill, F::kValue, "GRAMS", "", "CO2e of a kWh",
     kParsed<&Config::co2e_grams_per_kwh, parse_amount>, SettingEffect::kRestart, "bill"},
    {"co2e-series", G::kBill, F::kValue, "PROMQL", "",
     "the same from a query, of which the mean over every step counts; one series, or one per cluster",
     kText<&Config::co2e_series>, SettingEffect::kRestart, "bill"},
    {"format", G::kBill, F::kValue, "NAME", "",
     "bill: table (if not given), csv, html (a page for a browser and for paper), focus (CSV by FOCUS 1.3), focus-1.2 "
     "or focus-1.4; job: text (if not given), json (one object on one line) or line (words NAME=NUMBER on one line, "
     "for a job's comment)",
     kChoice<&Config::format, kFormats>, SettingEffect::kRestart, "bill job"},
    {"output", G::kBill, F::kValue, "FILE", "", "write the bill to this file, not to stdout",
     kText<&Config::bill_output>, SettingEffect::kRestart, "bill"},
    {"site", G::kBill, F::kValue, "NAME", "",
     "the name of the site, for --format=html and focus; else the server's address", kText<&Config::bill_site>,
     SettingEffect::kRestart, "bill"},
    {"serve", G::kBill, F::kSwitch, "", "false",
     "instead of one bill, answer the questions of programs that read OpenCost's allocation API, until SIGTERM",
     kParsed<&Config::bill_serve, parse_bool>, SettingEffect::kRestart, "bill"},
    {"serve-address", G::kBill, F::kList, "ADDRESS", "127.0.0.1:9003", "with --serve: where, as in --listen-address",
     kept_in<&Config::serve_addresses>(set_listen_addresses<&Config::serve_addresses>), SettingEffect::kRestart,
     "bill"},
    {"allow-gaps", G::kBill, F::kSwitch, "", "false", "succeed even if hours of a node are missing",
     kParsed<&Config::allow_gaps, parse_bool>, SettingEffect::kRestart, "bill"},
    {"query-timeout", G::kBill, F::kValue, "DURATION", "1m", "how long the server may take for an answer",
     kDuration<&Config::query_timeout, kShortestIntervalMs, kLongestInterval>, SettingEffect::kRestart, "bill"},

    {"config", G::kProgram, F::kValue, "FILE", "", "YAML file with the same names; read again at SIGHUP",
     kText<&Config::config_file>},
    {"log-level", G::kProgram, F::kValue, "LEVEL", "info", "debug, info, warn or error",
     kChoice<&Config::log_level, kLogLevels>, kLive},
    {"log-format", G::kProgram, F::kValue, "FORMAT", "text", "text or json", kChoice<&Config::log_format, kLogFormats>,
     kLive},
};
#undef GL_COLLECTOR

}  // namespace

std::span<const Setting> settings() {
  return kSettings;
}

const Setting* find_setting(std::string_view name) {
  const auto found = std::find_if(std::begin(kSettings), std::end(kSettings),
                                  [&](const Setting& setting) { return setting.name == name; });
  return found == std::end(kSettings) ? nullptr : &*found;
}

bool is_of_command(const Setting& setting, std::string_view command) {
  const std::vector<std::string> all = split_list(setting.command, ' ');
  return std::find(all.begin(), all.end(), command) != all.end();
}

std::string commands_of(const Setting& setting) {
  const std::vector<std::string> all = split_list(setting.command, ' ');
  return join_choices(std::vector<std::string_view>(all.begin(), all.end()));
}

bool takes_setting(const Command& command, const Setting& setting) {
  if (command.print != nullptr) return false;
  if (!setting.command.empty()) return is_of_command(setting, command.name);
  if (command.takes.empty()) return true;
  bool taken = false;
  for (const std::string& word : split_list(command.takes, ' ')) {
    if (word == setting.name || word == kGroupWords[static_cast<size_t>(setting.group)]) taken = true;
    if (word == "!" + std::string(setting.name)) return false;
  }
  return taken;
}

std::string environment_name(std::string_view setting_name) {
  std::string name = "GPU_LEDGER_";
  for (const unsigned char c : setting_name) {
    name += c == '-' || c == '.' ? '_' : static_cast<char>(std::toupper(c));
  }
  return name;
}

}  // namespace gpuledger::app
