// SPDX-License-Identifier: Apache-2.0
#include "identity/sources/pod_proto.h"

#include <messages/pod.pb.h>

#include "identity/pod_json.h"

namespace gpuledger::identity {
namespace {

using Strings = google::protobuf::Map<std::string, std::string>;
std::string text_at(const Strings& map, const char* key) {
  const auto it = map.find(key);
  return it == map.end() ? std::string() : it->second;
}

using Statuses = google::protobuf::RepeatedPtrField<proto::pod::ContainerStatus>;
void add_containers(const Statuses& statuses, Pod& pod) {
  for (const auto& status : statuses) {
    // The container before the restart may still be ending.
    for (const auto* id : {&status.last_state().terminated().container_id(), &status.container_id()}) {
      add_container(status.name(), *id, pod);
    }
  }
}

using Containers = google::protobuf::RepeatedPtrField<proto::pod::Container>;
void add_requests(const Containers& containers, Pod& pod) {
  for (const auto& container : containers) {
    for (const auto& [resource, count] : container.resources().limits()) {
      add_request(container.name(), resource, count.text(), pod);
    }
  }
}

}  // namespace

std::optional<Pod> parse_pod_proto(std::string_view bytes, const PodLabelList& labels) {
  proto::pod::Pod message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return std::nullopt;
  const auto& metadata = message.metadata();
  Pod pod;
  pod.name_space = bounded_name(metadata.namespace_());
  pod.name = bounded_name(metadata.name());
  pod.uid = bounded_id(metadata.uid());
  if (pod.uid.empty() || pod.name.empty()) return std::nullopt;
  pod.manifest_hash = parse_manifest_hash(text_at(metadata.annotations(), "kubernetes.io/config.hash"));
  pod.hami_devices = text_at(metadata.annotations(), "hami.io/vgpu-devices-allocated").substr(0, kLongestAnnotation);
  for (const std::string& name : labels) {
    const std::string value = text_at(metadata.labels(), name.c_str());
    if (!value.empty()) pod.labels[name] = bounded_name(value);
  }
  add_requests(message.spec().init_containers(), pod);
  add_requests(message.spec().containers(), pod);
  const auto& status = message.status();
  pod.finished = status.phase() == "Succeeded" || status.phase() == "Failed";
  add_containers(status.init_containers(), pod);
  add_containers(status.ephemeral_containers(), pod);
  add_containers(status.containers(), pod);
  return pod;
}

}  // namespace gpuledger::identity
