// SPDX-License-Identifier: Apache-2.0
#include "identity/sources/cri_list.h"

#include <messages/cri.pb.h>

#include "identity/pod_json.h"
#include "identity/pod_store.h"

namespace gpuledger::identity {
namespace {

constexpr int kReady = 0;

using Strings = google::protobuf::Map<std::string, std::string>;
std::string text_at(const Strings& map, const std::string& key) {
  const auto it = map.find(key);
  return it == map.end() ? std::string() : it->second;
}

std::string first_of(const std::string& preferred, const Strings& labels, const char* key) {
  return preferred.empty() ? text_at(labels, key) : preferred;
}

Pod pod_of(const proto::cri::Sandbox& sandbox, const PodLabelList& wanted) {
  Pod pod;
  const auto& metadata = sandbox.metadata();
  pod.name_space = bounded_name(first_of(metadata.namespace_(), sandbox.labels(), "io.kubernetes.pod.namespace"));
  pod.name = bounded_name(first_of(metadata.name(), sandbox.labels(), "io.kubernetes.pod.name"));
  pod.uid = bounded_id(first_of(metadata.uid(), sandbox.labels(), "io.kubernetes.pod.uid"));
  for (const std::string& name : wanted) {
    const std::string value = text_at(sandbox.labels(), name);
    if (!value.empty()) pod.labels[name] = bounded_name(value);
  }
  // The kubelet copies a pod's annotations to its sandbox.
  pod.manifest_hash = parse_manifest_hash(text_at(sandbox.annotations(), "kubernetes.io/config.hash"));
  pod.hami_devices = text_at(sandbox.annotations(), "hami.io/vgpu-devices-allocated").substr(0, kLongestAnnotation);
  return pod;
}

}  // namespace

void CriList::add(const proto::cri::Sandbox& sandbox) {
  // A sandbox that is not ready belongs to an ended pod. The store keeps its name for a while; a new pod of the same
  // name comes first.
  if (sandbox.state() != kReady) return;
  Pod pod = pod_of(sandbox, labels_);
  if (pod.uid.empty() || pod.name.empty()) {
    ++malformed_;
    return;
  }
  if (pods_.size() >= PodStore::kMostPods && !by_uid_.contains(pod.uid)) {
    ++left_out_;
    return;
  }
  const auto [known, is_new] = by_uid_.try_emplace(pod.uid, pods_.size());
  if (is_new) pods_.push_back(std::move(pod));
  if (by_sandbox_.size() < kMostContainers) by_sandbox_[sandbox.id()] = known->second;
}

void CriList::add(const proto::cri::Container& container) {
  // Ended containers too: the last samples still need names.
  const auto known = by_sandbox_.find(container.pod_sandbox_id());
  std::string id = bounded_id(container.id());
  if (known == by_sandbox_.end() || id.empty() || containers_ >= kMostContainers) return;
  ++containers_;
  const std::string name = first_of(container.metadata().name(), container.labels(), "io.kubernetes.container.name");
  pods_[known->second].containers.push_back({std::move(id), bounded_name(name)});
}

}  // namespace gpuledger::identity
