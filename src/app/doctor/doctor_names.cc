// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <thread>

#include "app/doctor/doctor.h"
#include "app/runtime/directory.h"
#include "identity/naming.h"
#include "identity/sources/cri.h"
#include "identity/sources/docker_names.h"

namespace gpuledger::app {
namespace {

namespace fs = std::filesystem;
using Level = Finding::Level;
constexpr auto kPatience = std::chrono::seconds(5);
constexpr auto kStep = std::chrono::milliseconds(20);

// A started source whose health is polled until it is known.
struct Asked {
  std::string subject;
  std::function<SourceHealth()> health;
  Level if_failing = Level::kFail;
  std::string if_working;
  SourceHealth last = {};
  std::string before_reason = {};

  bool decided() {
    last = health();
    return last.up || !last.errors.empty();
  }
  Finding finding() const {
    if (last.up) return {Level::kOk, subject, if_working};
    const std::string late = "no answer within " + std::to_string(kPatience.count()) + " s";
    return {if_failing, subject, before_reason + (last.errors.empty() ? late : last.reason)};
  }
};

// In parallel: they take as long as the slowest.
void wait_for(std::vector<Asked>& asked) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  for (Asked& each : asked) {
    while (!each.decided() && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(kStep);
  }
}

template <typename Source>
std::function<SourceHealth()> health_of(std::unique_ptr<Source> source) {
  return [shared = std::shared_ptr<Source>(std::move(source))] { return shared->health(); };
}

Findings ask_containers(const Config& config, const std::optional<std::set<std::string>>& in_use,
                        std::vector<Asked>& asked) {
  Findings findings;
  for (const auto& [name, socket] : {std::pair("docker", config.docker_socket), {"podman", config.podman_socket}}) {
    if (socket.empty()) {
      findings.push_back({Level::kOk, name, "off, as the settings say"});
    } else if (!identity::container_socket_exists(socket)) {
      findings.push_back({Level::kOk, name, socket + " is not there: no such daemon, or not mounted here"});
    }
  }
  for (auto& source : open_containers(config)) {
    const std::string name(source->runtime());
    Asked& one = asked.emplace_back();
    one = {name, health_of(std::move(source)), Level::kWarn, "answers with the names of its containers"};
    if (in_use && !in_use->contains(name)) {
      one.if_failing = Level::kOk;
      one.before_reason = identity::kNotNeeded;
    }
  }
  return findings;
}

Finding look_for_cri(const Config& config) {
  const identity::CriPods::Options usual;
  std::vector<std::string> sockets = usual.usual_sockets;
  if (!config.cri_socket.empty()) sockets = {config.cri_socket};
  std::error_code ignored;
  const auto found =
      std::find_if(sockets.begin(), sockets.end(), [&](const std::string& path) { return fs::exists(path, ignored); });
  return {Level::kOk, "cri",
          (found == sockets.end() ? "no runtime's socket here" : *found + " is there") +
              std::string("; it is asked only with --pod-source=cri, because its socket gives root access")};
}

void ask_pods(const Config& config, PodSourceName name, const char* subject, Level if_failing, Findings& findings,
              std::vector<Asked>& asked) {
  auto source = open_pod_source(config, name);
  if (!source.ok()) {
    findings.push_back({if_failing, subject, source.error().message});
  } else {
    asked.push_back({subject, health_of(std::move(*source)), if_failing, "answers with this node's pods"});
  }
}

// --pod-source=auto: one of the two is enough.
void ask_either(const Config& config, Findings& findings, std::vector<Asked>& asked) {
  const std::string no_pods_api = why_no_pods_api(config);
  const std::string no_apiserver = why_no_apiserver(config);
  if (!no_pods_api.empty() && !no_apiserver.empty()) {
    findings.push_back({Level::kFail, "pods",
                        "no source of their names: pods-api: " + no_pods_api + "; apiserver: " + no_apiserver +
                            ". In a pod set NODE_NAME from spec.nodeName"});
    return;
  }
  if (no_pods_api.empty()) {
    const Level level = no_apiserver.empty() ? Level::kWarn : Level::kFail;
    ask_pods(config, PodSourceName::kPodsApi, "pods-api", level, findings, asked);
  } else {
    findings.push_back({Level::kOk, "pods-api", no_pods_api + "; the API server is asked"});
  }
  if (no_apiserver.empty()) {
    const Level level = no_pods_api.empty() ? Level::kWarn : Level::kFail;
    ask_pods(config, PodSourceName::kApiServer, "apiserver", level, findings, asked);
  } else {
    findings.push_back({Level::kOk, "apiserver", "not asked: " + no_apiserver});
  }
}

void ask_kubernetes(const Config& config, Findings& findings, std::vector<Asked>& asked) {
  const std::string folder = fs::path(config.pod_resources_socket).parent_path().string();
  if (!kubernetes_is_wanted(config)) {
    findings.push_back({Level::kOk, "kubernetes",
                        config.kubernetes
                            ? "off, as the settings say"
                            : "neither " + folder +
                                  " nor a cluster is found, so pods are not looked for; in a pod, mount that folder"});
    return;
  }
  asked.push_back(
      {"pod-resources", health_of(open_allocations(config)), Level::kFail, "lists which pod has which GPU"});
  switch (config.pod_source) {
    case PodSourceName::kAuto: ask_either(config, findings, asked); break;
    case PodSourceName::kNone:
      findings.push_back({Level::kWarn, "pods",
                          "--pod-source=none: names come only from pod-resources, for GPUs that one pod has alone"});
      break;
    case PodSourceName::kPodsApi: ask_pods(config, config.pod_source, "pods-api", Level::kFail, findings, asked); break;
    case PodSourceName::kApiServer:
      ask_pods(config, config.pod_source, "apiserver", Level::kFail, findings, asked);
      break;
    case PodSourceName::kKubelet: ask_pods(config, config.pod_source, "kubelet", Level::kFail, findings, asked); break;
    case PodSourceName::kCri: ask_pods(config, config.pod_source, "cri", Level::kFail, findings, asked); break;
  }
  if (config.pod_source != PodSourceName::kCri) findings.push_back(look_for_cri(config));
}

}  // namespace

std::set<std::string> runtimes_in_use(const SampleBatch& batch, const identity::ProcReader& proc) {
  std::set<std::string> in_use;
  for (const DeviceSample& device : batch.devices) {
    for (const ProcessSample& process : device.processes) {
      const auto home = identity::parse_cgroup(proc.read_cgroup(process.pid).value_or(""));
      for (const char* runtime : {"docker", "podman"}) {
        if (identity::needs_names(home, runtime)) in_use.insert(runtime);
      }
    }
  }
  return in_use;
}

Findings check_names(const Config& config, const std::optional<std::set<std::string>>& in_use) {
  std::vector<Asked> asked;
  Findings findings;
  ask_kubernetes(config, findings, asked);
  const Findings containers = ask_containers(config, in_use, asked);
  findings.insert(findings.end(), containers.begin(), containers.end());
  wait_for(asked);
  // With both available one that answers is enough; none is a failure.
  const auto is_pods = [](const Asked& each) { return each.subject == "pods-api" || each.subject == "apiserver"; };
  const bool any =
      std::any_of(asked.begin(), asked.end(), [&](const Asked& each) { return is_pods(each) && each.last.up; });
  for (Asked& each : asked) {
    if (is_pods(each) && !any) each.if_failing = Level::kFail;
    findings.push_back(each.finding());
  }
  return findings;
}

}  // namespace gpuledger::app
