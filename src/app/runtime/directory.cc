// SPDX-License-Identifier: Apache-2.0
#include "app/runtime/directory.h"

#include <cstdlib>
#include <filesystem>
#include <utility>

#include "app/runtime/sim_node_files.h"
#include "base/listen_address.h"
#include "identity/auto_pods.h"
#include "identity/sources/apiserver.h"
#include "identity/sources/cri.h"
#include "identity/sources/docker_names.h"
#include "identity/sources/kubelet_pods.h"
#include "identity/sources/pod_resources.h"
#include "identity/sources/pods_api.h"
#include "task/health_cell.h"

namespace gpuledger::app {
namespace {

namespace fs = std::filesystem;
using identity::NodeDirectory;
using identity::PodSource;

// A rollout starts this program on all nodes at once. A short delay spreads the lists, which the API server answers
// from its cache; a long one would leave the first joules without names.
constexpr auto kStartDelay = std::chrono::seconds(1);

// True also if only root may look: the kubelet's folders are closed to others, and ignoring an existing kubelet would
// silently lose the names of its pods.
bool is_there(const fs::path& path) {
  std::error_code failed;
  return fs::exists(path, failed) || failed == std::errc::permission_denied;
}

bool in_cluster() {
  const char* host = std::getenv("KUBERNETES_SERVICE_HOST");
  return host && *host;
}

NodeDirectory simulated_directory(const Config& config, const SimNode& sim) {
  NodeDirectory directory;
  if (config.kubernetes.value_or(true)) {
    directory.pods = std::make_unique<PodFile>(sim.pod_list(), config.pod_labels);
    directory.allocations = std::make_unique<AllocationFile>(sim.pod_resources());
  }
  directory.containers.push_back(std::make_unique<ContainerFile>(sim.docker_list()));
  // A scenario with real processes has a real prolog too.
  const bool real = config.slurm_job_dir != Config{}.slurm_job_dir;
  directory.slurm_jobs = identity::SlurmJobs(real ? config.slurm_job_dir : sim.slurm_jobs());
  return directory;
}

std::unique_ptr<PodSource> open_pods_api(const Config& config) {
  identity::PodsApi::Options options;
  options.socket = config.pods_api_socket;
  options.labels = config.pod_labels;
  return std::make_unique<identity::PodsApi>(std::move(options));
}

Result<std::unique_ptr<PodSource>> open_apiserver(const Config& config, std::chrono::seconds start_delay) {
  GL_TRY(options, identity::read_cluster_environment());
  options.node_name = config.node_name;
  options.labels = config.pod_labels;
  options.start_delay = start_delay;
  GL_TRY(source, identity::ApiServerPods::start(std::move(options)));
  return std::unique_ptr<PodSource>(std::move(source));
}

Result<std::unique_ptr<PodSource>> open_kubelet(const Config& config) {
  identity::KubeletOptions options;
  if (!config.kubelet_address.empty()) {
    GL_TRY(address, parse_listen_address(config.kubelet_address).about("--kubelet-address"));
    options.host = address.host;
    options.port = address.port;
  }
  if (!config.kubelet_ca_file.empty()) options.account.ca_file = config.kubelet_ca_file;
  options.skip_verify = config.kubelet_insecure;
  options.labels = config.pod_labels;
  return std::unique_ptr<PodSource>(std::make_unique<identity::KubeletPods>(std::move(options)));
}

std::unique_ptr<PodSource> open_cri(const Config& config) {
  identity::CriPods::Options options;
  options.socket = config.cri_socket;
  options.labels = config.pod_labels;
  return std::make_unique<identity::CriPods>(std::move(options));
}

// The kubelet's /pods and the CRI need rights that should not be given by default; they are never chosen.
Result<std::unique_ptr<PodSource>> open_auto(const Config& config) {
  std::vector<identity::PodChoice> choices;
  choices.push_back(
      {"pods-api", [config] { return why_no_pods_api(config); }, [config] { return open_pods_api(config); }});
  choices.push_back({"apiserver", [config] { return why_no_apiserver(config); },
                     [config]() -> std::unique_ptr<PodSource> {
                       auto source = open_apiserver(config, kStartDelay);
                       return source.ok() ? std::move(*source) : nullptr;
                     }});
  GL_TRY(pods, identity::AutoPods::start(std::move(choices)).about("--pod-source=auto"));
  return std::unique_ptr<PodSource>(std::move(pods));
}

Result<std::unique_ptr<PodSource>> open_pods(const Config& config, PodSourceName name,
                                             std::chrono::seconds start_delay) {
  switch (name) {
    case PodSourceName::kAuto: return open_auto(config);
    case PodSourceName::kPodsApi: return open_pods_api(config);
    case PodSourceName::kApiServer: return open_apiserver(config, start_delay).about("--pod-source=apiserver");
    case PodSourceName::kKubelet: return open_kubelet(config);
    case PodSourceName::kCri: return open_cri(config);
    case PodSourceName::kNone: break;
  }
  return std::unique_ptr<PodSource>();
}

// Nobody makes a thread for it later.
Status check_thread(const SourceHealth& health) {
  if (!health.errors.contains(task::kNoThread)) return ok_status();
  return Error{Code::kUnavailable, health.source + ": " + health.reason};
}

Status check_threads(const NodeDirectory& directory) {
  for (const auto& source : directory.containers) GL_TRY_STATUS(check_thread(source->health()));
  if (directory.allocations) GL_TRY_STATUS(check_thread(directory.allocations->health()));
  return directory.pods ? check_thread(directory.pods->health()) : ok_status();
}

bool kubelet_is_seen(const Config& config) {
  return is_there(fs::path(config.pod_resources_socket).parent_path());
}

}  // namespace

std::string why_no_pods_api(const Config& config) {
  if (is_there(config.pods_api_socket)) return {};
  return config.pods_api_socket + " is not there (it is from Kubernetes 1.37 on)";
}

std::string why_no_apiserver(const Config& config) {
  if (!in_cluster()) return "KUBERNETES_SERVICE_HOST is not set: not in a cluster";
  return config.node_name.empty() ? "needs --node-name or NODE_NAME" : "";
}

bool kubernetes_is_wanted(const Config& config) {
  const bool chosen = config.pod_source != PodSourceName::kAuto;
  return config.kubernetes.value_or(kubelet_is_seen(config) || in_cluster() || chosen);
}

std::unique_ptr<identity::AllocationSource> open_allocations(const Config& config) {
  identity::PodResources::Options options;
  options.socket = config.pod_resources_socket;
  options.more_resources = config.gpu_resources;
  return std::make_unique<identity::PodResources>(std::move(options));
}

std::vector<std::unique_ptr<identity::ContainerSource>> open_containers(const Config& config) {
  std::vector<std::unique_ptr<identity::ContainerSource>> sources;
  auto docker = identity::DockerOptions::docker();
  auto podman = identity::DockerOptions::podman();
  docker.socket = config.docker_socket;
  podman.socket = config.podman_socket;
  for (auto* options : {&docker, &podman}) {
    if (options->socket.empty() || !identity::container_socket_exists(options->socket)) continue;
    sources.push_back(std::make_unique<identity::DockerNames>(std::move(*options)));
  }
  return sources;
}

Result<std::unique_ptr<PodSource>> open_pod_source(const Config& config, PodSourceName name) {
  return open_pods(config, name, std::chrono::seconds(0));
}

Result<NodeDirectory> open_directory(const Config& config, const SimNode* sim) {
  if (sim) return simulated_directory(config, *sim);
  NodeDirectory directory;
  directory.containers = open_containers(config);
  directory.slurm_jobs = identity::SlurmJobs(config.slurm_job_dir);
  if (!kubernetes_is_wanted(config)) {
    GL_TRY_STATUS(check_threads(directory));
    return directory;
  }
  if (kubelet_is_seen(config) || config.kubernetes.value_or(false)) directory.allocations = open_allocations(config);
  GL_TRY(pods, open_pods(config, config.pod_source, kStartDelay));
  directory.pods = std::move(pods);
  GL_TRY_STATUS(check_threads(directory));
  return directory;
}

}  // namespace gpuledger::app
