#include "identity/sources/cri.h"

#include <messages/cri.pb.h>

#include <algorithm>
#include <filesystem>
#include <unordered_map>

#include "identity/pod_json.h"

namespace gpuledger::identity {
namespace {

namespace wire = proto::cri;

constexpr size_t kLargestAnswer = 16 << 20;  // what kubelets allow
constexpr size_t kLongestAnnotation = 64 << 10;
constexpr int kReady = 0;

using Strings = google::protobuf::Map<std::string, std::string>;
std::string text_at(const Strings& map, const std::string& key) {
  const auto it = map.find(key);
  return it == map.end() ? std::string() : it->second;
}

std::string first_of(const std::string& preferred, const Strings& labels, const char* key) {
  return bounded_name(preferred.empty() ? text_at(labels, key) : preferred);
}

Pod pod_of(const wire::Sandbox& sandbox, const PodLabelList& wanted) {
  Pod pod;
  pod.name_space = first_of(sandbox.metadata().namespace_(), sandbox.labels(), "io.kubernetes.pod.namespace");
  pod.name = first_of(sandbox.metadata().name(), sandbox.labels(), "io.kubernetes.pod.name");
  pod.uid = first_of(sandbox.metadata().uid(), sandbox.labels(), "io.kubernetes.pod.uid");
  for (const std::string& name : wanted) {
    const std::string value = text_at(sandbox.labels(), name);
    if (!value.empty()) pod.labels[name] = bounded_name(value);
  }
  // The kubelet hands a pod's annotations on to its sandbox.
  pod.manifest_hash = bounded_name(text_at(sandbox.annotations(), "kubernetes.io/config.hash"));
  pod.hami_devices = text_at(sandbox.annotations(), "hami.io/vgpu-devices-allocated").substr(0, kLongestAnnotation);
  return pod;
}

}  // namespace

CriPods::CriPods(Options options)
    : options_(std::move(options)),
      backoff_({.longest = options_.period}),
      thread_([this](const std::stop_token& stop) { return look(stop); }) {}

// A socket being there is not enough: beside docker, containerd's often has no CRI. So a failure moves on to the next.
void CriPods::choose_socket() {
  std::string chosen = options_.socket;
  const auto& usual = options_.usual_sockets;
  for (size_t i = 0; i < usual.size() && chosen.empty(); ++i) {
    const size_t candidate = (next_socket_ + i) % usual.size();
    std::error_code ignored;
    if (!std::filesystem::exists(usual[candidate], ignored)) continue;
    chosen = usual[candidate];
    next_socket_ = candidate + 1;
  }
  if (chosen.empty()) {
    client_.reset();
  } else {
    client_ = std::make_unique<GrpcClient>(chosen, kLargestAnswer);
  }
}

PollThread::Next CriPods::look(const std::stop_token& stop) {
  if (!client_) choose_socket();
  std::vector<Pod> pods;
  const GrpcOutcome outcome = client_ ? read_pods(pods, stop) : GrpcOutcome{"no_socket", {}};
  if (stop.stop_requested()) return {};
  const auto now = std::chrono::steady_clock::now();
  if (!outcome.ok()) {
    std::string reason =
        "no container runtime's socket is in one of the usual places: mount its folder or give its path";
    if (client_) reason = failure_reason(outcome, client_->socket());
    if (client_ && outcome.code == "unimplemented") {
      reason = client_->socket() + " does not speak CRI runtime.v1: give the path of the runtime's that does";
    }
    health_.fails(outcome.code, std::move(reason));
    client_.reset();
    return {backoff_.next(now), false};
  }
  const size_t left_out = store_.replace_all(std::move(pods), now);
  for (size_t i = 0; i < left_out; ++i) health_.counts("too_many_pods");
  store_.publish(now);
  health_.works();
  return {options_.period};
}

GrpcOutcome CriPods::read_pods(std::vector<Pod>& pods, const std::stop_token& stop) {
  client_->refresh();
  std::unordered_map<std::string, size_t> by_uid;
  std::unordered_map<std::string, size_t> by_sandbox;
  wire::Sandbox sandbox;
  const auto each_sandbox = [&] {
    // One that is not ready is what an ended pod left behind. The store keeps its name for a while, below that of a new
    // pod of the same name.
    if (sandbox.state() != kReady) return;
    Pod pod = pod_of(sandbox, options_.labels);
    if (pod.uid.empty() || pod.name.empty()) return health_.counts("malformed");
    const auto [known, is_new] = by_uid.try_emplace(pod.uid, pods.size());
    if (is_new) pods.push_back(std::move(pod));
    by_sandbox[sandbox.id()] = known->second;
  };
  const std::string service = "/runtime.v1.RuntimeService/";
  const auto outcome = client_->list(service + "ListPodSandbox", sandbox, each_sandbox, options_.deadline, stop);
  if (!outcome.ok()) return outcome;

  wire::Container container;
  const auto each_container = [&] {
    // Those that ended as well: their processes' last samples need names.
    const auto known = by_sandbox.find(container.pod_sandbox_id());
    if (known == by_sandbox.end() || container.id().empty()) return;
    pods[known->second].containers.push_back(
        {bounded_name(container.id()),
         first_of(container.metadata().name(), container.labels(), "io.kubernetes.container.name")});
  };
  return client_->list(service + "ListContainers", container, each_container, options_.deadline, stop);
}

}  // namespace gpuledger::identity
